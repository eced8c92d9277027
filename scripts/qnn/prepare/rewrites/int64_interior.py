"""int64 inside a graph, where int32 is enough and saves operators.

The int64 tensors of a graph fall into webs: tensors that one operator wants of one type belong together. A web becomes
int32 as a whole or stays as it is. At its border stand Casts: behind what makes int64 only (ArgMax, TopK, a graph
input), before what reads int64 only (the shape of a Reshape), before graph outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.bounds import ANY, Interval, interval
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "int64-interior"
_LOW, _HIGH = -(2.0**31), 2.0**31 - 1
# Right in int32 with QAIRT 2.51 on the emulator, and known to ONNX Runtime's CPU provider in int32. Neg, Sign, Pow and
# Pad of integers the compiler has in neither type; the mean of integers is rounded in another place.
_NARROWS = frozenset(
    {
        "Abs", "Add", "ArgMax", "Clip", "Concat", "CumSum", "Div", "Equal", "Expand", "Flatten", "Gather",
        "GatherElements", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "OneHot",
        "ReduceMax", "ReduceMin", "ReduceSum", "Reshape", "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze",
        "Sub", "Tile", "TopK", "Transpose", "Unsqueeze", "Where",
    }
)  # fmt: skip
# A Cast of these to int64 is dropped, or is one in place of two (see cast-by-int32).
_BY_INT32 = frozenset({TensorProto.INT32, TensorProto.BOOL, TensorProto.UINT8, TensorProto.FLOAT, TensorProto.FLOAT16})
# Operators whose input 1 is positions along `axis` of input 0: any other value is an error.
_INDEXING = frozenset({"Gather", "GatherElements", "ScatterElements"})


@dataclass
class _Web:
    """Tensors that have one type: `names` are made by nodes or come from outside, `constants` are (reader, input)."""

    names: list[str] = field(default_factory=list)
    constants: list[tuple[NodeProto, int]] = field(default_factory=list)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for web in _webs(view):
        wide = _too_wide(view, web)
        if wide is not None:
            changes += [refused(NAME, *wide)] if not _fed_wide(view, web) else []
        elif _saved(view, web) > 0:
            changes.append(_narrow(view, web))
    return changes


def _webs(view: GraphView) -> list[_Web]:
    """The webs with a tensor that a node makes, in the graph's order."""
    owner: dict[str, _Web] = {}
    for name in _wide_tensors(view):
        owner[name] = _Web([name])
    for node in view.graph.node:
        for members, constants in _groups(view, node):
            joined = owner[members[0]]
            for other in members[1:]:
                web = owner[other]
                if web is not joined:
                    joined.names += web.names
                    joined.constants += web.constants
                    owner.update(dict.fromkeys(web.names, joined))
            joined.constants += [(node, index) for index in constants]
    webs = {id(web): web for web in owner.values()}.values()
    return [web for web in webs if any(view.maker(name) for name in web.names)]


def _wide_tensors(view: GraphView) -> Iterator[str]:
    """Every int64 tensor that is not constant, inputs that nothing computes with left out."""
    for value in view.graph.input:
        if view.dtype(value.name) == TensorProto.INT64 and not view.is_constant(value.name):
            yield value.name
    for node in view.graph.node:
        yield from (name for name in node.output if name and view.dtype(name) == TensorProto.INT64)


def _groups(view: GraphView, node: NodeProto) -> list[tuple[list[str], list[int]]]:
    """What has to have one type at a node, as (tensors, indices of inputs that are constants), for each type that may
    be int32. Groups of constants alone are left out.
    """
    if not _narrows(node):
        return []
    places: dict[str, tuple[list[str], list[int]]] = {}
    for index, name in enumerate(node.input):
        variable = _variable(node.op_type, view.opset(), index, makes=False)
        if not name or variable is None or view.dtype(name) != TensorProto.INT64:
            continue
        members, constants = places.setdefault(variable, ([], []))
        if view.is_constant(name):
            constants.append(index)
        elif name not in members:
            members.append(name)
    for index, name in enumerate(node.output):
        variable = _variable(node.op_type, view.opset(), index, makes=True)
        if name and variable is not None and view.dtype(name) == TensorProto.INT64:
            places.setdefault(variable, ([], []))[0].append(name)
    return [place for place in places.values() if place[0]]


def _narrows(node: NodeProto) -> bool:
    return node.op_type in _NARROWS and node.domain in ("", "ai.onnx")


@cache
def _variable(op_type: str, opset: int, index: int, *, makes: bool) -> str | None:
    """The type variable of an operator's input or output, where ONNX lets it be int32."""
    schema = onnx.defs.get_schema(op_type, opset)
    formal = schema.outputs if makes else schema.inputs
    name = str(formal[min(index, len(formal) - 1)].type_str)  # the last one may stand for many
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == name), ())
    return name if "tensor(int32)" in allowed else None


def _too_wide(view: GraphView, web: _Web) -> tuple[NodeProto, str] | None:
    """A node at which the web may not fit, and why; None where it fits."""
    for node, index in web.constants:
        if not _constant_fits(view, str(node.input[index])):
            return node, f"the constant {node.input[index]} has values beyond 32 bits, and HTP has 32"
    for name in web.names:
        bounds = _bounds(view, name)
        node = view.maker(name) or view.users(name)[0]
        if not _fits(bounds):
            reach = "nothing in the graph bounds it" if bounds == ANY else f"{bounds[0]:.5g} to {bounds[1]:.5g}"
            return node, f"{name} may exceed 32 bits ({reach}), and HTP has 32"
    return None


