"""Buckets, batches and targets that do not fit the use."""

from __future__ import annotations

from collections.abc import Iterator

from qnn.hints.facts import Found
from qnn.hints.seen import Rule, Seen
from qnn.prepare import shapes

# A bucket is far larger than the data when every sample leaves more than this share of it empty.
_EMPTY = 0.5
_NAMED = 8


def _bucket(seen: Seen) -> Iterator[Found]:
    large = [filled for filled in seen.filled if filled.used < (1 - _EMPTY) * filled.size]
    if large:
        yield Found(
            "every sample leaves more than half of the bucket empty",
            tuple(f"{one.symbol} of {one.tensor}: at most {one.used} of {one.size} are used" for one in large),
        )


def _integer_chips(seen: Seen) -> Iterator[Found]:
    chips = seen.integer_chips
    if chips:
        more = f" and {len(chips) - _NAMED} more" if len(chips) > _NAMED else ""
        yield Found(
            f"{len(chips)} of the model's targets have no floating point: {', '.join(chips[:_NAMED])}{more}; they get "
            "no binary of a float model"
        )


def _batch(seen: Seen) -> Iterator[Found]:
    sizes = set()
    for value in (*seen.view.graph.input, *seen.view.graph.output):
        dims = shapes.dims_of(value) or ()
        if len(dims) < 2 or not isinstance(dims[0], int):
            return
        sizes.add(dims[0])
    if len(sizes) == 1 and (batch := sizes.pop()) > 1:
        yield Found(f"every input and output begins with a batch of {batch}")


BUCKET = Rule(
    id="QH10",
    title="a bucket far larger than the data",
    why="A context binary always computes its whole bucket, padding included; attention grows with its square.",
    change="Add a smaller bucket for the usual size, and let the application take the smallest that holds its input. "
    "Where the samples are not usual, take longer ones, so that the checks see what the bucket is for.",
    look=_bucket,
)

INTEGER_CHIPS = Rule(
    id="QH11",
    title="integer-only chips among the targets of a float model",
    why="Some chips' NPUs have no fp16. A float graph cannot run there at all, so these targets are left out. Counted "
    "are those that model.yaml asks for by name, or by a glob that means no others; not what `public` takes along.",
    change="Add a quantized source (w8a16 or w8a8, with Q/DQ nodes) and its precision, or exclude these chips with the "
    "reason in model.yaml.",
    look=_integer_chips,
)

BATCH = Rule(
    id="QH12",
    title="a batch above 1",
    why="An NPU run is not faster a sample in a batch once its layers fill the NPU, while memory grows with the batch, "
    "and a batch that is not full computes padding.",
    change="Unless your application always has this many at once, make a bucket with batch 1 as well.",
    look=_batch,
)
