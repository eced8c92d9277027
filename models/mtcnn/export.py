"""MTCNN's three networks: P finds candidates in a picture, R and O look at each candidate more closely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


class _Net(nn.Module):
    """Convolutions with PReLU and pooling; the names of the layers are those of the weights."""

    def __init__(self, convolutions: tuple[tuple[int, int], ...], pools: tuple[int, ...]) -> None:
        super().__init__()
        self.pools = pools
        before = 3
        for number, (width, kernel) in enumerate(convolutions, 1):
            self.add_module(f"conv{number}", nn.Conv2d(before, width, kernel))
            self.add_module(f"prelu{number}", nn.PReLU(width))
            before = width
        self.depth = len(convolutions)

    def features(self, picture: Tensor) -> Tensor:
        """All convolutions; a pool of 0 is none."""
        x = picture
        for number in range(1, self.depth + 1):
            x = self.get_submodule(f"prelu{number}")(self.get_submodule(f"conv{number}")(x))
            pool = self.pools[number - 1]
            if pool:
                x = nn.functional.max_pool2d(x, pool, 2, ceil_mode=True)
        return x


class PNet(_Net):
    """A picture float32 [1, 3, h, w] to offsets [1, 4, m, n] and probabilities [1, 2, m, n] (no face, face)."""

    def __init__(self) -> None:
        super().__init__(((10, 3), (16, 3), (32, 3)), (2, 0, 0))
        self.conv4_1 = nn.Conv2d(32, 2, 1)
        self.conv4_2 = nn.Conv2d(32, 4, 1)

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        """See the class."""
        x = self.features(picture)
        return self.conv4_2(x), torch.softmax(self.conv4_1(x), dim=1)


class RNet(_Net):
    """Candidates float32 [n, 3, 24, 24] to offsets [n, 4] and probabilities [n, 2]."""

    def __init__(self) -> None:
        super().__init__(((28, 3), (48, 3), (64, 2)), (3, 3, 0))
        self.dense4 = nn.Linear(576, 128)
        self.prelu4 = nn.PReLU(128)
        self.dense5_1 = nn.Linear(128, 2)
        self.dense5_2 = nn.Linear(128, 4)

    def forward(self, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """See the class. The weights expect width before height before channels."""
        x = self.features(candidates).permute(0, 3, 2, 1).flatten(1)
        x = self.prelu4(self.dense4(x))
        return self.dense5_2(x), torch.softmax(self.dense5_1(x), dim=1)


class ONet(_Net):
    """Candidates float32 [n, 3, 48, 48] to offsets [n, 4], landmarks [n, 10] and probabilities [n, 2]."""

    def __init__(self) -> None:
        super().__init__(((32, 3), (64, 3), (64, 3), (128, 2)), (3, 3, 2, 0))
        self.dense5 = nn.Linear(1152, 256)
        self.prelu5 = nn.PReLU(256)
        self.dense6_1 = nn.Linear(256, 2)
        self.dense6_2 = nn.Linear(256, 4)
        self.dense6_3 = nn.Linear(256, 10)

    def forward(self, candidates: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See the class. The weights expect width before height before channels."""
        x = self.features(candidates).permute(0, 3, 2, 1).flatten(1)
        x = self.prelu5(self.dense5(x))
        return self.dense6_2(x), self.dense6_3(x), torch.softmax(self.dense6_1(x), dim=1)


def pnet(*, bucket: dict[str, int], sources: dict[str, Path]) -> dict[str, Any]:
    """P-net for one canvas that holds the picture in all its sizes."""
    shape = (1, 3, bucket["height"], bucket["width"])
    return _graph(PNet(), sources["pnet"], "picture", shape, ["offsets", "probabilities"])


def rnet(*, bucket: dict[str, int], sources: dict[str, Path]) -> dict[str, Any]:
    """R-net for all candidates of P-net at once."""
    shape = (bucket["coarse"], 3, 24, 24)
    return _graph(RNet(), sources["rnet"], "candidates", shape, ["offsets", "probabilities"])


def onet(*, bucket: dict[str, int], sources: dict[str, Path]) -> dict[str, Any]:
    """O-net for all candidates of R-net at once."""
    shape = (bucket["fine"], 3, 48, 48)
    return _graph(ONet(), sources["onet"], "candidates", shape, ["offsets", "landmarks", "probabilities"])


def _graph(module: nn.Module, weights: Path, name: str, shape: tuple[int, ...], outputs: list[str]) -> dict[str, Any]:
    module.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return {"module": module, "inputs": {name: torch.zeros(shape)}, "outputs": outputs}
