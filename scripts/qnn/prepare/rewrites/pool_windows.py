"""The windows of a pooling node: where they begin, what of them lies inside of the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from onnx import NodeProto

from qnn.prepare.rewrites.view import Array, GraphView, attribute


@dataclass(frozen=True)
class Windows:
    """A pooling over `sizes`, one number a spatial axis. `ends` are the pads that make `counts` windows in floor mode.

    `stated_ends` are the node's own: smaller where ceil_mode made a last window longer than the input.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    stated_ends: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def is_padded(self) -> bool:
        """Whether any window reaches beyond the input."""
        return any(self.begins) or any(self.ends)

    def inside(self) -> Array:
        """float64[counts]: how many elements of each window lie in the input."""
        total: Array = numpy.ones((1,) * len(self.sizes))
        for axis, size in enumerate(self.sizes):
            starts = numpy.arange(self.counts[axis]) * self.strides[axis] - self.begins[axis]
            at = starts[:, None] + numpy.arange(self.kernel[axis])[None, :] * self.dilations[axis]
            along = ((at >= 0) & (at < size)).sum(axis=1)
            shape = [-1 if other == axis else 1 for other in range(len(self.sizes))]
            total = total * along.reshape(shape)
        return total


def windows(view: GraphView, node: NodeProto) -> Windows | None:
    """The windows of an AveragePool or MaxPool; None where a shape is not known."""
    before, after = view.shape(node.input[0]), view.shape(node.output[0])
    if before is None or after is None:
        return None
    rank = len(before) - 2
    kernel = tuple(attribute(node, "kernel_shape"))
    strides = tuple(attribute(node, "strides", [1] * rank))
    dilations = tuple(attribute(node, "dilations", [1] * rank))
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    counts = after[2:]
    mode = attribute(node, "auto_pad", b"NOTSET")
    pads = list(attribute(node, "pads", [0] * (2 * rank)))
    if mode not in (b"SAME_UPPER", b"SAME_LOWER"):
        # Shape inference counts a last window that begins behind the input; ONNX Runtime leaves it out.
        counts = tuple(
            count - 1 if count > 1 and (count - 1) * stride >= n + begin else count
            for count, stride, n, begin in zip(counts, strides, before[2:], pads[:rank], strict=True)
        )
    needed = [
        (count - 1) * stride + size - n
        for count, stride, size, n in zip(counts, strides, reach, before[2:], strict=True)
    ]
    if mode in (b"SAME_UPPER", b"SAME_LOWER"):
        totals = [max(0, total) for total in needed]
        begins = [total // 2 if mode == b"SAME_UPPER" else total - total // 2 for total in totals]
        pads = [*begins, *(total - begin for total, begin in zip(totals, begins, strict=True))]
    begins, stated = pads[:rank], pads[rank:]
    ends = [max(0, total - begin) for total, begin in zip(needed, begins, strict=True)]
    return Windows(before[2:], kernel, strides, dilations, tuple(begins), tuple(ends), tuple(stated), tuple(counts))
