"""Entering releases and yanking: complete, repeatable, and never altering what is published."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qnn.bundle.manifest import ManifestSource
from qnn.errors.index import EntryDiffers, NothingYanked, ReleaseUnusable
from qnn.index.document import ModelIndex, RootIndex, VersionIndex, from_json, model_path, version_path
from qnn.index.entries import fallback_of
from qnn.index.update import add_release, version_key, yank
from qnn.tensors import TensorSpec
from tests.index.examples import manifest, published, release


def version_of(folder: Path, version: str = "1.0") -> VersionIndex:
    path = version_path("toy", version)
    return from_json((folder / path).read_text(), VersionIndex, path)


def model_of(folder: Path) -> ModelIndex:
    return from_json((folder / model_path("toy")).read_text(), ModelIndex, "toy")


def root_of(folder: Path) -> RootIndex:
    return from_json((folder / "v1/index.json").read_text(), RootIndex, "root")


def state(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((folder / "v1").rglob("*.json"))}


def test_a_release_is_in_every_document_the_root_last(tmp_path: Path) -> None:
    written = add_release(tmp_path, release(published(manifest("SM8750"), "cd"), published(manifest())))
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "v1/chips.json",
        "v1/models/toy/1.0.json",
        "v1/models/toy.json",
        "v1/index.json",
    ]
    (variant,) = version_of(tmp_path).variants
    assert (variant.name, variant.dimensions) == ("s16/w8a16", {"size": 16})
    assert [(file.soc, file.sha256[:2], file.minimum_runtime) for file in variant.files] == [
        ("SM8650", "ab", "2.51.0"),
        ("SM8750", "cd", "2.51.0"),
    ]
    assert variant.graphs[0].inputs == (TensorSpec("x", "float32", (1, 3)),)
    (summary,) = model_of(tmp_path).versions
    assert (summary.variants, summary.socs, summary.qairt, summary.files) == (
        ("s16/w8a16",), ("SM8650", "SM8750"), ("2.51.0",), 2,
    )  # fmt: skip
    (model,) = root_of(tmp_path).models
    assert (model.name, model.latest, model.soc_ids) == ("toy", "1.0", (57, 69))


def test_the_same_release_again_changes_nothing(tmp_path: Path) -> None:
    add_release(tmp_path, release(published(manifest())))
    before = state(tmp_path)
    assert add_release(tmp_path, release(published(manifest()))) == ()
    assert state(tmp_path) == before


def test_a_second_home_of_the_same_file_is_one_more_address(tmp_path: Path) -> None:
    add_release(tmp_path, release(replace(published(manifest()), attestation="first.json")))
    elsewhere = replace(
        published(manifest(), url="https://hub.example"), revision=4, published="2027-01-01", attestation="a.json"
    )
    assert add_release(tmp_path, release(elsewhere)) == (tmp_path / version_path("toy", "1.0"),)
    (file,) = version_of(tmp_path).variants[0].files
    assert [url.split("/")[2] for url in file.urls] == ["files.example", "hub.example"]
    assert (file.revision, file.published, file.attestations) == (1, "2026-11-30", ("first.json", "a.json"))


def test_new_content_is_a_new_revision_beside_the_old(tmp_path: Path) -> None:
    add_release(tmp_path, release(published(manifest())))
    with pytest.raises(
        EntryDiffers, match=r"SM8650 with QAIRT 2\.51\.0 is published as revision 1 with another sha256"
    ):
        add_release(tmp_path, release(published(manifest(), "cd")))
    assert [file.sha256[:2] for file in version_of(tmp_path).variants[0].files] == ["ab"]
    add_release(tmp_path, release(published(manifest(), "cd", revision=2)))
    files = version_of(tmp_path).variants[0].files
    assert [(file.revision, file.sha256[:2]) for file in files] == [(1, "ab"), (2, "cd")]


@pytest.mark.parametrize("change", [{"size": 99}, {"manifest": manifest(qairt="2.50.40")}])
def test_a_published_entry_is_never_altered(tmp_path: Path, change: dict[str, Any]) -> None:
    first = published(manifest())
    add_release(tmp_path, release(first))
    before = state(tmp_path)
    if "manifest" in change:  # another toolchain is another file, which may stand beside it
        add_release(tmp_path, release(replace(first, sha256="cd" * 32, **change)))
        assert [file.qairt for file in version_of(tmp_path).variants[0].files] == ["2.50.40", "2.51.0"]
        return
    with pytest.raises(EntryDiffers):
        add_release(tmp_path, release(replace(first, **change)))
    assert state(tmp_path) == before


def test_inputs_and_outputs_of_a_version_stay(tmp_path: Path) -> None:
    add_release(tmp_path, release(published(manifest())))
    other = manifest("SM8750")
    graph = replace(other.graphs[0], interface_inputs=(TensorSpec("x", "float32", (1, 4)),))
    with pytest.raises(EntryDiffers, match="other inputs, outputs or dimensions"):
        add_release(tmp_path, release(published(replace(other, graphs=(graph,)), "cd")))


def test_one_wrong_file_enters_none(tmp_path: Path) -> None:
    add_release(tmp_path, release(published(manifest())))
    before = state(tmp_path)
    with pytest.raises(EntryDiffers):
        add_release(tmp_path, release(published(manifest("SM8750"), "ee"), published(manifest(), "cd")))
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ((), "no files"),
        ((published(manifest()), published(manifest(version="2.0"))), "toy 1.0, toy 2.0"),
        ((published(replace(manifest(), verified=False)),), "not verified"),
        ((replace(published(manifest()), urls=()),), "without an address"),
    ],
)
def test_what_cannot_be_a_release(tmp_path: Path, files: Any, complaint: str) -> None:
    with pytest.raises(ReleaseUnusable, match=complaint):
        add_release(tmp_path, release(*files))
    assert not (tmp_path / "v1").exists()


def test_latest_is_the_newest_version_that_is_not_yanked(tmp_path: Path) -> None:
    for version, digest in (("1.10", "aa"), ("1.9", "bb"), ("1.10rc1", "cc")):
        add_release(tmp_path, release(published(manifest("SM8650", version=version), digest)))
    assert [one.version for one in model_of(tmp_path).versions] == ["1.9", "1.10rc1", "1.10"]
    assert root_of(tmp_path).models[0].latest == "1.10"
    add_release(tmp_path, release(published(manifest("SM8750", version="1.10rc1"), "dd")))
    yank(tmp_path, "toy", "1.10", ["all"], "wrong weights")
    assert model_of(tmp_path).latest == "1.10rc1"
    assert root_of(tmp_path).models[0].soc_ids == (57, 69)


def test_a_yank_marks_what_it_names_and_keeps_it(tmp_path: Path) -> None:
    add_release(tmp_path, release(published(manifest()), published(manifest("SM8750"), "cd")))
    yank(tmp_path, "toy", "1.0", ["cd" * 32], " wrong numbers ")
    files = version_of(tmp_path).variants[0].files
    assert [(file.soc, file.yanked) for file in files] == [("SM8650", None), ("SM8750", "wrong numbers")]
    assert root_of(tmp_path).models[0].soc_ids == (57,)
    assert yank(tmp_path, "toy", "1.0", ["SM8750"], "wrong numbers") == ()
    add_release(tmp_path, release(published(manifest("SM8750"), "cd")))
    assert version_of(tmp_path).variants[0].files[1].yanked == "wrong numbers"


@pytest.mark.parametrize(
    ("model", "version", "wanted", "reason"),
    [
        ("toy", "2.0", ["all"], "x"),
        ("other", "1.0", ["all"], "x"),
        ("toy", "1.0", ["SM8550"], "x"),
        ("toy", "1.0", ["SM8650", "00" * 32], "x"),
        ("toy", "1.0", [], "x"),
        ("toy", "1.0", ["all"], " "),
    ],
)
def test_a_yank_of_nothing_is_an_error(
    tmp_path: Path, model: str, version: str, wanted: list[str], reason: str
) -> None:
    add_release(tmp_path, release(published(manifest())))
    before = state(tmp_path)
    with pytest.raises(NothingYanked):
        yank(tmp_path, model, version, wanted, reason)
    assert state(tmp_path) == before


@pytest.mark.parametrize("stop", range(3))
def test_a_writer_killed_anywhere_leaves_an_index_that_can_be_read_and_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    add_release(tmp_path, release(published(manifest())))
    second = release(published(manifest("SM8750"), "cd"))
    real = os.replace
    done: list[str] = []

    def replacing(source: Path, target: Path) -> None:
        if len(done) == stop:
            raise KeyboardInterrupt
        done.append(target.name)
        real(source, target)

    monkeypatch.setattr(os, "replace", replacing)
    with pytest.raises(KeyboardInterrupt):
        add_release(tmp_path, second)
    monkeypatch.undo()
    assert done == ["1.0.json", "toy.json"][:stop]
    known = {file.soc_id for file in version_of(tmp_path).variants[0].files}
    assert set(root_of(tmp_path).models[0].soc_ids) <= known
    assert model_of(tmp_path).versions[0].files <= len(known)
    add_release(tmp_path, second)
    assert root_of(tmp_path).models[0].soc_ids == (57, 69)
    assert add_release(tmp_path, second) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".index.lock", "v1"]


@pytest.mark.parametrize(
    "versions",
    [["1.0rc1", "1.0", "1.0.1", "1.2", "1.10"], ["2024-07-17", "2025-09-09"], ["v3", "v4", "v10"], ["1.0-b", "1.0"]],
)
def test_versions_in_order(versions: list[str]) -> None:
    shuffled = [*versions[1:], versions[0]]
    assert sorted(shuffled, key=version_key) == versions


def test_the_fallback_of_a_graph_is_what_its_numbers_were_compared_with() -> None:
    float_ = ManifestSource("float-weights", "pypi", "ocr==1.0", "ocr/det.onnx", "aa" * 32, 5)
    rec = ManifestSource("det", "url", "https://x/rec.onnx", None, "bb" * 32, 6)  # called as the other graph is
    quantized = ManifestSource("det-w8a8", "url", "https://x/q.onnx", None, "cc" * 32, 7)
    det = replace(manifest().graphs[0], name="det", source="det-w8a8", reference="float-weights")
    read = replace(det, name="rec", source="det", reference="det")
    both = replace(manifest(precision="w8a8"), sources=(rec, quantized, float_), graphs=(read, det))
    assert [(one.graph, one.sha256[:2], one.member) for one in fallback_of([both])] == [
        ("det", "aa", "ocr/det.onnx"),
        ("rec", "bb", None),
    ]
    only = manifest()
    local = replace(only, sources=(replace(only.sources[0], kind="local"),))
    assert fallback_of([local]) == ()
    exported = replace(only, graphs=(replace(only.graphs[0], source=None, reference=None),))
    assert fallback_of([exported]) == ()


def test_documents_have_no_clock_and_no_order_of_entering(tmp_path: Path) -> None:
    files = [published(manifest(soc), digest) for soc, digest in (("SM8650", "aa"), ("SM8750", "bb"), ("SM8550", "cc"))]
    add_release(tmp_path / "one", release(*files))
    for file in reversed(files):
        add_release(tmp_path / "other", release(file))
    assert state(tmp_path / "one") == state(tmp_path / "other")
    assert json.loads(state(tmp_path / "one")["index.json"])["schema"] == 1
