"""Where models say that they want to be published: `publish` in their model.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from qnn.model.load import load_model
from qnn.model.spec import Publish


def declared(models: Path, names: Iterable[str]) -> dict[str, Publish]:
    """`publish` of each named model that has a folder below `models`.

    A model without a folder wants nothing. Raises InvalidModel (QF100) for a model.yaml with errors.
    """
    return {name: load_model(models / name).publish for name in sorted(set(names)) if (models / name).is_dir()}
