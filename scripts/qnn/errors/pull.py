"""Faults of pull: what keeps a published file from arriving, and files that are not what the index says."""

from qnn.errors.base import ExitCode, ForgeError


class PublishedFileMissing(ForgeError):
    """What: There is nothing at an address of the index, or access to it is refused (HTTP 401, 403, 404 or 410).

    Why: The address given with `--from` is not that of an index, a release was deleted, or the files are private: pull
    sends no token to anybody.

    Mend: Check the address. If the index names a file that does not exist, report it to whoever keeps the index. Fetch
    private files with their host's own tool into a folder that has the index too, and pull with `--from DIR`.
    """

    id = "QF720"
    title = "a published file is not there"
    exit_code = ExitCode.SOURCE


class DownloadsLimited(ForgeError):
    """What: The server answers "too many requests" and kept doing so, or asks for a longer wait than pull waits.

    Why: Servers limit downloads per address, and CI machines share addresses.

    Mend: Run the same command again later. What was downloaded is kept and continued.
    """

    id = "QF721"
    title = "a server limits the number of downloads"
    exit_code = ExitCode.SOURCE


class DownloadServerFault(ForgeError):
    """What: The server answered with an error of its own (HTTP 5xx) several times in a row, or with something that is
    no answer to a download.

    Why: The service is down or overloaded, or a proxy answers in its place. It was asked again with growing pauses.

    Mend: Run the same command later. What was downloaded is kept and continued.
    """

    id = "QF722"
    title = "a server of published files failed"
    exit_code = ExitCode.SOURCE


class DownloadCut(ForgeError):
    """What: A download ended before all of it came, or stood still, and several further attempts did not complete it.

    Why: The connection broke, or the server or a proxy cut the answer short.

    Mend: Run the same command again: it continues from the bytes it has, where the server allows that.
    """

    id = "QF723"
    title = "a published file did not arrive whole"
    exit_code = ExitCode.SOURCE


class DownloadRedirected(ForgeError):
    """What: The address of a published file leads to where pull does not follow: plain http, a circle, too many steps,
    an address with a login in it; or the index itself names such an address.

    Why: Over plain http anybody on the way can read and change what is sent, and index documents have no checksum of
    their own.

    Mend: Report it to whoever keeps the index. A folder on this machine can be given with `--from DIR`.
    """

    id = "QF724"
    title = "the address of a published file was refused"
    exit_code = ExitCode.SOURCE


class NoConnection(ForgeError):
    """What: No trusted connection could be made: no network, an unknown host name, or a certificate that is not valid.

    Why: Only https with a certificate that this system trusts is used.

    Mend: Check the network and the address. Behind a proxy set HTTPS_PROXY; a proxy that opens TLS needs its
    certificate in the system's store (or SSL_CERT_FILE).
    """

    id = "QF725"
    title = "no connection to where files are published"
    exit_code = ExitCode.SOURCE


class NotThePublishedFile(ForgeError):
    """What: The bytes that came are not the published file: another size than the index says, or another sha256.

    Why: The file was damaged or replaced where it is kept. Nothing of it was extracted, and it is not kept.

    Mend: Run the command again. If it stays, do not use the file, and report it to whoever published it.
    """

    id = "QF726"
    title = "a download is not the published file"
    exit_code = ExitCode.BUNDLE


class IndexEntryFalse(ForgeError):
    """What: A file has the sha256 of its index entry, but its manifest says something else than the entry does: another
    model, chip, QAIRT version, other inputs and outputs, other numbers.

    Why: Either the index was tampered with, to make somebody take the wrong file for the right one, or it was written
    wrongly. Nothing was put into the output folder.

    Mend: Do not use the file. Report it to whoever keeps the index.
    """

    id = "QF727"
    title = "an index entry is not true of its file"
    exit_code = ExitCode.BUNDLE


class OutputTaken(ForgeError):
    """What: The output folder holds a bundle of the same name with other content, or something else of that name.

    Why: Pull never overwrites. It may be another revision, or one that was changed by hand.

    Mend: Remove it, or give another folder with `--out`.
    """

    id = "QF728"
    title = "the output folder holds another bundle of that name"
    exit_code = ExitCode.SYSTEM


class NoAdb(ForgeError):
    """What: `--device` needs `adb`, and it was not found or could not be started.

    Why: The chip is read from the device by `adb shell getprop ro.soc.model`.

    Mend: Install Android's platform tools and put `adb` on PATH, or name the chip with `--soc`.
    """

    id = "QF729"
    title = "adb is missing"
    exit_code = ExitCode.DEVICE


class DeviceSilent(ForgeError):
    """What: adb could not say which chip the device has: no device, several of them, one that has not allowed USB
    debugging, or one without ro.soc.model.

    Why: The property ro.soc.model exists since Android 12. With several devices adb has to be told which.

    Mend: `adb devices` shows what adb sees. Name one with `--device SERIAL`, allow USB debugging on its screen, or
    name the chip with `--soc`.
    """

    id = "QF730"
    title = "the device does not say which chip it has"
    exit_code = ExitCode.DEVICE


class NoAttestation(ForgeError):
    """What: An attestation is required (`--require-attestation`), and the index names none for the file.

    Why: Without one the sha256 proves that the file is the one of the index, but not who built it.

    Mend: Take a version or revision that is attested (`qnn-forge info MODEL --json`), or do without the requirement.
    """

    id = "QF731"
    title = "the file has no attestation"
    exit_code = ExitCode.BUNDLE


class NotBuiltYet(ForgeError):
    """What: The index has no file that loads on the chip with the runtime named, but one can be built.

    Why: Not every chip is a target of every model, and a context binary made by a newer QAIRT than the device's runtime
    does not load.

    Mend: Run the command that the message prints in a checkout of the models, or take one of the nearest matches.
    """

    id = "QF732"
    title = "the file has to be built first"
    exit_code = ExitCode.PULL_BUILD


class NothingFits(ForgeError):
    """What: What is asked for does not exist and cannot be built as asked: an unknown model, version, bucket, precision
    or revision, a chip that cannot run it, or only yanked files.

    Why: The message says which of them, and what is nearest.

    Mend: Ask for one of the nearest matches. Where the index names the float ONNX model, that runs on the CPU.
    """

    id = "QF733"
    title = "nothing in the index fits"
    exit_code = ExitCode.PULL_NO
