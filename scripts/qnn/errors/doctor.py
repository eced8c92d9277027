"""Faults that `qnn-forge doctor` finds in a machine or an installation, before a build meets them."""

from qnn.errors.base import ExitCode, ForgeError


class WrongPlatform(ForgeError):
    """What: The machine is not Linux on x86-64.

    Why: The HTP compiler and emulator of the onnxruntime-qnn wheel exist for that platform only. The wheels for other
    platforms hold the runtime for devices, which can neither compile nor emulate.

    Mend: Build on Linux x86-64: any CI runner, a virtual machine, or the image of docs/docker.md. Linting works
    everywhere.
    """

    id = "QF930"
    title = "the platform has no compiler"
    exit_code = ExitCode.SYSTEM


class OldLibc(ForgeError):
    """What: The C library is not glibc, or is older than 2.35.

    Why: The onnxruntime-qnn wheel is built against glibc 2.35 (manylinux_2_35), and its libraries do not load on an
    older one. Alpine's musl is not glibc.

    Mend: Use Debian 12, Ubuntu 22.04, Fedora 36 or newer, or the image of docs/docker.md.
    """

    id = "QF931"
    title = "the C library is too old"
    exit_code = ExitCode.SYSTEM


class PackageMissing(ForgeError):
    """What: onnxruntime or onnxruntime-qnn is not installed in the Python that runs qnn-forge.

    Why: The wheel onnxruntime-qnn holds the compiler, and onnxruntime is what drives it.

    Mend: `pip install -c constraints.txt onnxruntime onnxruntime-qnn`, with the constraints.txt of the repository.
    """

    id = "QF932"
    title = "a package of the toolchain is missing"
    exit_code = ExitCode.SYSTEM


class UntestedPair(ForgeError):
    """What: The installed onnxruntime and onnxruntime-qnn have not been tested together. This is a warning.

    Why: The two are built against each other: onnxruntime-qnn 2.3.0 cannot be loaded by onnxruntime 1.32. Another
    pair may work, which the trial compile of `qnn-forge doctor` shows, but nobody has compared its binaries.

    Mend: Install the pair pinned in constraints.txt, or try the new one and add it to docs/toolchains.md.
    """

    id = "QF933"
    title = "an untested pair of packages"
    exit_code = ExitCode.SYSTEM


class LibraryUnusable(ForgeError):
    """What: A library of the toolchain is missing from the installed wheel, or does not load.

    Why: A build needs libQnnHtp, libHtpPrepare, libQnnSystem and the provider of ONNX Runtime. An interrupted
    install, a full disk or a wheel for another platform leaves some of them out or cuts them short. libQnnSystem also
    needs the system's libatomic, which slim container images lack.

    Mend: Install the system's library that the message names (Debian and Ubuntu: `apt-get install libatomic1`). When
    the message names the wheel's own, `pip install --force-reinstall --no-deps -c constraints.txt onnxruntime-qnn`.
    """

    id = "QF934"
    title = "a library of the toolchain cannot be used"
    exit_code = ExitCode.SYSTEM


class TrialFailed(ForgeError):
    """What: A graph of one operator could not be compiled, read back, or run on the emulator.

    Why: All parts may be there and still not work together. The trial does what every build does, on the smallest
    graph there is, in child processes.

    Mend: Mend the other faults of the report first. Then read the details: they hold the compiler's own message.
    """

    id = "QF935"
    title = "the trial build failed"
    exit_code = ExitCode.SYSTEM


class TrialWrong(ForgeError):
    """What: The trial graph compiled and ran, and its numbers, its chip or its QAIRT build are not what they must be.

    Why: A toolchain that is wrong on one multiplication cannot be trusted with a model. The usual reason is a library
    of another version found first, through LD_LIBRARY_PATH or a second install.

    Mend: Unset LD_LIBRARY_PATH, use a fresh virtual environment with the pinned packages, and run the doctor again.
    """

    id = "QF936"
    title = "the trial build is wrong"
    exit_code = ExitCode.SYSTEM


class LittleMemory(ForgeError):
    """What: There is little free memory, or the container's limit leaves little. A warning above 0.5 GB.

    Why: The smallest compile takes about 0.2 GB and one of a 400 MB model 1.5 GB (measured, QAIRT 2.51). Beyond the
    free memory, the kernel ends processes of its own choice.

    Mend: End other programs, raise the container's memory limit, or build with `--jobs 1`.
    """

    id = "QF937"
    title = "too little memory"
    exit_code = ExitCode.SYSTEM


class LittleDisk(ForgeError):
    """What: There is little room on the disk of the store. A warning above 0.2 GB.

    Why: The store keeps downloads, prepared graphs and context binaries; a model of 400 MB takes about 2 GB of it.

    Mend: Free some space, run `qnn-forge store prune --max-size 10G`, or point `--store` at another disk.
    """

    id = "QF938"
    title = "too little room on the disk"
    exit_code = ExitCode.SYSTEM


class KitIncomplete(ForgeError):
    """What: QAIRT_SDK_ROOT or ANDROID_NDK_ROOT names a folder that is not such a kit. This is a warning.

    Why: A file that every release of the kit holds is not there: the variable names the folder above it, an old
    place, or an unpacking that was interrupted. The pip toolchain does not need either kit.

    Mend: Set the variable to the folder that holds the file named in the message, or unset it.
    """

    id = "QF939"
    title = "a kit is not where its variable says"
    exit_code = ExitCode.SYSTEM
