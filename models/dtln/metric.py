"""What a listener hears of the difference: how far the result's error lies below the result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import stream
from numpy.typing import NDArray

MOST = 120.0  # dB reported when there is no error at all


def evaluate(
    *,
    graph: str,
    inputs: stream.Tensors,
    outputs: stream.Tensors,
    reference: stream.Tensors,
    sources: dict[str, Path],
) -> dict[str, float]:
    """`snr_db`: power of the float model's sound over the power of the difference to it, in decibels.

    ``mask``: of the spectrum under the mask; ``time``: of the block that goes to the loudspeaker.
    """
    if graph == "mask":
        heard, truth = (inputs["input_2"] * result["activation_2"] for result in (outputs, reference))
    else:
        heard, truth = outputs["conv1d_3"], reference["conv1d_3"]
    return {"snr_db": snr(heard, truth)}


def snr(heard: NDArray[np.float32], truth: NDArray[np.float32]) -> float:
    """Signal to error in dB, at most MOST."""
    error = float(np.square(heard - truth).sum())
    signal = float(np.square(truth).sum())
    return min(MOST, 10 * float(np.log10(signal / error))) if error > 0 else MOST
