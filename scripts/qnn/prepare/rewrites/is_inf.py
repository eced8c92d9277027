"""IsInf, which the compiler has no form of."""

from __future__ import annotations

import numpy
from onnx import ModelProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "is-inf"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("IsInf"):
        source, made = str(node.input[0]), str(node.output[0])
        if not view.is_float(source):
            continue
        positive, negative = attribute(node, "detect_positive", 1), attribute(node, "detect_negative", 1)
        most = float(numpy.finfo(tensor_dtype_to_np_dtype(view.dtype(source))).max)
        end = view.add_scalar_like(f"{made}_largest", most if positive else -most, source)
        if positive and negative:
            source = view.add_node("Abs", [source], f"{made}_magnitude")
        if not (positive or negative):
            continue
        view.replace(node, "Greater" if positive else "Less", [source, end])
        changes.append(applied(NAME, node, "compared with the largest finite number"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="IsInf becomes a comparison",
    pattern="IsInf of float32 or float16",
    why="The compiler has no form of IsInf, which exports of nan_to_num and of guards against overflow hold. What is "
    "beyond the largest finite number is infinite; HTP has no such number, and answers False as for every finite one.",
    default=True,
    apply=_apply,
)
