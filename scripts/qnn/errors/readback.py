"""Faults of context binaries: files that are none, broken ones, and binaries that are not what was planned."""

from qnn.errors.base import ExitCode, ForgeError


class NotAContextBinary(ForgeError):
    """What: A file was opened as a QNN context binary and is something else: an ONNX file, a library, an archive, text.

    Why: Context binaries are recognised by their content, not by the name `.bin`. The message says what the file
    looks like.

    Mend: Give the `.bin` file of a bundle. The file `NAME_ctx.onnx` beside it is only a small wrapper; a model.onnx
    has to be compiled first (`qnn-forge build`).
    """

    id = "QF600"
    title = "the file is not a context binary"
    exit_code = ExitCode.GATE


class FlexibleContextBinary(ForgeError):
    """What: The file is a flexible context binary (FCB): one container with the contexts of several chips.

    Why: An FCB is a DLC (a stored zip with one `htp.cache.<chip>` record a chip), and QnnSystem's context reader
    and the x86 emulator refuse it. The message lists the chips it holds.

    Mend: Inspect or verify a binary that was compiled for one chip. On a device an FCB is loaded by QAIRT 2.48 or
    newer as it is.
    """

    id = "QF601"
    title = "the file is a flexible context binary"
    exit_code = ExitCode.GATE


class CorruptContextBinary(ForgeError):
    """What: The file starts like a context binary but is cut short, damaged, or holds values no compiler writes.

    Why: A download or copy was interrupted, the disk was full while it was written, or its bytes changed since. A
    device would refuse it too, often with no more than an error number.

    Mend: Fetch or build the file again and compare its sha256 with the manifest of its bundle.
    """

    id = "QF602"
    title = "the context binary is damaged"
    exit_code = ExitCode.GATE


class ReadBackMismatch(ForgeError):
    """What: A context binary does not hold what was planned; every field that differs is listed.

    Why: The compiler accepts wrong chip names, any VTCM size and unknown options without complaint and writes a
    binary that will not load, or will load and be slow or wrong, on the chip it was meant for. So every binary is
    opened after the compile and compared with the plan: chip, architecture, VTCM, QAIRT build, graphs, and each
    input's and output's name, order, shape, dtype and quantization.

    Mend: If you gave the binary yourself (`inspect`, `verify`), it belongs to another chip or toolchain: take the
    bundle made for yours. If a build ends with this, clear the stage with `qnn-forge store prune` and build again;
    when it stays, report it with the list of differences and the compile log.
    """

    id = "QF603"
    title = "the context binary is not what was planned"
    exit_code = ExitCode.GATE


class UnreadableBinary(ForgeError):
    """What: A context binary could not be opened: it does not exist, is a folder, or may not be read.

    Why: The path was mistyped, a build wrote no file although the compiler reported success, or the file belongs to
    another user.

    Mend: Check the path and its permissions. After a build, read the compile log named in the message.
    """

    id = "QF604"
    title = "the context binary cannot be opened"
    exit_code = ExitCode.GATE


class NoQnnSystemLibrary(ForgeError):
    """What: libQnnSystem.so was not found, could not be loaded, or offers no interface this version can use.

    Why: Context binaries are read by Qualcomm's own library, which the onnxruntime-qnn wheel or the QAIRT SDK brings.
    The package is missing, is for another platform, or is older than the system API 1.x this tool was written for.

    Mend: Install the pinned packages again (`make build`, or `pip install onnxruntime-qnn`), on Linux x86-64 or
    aarch64 with glibc 2.35 or newer.
    """

    id = "QF605"
    title = "libQnnSystem cannot be used"
    exit_code = ExitCode.GATE


class NotForTheConsumer(ForgeError):
    """What: The runtime named with `--for` cannot use the context binary.

    Why: A runtime on top of QNN may want more than QNN does: one graph in a file, tensors of certain types, metadata
    of a certain version. Some go on with stale buffers instead of stopping, so the fault shows as wrong results.

    Mend: Build the model with one graph a binary and inputs and outputs of the types the message names (an int64
    input can become int32 in model.yaml), or use a runtime that takes it, as ONNX Runtime with the wrapper ONNX.
    """

    id = "QF606"
    title = "the runtime cannot use the context binary"
    exit_code = ExitCode.GATE
