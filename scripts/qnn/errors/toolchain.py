"""Faults of the toolchain: what the compiler refuses, or leaves undone without a word."""

from qnn.errors.base import ExitCode, ForgeError


class CompilerRefused(ForgeError):
    """What: The QAIRT compiler refused the graph, and it was not for an operator it does not know.

    Why: Graph finalization can fail on memory planning, on shapes, or on a fault of the compiler itself. The error
    numbers of the message are QNN's (1002 is a memory allocation failure while finalizing, 3110 a refused operator).

    Mend: Read the log named in the message. Try another bucket or precision; run `qnn-forge build` for another chip
    of a different arch to see whether the fault is the graph's or the chip's.
    """

    id = "QF510"
    title = "the compiler refused the graph"
    exit_code = ExitCode.TOOLCHAIN


class NoContext(ForgeError):
    """What: The compiler reported success but left no context binary, or more than one.

    Why: This happens when no part of the graph could go to the NPU (a dynamic dimension, or an operator refused in
    silence), or when the graph was cut into several parts. A run that ends well is not yet a result.

    Mend: Make all shapes static, and see the operators that the message names. A model must be one partition.
    """

    id = "QF511"
    title = "the compiler left no single context binary"
    exit_code = ExitCode.TOOLCHAIN


class ContextDoesNotLoad(ForgeError):
    """What: The context binary was written, but it does not load again.

    Why: A binary that does not load on the emulator will not load on a phone. One known cause is a weight that is
    also listed among the graph's inputs.

    Mend: Read the log named in the message, and report the model: preparation should have prevented this.
    """

    id = "QF512"
    title = "the context binary does not load again"
    exit_code = ExitCode.TOOLCHAIN


class NoToolchain(ForgeError):
    """What: The toolchain asked for is not installed or cannot be used on this machine.

    Why: The pip toolchain is the onnxruntime-qnn wheel, which needs Linux on x86-64 with glibc 2.35 or newer, and an
    onnxruntime of a version it was tested with. libQnnSystem.so also needs libatomic.so.1, which slim systems lack.

    Mend: Install the pair pinned in constraints.txt: `pip install -c constraints.txt qnn-forge`, and libatomic where
    it is missing (`apt-get install libatomic1`). `qnn-forge doctor` says what is wrong with a machine.
    """

    id = "QF513"
    title = "the toolchain cannot be used"
    exit_code = ExitCode.TOOLCHAIN


class EmulatorFailed(ForgeError):
    """What: The context binary loaded, but running it on the HTP emulator failed.

    Why: What cannot be run cannot be checked, so it is not handed out.

    Mend: Read the log named in the message; it holds QNN's own error. Try another bucket or precision.
    """

    id = "QF514"
    title = "the emulator failed"
    exit_code = ExitCode.TOOLCHAIN
