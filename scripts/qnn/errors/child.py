"""Faults of child processes: a crash, a hang, too much memory."""

from qnn.errors.base import ExitCode, ForgeError


class ChildCrashed(ForgeError):
    """What: A child process that ran vendor code or graph tools died or raised an unexpected error.

    Why: The compiler and emulator can abort or crash on graphs they do not expect. They run in a child process so
    that one crash is one error here and every other result of the run is kept.

    Mend: Read the log named in the message; its last lines are shown. Try another precision, bucket or chip to
    narrow it down. If the same input fails again, report it with the log and the model.yaml.
    """

    id = "QF501"
    title = "a child process crashed"
    exit_code = ExitCode.TOOLCHAIN


class ChildTimedOut(ForgeError):
    """What: A child process did not end within the model's time limit and was stopped.

    Why: Some graphs make the compiler run for hours (long unrolled LSTMs, token-recurrent loops). A limit keeps
    one model from blocking all others.

    Mend: Raise `limits.minutes` in model.yaml if the model is known to be slow, or make the graph smaller: shorter
    bucket, chunked form, fewer unrolled steps.
    """

    id = "QF502"
    title = "a child process ran out of time"
    exit_code = ExitCode.TOOLCHAIN


class ChildOutOfMemory(ForgeError):
    """What: A child process used more resident memory than the model's limit and was stopped.

    Why: Compiling takes several times the size of the weights. Stopping one job is better than the machine's
    out-of-memory killer stopping an arbitrary one.

    Mend: Raise `limits.memory_gb` in model.yaml, run with fewer `--jobs`, or use a smaller shape bucket.
    """

    id = "QF503"
    title = "a child process ran out of memory"
    exit_code = ExitCode.TOOLCHAIN
