"""DTLN as a stream runs it: the mask's block goes on into the second network, and both states into the next block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import data
import metric
import numpy as np
import stream

Run = tuple[stream.Tensors, stream.Tensors]


def feed(
    *, graph: str, turn: int, inputs: dict[str, tuple[int, ...]], runs: dict[str, list[Run]], sources: dict[str, Path]
) -> Iterator[stream.Tensors]:
    """Inputs of every stream: as many streams as there are samples of ``mask``, each at block `turn` after its sample.

    Only the second network's first state comes from the float model; it is what a stream would have brought there.
    """
    _, audio = stream.recording(sources["recording"])
    every = stream.blocks(audio)
    count = len(runs["mask"]) // (turn + (graph == "time"))
    starts = data.places(len(every), count)
    states = data.steps(sources) if turn == 0 else []
    for number, start in enumerate(starts):
        block = every[start + turn]
        if graph == "mask":
            _, before = runs["mask"][-count:][number]
            yield {"input_2": stream.spectrum(block), "input_3": before["tf_op_layer_stack_2"]}
            continue
        _, mask = runs["mask"][-count:][number]
        if turn == 0:
            state = states[start]["time"]["input_5"]
        else:
            state = runs["time"][-count:][number][1]["tf_op_layer_stack_5"]
        yield {"input_4": stream.masked(block, mask["activation_2"]), "input_5": state}


def evaluate(
    *, runs: dict[str, list[Run]], reference: dict[str, list[Run]], sources: dict[str, Path]
) -> dict[str, float]:
    """`snr_db`: power of the float chain's sound, all blocks of all streams, over the power of the difference to it."""
    heard, truth = (np.stack([out["conv1d_3"] for _, out in side["time"]]) for side in (runs, reference))
    return {"snr_db": metric.snr(heard, truth)}
