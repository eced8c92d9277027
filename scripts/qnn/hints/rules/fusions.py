"""Patterns that HTP has one operator for, in a form that is not recognised.

Which forms are recognised was measured with onnxruntime-qnn 2.7.0 (QAIRT 2.51): GELU with Erf and with Tanh, and the
Gelu operator, become QNN Gelu; LayerNorm needs its gamma; the HardSwish operator is one ElementWiseNeuron while
x·Clip(x + 3, 0, 6)/6 is four operators and x·HardSigmoid(x) two; SiLU is Sigmoid and Multiply in every form.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from qnn.hints.facts import Found
from qnn.hints.seen import Rule, Seen
from qnn.prepare.rewrites.view import GraphView

_NAMED = 6
_ROOT = 0.7978845608  # √(2/π), of GELU's Tanh form
_NEAR = 1e-3


def _gelu(seen: Seen) -> Iterator[Found]:
    found = [node for node in seen.view.nodes("Tanh", "Erf") if _is_gelus(seen.view, node)]
    yield from _told(seen, found, "GELU", "Gelu")


def _is_gelus(view: GraphView, node: NodeProto) -> bool:
    if node.op_type == "Erf":
        return True
    scaled = view.maker(node.input[0], "Mul")
    return scaled is not None and any(_is_number(view, name, _ROOT) for name in scaled.input)


def _layer_norm(seen: Seen) -> Iterator[Found]:
    found = [node for node in seen.view.nodes("Div", "Mul") if _is_norm(seen.view, node)]
    yield from _told(seen, found, "a layer norm", "LayerNorm")


def _is_norm(view: GraphView, node: NodeProto) -> bool:
    """(x - mean) / root of the mean of its squares, or times the root's reciprocal."""
    for centred, other in (node.input, tuple(reversed(node.input))):
        difference = view.maker(centred, "Sub")
        if difference is None or view.maker(difference.input[1], "ReduceMean") is None:
            continue
        root = view.maker(other, "Sqrt")
        if root is None and node.op_type == "Mul":
            inverse = view.maker(other, "Reciprocal")
            root = None if inverse is None else view.maker(inverse.input[0], "Sqrt")
        if root is not None and _averages_squares(view, root.input[0], centred):
            return True
        if node.op_type == "Div":
            break
    return False


def _averages_squares(view: GraphView, name: str, centred: str) -> bool:
    added = view.maker(name, "Add")
    names = [name] if added is None else list(added.input)
    for mean in (view.maker(one, "ReduceMean") for one in names):
        square = None if mean is None else view.maker(mean.input[0], "Mul", "Pow")
        if square is not None and square.input[0] == centred:
            return True
    return False


def _silu(seen: Seen) -> Iterator[Found]:
    found = [node for node in seen.view.nodes("Div", "Reciprocal") if _is_written_out_sigmoid(seen.view, node)]
    yield from _told(seen, found, "a sigmoid (of SiLU, say)", "Sigmoid")


def _is_written_out_sigmoid(view: GraphView, node: NodeProto) -> bool:
    """Something divided by 1 + exp(-x)."""
    added = view.maker(node.input[-1], "Add")
    if added is None:
        return False
    for one, other in (added.input, tuple(reversed(added.input))):
        power = view.maker(other, "Exp")
        if power is not None and _is_number(view, one, 1.0) and view.maker(power.input[0], "Neg", "Mul") is not None:
            return True
    return False


def _hard_swish(seen: Seen) -> Iterator[Found]:
    found = [node for node in seen.view.nodes("Mul") if _is_hard_swish(seen.view, node)]
    yield from _told(seen, found, "HardSwish", "HardSwish")


def _is_hard_swish(view: GraphView, node: NodeProto) -> bool:
    """x · HardSigmoid(x), or x · Clip(x + 3, 0, 6) with a sixth somewhere."""
    for x, gate in (node.input, tuple(reversed(node.input))):
        hard = view.maker(gate, "HardSigmoid", "Clip", "Div", "Mul")
        if hard is not None and hard.op_type in ("Div", "Mul"):
            hard = view.maker(hard.input[0], "Clip")
        if hard is None:
            continue
        given = hard.input[0]
        if hard.op_type == "HardSigmoid":
            if given == x:
                return True
            continue
        added = view.maker(given, "Add")
        if added is not None and x in added.input and any(_is_number(view, name, 3.0) for name in added.input):
            return True
    return False


def _told(seen: Seen, written_out: list[NodeProto], what: str, operator: str) -> Iterator[Found]:
    missed = [node for node in written_out if not any(op.op == operator for op in seen.qnn.of_node(node.name))]
    if not missed:
        return
    lines = tuple(f"{node.name} ({node.op_type}): {_as_compiled(seen, node)}" for node in missed[:_NAMED])
    more = (f"{len(missed) - _NAMED} more",) if len(missed) > _NAMED else ()
    times = "once" if len(missed) == 1 else f"{len(missed)} times"
    yield Found(f"{what} is written out in a form that does not become {operator}, {times}", (*lines, *more))


def _as_compiled(seen: Seen, node: NodeProto) -> str:
    ops = [op.op for op in seen.qnn.of_node(node.name)]
    return f"became {' + '.join(ops)}" if ops else "not seen in the compiled graph"


def _is_number(view: GraphView, name: str, value: float) -> bool:
    scalar = view.scalar(name)
    return scalar is not None and abs(scalar - value) <= _NEAR * value


GELU = Rule(
    id="QH04",
    title="a GELU that is not fused",
    why="HTP has one operator for GELU; written out it is eight or nine, each of which reads and writes the tensor.",
    change="Use the ONNX operator Gelu (opset 20; approximate=tanh for the Tanh form), or write the whole pattern out "
    "as the exporter of torch does: 0.5·x·(1 + Erf(x/√2)).",
    look=_gelu,
)

LAYER_NORM = Rule(
    id="QH05",
    title="a layer norm that is not fused",
    why="Written out it is seven operators, and its squares may leave fp16; HTP's LayerNorm is one.",
    change="Use the ONNX operator LayerNormalization over the last axis. A norm without gamma and beta is not "
    "recognised: give it a gamma of ones.",
    look=_layer_norm,
)

SILU = Rule(
    id="QH06",
    title="a sigmoid or SiLU that is written out",
    why="x / (1 + exp(-x)) is four operators, and exp(-x) leaves fp16 below -11; Sigmoid and Mul are two.",
    change="Use Sigmoid (and Mul for SiLU), or leave the rewrite sigmoid-written-out on.",
    look=_silu,
)

HARD_SWISH = Rule(
    id="QH07",
    title="a HardSwish that is written out",
    why="The ONNX operator HardSwish becomes one QNN operator; x·HardSigmoid(x) becomes two, and "
    "x·Clip(x + 3, 0, 6)/6 four.",
    change="Use the ONNX operator HardSwish (opset 14), which torch's exporter makes of nn.Hardswish.",
    look=_hard_swish,
)
