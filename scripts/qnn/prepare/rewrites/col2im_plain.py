"""Col2Im, PyTorch's fold, as a ConvTranspose."""

from __future__ import annotations

from math import prod

import numpy
from onnx import ModelProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import reshaped
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "col2im-plain"


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    return [_rewritten(view, node) for node in view.nodes("Col2Im")]


def _rewritten(view: GraphView, node: NodeProto) -> Change:
    columns, image, block = view.shape(node.input[0]), view.constant(node.input[1]), view.constant(node.input[2])
    if columns is None or image is None or block is None or not view.is_float(node.input[0]):
        return refused(NAME, node, "only of float32 and constant sizes is it a ConvTranspose")
    kernel, n = [int(size) for size in block], len(block)
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    pads = attribute(node, "pads", [0] * 2 * n)
    spare = [
        int(image[axis]) + pads[axis] + pads[axis + n] - dilations[axis] * (kernel[axis] - 1) - 1 for axis in range(n)
    ]
    places = [size // stride + 1 for size, stride in zip(spare, strides, strict=True)]
    rest = [size % stride for size, stride in zip(spare, strides, strict=True)]
    elements, channels = prod(kernel), columns[1] // prod(kernel)
    made = str(node.output[0])
    name = reshaped(view, node.input[0], [columns[0] * channels, elements, *places], f"{made}_places")
    ones = numpy.eye(elements, dtype=tensor_dtype_to_np_dtype(view.dtype(node.input[0])))
    weights = view.add_constant(f"{made}_ones", ones.reshape(elements, 1, *kernel))
    written = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    name = view.add_node("ConvTranspose", [name, weights], f"{made}_summed", output_padding=rest, **written)
    shape = numpy.array([columns[0], channels, *image], numpy.int64)
    new = view.replace(node, "Reshape", [name, view.add_constant(f"{made}_shape", shape)])
    return applied(NAME, new, f"{elements} elements of {prod(places)} places are summed by a ConvTranspose")


REWRITE = Rewrite(
    name=NAME,
    title="Col2Im becomes ConvTranspose",
    pattern="Col2Im with constant sizes (PyTorch's fold)",
    why="The compiler has no Col2Im. Each channel's columns are the input of a ConvTranspose whose kernels have a "
    "single 1: the same elements are added in the same places.",
    default=True,
    apply=_apply,
)
