"""Taking over a model's shipped samples. A job for a child: it needs numpy, and the files come with the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnn.model_code.shipped import take_samples
from qnn.tensors import TensorSpec


@dataclass(frozen=True)
class ShippedSamples:
    """Which .npz files, in order; what the graph's inputs are; where ``000.npz`` … shall be."""

    files: tuple[Path, ...]
    inputs: tuple[TensorSpec, ...]
    output: Path


def take_shipped(request: ShippedSamples) -> None:
    """See qnn.model_code.shipped.take_samples."""
    take_samples(request.files, request.inputs, request.output)
