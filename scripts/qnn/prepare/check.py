"""What no chip can run, named before any compiler sees it. Pure: looks at a prepared graph and raises or does not."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

from qnn.errors.graphs import ControlFlow, DynamicDims, EmptyTensor, InvalidGraph, RandomOperator, UnsupportedDtype
from qnn.prepare import shapes
from qnn.prepare.canonical import constant_outputs
from qnn.prepare.dtypes import refuse_unsupported, type_name
from qnn.prepare.weights import graphs_of, subgraphs

_SEQUENCES = frozenset({"ConcatFromSequence", "SplitToSequence"})
_DEFAULT = ("", "ai.onnx")
_QUANTIZED_ONLY = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.UINT16})
_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


def refuse_attributes(model: ModelProto) -> None:
    """Raise InvalidGraph (QF413) naming every node of the main graph and its subgraphs with fewer inputs than its
    operator needs, or with an attribute that has another type or is no text: what reads them later relies on it.
    """
    opset = max((0, *(int(entry.version) for entry in model.opset_import if entry.domain in _DEFAULT)))
    types = functools.cache(functools.partial(_attribute_types, opset))
    nodes = [
        node
        for graph in (model.graph, *graphs_of(model.graph.node))
        for node in graph.node
        if node.domain in _DEFAULT and onnx.defs.has(node.op_type, opset, "")
    ]
    faults = [
        f"{_named(node)} has {len(node.input)} inputs, fewer than its operator needs"
        for node in nodes
        if len(node.input) < onnx.defs.get_schema(node.op_type, opset, "").min_input
    ]
    faults += [
        f"{_named(node)} has attribute {attribute.name!r} {fault}"
        for node in nodes
        for attribute in node.attribute
        if (fault := _attribute_fault(attribute, types(node.op_type)))
    ]
    if faults:
        raise InvalidGraph(
            _first(faults),
            remedy="run onnx.checker.check_model on the file and mend the exporter or script",
            details=faults[1:],
        )


def refuse_control_flow(model: ModelProto) -> None:
    """Raise ControlFlow (QF408) naming every node with a subgraph or on sequences or optionals."""
    faults = [_named(node) for node in model.graph.node if _is_control_flow(node)]
    if faults:
        raise ControlFlow(
            f"control flow that does not resolve with fixed shapes: {_first(faults)}",
            remedy="export the branch or the loop's body that is needed as a graph of its own",
            details=faults[1:],
        )


def refuse_random(model: ModelProto) -> None:
    """Raise RandomOperator (QF412) naming every node that draws random numbers."""
    faults = [_named(node) for node in model.graph.node if _is_random(model, node)]
    if faults:
        raise RandomOperator(
            f"the graph draws random numbers: {_first(faults)}",
            remedy="make the noise an input of the graph",
            details=faults[1:],
        )


def refuse_constant(model: ModelProto) -> None:
    """Raise InvalidGraph (QF413) for a graph of which no output depends on an input: the compiler makes nothing of it.

    Expects canonical order.
    """
    if len(constant_outputs(model)) == len(model.graph.output):
        names = ", ".join(repr(value.name) for value in model.graph.output)
        raise InvalidGraph(
            f"no output depends on an input: {names}",
            remedy="keep constants in the application, or mend the export that cut the inputs off",
        )


def refuse_open_shapes(model: ModelProto) -> None:
    """Raise DynamicDims (QF407) for a tensor whose shape is not fixed, EmptyTensor (QF411) for one of size 0.

    Expects every tensor to have a value info (see qnn.prepare.complete).
    """
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        dims = shapes.dims_of(value)
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            raise DynamicDims(
                f"tensor {value.name!r} has shape {shapes.text(dims)}",
                remedy="fix every input dimension in the bucket, or export with this size fixed",
            )
        if 0 in dims:
            raise EmptyTensor(
                f"tensor {value.name!r} has shape {list(dims)}: it has no elements",
                remedy="export without it (a first step without cache), or start with size 1 and a mask",
            )


def refuse_types(model: ModelProto) -> None:
    """Raise UnsupportedDtype (QF410) for an output HTP has no type for, for strings and bfloat16 anywhere, and for
    inputs and outputs of a type that HTP has for quantized numbers only, where nothing is quantized.
    """
    refuse_unsupported(model.graph.output, "output")
    _refuse_plain_small(model)
    values = (*model.graph.value_info, *model.graph.input, *model.graph.output)
    half = [v.name for v in values if v.type.tensor_type.elem_type == TensorProto.BFLOAT16]
    if half:
        raise UnsupportedDtype(
            f"tensor {half[0]!r} is bfloat16, which HTP does not have",
            remedy="export the model with float32 or float16 weights and without casts to bfloat16",
            details=[f"tensor {name!r} too" for name in half[1:]],
        )
    strings = [v.name for v in model.graph.value_info if v.type.tensor_type.elem_type == TensorProto.STRING]
    strings += [tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.STRING]
    if strings:
        raise UnsupportedDtype(
            f"tensor {strings[0]!r} holds strings",
            remedy="do string work (tokenisation, lookup) in the application and cut the graph behind it",
        )


def _refuse_plain_small(model: ModelProto) -> None:
    if any(node.op_type in ("DequantizeLinear", "QuantizeLinear") for node in model.graph.node):
        return
    for place, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            if value.type.tensor_type.elem_type in _QUANTIZED_ONLY:
                raise UnsupportedDtype(
                    f"{place} {value.name!r} is {type_name(value)}, which HTP has for quantized numbers only",
                    remedy="use uint8 or int32 there, or float32, and cast inside the graph",
                )


def _attribute_fault(attribute: AttributeProto, types: Mapping[str, int]) -> str:
    if types.get(attribute.name, attribute.type) != attribute.type:
        return "of another type than its operator has"
    try:
        attribute.s.decode()
    except UnicodeDecodeError:
        return "whose value is no text"
    return ""


def _attribute_types(opset: int, op_type: str) -> dict[str, int]:
    """The type of every attribute of an operator that this opset has."""
    found = onnx.defs.get_schema(op_type, opset, "").attributes
    return {name: int(attribute.type.value) for name, attribute in found.items()}


def _is_control_flow(node: NodeProto) -> bool:
    return bool(subgraphs(node)) or node.op_type in _SEQUENCES or node.op_type.startswith(("Sequence", "Optional"))


def _is_random(model: ModelProto, node: NodeProto) -> bool:
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and _is_training(model, node))


def _is_training(model: ModelProto, node: NodeProto) -> bool:
    """A Dropout that drops: its third input is there and not a constant False."""
    if len(node.input) < 3 or not node.input[2]:
        return False
    for tensor in model.graph.initializer:
        if tensor.name == node.input[2]:
            return bool(onnx.numpy_helper.to_array(tensor).any())
    return True


def _first(faults: list[str]) -> str:
    return f"{faults[0]} and {len(faults) - 1} more" if len(faults) > 1 else faults[0]


def _named(node: NodeProto) -> str:
    name = node.name or next((output for output in node.output if output), "")
    return f"node {name!r} ({node.op_type})"
