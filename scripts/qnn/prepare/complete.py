"""Find the shapes that inference leaves open, by running the graph once; or say why no shape can be known.

ONNX's inference knows neither operators of other domains nor every standard one (GroupNormalization, opset 21). ONNX
Runtime does: one run on zeros tells the shapes, provided no shape depends on the data. That is decided from the graph
before the run, because a run on zeros of a data-dependent operator would tell a lie.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import np_dtype_to_tensor_dtype, tensor_dtype_to_np_dtype

from qnn.errors.graphs import DynamicDims, InvalidGraph
from qnn.prepare import shapes
from qnn.prepare.prepared import Change
from qnn.prepare.runtime import RuntimeRefusedError, load_cpu, run_cpu
from qnn.prepare.write import write_model

# Operators whose output size is a question of the data, whatever their inputs are.
_DATA_DEPENDENT = frozenset(
    {"Compress", "NonMaxSuppression", "NonZero", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "Unique"}
)
# Inputs that hold sizes or positions, so that a value known only at run time leaves the output's shape open.
_SIZE_INPUTS: Mapping[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "MaxUnpool": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
_REDUCTIONS_WITH_AXES_INPUT = "Reduce"


def complete_shapes(model: ModelProto) -> list[Change]:
    """Give every tensor of an inferred model a fixed shape, in place.

    Raises DynamicDims (QF407) naming the nodes whose shapes depend on the data, InvalidGraph (QF413) when the graph
    does not run.
    """
    open_names = _open_tensors(model)
    if not open_names:
        return []
    _refuse_data_dependent(model, open_names)
    found = _run_on_zeros(model, open_names)
    known = {value.name: value for value in (*model.graph.output, *model.graph.value_info)}
    for name, array in found.items():
        value = known.get(name)
        if value is None:
            value = model.graph.value_info.add()
            value.name = name
        value.type.tensor_type.elem_type = np_dtype_to_tensor_dtype(array.dtype)
        shapes.set_dims(value, array.shape)
    return [
        Change("shape-by-run", name, f"{list(array.shape)}, not inferred but seen in a run on zeros")
        for name, array in found.items()
        if name in {value.name for value in model.graph.output}
    ]


def _open_tensors(model: ModelProto) -> list[str]:
    known = {
        value.name
        for value in (*model.graph.input, *model.graph.output, *model.graph.value_info)
        if _is_typed(value) and shapes.is_fixed(value)
    }
    return [name for node in model.graph.node for name in node.output if name and name not in known]


def _is_typed(value: ValueInfoProto) -> bool:
    return bool(value.type.tensor_type.elem_type)


def _refuse_data_dependent(model: ModelProto, open_names: Sequence[str]) -> None:
    """Raise when a first node without a known shape is one whose shape the data decides."""
    is_open = set(open_names)
    by_data = _data_tensors(model)
    faults = []
    for node in model.graph.node:
        if is_open.isdisjoint(node.output) or not is_open.isdisjoint(node.input):
            continue
        why = _why_data_dependent(node, by_data)
        if why is not None:
            shape = _stated(model, next(name for name in node.output if name in is_open))
            faults.append(f"node {node.name!r} ({node.op_type}): {node.output[0]!r} has shape {shape}: {why}")
    if faults:
        raise DynamicDims(
            f"{len(faults)} tensor{'s have' if len(faults) > 1 else ' has'} a shape that depends on the data",
            remedy="cut the graph before these nodes, or replace them by forms of fixed size (TopK, a mask)",
            details=faults,
        )


def _why_data_dependent(node: NodeProto, by_data: set[str]) -> str | None:
    if node.op_type in _DATA_DEPENDENT:
        return "its size is known only when the values are"
    positions = _SIZE_INPUTS.get(node.op_type, (1,) if node.op_type.startswith(_REDUCTIONS_WITH_AXES_INPUT) else ())
    for position in positions:
        if position < len(node.input) and node.input[position] in by_data:
            return f"its size comes from {node.input[position]!r}, which is computed from an input"
    return None


def _data_tensors(model: ModelProto) -> set[str]:
    """Tensors whose values depend on those of the graph's inputs (shapes of fixed inputs are constants)."""
    found = {value.name for value in model.graph.input}
    for node in model.graph.node:  # in topological order
        if node.op_type not in ("Shape", "Size") and not found.isdisjoint(node.input):
            found.update(node.output)
    return found


def _stated(model: ModelProto, name: str) -> str:
    values = (*model.graph.output, *model.graph.value_info)
    return next((shapes.text(shapes.dims_of(value)) for value in values if value.name == name), "?")


def _run_on_zeros(model: ModelProto, names: Iterable[str]) -> dict[str, numpy.ndarray]:
    probe = ModelProto()
    probe.CopyFrom(model)
    del probe.graph.value_info[:]
    outputs = {value.name for value in probe.graph.output}
    for value in probe.graph.output:
        value.type.Clear()
    wanted = list(names)
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in outputs)
    feeds = {
        value.name: numpy.zeros(
            [dim.dim_value for dim in value.type.tensor_type.shape.dim],
            tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type),
        )
        for value in probe.graph.input
        if value.type.tensor_type.elem_type != TensorProto.STRING
    }
    with tempfile.TemporaryDirectory(prefix="qnn-forge-shapes-") as folder:
        files = write_model(probe, "probe", Path(folder))
        try:
            arrays = run_cpu(load_cpu(Path(folder) / files[0]), wanted, feeds)
        except RuntimeRefusedError as error:
            raise _does_not_run(model, error) from error
    return dict(zip(wanted, arrays, strict=True))


def _does_not_run(model: ModelProto, error: RuntimeRefusedError) -> InvalidGraph:
    inference = shapes.why_not_inferred(model)
    return InvalidGraph(
        "the graph does not run with the declared shapes",
        remedy="check the shapes of the inputs against the model's documentation, and the bucket's numbers",
        details=[f"ONNX Runtime: {str(error)[:400]}", *([f"shape inference: {inference}"] if inference else [])],
    )
