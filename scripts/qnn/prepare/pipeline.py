"""The steps of preparation, in order. Runs in a child job: `qnn.prepare.pipeline:prepare`."""

from __future__ import annotations

from onnx import ModelProto, ValueInfoProto

from qnn.faults.match import find_faults
from qnn.prepare import canonical, check, constants, dtypes, functions, shapes
from qnn.prepare.complete import complete_shapes
from qnn.prepare.cut import cut
from qnn.prepare.finite import refuse_not_numbers
from qnn.prepare.load import load
from qnn.prepare.prepared import Change, PreparedGraph, save_prepared
from qnn.prepare.request import PrepareRequest
from qnn.prepare.resize_shapes import settle_resizes
from qnn.prepare.rewrites.registry import apply_rewrites
from qnn.prepare.simplify import simplify
from qnn.prepare.strip import strip
from qnn.prepare.write import write_model
from qnn.tensors import TensorSpec


def prepare(request: PrepareRequest) -> PreparedGraph:
    """Prepare one graph for one bucket and write it to `request.folder`, facts last.

    The graph made computes what the source computes, for the bucket's shapes. Raises the errors of
    qnn.errors.graphs: QF401–QF404 (loading), QF405–QF415 (what the graph is).
    """
    model = load(request.source)
    nodes_before = len(model.graph.node)
    declared = shapes.declared_outputs(model)
    model, changes = transform(model, request)
    changes += shapes.corrections(model, declared)
    facts = PreparedGraph(
        graph=request.graph,
        files=write_model(model, request.graph, request.folder),
        bucket=dict(sorted(request.bucket.items())),
        inputs=tuple(_spec(value) for value in model.graph.input),
        outputs=tuple(_spec(value) for value in model.graph.output),
        changes=tuple(changes),
        unused_inputs=canonical.unused_inputs(model),
        constant_outputs=canonical.constant_outputs(model),
        nodes_before=nodes_before,
        nodes_after=len(model.graph.node),
        opsets={entry.domain: int(entry.version) for entry in model.opset_import},
        ir=int(model.ir_version),
        faults=find_faults(model),
    )
    save_prepared(facts, request.folder)
    return facts


def transform(model: ModelProto, request: PrepareRequest) -> tuple[ModelProto, list[Change]]:
    """The prepared form of a loaded model, and what was done to it. Touches no file but for reading weights."""
    check.refuse_attributes(model)
    changes = cut(model, request.outputs)
    changes += shapes.fix_inputs(model, request.inputs, request.bucket)
    model, done = functions.inline_model_functions(model)
    changes += done
    changes += dtypes.settle_inputs(model, request.inputs)
    canonical.sort_graph(model)
    model, done = functions.inline_operators(model)
    changes += done
    constants.lift_constants(model)
    canonical.sort_graph(model)
    refuse_not_numbers(model)
    model, done = simplify(model)
    changes += done
    changes += constants.select_constantly(model)
    check.refuse_control_flow(model)
    check.refuse_random(model)
    changes += canonical.settle_names(model)
    model, done = settle_resizes(shapes.infer(model))
    changes += done
    if done:  # sorting costs a second copy of the weights
        canonical.sort_graph(model)
    changes += complete_shapes(model)
    model, done = apply_rewrites(model, request.rewrites)
    changes += done
    strip(model, request.graph)
    canonical.sort_graph(model)
    check.refuse_constant(model)
    check.refuse_types(model)
    check.refuse_open_shapes(model)
    return model, changes


def _spec(value: ValueInfoProto) -> TensorSpec:
    dims = shapes.dims_of(value) or ()
    return TensorSpec(value.name, dtypes.type_name(value), tuple(dim for dim in dims if isinstance(dim, int)))
