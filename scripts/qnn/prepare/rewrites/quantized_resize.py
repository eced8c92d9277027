"""Quantized Resize in mode linear or cubic, in a form whose sizes tell its scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.resize_axes import Axis, axes_of
from qnn.prepare.rewrites.steps import requantized, same_parameters
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "quantized-resize"
_WITH_MODES = 11
# In these modes the position of an element depends on the scale alone.
_BY_SCALE = frozenset({"half_pixel", "pytorch_half_pixel", "asymmetric"})
_BY_SIZES = "align_corners"
_PLANES = 2
_VOLUME = 5
# The input may become so many times as long: beyond, the padding is most of the work.
_LONGEST = 4
# A scale that is a fraction but for float32's rounding.
_SAME_SCALE = 2e-7


@dataclass(frozen=True)
class _Step:
    """One operator of one tensor and constants."""

    op_type: str
    constants: tuple[list[int], ...]
    attributes: dict[str, Any]


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Resize"):
        if attribute(node, "mode", b"nearest") == b"nearest" or not view.is_quantized(node):
            continue
        axes = axes_of(view, node)
        if axes is None or is_right(view, node, axes):
            continue
        if not any(axis.changes for axis in axes):
            view.replace(node, "Identity", [node.input[0]])
            changes.append(applied(NAME, node, "no size changes: it is a copy"))
            continue
        fault = _fault(view, node, axes)
        lengths = {axis.index: fitting(axis, _mode(node)) for axis in axes if axis.changes}
        if fault is None and None in lengths.values():
            fault = "no input of up to 4 times the length has a whole length by its scale"
        if fault is not None:
            changes.append(refused(NAME, node, fault))
            continue
        fitted = [lengths.get(axis.index) or axis for axis in axes]
        _replace(view, node, _before(axes, fitted), _resize(node, axes, fitted), _behind(axes, fitted))
        sizes = [f"{axis.before} to {axis.after}" for axis in fitted if axis.changes]
        changes.append(applied(NAME, node, f"as {' and '.join(sizes)}"))
    return changes


def is_right(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> bool:
    """Whether the compiler computes this quantized form as it is: the last one or two of three or four axes, or the
    last three of five where input and result have the same parameters.
    """
    mode = _mode(node)
    placed = not any(axis.changes for axis in axes[:2]) and (len(axes) in (3, 4) or _is_alike(view, node, axes))
    told = all(axis.scale_fits for axis in axes) or mode == _BY_SIZES
    known = mode in _BY_SCALE or mode == _BY_SIZES
    return placed and told and known and view.opset() >= _WITH_MODES and not attribute(node, "antialias", 0)


def _is_alike(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> bool:
    """Whether a Resize of five axes is quantized alike on both sides."""
    before = view.maker(node.input[0], "DequantizeLinear")
    behind = [user for user in view.users(node.output[0]) if user.op_type == "QuantizeLinear"]
    return len(axes) == _VOLUME and before is not None and bool(behind) and same_parameters(view, before, behind[0])


def fitting(axis: Axis, mode: str) -> Axis | None:
    """The axis with an input so long that its length times the scale is whole; None where there is none.

    More copies of the last element behind the input change nothing of the first elements of the result: positions
    beyond the input are its last element anyway.
    """
    if axis.scale is None or axis.scale_fits or mode == _BY_SIZES:
        return replace(axis, scale=None)
    scale = Fraction(axis.scale).limit_denominator(_LONGEST * axis.before)
    before = -(-axis.before // scale.denominator) * scale.denominator
    if before > _LONGEST * axis.before or abs(float(scale) / axis.scale - 1.0) > _SAME_SCALE:
        return None
    return replace(axis, before=before, after=int(before * scale), scale=None)


def _fault(view: GraphView, node: NodeProto, axes: tuple[Axis, ...]) -> str | None:
    """Why no other form is the same; None where there is one."""
    mode, changing = _mode(node), [axis for axis in axes if axis.changes]
    if view.opset() < _WITH_MODES:
        return f"opset {view.opset()} has no coordinate modes, and the compiler takes another one"
    if attribute(node, "antialias", 0):
        return "the compiler has no antialias"
    if not 1 <= len(changing) <= _PLANES:
        return f"the compiler resizes two axes, and it resizes {len(changing)}"
    symmetric = mode == "half_pixel_symmetric" and all(axis.scale_fits for axis in axes)
    if mode not in _BY_SCALE and mode != _BY_SIZES and not symmetric:
        return f"the compiler has no coordinate mode {mode} with these sizes"
    if mode == "pytorch_half_pixel" and any(axis.after == 1 and not axis.scale_fits for axis in changing):
        return "one element of pytorch_half_pixel is not the first of more"
    return None


def _mode(node: NodeProto) -> str:
    return str(attribute(node, "coordinate_transformation_mode", b"half_pixel").decode())


def _order(axes: tuple[Axis, ...]) -> tuple[list[int], int]:
    """(axes with those that change last, how many they are)."""
    rank = len(axes)
    kept = 2 if rank in (3, 4) and not any(axis.changes for axis in axes[:2]) else 0
    changing = [axis.index for axis in axes if axis.changes] if not kept else list(range(kept, rank))
    return [*(axis for axis in range(rank) if axis not in changing), *changing], len(changing)


def _before(axes: tuple[Axis, ...], fitted: list[Axis]) -> list[_Step]:
    """Steps that bring the axes to the end of four, as long as they have to be."""
    order, last = _order(axes)
    rank = len(axes)
    sizes = [axes[index].before for index in order]
    steps = []
    if order != list(range(rank)):
        steps.append(_Step("Transpose", (), {"perm": order}))
    if not _is_plain(axes, order):
        steps.append(_Step("Reshape", ([1, prod(sizes[:-last]), *[1] * (_PLANES - last), *sizes[-last:]],), {}))
    at = rank if _is_plain(axes, order) else 2 + _PLANES
    for place, index in enumerate(order[-last:]):
        old, new = axes[index].before, fitted[index].before
        if new > old:
            steps.append(_Step("Gather", ([min(i, old - 1) for i in range(new)],), {"axis": at - last + place}))
    return steps


def _resize(node: NodeProto, axes: tuple[Axis, ...], fitted: list[Axis]) -> _Step:
    order, last = _order(axes)
    sizes = [axes[index].before for index in order]
    plain = _is_plain(axes, order)
    kept = sizes[:-last] if plain else [1, prod(sizes[:-last]), *[1] * (_PLANES - last)]
    mode = _mode(node)
    dropped = ("axes", "keep_aspect_ratio_policy", "coordinate_transformation_mode")
    written: dict[str, Any] = {a.name: attribute(node, a.name) for a in node.attribute if a.name not in dropped}
    written["coordinate_transformation_mode"] = mode if mode != "half_pixel_symmetric" else "half_pixel"
    return _Step("Resize", ([*kept, *(fitted[index].after for index in order[-last:])],), written)


def _behind(axes: tuple[Axis, ...], fitted: list[Axis]) -> list[_Step]:
    """Steps from the result to the shape it has to have."""
    order, last = _order(axes)
    rank, plain = len(axes), _is_plain(axes, order)
    at = rank if plain else 2 + _PLANES
    cut = [
        (place + at - last, axes[index].after)
        for place, index in enumerate(order[-last:])
        if fitted[index].after > axes[index].after
    ]
    steps = []
    if cut:
        steps.append(_Step("Slice", ([0] * len(cut), [end for _, end in cut], [axis for axis, _ in cut]), {}))
    if not plain:
        steps.append(_Step("Reshape", ([axes[index].after for index in order],), {}))
    if order != list(range(rank)):
        steps.append(_Step("Transpose", (), {"perm": [order.index(index) for index in range(rank)]}))
    return steps


def _is_plain(axes: tuple[Axis, ...], order: list[int]) -> bool:
    return len(axes) in (3, 4) and order == list(range(len(axes))) and not any(axis.changes for axis in axes[:2])


def _replace(view: GraphView, node: NodeProto, before: list[_Step], resize: _Step, behind: list[_Step]) -> None:
    """The steps in a row, each quantized: with the input's parameters before the Resize, with the result's behind."""
    of_input = view.maker(node.input[0], "DequantizeLinear")
    of_result = next((user for user in view.users(node.output[0]) if user.op_type == "QuantizeLinear"), None)
    steps = [(step, of_input) for step in before] + [(step, of_result) for step in (resize, *behind)]
    name = str(node.input[0])
    for place, (step, parameters) in enumerate(steps):
        wanted = f"{node.output[0]}_{place}_{step.op_type.lower()}"
        given = [
            view.add_constant(f"{wanted}_{index}", numpy.array(values, numpy.int64))
            for index, values in enumerate(step.constants)
        ]
        inputs = [name, "", "", *given] if step is resize else [name, *given]
        if place == len(steps) - 1:
            view.replace(node, step.op_type, inputs, **step.attributes)
        else:
            name = requantized(view, view.add_node(step.op_type, inputs, wanted, **step.attributes), parameters)


REWRITE = Rewrite(
    name=NAME,
    title="A quantized Resize gets sizes that tell its scale",
    pattern="Resize in mode linear or cubic between Q/DQ nodes, whose scale times size is no whole number, or that is "
    "not on the last two of four axes",
    why="The compiler takes the scale from the sizes: 10 by 2.35 gives 23, which is 2.3 (errors of 25 to 100 % of full "
    "scale). With its last element repeated the input is as long as the scale needs (20 by 2.35 gives 47), and the "
    "first elements of the longer result are the result. Axes are brought to the end by Transpose and Reshape. All of "
    "it stays quantized with the same parameters, so no number is rounded again.",
    default=True,
    apply=_apply,
)
