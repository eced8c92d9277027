"""What mends a site: a rewrite that takes it away, tried on a copy of the graph, or a word of advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import ModelProto

from qnn.prepare.canonical import sort_graph
from qnn.prepare.rewrites.registry import rewrites
from qnn.ranges.facts import Kind
from qnn.ranges.rules import Site

# Rewrites that keep values in fp16's range, the mildest first.
_CANDIDATES = ("sum-to-mean", "rms-norm", "clip-exp", "softmax-mask", "scaled-squares")
_PRECISION = "or use a quantized precision (w8a16), which has a range for every tensor"


@dataclass(frozen=True)
class Remedy:
    """What to do, and the rewrite that does it, if one does."""

    text: str
    rewrite: str | None


class Remedies:
    """Of one prepared graph, with every rewrite applied that model.yaml left on."""

    def __init__(self, prepared: ModelProto) -> None:
        self._left = {name: left for name in _CANDIDATES if (left := _left_by(name, prepared)) is not None}

    def of(self, site: Site) -> Remedy:
        """The rewrite after which the tensor is no longer computed, or advice by kind."""
        reads = tuple(site.node.input) if site.node is not None else ()
        for name, left in self._left.items():
            if site.tensor not in left or (site.kind is Kind.EXP_LOW and left[site.tensor] != reads):
                return Remedy(f"switch the rewrite on: `rewrites: {{{name}: true}}`", name)
        return Remedy(_advice(site), None)


def _left_by(name: str, prepared: ModelProto) -> dict[str, Sequence[str]] | None:
    """Every tensor that is still there after a rewrite, with what makes it; None when the rewrite finds nothing."""
    rewrite = next((rewrite for rewrite in rewrites() if rewrite.name == name), None)
    if rewrite is None:
        return None
    copy = ModelProto()
    copy.CopyFrom(prepared)
    if not any(change.kind == "rewritten" for change in rewrite.apply(copy)):
        return None
    sort_graph(copy)
    left: dict[str, Sequence[str]] = {name: tuple(node.input) for node in copy.graph.node for name in node.output}
    left.update((tensor.name, ()) for tensor in copy.graph.initializer)
    left.update((value.name, ()) for value in copy.graph.input)
    return left


def _advice(site: Site) -> str:
    op = "" if site.node is None else site.node.op_type
    if site.kind is Kind.OVERFLOW:
        given = "mask" if site.value < 0 else "constant"
        return _OVERFLOW.get(op or given, _OVERFLOW[""])
    if site.kind is Kind.UNDERFLOW:
        return _UNDERFLOW["constant" if site.node is None else "tensor"]
    return _ADVICE[site.kind].format(op=op)


_SQUARE = f"scale by a power of two before squaring and undo it behind the root; {_PRECISION}"
_SUM = f"take a mean in place of a sum, or sum shorter pieces; {_PRECISION}"
# What to do about numbers beyond 65504, by what makes them.
_OVERFLOW = {
    "": f"scale by a power of two before it and undo the scaling behind it; {_PRECISION}",
    "CumSum": _SUM,
    "Exp": "Clip(max=11) before the Exp, or write softmax, logsumexp or softplus as the operator",
    "Mul": _SQUARE,
    "Pow": _SQUARE,
    "ReduceSum": _SUM,
    "ReduceSumSquare": _SQUARE,
    "constant": "scale it by a power of two and undo the scaling behind it",
    "mask": "use -10000 where a mask needs a large negative number",
}
_UNDERFLOW = {
    "constant": "raise it to 6.2e-5 (fp16's smallest normal number) or more, or scale what it is added to",
    "tensor": "scale it up by a power of two, or put a floor of 6.2e-5 under it",
}
_ADVICE = {
    Kind.EXP_LOW: "Clip(min=-80) before the {op}: the rewrite clip-exp does that",
    Kind.LOG_LOW: "raise the floor under the logarithm to 6.2e-5, if its author agrees",
    Kind.LOG_HIGH: "scale the argument down and add the logarithm back; use Softplus for log(1+exp(x))",
    Kind.NAN: "use -10000 in place of -inf in masks, and keep divisors away from 0",
    Kind.COARSE: "keep running sums short, or leave them to the application",
}
