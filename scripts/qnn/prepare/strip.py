"""Remove what does not compute: who made the model, when, with what notes, and training leftovers."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto


def strip(model: ModelProto, graph_name: str) -> None:
    """Remove metadata, documentation, producer, training info and unused opset imports, in place; name the graph.

    Tools write long notes into metadata (onnxsim alone about 20 entries), and the compiler's binary depends on some
    of it, so two files that compute the same must not differ there. Functions are kept.
    """
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string", "training_info"):
        model.ClearField(field)
    _strip_message(model)
    for function in model.functions:
        _strip_message(function)
        _strip_nodes(function)
    _strip_graph(model.graph)
    model.graph.name = graph_name
    _keep_used_opsets(model)


def _strip_graph(graph: Any) -> None:
    _strip_message(graph)
    graph.ClearField("quantization_annotation")
    for part in (graph.initializer, graph.input, graph.output, graph.value_info):
        for message in part:
            _strip_message(message)
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.type.ClearField("denotation")
        if value.type.HasField("tensor_type"):
            for dim in value.type.tensor_type.shape.dim:
                dim.ClearField("denotation")
    _strip_nodes(graph)


def _strip_nodes(owner: Any) -> None:
    for node in owner.node:
        _strip_message(node)
        for attribute in node.attribute:
            _strip_message(attribute)
            if attribute.HasField("t"):
                _strip_message(attribute.t)
                attribute.t.ClearField("name")
            for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                _strip_graph(graph)


def _strip_message(message: Any) -> None:
    """Clear what is only for people, as far as this kind of message has it."""
    for field in ("doc_string", "metadata_props", "device_configurations", "configuration"):
        if field in message.DESCRIPTOR.fields_by_name:
            message.ClearField(field)


def _keep_used_opsets(model: ModelProto) -> None:
    """One entry a domain, sorted, and only domains that some node is from; the default domain always."""
    owners = [model.graph, *model.functions]
    used = {"", *(node.domain for owner in owners for node in owner.node), *(f.domain for f in model.functions)}
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        versions[domain] = max(entry.version, versions.get(domain, 0))
    used = {"" if domain == "ai.onnx" else domain for domain in used}
    del model.opset_import[:]
    for domain, version in sorted(versions.items()):
        if domain in used:
            entry = model.opset_import.add()
            entry.domain, entry.version = domain, version
