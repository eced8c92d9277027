"""EfficientNet-lite0: convolutions with ReLU6, without the squeezing and Swish that EfficientNet has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

# How often, kernel, stride, expansion, width of each group of blocks.
GROUPS = (
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)  # fmt: skip
STEM, HEAD, CLASSES = 32, 1280, 1000
EPSILON = 1e-3


class _Conv(nn.Conv2d):
    """Padded as TensorFlow's SAME: where the padding is odd, one more below and to the right."""

    def forward(self, x: Tensor) -> Tensor:
        """float32 [n, c, h, w] to [n, c', ceil(h / stride), ceil(w / stride)]."""
        padding: list[int] = []
        for size, kernel, stride in zip(reversed(x.shape[2:]), reversed(self.kernel_size), self.stride, strict=True):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            padding += [total // 2, total - total // 2]
        return super().forward(nn.functional.pad(x, padding) if any(padding) else x)


def _conv(before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> _Conv:
    return _Conv(before, after, kernel, stride, groups=groups, bias=False)


class _Block(nn.Module):
    """Expansion, depthwise convolution, projection; around it a shortcut where the shape stays the same."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = before * expansion
        self.shortcut = stride == 1 and before == after
        if expansion > 1:
            self._expand_conv = _conv(before, inner, 1)
            self._bn0 = nn.BatchNorm2d(inner, eps=EPSILON)
        self._depthwise_conv = _conv(inner, inner, kernel, stride, groups=inner)
        self._bn1 = nn.BatchNorm2d(inner, eps=EPSILON)
        self._project_conv = _conv(inner, after, 1)
        self._bn2 = nn.BatchNorm2d(after, eps=EPSILON)
        self.expands = expansion > 1

    def forward(self, x: Tensor) -> Tensor:
        """float32 [n, before, h, w] to [n, after, h / stride, w / stride]."""
        y = nn.functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = nn.functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.shortcut else y


class EfficientNetLite0(nn.Module):
    """Pictures float32 [n, 3, 224, 224] to the scores of ImageNet's classes, float32 [n, 1000].

    The names of the layers are those of the weights.
    """

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = _conv(3, STEM, 3, 2)
        self._bn0 = nn.BatchNorm2d(STEM, eps=EPSILON)
        blocks, before = [], STEM
        for times, kernel, stride, expansion, width in GROUPS:
            for number in range(times):
                blocks.append(_Block(before, width, kernel, stride if number == 0 else 1, expansion))
                before = width
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = _conv(before, HEAD, 1)
        self._bn1 = nn.BatchNorm2d(HEAD, eps=EPSILON)
        self._fc = nn.Linear(HEAD, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        """See the class."""
        x = nn.functional.relu6(self._bn0(self._conv_stem(image)))
        for block in self._blocks:
            x = block(x)
        x = nn.functional.relu6(self._bn1(self._conv_head(x)))
        return self._fc(x.mean(dim=(2, 3)))


def classifier(*, bucket: dict[str, int], sources: dict[str, Path]) -> dict[str, Any]:
    """The network with its weights, for one picture."""
    module = EfficientNetLite0()
    module.load_state_dict(torch.load(sources["weights"], map_location="cpu", weights_only=True))
    return {"module": module, "inputs": {"image": torch.zeros(1, 3, 224, 224)}, "outputs": ["scores"]}
