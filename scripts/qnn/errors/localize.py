"""Faults of localizing: what keeps the search for a wrong node from being made."""

from qnn.errors.base import ExitCode, ForgeError


class GraphDoesNotRun(ForgeError):
    """What: The prepared graph does not load or run on ONNX Runtime's CPU provider, so there is nothing to hold the
    NPU's tensors against.

    Why: Localizing compares every tensor with the same graph on the CPU. A graph with operators or types that the
    CPU provider has no kernel for cannot be compared.

    Mend: Read ONNX Runtime's reason in the message. If the original model runs, a rewrite may be at fault: try
    `--without all`.
    """

    id = "QF640"
    title = "the graph cannot be run on the CPU to compare with"
    exit_code = ExitCode.GATE


class DoesNotCompile(ForgeError):
    """What: The graph as a whole does not compile for this chip, so its numbers cannot be looked at.

    Why: Localizing starts from a graph that compiles and gives wrong results. The message has the compiler's reason.

    Mend: `qnn-forge build` names the nodes that are refused and what to do about them. Localize when it compiles.
    """

    id = "QF641"
    title = "the graph does not compile, so there are no numbers to look at"
    exit_code = ExitCode.GATE


class ProbeFailed(ForgeError):
    """What: A part of the graph with more of its tensors as outputs does not compile, or does not run.

    Why: Making a tensor an output takes it out of a fusion, and what is left may have no form on the NPU. The search
    leaves such a tensor out and says so; the message reaches you only where nothing else is left to look at.

    Mend: Try `--bisect`, which compares fewer tensors, or another bucket.
    """

    id = "QF642"
    title = "a part of the graph cannot be looked at"
    exit_code = ExitCode.GATE


class NoSuchGraph(ForgeError):
    """What: No graph of this model is called that.

    Why: `--graph` takes a name as it stands under `graphs` in model.yaml.

    Mend: Give one of the names in the message.
    """

    id = "QF643"
    title = "no such graph"
    exit_code = ExitCode.GATE


class NoSuchSample(ForgeError):
    """What: The model has fewer samples than the number given.

    Why: `--sample` counts from 0, in the order in which data.py gives them; `checks.count` says how many there are.

    Mend: Give a smaller number, or leave it out: then the first sample whose outputs are wrong is taken.
    """

    id = "QF644"
    title = "no such sample"
    exit_code = ExitCode.GATE
