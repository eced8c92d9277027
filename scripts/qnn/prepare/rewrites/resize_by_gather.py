"""Resize and Upsample in mode nearest as one Gather an axis."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.resize_axes import Axis, axes_of, positions
from qnn.prepare.rewrites.steps import moved
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "resize-by-gather"
# Resize of opset 10 has no modes: it is asymmetric, and the compiler takes it for half_pixel.
_WITH_MODES = 11
# What the compiler computes rightly when the sizes tell the scale (swept, see docs/faults.md).
_RIGHT = frozenset({("asymmetric", "floor"), ("tf_half_pixel_for_nn", "floor")})


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Resize", "Upsample"):
        if attribute(node, "mode", b"nearest") != b"nearest":
            continue
        axes = axes_of(view, node)
        if axes is None:
            changes.append(refused(NAME, node, "its scales or sizes are computed in the graph"))
            continue
        if is_right(view, node, axes):
            continue
        if not any(axis.changes for axis in axes):
            view.replace(node, "Identity", [node.input[0]])
            changes.append(applied(NAME, node, "no size changes: it is a copy"))
            continue
        changes.append(as_gathers(view, node, axes))
    return changes


def as_gathers(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> Change:
    """Write a node of mode nearest as one Gather an axis that changes; says so, or why it cannot be."""
    found = [(axis.index, positions(view, node, axis)) for axis in axes if axis.changes]
    moves = [(index, at) for index, at in found if at is not None]
    if not moves or len(moves) != len(found):
        return refused(NAME, node, "it takes elements from outside of its input")
    moved(view, node, moves)
    return applied(NAME, node, f"mode nearest became {len(moves)} Gather of constant positions")


def is_right(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> bool:
    """Whether the compiler computes this form as it is."""
    if len(axes) != 4 or any(axis.changes for axis in axes[:2]) or not all(axis.scale_fits for axis in axes):
        return False
    if node.op_type == "Upsample":
        return True
    if view.opset() < _WITH_MODES:
        return False
    modes = (
        attribute(node, "coordinate_transformation_mode", b"half_pixel").decode(),
        attribute(node, "nearest_mode", b"round_prefer_floor").decode(),
    )
    return modes in _RIGHT


REWRITE = Rewrite(
    name=NAME,
    title="Resize to the nearest element becomes Gathers",
    pattern="Resize or Upsample in mode nearest, other than asymmetric + floor and tf_half_pixel_for_nn + floor "
    "on the last two of four axes with a scale that the sizes tell",
    why="The compiler computes the other combinations of coordinate and rounding mode with shifted positions "
    "(cosine 0.03 to 0.92), and takes the scale from the sizes where the graph says another. A Gather of "
    "constant positions an axis copies the elements that ONNX Runtime copies.",
    default=True,
    apply=_apply,
)
