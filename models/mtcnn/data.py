"""A photograph of an astronaut for P-net; for R-net and O-net, pieces of it with her face and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import faces
import numpy as np

FACE = (173, 78, 275, 205)  # left, top, right, bottom in pixels of the photograph


def samples(
    *, graph: str, inputs: dict[str, tuple[int, ...]], sources: dict[str, Path], count: int
) -> Iterator[dict[str, faces.Floats]]:
    """Yields `count` dicts. ``pnet``: ``picture`` float32 [1, 3, 160, 352], the photograph in five sizes; later ones
    are mirrored and darker. ``rnet``, ``onet``: ``candidates`` [n, 3, 24, 24] and [n, 3, 48, 48].

    Half of the candidates are the face, moved and scaled a little, the other half are anything.
    """
    image = faces.picture(sources["photograph"])
    random = np.random.default_rng(3)
    for number in range(count):
        if graph == "pnet":
            mirrored = faces.canvas(image, inputs["picture"]) * np.float32(1 - 0.2 * number)
            yield {"picture": np.ascontiguousarray(mirrored if number % 2 == 0 else mirrored[:, ::-1])}
            continue
        shape = inputs["candidates"]
        near = np.array(FACE) + random.uniform(-12, 12, (shape[0] // 2, 4))
        corners = random.uniform(0, 400, (shape[0] - len(near), 2))
        boxes = np.concatenate([near, np.hstack([corners, corners + random.uniform(40, 112, (len(corners), 1))])])
        yield {"candidates": faces.crops(image, faces.squares(boxes.astype(np.float32)), shape)}
