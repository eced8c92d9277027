"""Faults of numeric range: what fp16 cannot hold, found before anything is compiled."""

from qnn.errors.base import ExitCode, ForgeError


class LeavesFp16(ForgeError):
    """What: Values inside the graph leave fp16's range, and with what HTP makes of them the graph's outputs come out
    wrong. The message names the graph and how wrong; a line each names the node, the tensor, how far it goes and what
    mends it.

    Why: HTP's 16-bit float ends at ±65,504 and has nothing between 0 and 6e-8. Sums of squares, exponentials and
    masks pass that quickly. The compiler does not notice, and the chip answers with finite numbers, not with
    infinity or NaN. This was found on the model's own sample, in a float run with every tensor looked at, and the
    outputs were computed once more with those tensors as HTP would have them.

    Mend: Do what the line says: switch the named rewrite on (`graphs.NAME.rewrites`), change the graph, or use a
    quantized precision such as w8a16, which has a range of its own for every tensor. `qnn-forge range MODEL` shows
    all tensors. If you know better, acknowledge the tensor with a reason under `checks.ranges`; the build then goes
    on and the gates decide.
    """

    id = "QF440"
    title = "values leave fp16's range and the result is wrong"
    exit_code = ExitCode.GRAPH


class RangeRunFailed(ForgeError):
    """What: The prepared graph could not be run in float to look at its ranges.

    Why: ONNX Runtime's CPU provider does not load it or fails on the sample.

    Mend: Read ONNX Runtime's reason in the message. If the original model runs and the prepared graph does not,
    a rewrite may be at fault: switch it off under `graphs.NAME.rewrites` and report it.
    """

    id = "QF441"
    title = "the prepared graph does not run in float"
    exit_code = ExitCode.GRAPH
