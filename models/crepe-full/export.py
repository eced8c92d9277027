"""CREPE's network, a pitch tracker: six convolutions over 64 ms of sound and a layer of 360 pitch bins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

KERNELS, STRIDES = (512, 64, 64, 64, 64, 64), (4, 1, 1, 1, 1, 1)
PADDING = ((254, 254), *[(31, 32)] * 5)  # samples before and after, so that 1024 become 4 after six times halving
EPSILON = 0.0010000000474974513  # of the batch norms, as the weights were trained with
BINS = 360  # 20 cents each, from 31.7 Hz


class Crepe(nn.Module):
    """Frames float32 [n, 1024] to the activation of every pitch bin, float32 [n, 360] in 0…1."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        for number, (before, after) in enumerate(zip((1, *widths), widths, strict=False), 1):
            kernel, stride = KERNELS[number - 1], STRIDES[number - 1]
            self.add_module(f"conv{number}", nn.Conv2d(before, after, (kernel, 1), (stride, 1)))
            self.add_module(f"conv{number}_BN", nn.BatchNorm2d(after, eps=EPSILON))
        self.classifier = nn.Linear(4 * widths[-1], BINS)

    def forward(self, frames: Tensor) -> Tensor:
        """See the class."""
        x = frames[:, None, :, None]
        for number, (before, after) in enumerate(PADDING, 1):
            x = nn.functional.pad(x, (0, 0, before, after))
            x = self.get_submodule(f"conv{number}_BN")(torch.relu(self.get_submodule(f"conv{number}")(x)))
            x = nn.functional.max_pool2d(x, (2, 1), (2, 1))
        return torch.sigmoid(self.classifier(x.permute(0, 2, 1, 3).flatten(1)))


def crepe(*, bucket: dict[str, int], sources: dict[str, Path]) -> dict[str, Any]:
    """The network with the weights of the source `weights`, for frames [bucket["frames"], 1024].

    Their shapes say which of CREPE's sizes it is.
    """
    weights = torch.load(sources["weights"], map_location="cpu", weights_only=True)
    module = Crepe(tuple(len(weights[f"conv{number}.weight"]) for number in range(1, 7)))
    module.load_state_dict(weights)
    return {
        "module": module,
        "inputs": {"frames": torch.zeros(bucket["frames"], 1024)},
        "outputs": ["activation"],
    }
