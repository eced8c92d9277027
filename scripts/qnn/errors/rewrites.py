"""Faults of cutting and rewriting a graph."""

from qnn.errors.base import ExitCode, ForgeError


class UnknownTensor(ForgeError):
    """What: `outputs` of a graph names a tensor that no node of its main graph makes.

    Why: The graph is cut at tensors by their names in the ONNX file, before anything is simplified. Names of the
    original framework, and tensors inside a branch or a function, are not there.

    Mend: Look the name up in the file (Netron, or `onnx.load(…).graph.node`). The message shows names like it.
    """

    id = "QF430"
    title = "no such tensor to cut at"
    exit_code = ExitCode.GRAPH
