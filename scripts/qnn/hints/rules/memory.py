"""What does not fit the chip's fast memory (VTCM)."""

from __future__ import annotations

from collections.abc import Iterator

from qnn.hints.facts import Found
from qnn.hints.seen import Rule, Seen

# A spill buffer below this share of VTCM is not worth a word (MiniLM at batch 8: 0.13 MB of 8 MB).
_SPILL_SHARE = 1 / 8
_NAMED = 6


def _softmax(seen: Seen) -> Iterator[Found]:
    wide = []
    for node in seen.qnn.nodes:
        shape = seen.qnn.shape(node.inputs[0]) if node.op in ("Softmax", "LogSoftmax") else ()
        # Read and written at once.
        held = 2 * seen.qnn.elements(node.inputs[0]) * seen.element_bytes if shape else 0
        if held > seen.soc.vtcm_mb << 20:
            wide.append((held, node, shape))
    if wide:
        yield Found(
            f"{len(wide)} Softmax{'es' * (len(wide) > 1)} with more in and out than the {seen.soc.vtcm_mb} MB of VTCM",
            tuple(
                f"{node} {list(shape)}: {held / 1e6:.1f} MB"
                for held, node, shape in sorted(wide, reverse=True, key=_held)[:_NAMED]
            ),
        )


def _held(entry: tuple[int, object, object]) -> int:
    return entry[0]


def _spill(seen: Seen) -> Iterator[Found]:
    vtcm = seen.soc.vtcm_mb << 20
    if seen.spill_bytes is not None and seen.spill_bytes >= vtcm * _SPILL_SHARE:
        yield Found(
            f"the binary keeps {seen.spill_bytes / 1e6:.1f} MB in a spill/fill buffer in slow memory, beside the "
            f"{seen.soc.vtcm_mb} MB of VTCM of {seen.soc.name}"
        )


SOFTMAX = Rule(
    id="QH08",
    title="a wide softmax",
    why="A softmax needs every row twice. One that does not fit VTCM goes through slow memory, as do the scores it is "
    "given, which grow with the square of the length.",
    change="Use a shorter bucket, fewer rows at once (attention in blocks of queries), or a narrower last layer.",
    look=_softmax,
)

SPILL = Rule(
    id="QH09",
    title="spill/fill memory",
    why="What does not fit VTCM while the graph runs is written to slow memory and read back, in every run.",
    change="Use a smaller bucket or batch, split the widest layers, or a quantized precision, whose tensors are half "
    "as large. Chips with more VTCM need less of it: compare `qnn-forge soc show`.",
    look=_spill,
)
