"""Relu behind a Conv of many weights becomes Max: the compiler cuts such a Conv and applies the Relu to the parts."""

from __future__ import annotations

from math import prod

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView

NAME = "conv-wide-relu"

# Products a Conv sums for one element. The compiler takes 32 output channels at once; in fp16 their weights are
# 64 bytes a product. It cuts a Conv whose slab does not fit the VTCM beside the data: of 2 MB, seen right at 24,576
# products (1.5 MB) and wrong at 28,672 (1.75 MB); of 8 MB, right at 65,536 and wrong at 131,072. The smallest VTCM
# of a chip with fp16 is 2 MB, and left of the compiler nothing knows the chip.
PRODUCTS = 24_576

# What may stand between the two: the compiler folds scales and biases into the Conv and moves a Relu over layouts.
_FOLDED = frozenset({"Add", "Sub", "Mul", "Div", "BatchNormalization"})
_MOVED = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Flatten", "Identity", "MaxPool"})


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Relu"):
        conv = _conv_before(view, node)
        products = _products(view, conv) if conv else 0
        if conv is None or products <= PRODUCTS or view.is_quantized(node):
            continue
        source, name = str(node.input[0]), str(node.output[0])
        view.replace(node, "Max", [source, view.add_scalar_like(f"{name}_zero", 0.0, source)])
        changes.append(applied(NAME, node, f"Max with 0, behind {conv.op_type} {conv.name!r} of {products:,} products"))
    return changes


def _conv_before(view: GraphView, relu: NodeProto) -> NodeProto | None:
    """The Conv whose result reaches the Relu with nothing between that the compiler would not fold or move over."""
    name = str(relu.input[0])
    while maker := view.maker(name, "Conv", *_FOLDED, *_MOVED):
        if maker.op_type == "Conv":
            return maker
        data = [source for source in maker.input if source and not view.is_constant(source)]
        if len(data) != 1:
            return None
        name = data[0]
    return None


def _products(view: GraphView, conv: NodeProto) -> int:
    """Input channels of a group × the kernel's elements; 0 when the weights are no constant."""
    shape = view.shape(conv.input[1]) if view.is_constant(conv.input[1]) else None
    return prod(shape[1:]) if shape else 0


REWRITE = Rewrite(
    name=NAME,
    title="Relu behind a Conv of many weights is the maximum with 0",
    pattern=f"Relu behind a Conv that sums more than {PRODUCTS:,} products for one element (input channels × kernel)",
    why="When the weights of 32 output channels do not fit the chip's VTCM, the compiler for v68 and v69 cuts the Conv "
    "along its input channels and applies a Relu that follows to each part before adding them up: the first layers of "
    "a pitch tracker had a cosine of 0.18. Max with 0 is the same function and is left behind the sum.",
    default=True,
    apply=_apply,
)
