"""Channels and inner dimensions that do not fill the NPU's vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from qnn.hints.facts import Found
from qnn.hints.qnn_graph import QnnNode
from qnn.hints.seen import Rule, Seen

# HTP keeps channels in groups of this many, and computes whole groups.
GROUP = 32
# A graph deserves the hint from this share of multiplications for nothing; a node is named from this share of all.
_GRAPH_SHARE = 0.05
_NODE_SHARE = 0.01
_NAMED = 6
# An image's own channels cannot be changed.
_IMAGE_CHANNELS = 4


@dataclass(frozen=True)
class _Work:
    """One operator: multiplications it needs, those it does when sizes are rounded up, and the sizes in words."""

    node: QnnNode
    needed: int
    done: int
    sizes: str

    @property
    def wasted(self) -> int:
        return self.done - self.needed


def _channels(seen: Seen) -> Iterator[Found]:
    yield from _wasteful(seen, [work for node in seen.qnn.nodes if (work := _of_conv(seen, node))], "convolutions")


def _inner(seen: Seen) -> Iterator[Found]:
    yield from _wasteful(seen, [work for node in seen.qnn.nodes if (work := _of_matmul(seen, node))], "products")


def _wasteful(seen: Seen, works: list[_Work], what: str) -> Iterator[Found]:
    everything = [work for node in seen.qnn.nodes if (work := _of_conv(seen, node) or _of_matmul(seen, node))]
    total = sum(work.done for work in everything)
    wasted = sum(work.wasted for work in works)
    if not total or wasted < _GRAPH_SHARE * total:
        return
    named = sorted((work for work in works if work.wasted >= _NODE_SHARE * total), key=lambda work: -work.wasted)
    yield Found(
        f"{wasted / total:.0%} of all multiplications are of {what} whose sizes are rounded up to {GROUP}",
        tuple(
            f"{work.node} ({work.node.op}): {work.sizes}, {work.wasted / total:.1%} of all" for work in named[:_NAMED]
        ),
    )


def _of_conv(seen: Seen, node: QnnNode) -> _Work | None:
    if node.op not in ("Conv2d", "TransposeConv2d", "DepthWiseConv2d") or len(node.inputs) < 2:
        return None
    weight, out = seen.qnn.shape(node.inputs[1]), seen.qnn.shape(node.outputs[0])
    if len(weight) != 4 or not out:
        return None
    height, width, into, made = weight
    # A transposed convolution multiplies once for each place of its input.
    at = seen.qnn.shape(node.inputs[0]) if node.op == "TransposeConv2d" else out
    places = prod(at[:-1]) * height * width
    if node.op == "DepthWiseConv2d":
        return _Work(node, places * made, places * _up(made), _said("channels", made))
    # The first layer's input channels are the picture's.
    rounded = into if into <= _IMAGE_CHANNELS else _up(into)
    sizes = ", ".join(part for part in (_said("in", into) if rounded != into else "", _said("out", made)) if part)
    return _Work(node, places * into * made, places * rounded * _up(made), sizes)


def _of_matmul(seen: Seen, node: QnnNode) -> _Work | None:
    if node.op not in ("FullyConnected", "MatMul") or len(node.inputs) < 2:
        return None
    second, out = seen.qnn.shape(node.inputs[1]), seen.qnn.shape(node.outputs[0])
    if len(second) < 2 or not out:
        return None
    turned = node.op == "FullyConnected" or "transpose_in1" in node.flags
    inner = second[-1] if turned else second[-2]
    made, rows = out[-1], prod(out[:-1])
    sizes = ", ".join(part for part in (_said("inner", inner), _said("out", made)) if part)
    return _Work(node, rows * inner * made, rows * _up(inner) * _up(made), sizes)


def _up(size: int) -> int:
    return -(-size // GROUP) * GROUP


def _said(what: str, size: int) -> str:
    return f"{what} {size} → {_up(size)}" if size % GROUP else ""


CHANNELS = Rule(
    id="QH01",
    title="channels that are not multiples of 32",
    why="HTP keeps channels in groups of 32 and computes whole groups: 33 channels cost as much as 64.",
    change="Choose channel counts that are multiples of 32 (or prune to one), in the widest layers first. With weights "
    "that are given, zero channels change nothing and save nothing: this needs another architecture.",
    look=_channels,
)

INNER = Rule(
    id="QH02",
    title="inner dimensions that are not multiples of 32",
    why="A matrix product reads its inner dimension, and writes its last one, in groups of 32.",
    change="Choose hidden sizes, head sizes and vocabularies that are multiples of 32; for attention, a bucket whose "
    "length is one.",
    look=_inner,
)
