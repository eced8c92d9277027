"""Resize in mode linear or cubic, with a scale that the sizes do not tell, as one MatMul an axis."""

from __future__ import annotations

from onnx import ModelProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.resize_axes import Axis, axes_of, matrix
from qnn.prepare.rewrites.steps import reshaped, transposed
from qnn.prepare.rewrites.view import Array, GraphView, attribute

NAME = "resize-by-matmul"
_MATMUL_RANK = 4
_WITH_MODES = 11


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Resize", "Upsample"):
        if attribute(node, "mode", b"nearest") == b"nearest" or view.is_quantized(node):
            continue
        axes = axes_of(view, node)
        if axes is None or is_right(view, node, axes):
            continue
        if not any(axis.changes for axis in axes):
            view.replace(node, "Identity", [node.input[0]])
            changes.append(applied(NAME, node, "no size changes: it is a copy"))
            continue
        if not view.is_float(node.input[0]):
            changes.append(refused(NAME, node, "only in float32 can a matrix stand for it"))
            continue
        changes.append(as_matmuls(view, node, axes))
    return changes


def as_matmuls(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> Change:
    """Write a linear or cubic node of float32 as one MatMul an axis that changes; says so, or why it cannot be."""
    found = [(axis, matrix(view, node, axis)) for axis in axes if axis.changes]
    steps = [(axis, weights) for axis, weights in found if weights is not None]
    if not steps or len(steps) != len(found):
        return refused(NAME, node, "it takes elements from outside of its input")
    _replace(view, node, axes, steps)
    return applied(NAME, node, f"became {len(steps)} MatMul by constant weights")


def is_right(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> bool:
    """Whether the compiler computes this form as it is."""
    plain = len(axes) == 4 and not any(axis.changes for axis in axes[:2])
    modes = attribute(node, "coordinate_transformation_mode", b"half_pixel").decode()
    # Resize of opset 10 has no modes: it is asymmetric, and the compiler takes it for half_pixel.
    known = node.op_type == "Upsample" or (modes in _RIGHT and view.opset() >= _WITH_MODES)
    # It leaves `exclude_outside` out, and makes a single element of pytorch_half_pixel from another place.
    odd = attribute(node, "antialias", 0) or attribute(node, "exclude_outside", 0)
    single = modes == "pytorch_half_pixel" and any(axis.changes and axis.after == 1 for axis in axes)
    return plain and known and all(axis.scale_fits for axis in axes) and not odd and not single


_RIGHT = frozenset({"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"})


def _replace(view: GraphView, node: NodeProto, axes: tuple[Axis, ...], steps: list[tuple[Axis, Array]]) -> None:
    name = str(node.input[0])
    sizes = [axis.before for axis in axes]
    for axis, weights in steps:
        name = _multiplied(view, node, name, sizes, axis, weights)
        sizes[axis.index] = axis.after
    view.replace(node, "Identity", [name])


def _multiplied(view: GraphView, node: NodeProto, name: str, sizes: list[int], axis: Axis, weights: Array) -> str:
    """The tensor with one axis multiplied by weights[before, after]."""
    wanted = f"{node.output[0]}_axis_{axis.index}"
    dtype = tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
    factor = view.add_constant(f"{wanted}_weights", weights.astype(dtype))
    rank, index = len(sizes), axis.index
    order = [*(other for other in range(rank) if other != index), index]
    name = transposed(view, name, order, f"{wanted}_last")
    turned = [sizes[other] for other in order]
    if rank > _MATMUL_RANK:
        name = reshaped(view, name, [-1, axis.before], f"{wanted}_flat")
    name = view.add_node("MatMul", [name, factor], f"{wanted}_sum")
    if rank > _MATMUL_RANK:
        name = reshaped(view, name, [*turned[:-1], axis.after], f"{wanted}_shaped")
    back = [order.index(other) for other in range(rank)]
    return transposed(view, name, back, f"{wanted}_back")


REWRITE = Rewrite(
    name=NAME,
    title="Resize by a scale that its sizes do not tell becomes MatMuls",
    pattern="Resize or Upsample in mode linear or cubic whose scale times size is no whole number, that has a "
    "coordinate mode the compiler lacks, exclude_outside or antialias, or that is not on the last two of four axes",
    why="The compiler takes the scale from the sizes: 10 by 2.35 gives 23, which is 2.3, and every element "
    "comes from a shifted place (cosine 0.79); other forms it refuses. Interpolation along an axis is a "
    "product with constant weights, those that ONNX Runtime uses.",
    default=True,
    apply=_apply,
)
