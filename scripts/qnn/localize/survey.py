"""Write the graph as the compiler gets it, and list what is in it. Runs in a child: `qnn.localize.survey:survey`."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from qnn.errors.localize import GraphDoesNotRun
from qnn.errors.ranges import RangeRunFailed
from qnn.files import link_or_copy
from qnn.localize.facts import NodeFacts, Survey
from qnn.localize.request import SurveyRequest
from qnn.localize.stretches import with_types
from qnn.ranges.compiled_form import compiled_form, prepared_form, session_of
from qnn.ranges.probe import probes_of

FILE = "localize.graph.onnx"


def survey(request: SurveyRequest) -> Survey:
    """Raises GraphDoesNotRun (QF640) when ONNX Runtime's CPU provider takes the graph in neither form."""
    for file in request.files:
        link_or_copy(file, request.folder / file.name)
    model = with_types(_runnable(request.files[0], request.folder))
    for node in model.graph.node:
        node.name = node.name or f"{node.op_type}_{node.output[0]}"
    file = request.folder / FILE
    file.write_bytes(model.SerializeToString())
    return Survey(
        file=file,
        nodes=_nodes(model),
        inputs=tuple(value.name for value in model.graph.input),
        outputs=tuple(value.name for value in model.graph.output),
        sizes=_sizes(model),
    )


def _runnable(prepared: Path, folder: Path) -> ModelProto:
    """The graph after ONNX Runtime's basic optimisations, or as it is where the CPU has no kernel for theirs."""
    try:
        model = compiled_form(prepared)
        session_of(model, folder)
        return model
    except RangeRunFailed:
        model = prepared_form(prepared)
    try:
        session_of(model, folder)
    except RangeRunFailed as error:
        raise GraphDoesNotRun(error.message, remedy="read ONNX Runtime's reason in the message") from None
    return model


def _nodes(model: ModelProto) -> tuple[NodeFacts, ...]:
    """The nodes in order, with what they read that is no constant."""
    given = {value.name for value in model.graph.input} | {name for node in model.graph.node for name in node.output}
    return tuple(
        NodeFacts(
            name=node.name,
            op=node.op_type,
            inputs=tuple(dict.fromkeys(name for name in node.input if name in given)),
            outputs=tuple(name for name in node.output if name),
        )
        for node in model.graph.node
    )


def _sizes(model: ModelProto) -> tuple[tuple[str, int], ...]:
    """Bytes of each float tensor; of a quantized graph only of those that come back from integers."""
    quantized = {node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    back = {
        node.output[0] for node in model.graph.node if node.op_type == "DequantizeLinear" and node.input[0] in quantized
    }
    outputs = {value.name for value in model.graph.output}
    return tuple(
        (probe.name, probe.size) for probe in probes_of(model) if not quantized or probe.name in back | outputs
    )
