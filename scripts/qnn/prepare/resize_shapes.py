"""Resizes by a scale whose result ONNX's inference takes for one element shorter than ONNX Runtime makes it."""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare import shapes
from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.resize_axes import Axis, axes_of, same_by_sizes, shape_by_scales
from qnn.prepare.rewrites.resize_by_gather import as_gathers
from qnn.prepare.rewrites.resize_by_matmul import as_matmuls
from qnn.prepare.rewrites.view import GraphView, attribute

_WITH_SIZES, _OPTIONAL_SCALES = 11, 13
_RESIZES = ("Resize", "Upsample")


def settle_resizes(model: ModelProto) -> tuple[ModelProto, list[Change]]:
    """The inferred model with each such node in a form whose shape is the same for both: sizes in the place of scales
    where they tell the same positions, else Gathers or MatMuls made with the scale.

    Everything behind such a node was inferred from a wrong size, so nodes are mended from the first on, each on shapes
    inferred anew.
    """
    changes: list[Change] = []
    left: set[str] = set()
    while any(node.op_type in _RESIZES and node.domain in ("", "ai.onnx") for node in model.graph.node):
        view = GraphView(model)
        found = ((node, _true_axes(view, node)) for node in view.nodes(*_RESIZES) if node.output[0] not in left)
        node, axes = next(((node, axes) for node, axes in found if axes is not None), (None, None))
        if node is None or axes is None:
            break
        left.add(str(node.output[0]))
        changes.append(_mended(view, node, axes))
        model = shapes.infer(model)
    return model, changes


def _true_axes(view: GraphView, node: NodeProto) -> tuple[Axis, ...] | None:
    """The axes as ONNX Runtime has them, where the inferred shape is another one; else None."""
    inferred, true = view.shape(node.output[0]), shape_by_scales(view, node)
    if inferred is None or true is None or true == inferred or len(true) != len(inferred):
        return None
    return axes_of(view, node, true)


def _mended(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> Change:
    changing = [axis for axis in axes if axis.changes]
    sizes = " and ".join(f"{axis.before} by {axis.scale:g} is {axis.after}" for axis in changing)
    if (
        node.op_type == "Resize"
        and view.opset() >= _WITH_SIZES
        and all(same_by_sizes(view, node, axis) for axis in changing)
    ):
        _give_sizes(view, node, axes)
        return Change("resize-size", f"{node.name} (Resize)", f"{sizes}, as in float32: it has sizes now")
    nearest = attribute(node, "mode", b"nearest") == b"nearest"
    subject = f"{node.name} ({node.op_type})"
    made = as_gathers(view, node, axes) if nearest else as_matmuls(view, node, axes)
    return Change("resize-size", subject, f"{sizes}, as in float32: {made.detail}")


def _give_sizes(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> None:
    chosen = [int(axis) % len(axes) for axis in attribute(node, "axes", range(len(axes)))]
    sizes = numpy.array([axes[axis].after for axis in chosen], numpy.int64)
    roi = str(node.input[1]) if len(node.input) > 1 else ""
    kept = {
        written.name: attribute(node, written.name)
        for written in node.attribute
        if written.name != "keep_aspect_ratio_policy"
    }
    # Opset 11 asks for an empty tensor where later ones leave the name empty.
    empty = numpy.zeros(0, numpy.float32)
    scales = view.add_constant(f"{node.output[0]}_scales", empty) if view.opset() < _OPTIONAL_SCALES else ""
    given = [str(node.input[0]), roi, scales, view.add_constant(f"{node.output[0]}_sizes", sizes)]
    view.replace(node, "Resize", given, **kept)
