"""CumSum of 8-bit activations, summed in 16 bits."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, helper

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView

NAME = "quantized-cum-sum"
_WIDER = 256
_TYPES = {numpy.dtype(numpy.uint8): numpy.uint16, numpy.dtype(numpy.int8): numpy.int16}
# From this opset on the default domain's Q/DQ has 16 bits; before, quantizers write Microsoft's.
_OPSET_WITH_16_BITS = 21


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("CumSum"):
        before = view.maker(node.input[0], "DequantizeLinear")
        users = view.users(node.output[0])
        if before is None or len(users) != 1 or users[0].op_type != "QuantizeLinear":
            continue
        of_input, of_output = _parameters(view, before), _parameters(view, users[0])
        if of_input is None or of_output is None:
            changes.append(refused(NAME, node, "its scales are no constants"))
            continue
        (scale, zero), (result_scale, result_zero) = of_input, of_output
        if zero.dtype not in _TYPES or result_zero.dtype not in _TYPES:
            continue
        name = str(node.output[0])
        wide = _TYPES[zero.dtype]
        source = _in_16_bits(view, str(node.input[0]), scale, zero.astype(wide), f"{name}_wide")
        total = view.add_node("CumSum", [source, node.input[1]], f"{name}_total", **_written(node))
        wide_zero = (result_zero.astype(numpy.int32) * _WIDER).astype(_TYPES[result_zero.dtype])
        result = _in_16_bits(view, total, (result_scale / _WIDER).astype(numpy.float32), wide_zero, f"{name}_result")
        view.replace(node, "Identity", [result])
        changes.append(applied(NAME, node, "summed in 16 bits"))
    return changes


def _parameters(view: GraphView, node: NodeProto) -> tuple[Array, Array] | None:
    """(scale, zero point) of a per-tensor Q or DQ; None where they are not constant."""
    scale = view.constant(node.input[1])
    zero = view.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else numpy.zeros((), numpy.uint8)
    return None if scale is None or zero is None or scale.size != 1 else (scale, zero)


def _in_16_bits(view: GraphView, name: str, scale: Array, zero: Array, wanted: str) -> str:
    domain = "" if view.opset() >= _OPSET_WITH_16_BITS else "com.microsoft"
    if domain and all(entry.domain != domain for entry in view.model.opset_import):
        view.model.opset_import.append(helper.make_opsetid(domain, 1))
    parameters = [view.add_constant(f"{wanted}_scale", scale), view.add_constant(f"{wanted}_zero", zero)]
    quantized = view.add_node("QuantizeLinear", [name, *parameters], f"{wanted}_q", domain=domain)
    return view.add_node("DequantizeLinear", [quantized, *parameters], wanted, domain=domain)


def _written(node: NodeProto) -> dict[str, int]:
    return {attribute.name: int(attribute.i) for attribute in node.attribute}


REWRITE = Rewrite(
    name=NAME,
    title="CumSum of 8 bits is summed in 16",
    pattern="CumSum between 8-bit QuantizeLinear and DequantizeLinear",
    why="The compiler keeps the running sum in 8 bits of the result's scale: every step is rounded, and steps"
    " smaller than half a scale are lost, so that from about 1000 elements on the result is 0. In 16 bits"
    " of the same range (the input's integers unchanged, the result's scale divided by 256) it is right "
    "to the last 8-bit step.",
    default=True,
    apply=_apply,
)
