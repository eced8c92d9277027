"""What Resize and Upsample do along one axis, asked of ONNX Runtime with the node's own attributes.

Every mode and version of these operators works on each axis apart, so a node of the same attributes on a small tensor
tells all: run on 0, 1, 2 … a nearest mode answers with positions, run on unit vectors a linear or cubic mode answers
with the weights of its matrix. So nothing of ten coordinate formulas and their rounding is written here again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from qnn.prepare.rewrites.view import Array, GraphView, attribute
from qnn.prepare.runtime import RuntimeRefusedError, load_cpu, run_cpu

_OUTSIDE = -1.0
_ROI, _SCALES, _SIZES = 1, 2, 3
# Weights are alike when they differ by no more than the last bits of their computation.
_ALIKE = 1e-6


@dataclass(frozen=True)
class Axis:
    """One axis of a Resize: sizes before and after, the scale (None where sizes decide), and its part of the roi."""

    index: int
    before: int
    after: int
    scale: float | None
    roi: tuple[float, float] = (0.0, 1.0)

    @property
    def changes(self) -> bool:
        """Whether anything happens along this axis."""
        return self.before != self.after or self.scale not in (None, 1.0) or self.roi != (0.0, 1.0)

    @property
    def scale_fits(self) -> bool:
        """Whether the sizes alone tell the scale: the compiler looks at nothing else."""
        return self.scale is None or abs(self.before * self.scale - self.after) < 1e-4


def shape_by_scales(view: GraphView, node: NodeProto) -> tuple[int, ...] | None:
    """The shape ONNX Runtime gives a node whose scales decide: the floor of the float32 product along each axis.

    ONNX's own inference takes the floor of the exact product, which is 6 for 10 by the float32 0.7 (0.69999999), where
    the float32 product is 7. None where sizes decide, or scales or the shape before are not known.
    """
    before, scales = view.shape(node.input[0]), _scales(view, node)
    if before is None or not scales or _constant(view, node, _SIZES):
        return None
    after = list(before)
    for axis, scale in zip(_chosen(node, len(before)), scales, strict=True):
        after[axis] = int(numpy.float32(scale) * numpy.float32(before[axis]))
    return tuple(after)


def axes_of(view: GraphView, node: NodeProto, after: tuple[int, ...] | None = None) -> tuple[Axis, ...] | None:
    """All axes, in order; None when scales, sizes or the roi are not constants, or the shapes are not known.

    `after` is the shape of the result where the graph does not state it rightly.
    """
    before, after = view.shape(node.input[0]), after or view.shape(node.output[0])
    if before is None or after is None or len(before) != len(after):
        return None
    chosen = _chosen(node, len(before))
    scales = _scales(view, node)
    sizes = _constant(view, node, _SIZES)
    if not scales and not sizes:
        return None
    kept_ratio = attribute(node, "keep_aspect_ratio_policy", b"stretch") != b"stretch"
    if sizes and kept_ratio:
        ratios = [size / before[axis] for axis, size in zip(chosen, sizes, strict=True)]
        smaller = attribute(node, "keep_aspect_ratio_policy") == b"not_larger"
        scales = [min(ratios) if smaller else max(ratios)] * len(chosen)
    roi: list[float] = []
    if attribute(node, "coordinate_transformation_mode") == b"tf_crop_and_resize":
        roi = _constant(view, node, _ROI)
        if len(roi) != 2 * len(chosen):
            return None
    found = {axis: Axis(axis, before[axis], after[axis], 1.0) for axis in range(len(before))}
    for at, axis in enumerate(chosen):
        scale = float(scales[at]) if scales else None
        part = (roi[at], roi[at + len(chosen)]) if roi else (0.0, 1.0)
        found[axis] = Axis(axis, before[axis], after[axis], scale, part)
    if before == after and not roi:
        # ONNX Runtime copies where the shape stays, whatever the scale (3 by 1.25 is 3).
        found = {axis: Axis(axis, before[axis], after[axis], None) for axis in found}
    return tuple(found[axis] for axis in range(len(before)))


def positions(view: GraphView, node: NodeProto, axis: Axis) -> Array | None:
    """int64[after]: which element each new one is, for mode nearest; None where it lies outside or is not known."""
    asked = numpy.arange(axis.before, dtype=numpy.float32).reshape(1, 1, 1, -1)
    answer = _ask(view, node, axis, asked)
    if answer is None or answer.shape[-1] != axis.after or (answer < 0).any():
        return None
    return answer.reshape(-1).round().astype(numpy.int64)


def matrix(view: GraphView, node: NodeProto, axis: Axis) -> Array | None:
    """float32[before, after]: the weight of each old element in each new one, for modes linear and cubic."""
    size = axis.before
    answer = _ask(view, node, axis, numpy.eye(size, dtype=numpy.float32).reshape(1, size, 1, size))
    nothing = _ask(view, node, axis, numpy.zeros((1, size, 1, size), numpy.float32))
    if answer is None or nothing is None or answer.shape[-1] != axis.after or nothing.any():
        return None  # outside of a cropped roi a constant comes out, which is no matrix
    return answer.reshape(size, axis.after)


def same_by_sizes(view: GraphView, node: NodeProto, axis: Axis) -> bool:
    """Whether the sizes before and after tell all that the scale does along this axis: equal positions or weights."""
    asked = [numpy.arange(axis.before, dtype=numpy.float32)]
    if attribute(node, "mode", b"nearest") != b"nearest":
        asked = list(numpy.eye(axis.before, dtype=numpy.float32))
    probe = numpy.stack(asked).reshape(1, len(asked), 1, axis.before)
    by_scale, by_sizes = _ask(view, node, axis, probe), _ask(view, node, replace(axis, scale=None), probe)
    if by_scale is None or by_sizes is None or by_scale.shape != by_sizes.shape:
        return False
    return bool(numpy.allclose(by_scale, by_sizes, rtol=0.0, atol=_ALIKE))


def _chosen(node: NodeProto, rank: int) -> list[int]:
    return [int(axis) % rank for axis in attribute(node, "axes", range(rank))]


def _scales(view: GraphView, node: NodeProto) -> list[float]:
    at = 1 if node.op_type == "Upsample" or view.opset() < 11 else _SCALES
    return [float(scale) for scale in attribute(node, "scales") or _constant(view, node, at)]


def _constant(view: GraphView, node: NodeProto, index: int) -> list[float]:
    array = view.constant(node.input[index]) if index < len(node.input) and node.input[index] else None
    return [] if array is None else [float(value) for value in array.reshape(-1)]


def _ask(view: GraphView, node: NodeProto, axis: Axis, probe: Array) -> Array | None:
    """The node run on a probe [1, C, 1, size] whose last dimension stands for the axis: [1, C, 2, new size].

    The third dimension is doubled, for a node that changes no size is a copy.
    """
    opset = view.opset()
    skipped = {"axes", "keep_aspect_ratio_policy", "scales", "extrapolation_value"}
    asking = helper.make_node(node.op_type, ["x"], ["y"])
    asking.attribute.extend(a for a in node.attribute if a.name not in skipped)
    constants: dict[str, Array] = {}
    scale = axis.after / axis.before if axis.scale is None else axis.scale
    scales = numpy.array([1, 1, 2, scale], numpy.float32)
    if opset >= 11 and node.op_type == "Resize":
        asking.attribute.append(helper.make_attribute("extrapolation_value", _OUTSIDE))
        constants["roi"] = numpy.array([0, 0, 0, axis.roi[0], 1, 1, 1, axis.roi[1]], numpy.float32)
        if axis.scale is None:
            constants["none"] = numpy.zeros(0, numpy.float32)
            constants["sizes"] = numpy.array([*probe.shape[:2], 2, axis.after], numpy.int64)
        else:
            constants["scales"] = scales
    elif any(a.name == "scales" for a in node.attribute):
        asking.attribute.append(helper.make_attribute("scales", [float(value) for value in scales]))
    else:
        constants["scales"] = scales
    asking.input.extend(constants)
    graph = helper.make_graph(
        [asking],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, probe.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    try:
        (answer,) = run_cpu(load_cpu(model.SerializeToString()), ["y"], {"x": probe})
    except RuntimeRefusedError:
        return None
    return numpy.asarray(answer)[:, :, :1]
