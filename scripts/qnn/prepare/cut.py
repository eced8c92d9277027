"""Cut a graph at named tensors, which become its outputs: post-processing of dynamic size stays in the application."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import onnx
from onnx import ModelProto, ValueInfoProto

from qnn.errors.rewrites import UnknownTensor
from qnn.prepare.prepared import Change

_SHOWN = 5


def cut(model: ModelProto, outputs: Sequence[str]) -> list[Change]:
    """Make the tensors `outputs` the graph's outputs, in this order, in place; nothing when there are none.

    What only the old outputs needed is left for the canonical order to drop. Raises UnknownTensor (QF430).
    """
    if not outputs:
        return []
    known = {value.name: value for value in (*model.graph.value_info, *model.graph.input, *model.graph.output)}
    made = {name for node in model.graph.node for name in node.output if name} | {v.name for v in model.graph.input}
    unknown = [name for name in outputs if name not in made]
    if unknown:
        raise _unknown(unknown, made)
    if any(name not in known or not known[name].type.HasField("tensor_type") for name in outputs):
        known |= {value.name: value for value in _inferred(model)}
    before = [value.name for value in model.graph.output]
    values = [known.get(name, ValueInfoProto(name=name)) for name in outputs]
    copies = [ValueInfoProto.FromString(value.SerializeToString()) for value in values]
    del model.graph.output[:]
    model.graph.output.extend(copies)
    gone = [name for name in before if name not in outputs]
    said = f"in place of {', '.join(gone[:_SHOWN])}" if gone else "the other outputs stay"
    return [Change("cut", ", ".join(outputs), f"outputs of the graph, {said}")]


def _inferred(model: ModelProto) -> Sequence[ValueInfoProto]:
    """The types of inner tensors, as far as inference finds them."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return ()
    found: Sequence[ValueInfoProto] = tuple(inferred.graph.value_info)
    return found


def _unknown(unknown: Sequence[str], made: set[str]) -> UnknownTensor:
    near = difflib.get_close_matches(unknown[0], sorted(made), _SHOWN, 0.4)
    return UnknownTensor(
        f"the graph has no tensor {unknown[0]!r} to cut it at",
        remedy="name a tensor as the ONNX file does (Netron shows the names), or leave `outputs` out",
        details=[f"names like it: {', '.join(near)}"] if near else [],
    )
