"""Fix the shapes of a graph: inputs as declared, everything else worked out anew.

What a file says of its intermediate and output shapes is not believed: exporters leave symbols, stale sizes and wrong
ones (a wrong output shape makes the compiler refuse the last Reshape). It is forgotten and inferred again, and where
the result contradicts a number of the file, that is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import ModelProto, TensorShapeProto, ValueInfoProto

from qnn.errors.graphs import DynamicDims, InputsDiffer, InvalidGraph, ShapeConflict, UnsupportedDtype
from qnn.model.spec import InputSpec
from qnn.prepare.prepared import Change

Dims = tuple[int | str | None, ...]


def dims_of(value: ValueInfoProto) -> Dims | None:
    """The dimensions a file states: numbers, symbols, None for nothing at all; None when even the rank is open.

    Some exporters write -1 for an open dimension.
    """
    tensor = value.type.tensor_type
    return _dims(tensor.shape) if tensor.HasField("shape") else None


def text(dims: Dims | None) -> str:
    """Dimensions as a person reads them; symbols that inference made up are as open as no symbol."""
    if dims is None:
        return "[…]"
    return f"[{', '.join('?' if dim is None or str(dim).startswith('unk__') else str(dim) for dim in dims)}]"


def is_fixed(value: ValueInfoProto) -> bool:
    """Whether the tensor's rank and every dimension are known."""
    dims = dims_of(value)
    return dims is not None and all(isinstance(dim, int) for dim in dims)


def set_dims(value: ValueInfoProto, dims: Sequence[int]) -> None:
    """Give the tensor a fixed shape."""
    shape = value.type.tensor_type.shape
    shape.Clear()
    for dim in dims:
        shape.dim.add().dim_value = dim
    shape.SetInParent()  # a scalar has a shape too


def fix_inputs(model: ModelProto, inputs: Sequence[InputSpec], bucket: Mapping[str, int]) -> list[Change]:
    """Give every graph input its declared shape, and take constants out of the list of inputs.

    The IR version becomes at least 4, the first in which a constant need not be listed as an input.

    Raises InputsDiffer (QF405), ShapeConflict (QF406), DynamicDims (QF407) for a symbol the bucket does not have,
    UnsupportedDtype (QF410) for an input that is no tensor.
    """
    model.ir_version = max(model.ir_version, 4)
    changes = _strip_constant_inputs(model)
    by_name = {value.name: value for value in model.graph.input}
    _refuse_other_names(inputs, list(by_name))
    for spec in inputs:
        value = by_name[spec.name]
        if not value.type.HasField("tensor_type"):
            raise UnsupportedDtype(
                f"input {spec.name!r} is a {value.type.WhichOneof('value') or 'value without a type'}, not a tensor",
                remedy="export the model with plain tensors as inputs",
            )
        wanted = _resolve(spec, bucket)
        _refuse_conflict(spec, wanted, dims_of(value))
        set_dims(value, wanted)
    return changes


def declared_outputs(model: ModelProto) -> dict[str, Dims | None]:
    """What the file says of its outputs' shapes, before it is forgotten."""
    return {value.name: dims_of(value) for value in model.graph.output}


def infer(model: ModelProto) -> ModelProto:
    """A copy of the model whose shapes beyond the inputs are all inferred anew.

    Raises InvalidGraph (QF413) when inference cannot even start. Shapes that inference does not find stay open.
    """
    del model.graph.value_info[:]
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        raise InvalidGraph(
            f"shapes cannot be inferred: {_one_line(error)}",
            remedy="run onnx.checker.check_model on the file with full_check=True and mend the exporter",
        ) from error
    _type_constant_outputs(inferred)
    return inferred


def why_not_inferred(model: ModelProto) -> str:
    """What strict inference says of a graph whose shapes did not come out; empty when it has no complaint."""
    try:
        onnx.shape_inference.infer_shapes(model, data_prop=True, strict_mode=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        return _one_line(error)
    return ""


def corrections(model: ModelProto, declared: Mapping[str, Dims | None]) -> list[Change]:
    """The outputs whose true shape contradicts what the file said in numbers or rank."""
    changes = []
    for value in model.graph.output:
        said, true = declared.get(value.name), dims_of(value)
        if said is not None and true is not None and _contradicts(said, true):
            changes.append(Change("output-shape", value.name, f"declared {text(said)}, is {text(true)}"))
    return changes


def _type_constant_outputs(model: ModelProto) -> None:
    """Inference looks at nodes only; an output that is an initializer has that one's shape."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for value in model.graph.output:
        tensor = constants.get(value.name)
        if tensor is not None:
            value.type.tensor_type.elem_type = tensor.data_type
            set_dims(value, tensor.dims)


def _dims(shape: TensorShapeProto) -> Dims:
    out: list[int | str | None] = []
    for dim in shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            out.append(int(dim.dim_value))
        else:
            out.append(dim.dim_param or None)
    return tuple(out)


def _strip_constant_inputs(model: ModelProto) -> list[Change]:
    constants = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    stripped = [value.name for value in model.graph.input if value.name in constants]
    if not stripped:
        return []
    del model.graph.input[:]
    model.graph.input.extend(kept)
    shown = ", ".join(stripped[:5]) + (f" and {len(stripped) - 5} more" if len(stripped) > 5 else "")
    return [Change("constant-input", shown, "an initializer, so not an input")]


def _refuse_other_names(inputs: Sequence[InputSpec], has: Sequence[str]) -> None:
    declared = [spec.name for spec in inputs]
    missing = [name for name in has if name not in declared]
    unknown = [name for name in declared if name not in has]
    if missing or unknown or len(set(declared)) != len(declared):
        details = [f"not declared: {name}" for name in missing]
        details += [f"not in the file: {name}" for name in unknown]
        details.append(f"the file's inputs: {', '.join(has) or 'none'}")
        raise InputsDiffer(
            "the declared inputs are not those of the file",
            remedy="declare each input of the file once, by its exact name, under `inputs`",
            details=details,
        )


def _resolve(spec: InputSpec, bucket: Mapping[str, int]) -> tuple[int, ...]:
    for dim in spec.shape:
        if isinstance(dim, str) and dim not in bucket:
            raise DynamicDims(
                f"dimension {dim!r} of input {spec.name!r} has no value in this bucket",
                remedy=f"give `{dim}` an integer in every bucket, or write the number into the shape",
            )
    return tuple(bucket[dim] if isinstance(dim, str) else dim for dim in spec.shape)


def _refuse_conflict(spec: InputSpec, wanted: tuple[int, ...], has: Dims | None) -> None:
    if has is not None and _contradicts(has, wanted):
        raise ShapeConflict(
            f"input {spec.name!r} is declared {text(wanted)}, but the file has {text(has)}",
            remedy="declare the numbers the file states, or export the model with these dimensions open",
        )


def _contradicts(said: Dims, true: Dims) -> bool:
    return len(said) != len(true) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(said, true, strict=True)
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]
