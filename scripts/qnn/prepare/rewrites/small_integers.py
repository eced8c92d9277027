"""Integers of 8 and 16 bits inside a graph as int32 or float32, and booleans where the compiler has no form of them.

The compiler knows these types where they are quantized, and else little more than Cast, Reshape and Transpose of them.
A node that it lacks reads wider copies and makes one; a chain of such nodes stays wide from its first to its last.
"""

from __future__ import annotations

import numpy
from onnx import ModelProto, NodeProto, TensorProto, helper

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.bounds import Interval, interval
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "small-integers"
_MOD = 10  # the opset that has it
_INT32, _FLOAT, _BOOL = TensorProto.INT32, TensorProto.FLOAT, TensorProto.BOOL
_BYTES = frozenset({TensorProto.UINT8, TensorProto.INT8})
_SMALL = frozenset({*_BYTES, TensorProto.UINT16, TensorProto.INT16})
# What the compiler takes of int32, and not of smaller integers.
_AS_INT32 = frozenset(
    {
        "Abs", "Add", "ArgMax", "Clip", "Concat", "Div", "Equal", "Expand", "Gather", "GatherElements", "Greater",
        "GreaterOrEqual", "Identity", "Less",
        "LessOrEqual", "Max", "Min", "Mod", "Mul", "OneHot", "ReduceMax", "ReduceMin",
        "ScatterElements", "ScatterND", "Split", "Sub", "Tile", "TopK", "Where",
    }
)  # fmt: skip
# What it takes of float only. fp16 has every integer of 8 bits, and these make no other numbers.
_AS_FLOAT = frozenset({"ArgMin", "DepthToSpace", "GlobalMaxPool", "MaxPool", "Pad", "SpaceToDepth"})
# What it takes in any type: these stay as they are, unless what they read is wide already.
_ANY = frozenset({"Flatten", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_ARITHMETIC = frozenset({"Abs", "Add", "Cast", "Div", "Mul", "Sub"})
_OF_BOOLEANS = frozenset({"Equal", "Pad", "ReduceMax", "ReduceMin"})


class _Wide:
    """The wider copies of small tensors, and the edits that make and use them."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._copies: dict[str, tuple[str, int]] = {}

    def has(self, name: str) -> bool:
        """Whether the tensor is made of a wider one."""
        return name in self._copies

    def type_of(self, name: str) -> int:
        """The type of the wider copy."""
        return self._copies[name][1]

    def read(self, name: str, dtype: int) -> str:
        """A copy of a tensor in this type."""
        values = self._view.constant(name)
        if values is not None:
            return self._view.add_constant(f"{name}_wide", values.astype(helper.tensor_dtype_to_np_dtype(dtype)))
        source, made = self._copies.get(name, (name, self._view.dtype(name)))
        if made == dtype:
            return source
        if dtype == _FLOAT and made in _SMALL:
            source = self._view.add_node("Cast", [source], f"{name}_int32", to=_INT32)
        return self._view.add_node("Cast", [source], f"{name}_wide", to=dtype)

    def make(self, node: NodeProto, index: int, dtype: int, reach: Interval) -> None:
        """Let a node make an output in this type; a Cast makes the old one for whoever needs it. `reach` is how far the
        result goes before it is cut to the old type.
        """
        name = str(node.output[index])
        small = self._view.dtype(name)
        wide = self._view.fresh(f"{name}_wide")
        self._view.rename_output(node, name, wide)
        if dtype == _INT32 and small in _SMALL:
            wide = self._wrapped(wide, small, name, reach)
        self._view.put("Cast", [wide], [name], f"{name}_small", to=small)
        self._copies[name] = wide, dtype

    def _wrapped(self, wide: str, small: int, name: str, reach: Interval) -> str:
        """Of a result that may leave the type: its remainder, as integers of that type have it."""
        info = numpy.iinfo(helper.tensor_dtype_to_np_dtype(small))
        if reach[0] >= info.min and reach[1] <= info.max:
            return wide
        size = self._view.add_constant(f"{name}_size", numpy.array(info.max - info.min + 1, numpy.int32))
        if info.min == 0:
            return self._view.add_node("Mod", [wide, size], f"{name}_rest")
        low_end = self._view.add_constant(f"{name}_low", numpy.array(info.min, numpy.int32))
        above = self._view.add_node("Sub", [wide, low_end], f"{name}_above")
        rest = self._view.add_node("Mod", [above, size], f"{name}_rest")
        return self._view.add_node("Add", [rest, low_end], f"{name}_signed")


def _reach(view: GraphView, node: NodeProto) -> Interval:
    """Bounds of what a node computes before it is cut to its type; of others than arithmetic nothing is cut."""
    if node.op_type not in _ARITHMETIC or view.is_float(
        node.input[0]
    ):  # ONNX has no rule for a float that is too large
        return 0.0, 0.0
    given = [interval(view, str(name)) for name in node.input]
    if node.op_type == "Cast":
        return given[0]
    far = max(abs(bound) for pair in given for bound in pair)
    most = far * max(far, 2)
    return -most, most


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    quantized = bool(view.nodes("QuantizeLinear"))  # then these types are numbers of another scale
    wide = _Wide(view)
    changes = []
    for node in list(view.graph.node):
        dtype = _wanted(view, node, wide)
        if dtype is None or (quantized and not _is_boolean(view, node)):
            continue
        reach = _reach(view, node)
        places = [index for index, name in enumerate(node.input) if _is_widened(view, node, str(name))]
        for index in places:
            view.set_input(node, index, wide.read(str(node.input[index]), dtype))
        small = [index for index, name in enumerate(node.output) if _is_widened(view, node, str(name), made=True)]
        if node.op_type == "Cast":
            _settle_cast(node, dtype, reads_wide=bool(places))
            if not small:
                continue
        for index in small:
            wide.make(node, index, dtype, reach)
        changes.append(applied(NAME, node, f"in {'int32' if dtype == _INT32 else 'float32'}"))
    return changes


def _settle_cast(node: NodeProto, dtype: int, *, reads_wide: bool) -> None:
    """Let a Cast to a small type be one to the wide type, and one of a wide copy to its own type be nothing."""
    to = next(entry for entry in node.attribute if entry.name == "to")
    if to.i in _SMALL:
        to.i = dtype
    if reads_wide and to.i == dtype:
        node.op_type = "Identity"
        del node.attribute[:]


def _wanted(view: GraphView, node: NodeProto, wide: _Wide) -> int | None:
    """The type in which a node is to compute; None where it stays as it is."""
    if node.domain not in ("", "ai.onnx") or not (node.input and node.input[0]):
        return None
    if node.op_type == "Cast":
        return _wanted_of_cast(view, node, wide)
    if _is_boolean(view, node):
        return int(_FLOAT if node.op_type == "Pad" else _INT32)
    small = {view.dtype(name) for name in (*node.input, *node.output) if name} & _SMALL
    wanted = None
    if small and node.op_type in _AS_INT32:
        wanted = int(_INT32)
    elif small and (node.op_type in _AS_FLOAT or _is_nearest(node)):
        wanted = int(_FLOAT) if small <= _BYTES else None
    elif small and node.op_type in _ANY and wide.has(str(node.input[0])):
        wanted = wide.type_of(str(node.input[0]))
    return wanted


def _wanted_of_cast(view: GraphView, node: NodeProto, wide: _Wide) -> int | None:
    source, target = str(node.input[0]), int(attribute(node, "to"))
    if wide.has(source) and target not in _SMALL:
        return wide.type_of(source)
    if target not in _SMALL or (view.is_output(node.output[0]) and target != TensorProto.UINT8):
        return None
    whole = view.dtype(source) in (_INT32, TensorProto.INT64)
    low, high = interval(view, source)
    info = numpy.iinfo(helper.tensor_dtype_to_np_dtype(target))
    cut = whole and (low < info.min or high > info.max) and view.opset() >= _MOD
    return int(_INT32) if cut or target != TensorProto.UINT8 or wide.has(source) else None


def _is_boolean(view: GraphView, node: NodeProto) -> bool:
    """Whether a node does with booleans what the compiler has no form of."""
    return node.op_type in _OF_BOOLEANS and view.dtype(node.input[0]) == _BOOL


def _is_nearest(node: NodeProto) -> bool:
    return node.op_type in ("Resize", "Upsample") and attribute(node, "mode", b"nearest") == b"nearest"


def _is_widened(view: GraphView, node: NodeProto, name: str, *, made: bool = False) -> bool:
    """Whether an input or output of a node takes part in its widening: conditions and what compares are not."""
    dtype = view.dtype(name) if name else 0
    booleans = node.op_type in _OF_BOOLEANS and not (made and node.op_type == "Equal")
    return dtype in _SMALL or (dtype == _BOOL and booleans)


REWRITE = Rewrite(
    name=NAME,
    title="Integers of 8 and 16 bits inside a graph become int32 or float32",
    pattern="operators other than Cast, Reshape, Slice and Transpose on uint8, int8, uint16 or int16 that are not "
    "quantized numbers; Pad, Equal, ReduceMax and ReduceMin of booleans",
    why="The compiler knows these types as quantized numbers and refuses nearly every operator on them: a camera's "
    "uint8 image cannot be cropped by Gather, padded, pooled or compared. int32 has all their values, and float has "
    "those of 8 bits; results that leave the type are brought back as its integers wrap.",
    default=True,
    apply=_apply,
)
