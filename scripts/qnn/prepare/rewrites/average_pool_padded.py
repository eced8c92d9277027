"""AveragePool with padding or ceil_mode as a depthwise Conv and a product with constant factors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.pool_windows import Windows, windows
from qnn.prepare.rewrites.view import Array, GraphView, attribute
from qnn.prepare.runtime import RuntimeRefusedError, load_cpu, run_cpu

NAME = "average-pool-padded"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("AveragePool"):
        found = windows(view, node)
        if found is None or view.is_quantized(node) or not _is_faulty(node, found):
            continue
        if not found.is_padded and set(found.dilations) == {1}:
            _plain(view, node, str(node.input[0]), found)
            changes.append(applied(NAME, node, "ceil_mode removed: it changes nothing at this size"))
            continue
        factors = _factors(node, found, view.opset())
        if factors is None or not view.is_float(node.input[0]):
            changes.append(refused(NAME, node, "a window lies in the padding alone, or its type is no float"))
            continue
        _replace(view, node, found, factors)
        changes.append(applied(NAME, node, f"a depthwise Conv with pads {[*found.begins, *found.ends]}"))
    return changes


def _is_faulty(node: NodeProto, found: Windows) -> bool:
    """All but plain pooling."""
    return found.is_padded or bool(attribute(node, "ceil_mode", 0)) or set(found.dilations) != {1}


def _replace(view: GraphView, node: NodeProto, found: Windows, factors: Array) -> None:
    """A Conv of 1 / K a channel over zeros beyond the border, and what each window has to be multiplied by.

    Not an AveragePool over an explicit Pad: the compiler takes the two together and is wrong again.
    """
    name, channels = str(node.output[0]), (view.shape(node.input[0]) or (0, 0))[1]
    dtype = tensor_dtype_to_np_dtype(view.dtype(node.input[0]))
    reach = [(size - 1) * step + 1 for size, step in zip(found.kernel, found.dilations, strict=True)]
    kernel = numpy.zeros((channels, 1, *reach), dtype)
    kernel[(slice(None), slice(None), *(slice(None, None, step) for step in found.dilations))] = 1.0 / prod(
        found.kernel
    )
    weights = view.add_constant(f"{name}_shares", kernel)
    attributes: dict[str, Any] = {"kernel_shape": reach, "strides": list(found.strides)}
    attributes |= {"group": channels, "pads": [*found.begins, *found.ends]}
    if numpy.allclose(factors, 1.0, rtol=1e-6):
        view.replace(node, "Conv", [str(node.input[0]), weights], **attributes)
        return
    mean = view.add_node("Conv", [str(node.input[0]), weights], f"{name}_mean", **attributes)
    view.replace(node, "Mul", [mean, view.add_constant(f"{name}_factors", factors.astype(dtype))])


def _plain(view: GraphView, node: NodeProto, source: str, found: Windows) -> None:
    view.replace(node, "AveragePool", [source], **_attributes(found))


def _attributes(found: Windows) -> dict[str, Any]:
    stated = {"kernel_shape": list(found.kernel), "strides": list(found.strides)}
    return stated if set(found.dilations) == {1} else {**stated, "dilations": list(found.dilations)}


def _factors(node: NodeProto, found: Windows, opset: int) -> Array | None:
    """[1, 1, counts]: the mean over a window's own elements, per mean over the whole kernel.

    How many elements the node counts is asked of ONNX Runtime (it depends on count_include_pad, ceil_mode and the
    opset): the node's mean of ones is the share of its count that lies inside.
    """
    inside = found.inside()
    if (inside == 0).any():
        return None
    probe = helper.make_node("AveragePool", ["x"], ["y"])
    probe.attribute.extend(node.attribute)
    graph = helper.make_graph(
        [probe],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, *found.sizes])],
        [helper.make_empty_tensor_value_info("y")],
    )
    model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    ones = numpy.ones((1, 1, *found.sizes), numpy.float32)
    try:
        (mean,) = run_cpu(load_cpu(model.SerializeToString()), ["y"], {"x": ones})
    except RuntimeRefusedError:
        return None
    factors: Array = prod(found.kernel) * mean.astype(numpy.float64) / inside
    return factors


REWRITE = Rewrite(
    name=NAME,
    title="AveragePool with padding becomes a depthwise Conv",
    pattern="AveragePool with ceil_mode, padding or dilations, outside of quantized graphs",
    why="The compiler fills the last window of ceil_mode with garbage, counts padding wrongly (all of "
    "it at strides of 1: zeros in the middle of a 15 by 15 picture), refuses dilations, and ends with an error or a "
    "crash for some sizes. A Conv of equal shares over zeros is right in "
    "every form swept; a constant factor a window takes the padding out of the mean.",
    default=True,
    apply=_apply,
)
