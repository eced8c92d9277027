"""A Transpose of six and more dimensions between Reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "transpose-rank"
_MOST = 5  # dimensions that HTP has


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Transpose"):
        shape, source = view.shape(node.input[0]), _source(view, node.input[0])
        users = view.users(node.output[0])
        between = source is not None and users and all(user.op_type == "Reshape" for user in users)
        if shape is None or len(shape) <= _MOST or not between or view.is_output(node.output[0]):
            continue
        sizes, order = merged(shape, attribute(node, "perm", [*range(len(shape))][::-1]))
        if len(sizes) > _MOST:
            changes.append(refused(NAME, node, f"it moves {len(sizes)} dimensions that do not stay together"))
        elif source is not None and all(view.shape(user.output[0]) is not None for user in users):
            changes.append(_replace(view, node, _flat(view, source), sizes, order))
    return changes


def _source(view: GraphView, name: str) -> NodeProto | None:
    """What makes the six dimensions: a Reshape, or a Gather with constant positions in several dimensions."""
    maker = view.maker(name, "Reshape", "Gather")
    if maker is None or maker.op_type == "Reshape":
        return maker
    positions = view.constant(maker.input[1])
    return maker if positions is not None and positions.ndim > 1 else None


def _flat(view: GraphView, source: NodeProto) -> str:
    """The elements of six dimensions in fewer: the input of a Reshape, or a Gather with positions in one dimension."""
    if source.op_type == "Reshape":
        return str(source.input[0])
    positions = view.constant(source.input[1])
    at = view.add_constant(f"{source.output[0]}_at", numpy.asarray(positions).reshape(-1))
    inputs = [str(source.input[0]), at]
    return view.add_node("Gather", inputs, f"{source.output[0]}_flat", axis=attribute(source, "axis", 0))


def merged(shape: Sequence[int], perm: Sequence[int]) -> tuple[list[int], list[int]]:
    """The same Transpose with sizes of 1 left out, and dimensions that stay side by side made one: sizes and order."""
    runs: list[list[int]] = []
    for axis in (axis for axis in perm if shape[axis] != 1):
        # What lies between two axes in the input may be of size 1 only.
        beside = bool(runs) and runs[-1][-1] < axis and prod(shape[runs[-1][-1] + 1 : axis]) == 1
        if beside:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    inner = sorted(runs)
    return [prod(shape[axis] for axis in run) for run in inner] or [1], [inner.index(run) for run in runs] or [0]


def _replace(view: GraphView, node: NodeProto, source: str, sizes: list[int], order: list[int]) -> Change:
    made = str(node.output[0])
    name = reshaped(view, source, sizes, f"{made}_merged")
    name = view.add_node("Transpose", [name], f"{made}_moved", perm=order)
    for user in view.users(made):
        # A target may copy sizes of what it reads, so it is said in numbers.
        target = numpy.array(view.shape(user.output[0]), numpy.int64)
        view.replace(user, "Reshape", [name, view.add_constant(f"{user.output[0]}_shape", target)])
    return applied(NAME, node, f"{len(attribute(node, 'perm'))} dimensions became {len(sizes)}")


REWRITE = Rewrite(
    name=NAME,
    title="A Transpose of six dimensions becomes one of fewer",
    pattern="Reshape (or a Gather with constant positions in several dimensions, as in PyTorch's unfold), Transpose of "
    "six or more dimensions, Reshape (PixelUnshuffle and windows of attention), with dimensions of size 1 or such "
    "that stay side by side",
    why="HTP has five dimensions at most. Dimensions that stay side by side move as one, and those of size 1 are "
    "nothing to move: the elements come out in the same order.",
    default=True,
    apply=_apply,
)