def _fed_wide(view: GraphView, web: _Web) -> bool:
    """Whether all that may not fit comes from an int64 input, of which the entry wide-integers of the table of known
    faults tells.
    """
    fed = any(view.maker(name) is None and not _fits(_bounds(view, name)) for name in web.names)
    return fed and all(_constant_fits(view, str(node.input[index])) for node, index in web.constants)


def _constant_fits(view: GraphView, name: str) -> bool:
    values = view.constant(name)
    return values is not None and (values.size == 0 or _fits((float(values.min()), float(values.max()))))


def _fits(bounds: Interval) -> bool:
    return bounds[0] >= _LOW and bounds[1] <= _HIGH


def _bounds(view: GraphView, name: str) -> Interval:
    """Of a tensor that is somewhere an index, the positions there are; else what its makers say."""
    low, high = interval(view, name)
    for user in view.users(name):
        if user.op_type not in _INDEXING or user.input[1] != name or user.input[0] == name:
            continue
        shape = view.shape(user.input[0])
        if shape:
            size = shape[attribute(user, "axis", 0)]
            low, high = max(low, -float(size)), min(high, float(size) - 1)
    return low, high


def _is_source(view: GraphView, name: str) -> bool:
    """Whether the tensor is made as int64, so that a Cast has to stand behind it."""
    node = view.maker(name)
    if node is None:
        return True
    if node.op_type == "Cast":
        return False
    index = list(node.output).index(name)
    return not _narrows(node) or _variable(node.op_type, view.opset(), index, makes=True) is None


def _readers(view: GraphView, name: str) -> tuple[list[tuple[NodeProto, int]], list[tuple[NodeProto, int]]]:
    """The inputs of nodes that may read the tensor as int32, and those that may not."""
    able: list[tuple[NodeProto, int]] = []
    unable: list[tuple[NodeProto, int]] = []
    for node in view.users(name):
        for index, other in enumerate(node.input):
            if other != name:
                continue
            reads = node.op_type == "Cast" or (
                _narrows(node) and _variable(node.op_type, view.opset(), index, makes=False) is not None
            )
            (able if reads else unable).append((node, index))
    return able, unable


def _saved(view: GraphView, web: _Web) -> int:
    """How many Casts fewer the compiler makes; behind a graph output it puts one in either case."""
    saved = 0
    for name in web.names:
        node = view.maker(name)
        able, unable = _readers(view, name)
        saved += sum(_is_exit(reader) for reader, _ in able)
        if _is_source(view, name):
            saved -= bool(able)
        elif not view.is_output(name):
            saved += node is not None and node.op_type == "Cast" and view.dtype(node.input[0]) in _BY_INT32
            saved -= bool(unable)
    return saved


def _is_exit(node: NodeProto) -> bool:
    return node.op_type == "Cast" and bool(attribute(node, "to") == TensorProto.INT32)


def _narrow(view: GraphView, web: _Web) -> Change:
    first = next(node for node in view.graph.node if any(name in web.names for name in node.output))
    record = applied(NAME, first, f"{len(web.names)} tensor{'s' if len(web.names) > 1 else ''} from here on in int32")
    copies: dict[str, str] = {}
    for node, index in web.constants:
        name = str(node.input[index])
        if name not in copies:
            values = view.constant(name)
            assert values is not None  # it fits
            copies[name] = view.add_constant(f"{name}_int32", values.astype(numpy.int32))
        view.set_input(node, index, copies[name])
    for name in web.names:
        _narrow_tensor(view, name)
    return record


def _narrow_tensor(view: GraphView, name: str) -> None:
    able, unable = _readers(view, name)
    node = view.maker(name)
    if node is None or _is_source(view, name):
        if able:
            _redirect(view, able, view.add_node("Cast", [name], f"{name}_int32", to=TensorProto.INT32))
        return
    narrow = name
    if view.is_output(name):
        narrow = view.fresh(f"{name}_int32")
        view.rename_output(node, name, narrow)
        view.put("Cast", [narrow], [name], f"{name}_int64", to=TensorProto.INT64)
    elif unable:
        _redirect(view, unable, view.add_node("Cast", [name], f"{name}_int64", to=TensorProto.INT64))
    if node.op_type == "Cast":
        same = view.dtype(node.input[0]) == TensorProto.INT32
        if same:
            view.replace(node, "Identity", [node.input[0]])
        else:
            next(entry for entry in node.attribute if entry.name == "to").i = TensorProto.INT32
    _redirect(view, able, narrow)


def _redirect(view: GraphView, readers: list[tuple[NodeProto, int]], name: str) -> None:
    for node, index in readers:
        view.set_input(node, index, name)
        if _is_exit(node):
            view.replace(node, "Identity", [name])


REWRITE = Rewrite(
    name=NAME,
    title="int64 inside a graph becomes int32",
    pattern="int64 tensors that nodes compute and operators read that take int32 as well, bounded to 32 bits by "
    "constants, operators and the lengths of the axes they index, where at least one operator is saved",
    why="HTP has no int64: the compiler computes in int32 and cuts what does not fit, and each Cast between int32 and "
    "int64 stays as an operator that does nothing. Where every value is proven to fit, int32 computes the same. What "
    "may not fit is left, and said. Graph inputs and outputs keep their types; what is int64 by ONNX's word, as a "
    "shape or what ArgMax gives, gets a Cast, and where those would outnumber the ones saved, nothing is done.",
    default=True,
    apply=_apply,
)
