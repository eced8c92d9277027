"""The ONNX graph of a stretch of nodes: its inputs take the values that nodes before it would make. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import ModelProto, ValueInfoProto

from qnn.localize.facts import Stretch
from qnn.prepare.canonical import sort_graph


def stretch_of(model: ModelProto, stretch: Stretch, outputs: Sequence[str]) -> ModelProto:
    """A model of the nodes of a stretch that `outputs` need (none: all that later nodes or the graph's outputs use).

    What the nodes read and do not make becomes an input. Expects a type and shape for every tensor that crosses.
    """
    nodes = model.graph.node[stretch.start : stretch.stop]
    infos = types_of(model)
    part = ModelProto()
    part.CopyFrom(model)
    del part.graph.node[:]
    part.graph.node.extend(nodes)
    made = {name for node in nodes for name in node.output}
    constants = {tensor.name for tensor in model.graph.initializer}
    read = dict.fromkeys(name for node in nodes for name in node.input if name)
    del part.graph.input[:]
    part.graph.input.extend(infos[name] for name in read if name not in made and name not in constants)
    wanted = list(outputs) or _used_later(model, stretch, made)
    del part.graph.output[:]
    part.graph.output.extend(infos[name] for name in wanted)
    sort_graph(part)
    used = {name for node in part.graph.node for name in node.input}
    kept = [value for value in part.graph.input if value.name in used]
    del part.graph.input[:]
    part.graph.input.extend(kept)
    return part


def types_of(model: ModelProto) -> dict[str, ValueInfoProto]:
    """Type and shape of every tensor that the model tells them of, by name."""
    graph = model.graph
    return {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}


def with_types(model: ModelProto) -> ModelProto:
    """A copy that tells the type of every tensor inference finds one for; weights in files stay there."""
    light = ModelProto()
    light.CopyFrom(model)
    far = [tensor for tensor in light.graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    near = [tensor for tensor in light.graph.initializer if tensor.data_location != onnx.TensorProto.EXTERNAL]
    del light.graph.initializer[:]
    light.graph.initializer.extend(near)
    light.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in far
    )
    inferred = types_of(onnx.shape_inference.infer_shapes(light))
    typed = ModelProto()
    typed.CopyFrom(model)
    known = types_of(model)
    typed.graph.value_info.extend(
        inferred[name]
        for node in model.graph.node
        for name in node.output
        if name not in known and name in inferred and inferred[name].type.HasField("tensor_type")
    )
    return typed


def _used_later(model: ModelProto, stretch: Stretch, made: set[str]) -> list[str]:
    later = {name for node in model.graph.node[stretch.stop :] for name in node.input}
    later |= {value.name for value in model.graph.output}
    nodes = model.graph.node[stretch.start : stretch.stop]
    return [name for node in nodes for name in node.output if name in made and name in later]
