"""Conv whose padding is as large as its kernel, with a kernel that zeros make larger than the padding."""

from __future__ import annotations

import numpy
from onnx import ModelProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView, attribute
from qnn.prepare.rewrites.weights_by import changed_weights

NAME = "conv-large-pads"
_PLANE = 2


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Conv"):
        weights = view.shape(node.input[1])
        pads = attribute(node, "pads")
        if weights is not None and pads is None:
            pads = [0] * (2 * (len(weights) - 2))
        if weights is None or pads is None or attribute(node, "auto_pad", b"NOTSET") != b"NOTSET":
            continue
        rank = len(weights) - 2
        dilations = attribute(node, "dilations", [1] * rank)
        reach = [(size - 1) * dilation + 1 for size, dilation in zip(weights[2:], dilations, strict=True)]
        begins, ends = pads[:rank], pads[rank:]
        # Zeros before the kernel need as many more pads before, so each side makes room for the other one's pads.
        before = [max(0, end - size + 1) for end, size in zip(ends, reach, strict=True)]
        after = [max(0, begin - size + 1) for begin, size in zip(begins, reach, strict=True)]
        deep = rank > _PLANE and any(dilation != 1 for dilation in dilations)
        if not any(before) and not any(after) and not deep:
            continue

        def spread(
            kernel: Array,
            reach: list[int] = reach,
            before: list[int] = before,
            after: list[int] = after,
            steps: list[int] = dilations,
        ) -> Array:
            sizes = [a + size + b for a, size, b in zip(before, reach, after, strict=True)]
            out = numpy.zeros((*kernel.shape[:2], *sizes), kernel.dtype)
            places = (slice(a, a + size, step) for a, size, step in zip(before, reach, steps, strict=True))
            out[(slice(None), slice(None), *places)] = kernel
            return out

        new = changed_weights(view, node.input[1], f"{node.output[0]}_weights", spread)
        if new is None:
            changes.append(refused(NAME, node, "its weights are no constant in the model's file"))
            continue
        view.replace(
            node,
            "Conv",
            [node.input[0], new, *node.input[2:]],
            group=int(attribute(node, "group", 1)),
            kernel_shape=[a + size + b for a, size, b in zip(before, reach, after, strict=True)],
            pads=[
                *(pad + more for pad, more in zip(begins, before, strict=True)),
                *(pad + more for pad, more in zip(ends, after, strict=True)),
            ],
            strides=list(attribute(node, "strides", [1] * rank)),
        )
        changes.append(applied(NAME, node, f"pads {list(pads)} around a kernel of {reach}: zeros made it larger"))
    return changes


REWRITE = Rewrite(
    name=NAME,
    title="A kernel becomes larger than its padding",
    pattern="Conv (also one that took in a Pad) with a pad as large as its kernel, dilation included, or larger; "
    "Conv over three axes with dilations",
    why="The compiler computes such a Conv wrongly (error of the size of the result) or crashes, and refuses "
    "dilations over three axes. Zeros in and around the kernel and as many more pads give the same sums.",
    default=True,
    apply=_apply,
)
