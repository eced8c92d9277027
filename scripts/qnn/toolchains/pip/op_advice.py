"""What to do about an operator the HTP compiler refuses: one row a case, the first that fits is given.

Sources: the measured refusals of QAIRT 2.51 (docs/prepare.md) and rewrites that were seen to compile and be exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """For these operators (empty: any), when the reason matches: what to do."""

    operators: frozenset[str]
    reason: str
    text: str


def advice(op_type: str, reason: str) -> str:
    """The first fitting row's text; there is always one."""
    return next(
        row.text
        for row in _TABLE
        if (not row.operators or op_type in row.operators) and re.search(row.reason, reason, re.IGNORECASE)
    )


def _row(operators: str, text: str, reason: str = "") -> Advice:
    return Advice(frozenset(operators.split()), reason, text)


_REFUSED = "validation refuses"

_TABLE = (
    _row("", "fix all dimensions of its inputs, and replace data-dependent operators before it", "^Cannot get shape"),
    _row("", "merge neighbouring dimensions with a Reshape before it and split them after it", r"dimensions .*at most"),
    _row("", "export the model in float32", r"which HTP does not have"),
    _row(
        "Erf",
        "write the whole exact GELU, 0.5·x·(1 + Erf(x/√2)): only that pattern is fused, and only with its own 0.5 (if "
        "an exporter folded the 0.5 into the next layer, multiply by 0.5 and by 2 around it), or use the Gelu operator",
    ),
    _row(
        "LSTM GRU RNN",
        "leave out sequence_lens: pad to the bucket's length and ignore the rest of the output, or make one bucket a "
        "length",
        r"sequence length",
    ),
    _row(
        "LSTM GRU RNN",
        "remove the `activations` attribute if it names the defaults (Sigmoid, Tanh, Tanh): any explicit one is "
        "refused",
    ),
    _row(
        "NonZero Compress Unique NonMaxSuppression",
        "its size depends on the data: end the graph before it and do the rest in the application, or use TopK or a "
        "mask",
    ),
    _row("Einsum", "write it as Transpose, Reshape and MatMul (an outer product as Unsqueeze and Mul)"),
    _row("GridSample", "use mode linear (bilinear) or nearest; bicubic has no HTP form", "bicubic|cubic"),
    _row(
        "LayerNormalization",
        "Reshape the normalised axes into one last axis, normalise over that, and Reshape back",
        "last axis",
    ),
    _row(
        "LayerNormalization", "where it is quantized, quantize gamma as uint8: int8 beside uint8 is refused", _REFUSED
    ),
    _row("Trilu", "multiply by a constant mask of zeros and ones (Where for a fill value)"),
    _row(
        "Resize",
        "use coordinate mode asymmetric with nearest_mode floor, or replace it by two Gathers with constant indices",
        "nearest",
    ),
    _row("Resize", "give `sizes` in place of `scales`: HTP takes the scale from the shapes", "scales"),
    _row("Resize", "use mode linear or nearest, with `sizes` in place of `scales`"),
    _row("", "quantize along axis 1, the output channels", "axis == 1 for per-channel"),
    _row("ConvTranspose", "use dilation 1, with a kernel that has the zeros of the dilation written out", "dilation"),
    _row("ConvTranspose", "where it is quantized per channel, quantize along axis 1, the output channels", _REFUSED),
    _row("ConvTranspose", "use plain padding: no output_padding, group 1 or depthwise, dilation 1"),
    _row("MaxPool AveragePool", "pool over two axes, Reshape, and pool over the third", "3d"),
    _row(
        "ArgMax ArgMin", "reverse the axis with a Slice of step -1 and subtract the result from its size", "last_index"
    ),
    _row("ReduceProd", "multiply slices (Split and Mul), or Exp(ReduceSum(Log(x))) where x is positive"),
    _row(
        "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL2",
        "remove it: with empty axes it does nothing",
        "noop|no-op",
    ),
    _row("MatMul Gemm", "Reshape the operands to at most four dimensions around it"),
    _row(
        "GatherND",
        "boolean mask code of transformers exports this: export with an additive float mask of -1e4 instead",
    ),
    _row("Gather GatherElements", "add the axis' size to negative indices before it", "negative"),
    _row("Clip", "with bounds that are computed, use Max and Min in its place"),
    _row("Pad", "use constant or reflect padding of all axes; leave out the `axes` input"),
    _row("STFT DFT", "write it as a Conv whose weights are the Fourier basis"),
    _row("Det Inverse", "compute it in the application, or write a fixed small size out in Mul and Sub"),
    _row("CumSum", "write it as a MatMul with a triangular matrix of ones"),
    _row(
        "", "make its input's shape known: fix all dimensions, and replace data-dependent operators before it", "shape$"
    ),
    _row(
        "",
        "compare the operands with the operator's limits in QNN's operator definition; often another dtype, rank or "
        "layout of the same operation is taken",
        _REFUSED,
    ),
    _row("", "replace it by other operators, or cut the graph before it and compute it in the application"),
)
