"""The types at the border of the graph: int64 inputs as model.yaml says, and nothing that HTP does not have.

Measured with QAIRT 2.51 (onnxruntime-qnn 2.7.0, SM8650): an int64 input compiles; the binary lists it as int64 and
begins with a Cast to int32, so values beyond 32 bits are cut. An int64 output is an int32 result and a Cast. bfloat16,
float64 and uint64 are refused at the border, int8 and uint16 where they are not quantized values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.errors.graphs import UndeclaredInt64, UnsupportedDtype
from qnn.model.spec import InputSpec
from qnn.prepare.prepared import Change
from qnn.prepare.weights import graphs_of

BORDER_TYPES = frozenset(
    {
        TensorProto.BOOL,
        TensorProto.FLOAT,
        TensorProto.FLOAT16,
        TensorProto.INT8,
        TensorProto.INT16,
        TensorProto.INT32,
        TensorProto.INT64,
        TensorProto.UINT8,
        TensorProto.UINT16,
        TensorProto.UINT32,
    }
)


def type_name(value: ValueInfoProto) -> str:
    """NumPy's name of a tensor's type, or ONNX's where NumPy has none."""
    number = value.type.tensor_type.elem_type
    if number in BORDER_TYPES or number == TensorProto.DOUBLE:
        return str(tensor_dtype_to_np_dtype(number))
    return TensorProto.DataType.Name(number).lower() if number in TensorProto.DataType.values() else str(number)


def settle_inputs(model: ModelProto, inputs: Sequence[InputSpec]) -> list[Change]:
    """Give the inputs the declared dtypes, in place.

    Raises UndeclaredInt64 (QF409), and UnsupportedDtype (QF410) for a type HTP lacks or a dtype that cannot be given.
    """
    refuse_unsupported(model.graph.input, "input")
    specs = {spec.name: spec for spec in inputs}
    undeclared = [
        value.name
        for value in model.graph.input
        if value.type.tensor_type.elem_type == TensorProto.INT64 and specs[value.name].dtype is None
    ]
    if undeclared:
        raise UndeclaredInt64(
            f"int64 input{'s' if len(undeclared) > 1 else ''} without a declared dtype: {', '.join(undeclared)}",
            remedy=f"write `{undeclared[0]}: {{shape: {_written(specs[undeclared[0]])}, dtype: int32}}` to make it "
            "int32 with an exact cast, or `dtype: int64` to keep it",
        )
    changes = []
    for value in model.graph.input:
        wanted, has = specs[value.name].dtype, type_name(value)
        if wanted in (None, has):
            continue
        if (wanted, has) != ("int32", "int64"):
            raise UnsupportedDtype(
                f"input {value.name!r} is {has} and cannot be given as {wanted}",
                remedy="only an int64 input can be declared with another dtype, int32; remove `dtype`",
            )
        _cast_from_int32(model, value)
        changes.append(Change("cast-input", value.name, "int64 becomes int32, with a Cast behind it"))
    return changes


def refuse_unsupported(values: Sequence[ValueInfoProto], what: str) -> None:
    """Raise UnsupportedDtype (QF410) for a graph input or output of a type HTP lacks."""
    for value in values:
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type not in BORDER_TYPES:
            raise UnsupportedDtype(
                f"{what} {value.name!r} is {type_name(value)}, which HTP does not have",
                remedy="export the model with float32 (or integer) inputs and outputs",
            )


def _written(spec: InputSpec) -> str:
    return f"[{', '.join(str(dim) for dim in spec.shape)}]"


def _cast_from_int32(model: ModelProto, value: ValueInfoProto) -> None:
    """Make the input int32 and put a Cast to int64 between it and everything that used it."""
    graph = model.graph
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    wide = f"{value.name}_int64"
    while wide in taken:
        wide += "_"
    for node in graph.node:
        _replace_input(node.input, value.name, wide)
    for inner in graphs_of(graph.node):
        for node in inner.node:
            _replace_input(node.input, value.name, wide)
    value.type.tensor_type.elem_type = TensorProto.INT32
    graph.node.insert(0, onnx.helper.make_node("Cast", [value.name], [wide], name=wide, to=TensorProto.INT64))


def _replace_input(names: Any, old: str, new: str) -> None:
    for index, name in enumerate(names):
        if name == old:
            names[index] = new
