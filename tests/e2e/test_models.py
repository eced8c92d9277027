"""The models of this repository, from their wheels to verified bundles, on chips of three arches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Run, Workshop

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, Run]:
    """All three models in one build."""
    shop = Workshop(tmp_path_factory.mktemp("models"))
    names = [str(MODELS / name) for name in ("silero-vad", "speech-embedding", "ppocr-v4")]
    return shop, shop.forge("build", *names, "--soc", "SA8295,SM8650,SM8850", "--verify", "per-arch", "--json")


def test_every_model_passes_its_gates_on_every_chip(built: tuple[Workshop, Run]) -> None:
    _, run = built
    assert run.code == 0, run.err
    verdicts = {(t["model"], t["soc"]): t["verdict"] for t in run.document["targets"]}
    assert verdicts == {
        (model, soc): "ok"
        for model in ("silero-vad", "speech-embedding", "ppocr-v4")
        for soc in ("SA8295", "SM8650", "SM8850")
    }


def test_what_the_models_are_for_comes_out_on_htp(built: tuple[Workshop, Run]) -> None:
    shop, _ = built
    metrics = {}
    for folder in shop.dist.glob("*-SM8650-*"):
        if folder.is_dir():
            manifest = json.loads((folder / "manifest.json").read_text())
            for graph in manifest["graphs"]:
                for metric in graph["metrics"]:
                    metrics[manifest["model"]["name"], graph["name"], metric["name"]] = metric
    assert metrics["silero-vad", "vad", "speech"]["equal"] == metrics["silero-vad", "vad", "speech"]["samples"] == 16
    assert metrics["ppocr-v4", "det", "iou"]["htp_value"] > 0.98
    text = metrics["ppocr-v4", "rec", "text"]
    assert text["float_value"] == text["htp_value"]
    assert len(text["htp_value"]) > 10
    assert metrics["speech-embedding", "embedding", "ranking"]["htp_value"] >= 0.98


def test_licences_travel_with_the_bundles(built: tuple[Workshop, Run]) -> None:
    shop, _ = built
    texts = {
        folder.name.split("-")[0]: (folder / "LICENSE.txt").read_text() for folder in shop.dist.glob("*-SM8650-*/")
    }
    assert "MIT License" in texts["silero"]
    assert "Apache License" in texts["ppocr"]
    assert "Apache License" in texts["speech"]
