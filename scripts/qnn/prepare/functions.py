"""Turn function calls into the operators they stand for, so that every later step and the compiler see plain operators.

Functions of the model itself are always inlined. Of the operators that ONNX defines through others, those that the
compiler has no form for are inlined: measured with QAIRT 2.51 (onnxruntime-qnn 2.7.0), each between two Convs, the
operator is refused and its definition compiles and is right. (CenterCropPad is the exception: it breaks the session as
it is, and its definition is refused by name.) Operators the compiler does have (Gelu, HardSwish, LayerNormalization,
Softplus …) stay: their definitions would be worse for it.
"""

from __future__ import annotations

from collections import Counter

import onnx
from onnx import ModelProto
from onnx.inliner import inline_local_functions, inline_selected_functions

from qnn.errors.graphs import InvalidGraph
from qnn.prepare import shapes
from qnn.prepare.prepared import Change

INLINED_OPERATORS = (
    "CastLike",
    "Celu",
    "CenterCropPad",
    "MeanVarianceNormalization",
    "Mish",
    "ReduceL1",
    "ReduceLogSum",
    "ReduceSumSquare",
    "Shrink",
    "Softsign",
)
_DEFAULT_DOMAINS = ("", "ai.onnx")


def inline_model_functions(model: ModelProto) -> tuple[ModelProto, list[Change]]:
    """A model without functions of its own; raises InvalidGraph (QF413) when a call does not fit its function."""
    if not model.functions:
        return model, []
    try:
        inlined = inline_local_functions(model)
    except (RuntimeError, ValueError) as error:
        raise InvalidGraph(
            f"the functions of the model cannot be inlined: {' '.join(str(error).split())[:300]}",
            remedy="export the model without local functions, or run onnx.inliner on it and look at the error",
        ) from error
    names = sorted({function.name for function in model.functions})
    return inlined, [Change("inlined", name, "a function of the model") for name in names]


def inline_operators(model: ModelProto) -> tuple[ModelProto, list[Change]]:
    """A model without the operators of INLINED_OPERATORS, as far as its opset defines them through others.

    The shapes of the result are those of the inputs only.
    """
    counts = _count(model)
    if not counts:
        return model, []
    inferred = shapes.infer(model)
    _fill_in_defaults(inferred)
    # Definitions that depend on types need them for constants too, which inference does not list.
    inferred.graph.value_info.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in inferred.graph.initializer
    )
    wanted = [("", name) for name in INLINED_OPERATORS]
    try:
        inlined = inline_selected_functions(inferred, wanted, exclude=False, inline_schema_functions=True)
    except (RuntimeError, ValueError) as error:
        # An operator without a definition in this opset, or of an unknown type, is left to the compiler to judge.
        return model, [Change("not-inlined", ", ".join(counts), " ".join(str(error).split())[:200])]
    del inlined.graph.value_info[:]
    left = _count(inlined)
    changes = [
        Change("inlined", name, f"{count - left[name]} nodes replaced by the operator's ONNX definition")
        for name, count in sorted(counts.items())
        if count > left[name]
    ]
    return inlined, changes


def _count(model: ModelProto) -> Counter[str]:
    return Counter(
        node.op_type
        for node in model.graph.node
        if node.domain in _DEFAULT_DOMAINS and node.op_type in INLINED_OPERATORS
    )


def _fill_in_defaults(model: ModelProto) -> None:
    """Write out attributes left at their default: the inliner puts nothing where an attribute is absent."""
    opset = max((entry.version for entry in model.opset_import if entry.domain in _DEFAULT_DOMAINS), default=1)
    for node in model.graph.node:
        if node.domain not in _DEFAULT_DOMAINS or node.op_type not in INLINED_OPERATORS:
            continue
        if not onnx.defs.has(node.op_type, opset, ""):
            continue  # newer than the model's opset: named where shapes are inferred
        given = {attribute.name for attribute in node.attribute}
        schema = onnx.defs.get_schema(node.op_type, opset)
        node.attribute.extend(
            attribute.default_value
            for name, attribute in sorted(schema.attributes.items())
            if name not in given and attribute.default_value.name
        )
