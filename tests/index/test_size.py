"""One model of a thousand is resolved with less than a megabyte of documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qnn.chips.table import load_table
from qnn.index.document import (
    CHIPS,
    ROOT,
    IndexModel,
    RootIndex,
    VersionIndex,
    from_json,
    model_path,
    to_json,
    version_path,
)
from qnn.index.update import add_release
from tests.index.examples import manifest, published, release

MODELS, CHIPS_EACH, PRECISIONS = 1000, 65, ("fp16", "w8a16", "w8a8")
MEGABYTE = 1_000_000


def test_a_thousand_models_for_65_chips_in_three_precisions(tmp_path: Path) -> None:
    socs = load_table().socs[:CHIPS_EACH]
    assert len(socs) == CHIPS_EACH
    files = [
        replace(
            published(manifest(soc.name, precision=precision), f"{count % 256:02x}"),
            urls=(
                f"https://github.com/qnn-forge/qnn-forge/releases/download/toy-1.0-r1/toy-1.0-s16-{precision}-{soc.name}-qairt2.51.0.tar.gz",
                f"https://huggingface.co/qnn-forge/toy/resolve/main/1.0/r1/toy-1.0-s16-{precision}-{soc.name}-qairt2.51.0.tar.gz",
            ),
            attestation="https://github.com/qnn-forge/qnn-forge/releases/download/toy-1.0-r1/attestation.json",
            sbom="https://github.com/qnn-forge/qnn-forge/releases/download/toy-1.0-r1/sbom.json",
            provenance="https://github.com/qnn-forge/qnn-forge/releases/download/toy-1.0-r1/provenance.json",
        )
        for precision in PRECISIONS
        for count, soc in enumerate(socs)
    ]
    add_release(tmp_path, release(*files))
    (one,) = from_json((tmp_path / ROOT).read_text(), RootIndex, ROOT).models
    models = tuple(replace(one, name=f"{'model-of-a-usual-name'}-{number:04d}") for number in range(MODELS))
    root = to_json(RootIndex(1, _usual(models)))
    document = (tmp_path / version_path("toy", "1.0")).read_text()
    listed = from_json(document, VersionIndex, "1.0").variants
    assert sum(len(variant.files) for variant in listed) == CHIPS_EACH * len(PRECISIONS)

    to_resolve = [(tmp_path / path).stat().st_size for path in (CHIPS, model_path("toy"), version_path("toy", "1.0"))]
    assert sum(to_resolve) < MEGABYTE / 2
    assert sum(to_resolve) + len(root.encode()) < MEGABYTE, "with the root, which only search needs"


def _usual(models: tuple[IndexModel, ...]) -> tuple[IndexModel, ...]:
    summary = "A line that says in about eighty letters what the model is and who made it, as usual."
    return tuple(replace(model, summary=summary) for model in models)
