"""Erf has no form on the NPU by itself, only as a part of GELU."""

from __future__ import annotations

import math

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView

NAME = "lone-erf"
_ROOT = math.sqrt(2)
# Below this |z|, erf(z) is 2z/√π to 4e-7; above, 2·gelu(√2z)/(√2z) - 1 is well conditioned.
_SMALL = 0.01


def apply(model: ModelProto) -> list[Change]:
    """Give every Erf that is not in a GELU pattern one of its own."""
    view = GraphView(model)
    changes: list[Change] = []
    for node in view.nodes("Erf"):
        if not view.is_float(node.input[0]) or view.is_quantized(node):
            continue
        gates = _gates(view, node)
        inside = {plus.output[0] for plus, _, _ in gates}
        plain = [user for user in view.users(node.output[0]) if user.output[0] not in inside]
        for plus, product, other in gates:
            if not _is_halved(view, node, product, other):
                _double(view, node, plus, product, other)
                changes.append(applied(NAME, product, "x·(1+erf(x/√2)) is 2·gelu(x): ·0.5·2 completes the pattern"))
        if plain or view.is_output(node.output[0]):
            changes.append(_spell_out(view, node, plain))
    return changes


def _argument(view: GraphView, erf: NodeProto) -> str | None:
    """The x of erf(x/√2), if that is the form."""
    scaled = view.maker(erf.input[0], "Div", "Mul")
    if scaled is None:
        return None
    for position in (0, 1) if scaled.op_type == "Mul" else (0,):
        factor = view.scalar(scaled.input[1 - position])
        wanted = _ROOT if scaled.op_type == "Div" else 1 / _ROOT
        if factor is not None and math.isclose(factor, wanted, rel_tol=1e-3):
            return str(scaled.input[position])
    return None


def _is_one_more(view: GraphView, node: NodeProto, erf: NodeProto) -> bool:
    other = view.other_input(node, erf.output[0])
    return node.op_type == "Add" and other is not None and view.scalar(other) == 1.0


def _gates(view: GraphView, erf: NodeProto) -> list[tuple[NodeProto, NodeProto, str]]:
    """Every product of 1+erf(x/√2) with x or x/2: (the Add, the Mul, what the sum is multiplied with)."""
    x = _argument(view, erf)
    found = []
    for plus in view.users(erf.output[0]):
        if x is None or not _is_one_more(view, plus, erf):
            continue
        for product in view.users(plus.output[0]):
            other = view.other_input(product, plus.output[0]) if product.op_type == "Mul" else None
            if other == x or (other is not None and _half_of(view, other) == x):
                found.append((plus, product, other))
    return found


def _half_of(view: GraphView, name: str) -> str | None:
    node = view.maker(name, "Mul", "Div")
    if node is None:
        return None
    for position in (0, 1) if node.op_type == "Mul" else (0,):
        if view.scalar(node.input[1 - position]) == (0.5 if node.op_type == "Mul" else 2.0):
            return str(node.input[position])
    return None


def _is_halved(view: GraphView, erf: NodeProto, product: NodeProto, other: str) -> bool:
    """Whether the GELU is whole: the factor 0.5 is there, before or behind the product."""
    if other != _argument(view, erf):
        return True
    users = view.users(product.output[0])
    return len(users) == 1 and not view.is_output(product.output[0]) and _half_of(view, users[0].output[0]) is not None


def _double(view: GraphView, erf: NodeProto, plus: NodeProto, product: NodeProto, x: str) -> None:
    whole = view.add_node("Mul", [x, plus.output[0]], f"{product.output[0]}_gate")
    gelu = view.add_node("Mul", [whole, view.add_scalar_like("half", 0.5, x)], f"{product.output[0]}_gelu")
    view.replace(product, "Mul", [gelu, view.add_scalar_like("two", 2.0, x)])
    _divide(view, erf, x)


def _divide(view: GraphView, erf: NodeProto, x: str) -> None:
    """The compiler's pattern has x/√2; x·0.7071 is the same number."""
    if view.maker(erf.input[0], "Div") is None:
        root = view.add_scalar_like("root_two", _ROOT, x)
        view.set_input(erf, 0, view.add_node("Div", [x, root], f"{erf.output[0]}_argument"))


def _spell_out(view: GraphView, erf: NodeProto, users: list[NodeProto]) -> Change:
    """erf(z) = 2·gelu(u)/u - 1 with u = √2·z, and 2z/√π where z is small."""
    z, made = erf.input[0], erf.output[0]

    def constant(name: str, value: float) -> str:
        return view.add_scalar_like(name, value, z)

    def node(op: str, inputs: list[str], end: str) -> str:
        return view.add_node(op, inputs, f"{made}_{end}")

    root = constant("root_two", _ROOT)
    u = node("Mul", [z, root], "u")
    inner = node("Erf", [node("Div", [u, root], "argument")], "erf")
    product = node("Mul", [u, node("Add", [inner, constant("one", 1.0)], "plus")], "gate")
    gelu = node("Mul", [product, constant("half", 0.5)], "gelu")
    large = node(
        "Sub", [node("Div", [node("Mul", [gelu, constant("two", 2.0)], "twice"), u], "ratio"), constant("one", 1.0)],
        "large",
    )  # fmt: skip
    small = node("Mul", [z, constant("slope", 2 / math.sqrt(math.pi))], "small")
    near = node("Less", [node("Abs", [z], "size"), constant("near", _SMALL)], "near")
    if view.is_output(made):
        new = view.replace(erf, "Where", [near, small, large])
    else:
        result = node("Where", [near, small, large], "value")
        view.reroute(made, result, only=users)
        new = erf
    return applied(NAME, new, "erf(z) is computed as 2·gelu(√2·z)/(√2·z) - 1, and as 2z/√π below 0.01")


REWRITE = Rewrite(
    name=NAME,
    title="Erf outside a whole GELU gets one",
    pattern="x·(1+Erf(x/√2)) without the factor 0.5 (folded into the next layer's weights), and Erf in any other use",
    why="The compiler knows Erf as a part of x/√2 → Erf → +1 → ·x → ·0.5 only, and refuses it elsewhere. Where just "
    "the 0.5 is missing, ·0.5·2 completes the pattern; both factors are exact. Elsewhere, by the definition of GELU, "
    "erf(z) = 2·gelu(√2·z)/(√2·z) - 1, with the first term of its series (2z/√π, within 4e-7) near zero, where the "
    "fraction would be 0/0.",
    default=True,
    apply=apply,
)
