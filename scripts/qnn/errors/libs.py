"""Faults of runtime libraries: which packages there are, and what is wrong with a set taken from one."""

from qnn.errors.base import ExitCode, ForgeError


class NoSuchLibraries(ForgeError):
    """What: There is no official package with runtime libraries of the QAIRT version that was asked for.

    Why: Libraries for Linux and Windows come from the onnxruntime-qnn wheels, for Android from the AAR
    com.qualcomm.qti:qnn-runtime. Each holds one QAIRT version, and the two are not released in step: there are wheels
    of 2.50.40 and an AAR of 2.50.0. Behind a mirror a package may also be missing that exists elsewhere.

    Mend: Ask for one of the versions listed. A runtime loads context binaries made by its own QAIRT or an older one,
    so a newer version is a safe choice. If a mirror lacks the package, have it added there.
    """

    id = "QF770"
    title = "no such runtime libraries"
    exit_code = ExitCode.SOURCE


class OtherSetThere(ForgeError):
    """What: The output folder already holds an archive of the same name with something else in it.

    Why: The name says QAIRT, operating system and machine, but not the chips and extras that were asked for. Libraries
    for another chip under the same name would be found out only on the device.

    Mend: Name all chips in one call (`--soc SM8650 --soc SM8750`), give another `--out`, or remove the old archive.
    """

    id = "QF771"
    title = "another set of libraries is there"
    exit_code = ExitCode.BUNDLE


class ArchNotServed(ForgeError):
    """What: The package holds no HTP libraries for the chip's Hexagon version.

    Why: A chip needs the Skel (the part that runs on the NPU) of exactly its Hexagon version. The Linux wheels have
    v68, v69, v73, v75, v79 and v81, those for Windows on Arm only v68, v73 and v81.

    Mend: Check `--os` and `--soc`. For a chip that is newer than the package take a newer `--toolchain`.
    """

    id = "QF772"
    title = "no libraries for this chip"
    exit_code = ExitCode.CHIP


class NotTheOfficialPackage(ForgeError):
    """What: A downloaded package is not the one known under its name: other bytes, or files missing in it.

    Why: Libraries that run in every app are taken only from packages whose sha256 is pinned here, given by you, or,
    where neither is known, vouched for by the repository's own checksum. The package must also hold the libraries and
    the licence texts that go with them.

    Mend: Find out where the package came from (a mirror, a proxy), and download it again. If it was published anew and
    you trust it, give its digest with `--sha256`.
    """

    id = "QF773"
    title = "not the official package"
    exit_code = ExitCode.SOURCE


class MixedVersions(ForgeError):
    """What: Libraries of one set carry different QAIRT builds, or another one than their package stands for; or a
    catalogue for Windows is not the signature of the Skel beside it.

    Why: System, Htp, Stub and Skel talk to each other through private interfaces. A mixture loads and fails later, with
    errors as 1002 or 14001 on the device. Every library but System (on Linux) has its build inside.

    Mend: Take all libraries from one package. Remove the download and get it again if it claims to be one.
    """

    id = "QF774"
    title = "libraries of different QAIRT versions"
    exit_code = ExitCode.BUNDLE


class WrongSkel(ForgeError):
    """What: A Skel is made for another Hexagon version than the one in its name.

    Why: The NPU loads the Skel whose name has the chip's version, and refuses or misreads one made for another. The
    version is in the ELF header's flags.

    Mend: Get the package again from where it is published. Do not rename Skels.
    """

    id = "QF775"
    title = "a Skel for another Hexagon version"
    exit_code = ExitCode.BUNDLE


class WrongMachine(ForgeError):
    """What: A library is made for another processor than the one asked for.

    Why: Wheels for several platforms hold libraries of the same names. A library of another machine does not load.

    Mend: Get the package of the platform asked for again. Check that nobody mixed its files.
    """

    id = "QF776"
    title = "a library for another machine"
    exit_code = ExitCode.BUNDLE


class NeedUnmet(ForgeError):
    """What: A library needs another one that is neither in the set nor known to be part of the system.

    Why: The loader looks for every needed library when the first one is loaded and gives up if one is missing.

    Mend: If the library is on your systems, tell us, so that it is listed. Else the package is not complete: get it
    again, or take another `--toolchain`.
    """

    id = "QF777"
    title = "a needed library is missing"
    exit_code = ExitCode.BUNDLE


class PagesTooSmall(ForgeError):
    """What: A library for Android has segments that are not aligned for memory pages of 16 KB.

    Why: Android 15 and newer runs on devices with 16 KB pages, and Google Play asks that apps support them. A library
    whose LOAD segments are aligned to 4 KB does not load there.

    Mend: Take a newer `--toolchain`. For apps that are only for devices with 4 KB pages add `--allow-4k-pages`.
    """

    id = "QF778"
    title = "not aligned for 16 KB pages"
    exit_code = ExitCode.BUNDLE


class DamagedLibrary(ForgeError):
    """What: A file that should be a library is not an ELF or PE image, or its headers point outside of it.

    Why: Machine, needed libraries and alignment are read from these headers; without them nothing can be checked.

    Mend: Get the package again. If it is the same, report it to whoever published it.
    """

    id = "QF779"
    title = "a library cannot be read"
    exit_code = ExitCode.BUNDLE
