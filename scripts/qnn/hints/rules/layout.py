"""Transposes that only the layout asked for."""

from __future__ import annotations

from collections.abc import Iterator

from qnn.hints.facts import Found
from qnn.hints.qnn_graph import QnnNode
from qnn.hints.seen import Rule, Seen

# Bytes that all inserted Transposes together move, from which they are worth a word.
_BYTES = 64 << 10
_NAMED = 8


def _transposes(seen: Seen) -> Iterator[Found]:
    put_in = [node for node in seen.qnn.nodes if node.op == "Transpose" and not node.nodes]
    moved = {node.name: seen.qnn.elements(node.inputs[0]) * seen.element_bytes for node in put_in}
    total = sum(moved.values())
    if total < _BYTES:
        return
    largest = sorted(put_in, key=lambda node: -moved[node.name])
    yield Found(
        f"the compiler put in {len(put_in)} Transpose{'s' * (len(put_in) > 1)}, moving {_size(total)} a run",
        tuple(f"{_place(seen, node)}: {_size(moved[node.name])}" for node in largest[:_NAMED]),
    )


def _place(seen: Seen, node: QnnNode) -> str:
    source, made = node.inputs[0], node.outputs[0]
    turned = f"{list(seen.qnn.shape(source))} → {list(seen.qnn.shape(made))}"
    if source in seen.qnn.inputs:
        return f"input {source} {turned}"
    if made in seen.qnn.outputs:
        return f"output {made} {turned}"
    maker = next((other for other in seen.qnn.nodes if source in other.outputs), None)
    return f"tensor {source} {turned}" + ("" if maker is None else f", made by {maker}")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


TRANSPOSES = Rule(
    id="QH03",
    title="Transposes that the compiler had to insert",
    why="HTP's convolutions and pools work channels-last (NHWC). Where an ONNX graph is channels-first, the compiler "
    "turns tensors over at the borders; each turn reads and writes the whole tensor.",
    change="At inputs and outputs: export the model channels-last, so that the application gives and takes NHWC. "
    "Inside: look at what stands between two convolutions there (a Reshape, Softmax or MatMul over the channel "
    "axis), and write it for the last axis.",
    look=_transposes,
)
