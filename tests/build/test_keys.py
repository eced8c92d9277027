"""What rebuilds what: a change reaches the keys of exactly the stages that it can change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from qnn.build import keys as build_keys
from qnn.build.keys import Keys, bundle_name
from qnn.build.selection import variant_keys
from qnn.chips.table import load_table
from qnn.model.spec import (
    Checks,
    Gates,
    Graph,
    InputSpec,
    Licence,
    Limits,
    Model,
    Publish,
    Source,
    SourceKind,
    Targets,
)
from qnn.plan.targets import Target, Variant
from qnn.toolchains.pip.toolchain import PipToolchain

STAGES = ("prepared", "samples", "reference", "compiled", "package", "measured", "metrics", "bundle")


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """A model with its own code."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "data.py").write_text("def samples(): ...\n")
    return Model(
        name="toy",
        version="1",
        summary="A toy.",
        task="test",
        licence=Licence("MIT"),
        sources={"weights": Source("weights", SourceKind.URL, "https://example.org/a.onnx", None, "ab" * 32, 7)},
        graphs=(Graph("net", {"*": "weights"}, (InputSpec("x", (1, "n")),), "weights"),),
        buckets={"default": {"n": 8}},
        precisions=("fp16",),
        targets=Targets(("all",)),
        checks=Checks(data="data.py:samples", metric="data.py:score", gates=Gates(cosine=0.99)),
        requires=("pillow==13.0.0",),
        limits=Limits(),
        publish=Publish(),
        folder=folder,
    )


def digests(model: Model, memo: Path, chip: str = "SM8650") -> dict[str, str]:
    soc = load_table().lookup(chip)
    return digests_of(Target(Variant(model, "default", model.precisions[0]), soc), memo)


def digests_of(target: Target, memo: Path) -> dict[str, str]:
    keys = Keys(PipToolchain(), memo)
    (graph,) = target.variant.model.graphs
    found = {
        "prepared": keys.prepared(target.variant, graph),
        "samples": keys.samples(target.variant, graph),
        "reference": keys.reference(target.variant, graph),
        "compiled": keys.compiled(target, graph),
        "package": keys.package(target),
        "measured": keys.measured(target, graph),
        "metrics": keys.metrics(target, graph),
        "bundle": keys.bundle(target, verified=True),
    }
    return {stage: key.digest for stage, key in found.items()}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {stage for stage in STAGES if before[stage] != after[stage]}


def with_source(model: Model, **change: object) -> Model:
    source = dataclasses.replace(model.sources["weights"], **change)  # type: ignore[arg-type]
    return dataclasses.replace(model, sources={"weights": source})


CHANGES: dict[str, tuple[Callable[[Model], Model], set[str]]] = {
    "nothing": (lambda m: m, set()),
    "folder": (lambda m: dataclasses.replace(m, folder=m.folder.parent / "toy" / ".." / "toy"), set()),
    "summary": (lambda m: dataclasses.replace(m, summary="Another."), {"bundle"}),
    "gates": (lambda m: dataclasses.replace(m, checks=dataclasses.replace(m.checks, gates=Gates(0.9))), {"bundle"}),
    "tensors known to leave fp16's range": (
        lambda m: dataclasses.replace(m, checks=dataclasses.replace(m.checks, ranges={"net": {"y": "it may"}})),
        {"bundle"},
    ),
    "limits": (lambda m: dataclasses.replace(m, limits=Limits(1, 1)), set()),
    "where the same weights come from": (lambda m: with_source(m, locator="https://mirror.example/a.onnx"), {"bundle"}),
    "weights": (lambda m: with_source(m, sha256="cd" * 32), set(STAGES)),
    "bucket": (lambda m: dataclasses.replace(m, buckets={"default": {"n": 9}}), set(STAGES)),
    "count": (
        lambda m: dataclasses.replace(m, checks=dataclasses.replace(m.checks, samples=2)),
        {"samples", "reference", "package", "measured", "metrics", "bundle"},
    ),
    "metric": (
        lambda m: dataclasses.replace(m, checks=dataclasses.replace(m.checks, metric="data.py:other")),
        {"metrics", "bundle"},
    ),
    "requires": (
        lambda m: dataclasses.replace(m, requires=()),
        {"samples", "reference", "package", "measured", "metrics", "bundle"},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_model_reaches_what_it_can_change(model: Model, tmp_path: Path, change: str) -> None:
    alter, reaches = CHANGES[change]
    before = digests(model, tmp_path / "memo")
    assert changed(before, digests(alter(model), tmp_path / "memo")) == reaches


def test_the_model_s_code_reaches_samples_but_no_binary(model: Model, tmp_path: Path) -> None:
    before = digests(model, tmp_path / "memo")
    (model.folder / "data.py").write_text("def samples(): return 1\n")
    after = digests(model, tmp_path / "memo")
    assert changed(before, after) == set(STAGES) - {"prepared", "compiled"}


@pytest.mark.parametrize(("precision", "reaches"), [("fp16", {"bundle"}), ("w8a16", set())])
def test_a_rule_of_the_range_reaches_bundles_of_float_graphs(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, reaches: set[str]
) -> None:
    one = dataclasses.replace(model, precisions=(precision,))
    before = digests(one, tmp_path / "memo")
    monkeypatch.setattr(build_keys, "_RANGES", ("qnn.ranges.facts",))
    assert changed(before, digests(one, tmp_path / "memo")) == reaches


def test_shipped_samples_count_wherever_they_lie(model: Model, tmp_path: Path) -> None:
    shipped = dataclasses.replace(model, checks=Checks(samples_dir="."))  # beside data.py, which counts too
    (model.folder / "000.npz").write_bytes(b"one")
    before = digests(shipped, tmp_path / "memo")
    (model.folder / "000.npz").write_bytes(b"other")
    assert "samples" in changed(before, digests(shipped, tmp_path / "memo"))


def test_left_of_compile_no_chip_is_known(model: Model, tmp_path: Path) -> None:
    one, other = digests(model, tmp_path / "memo"), digests(model, tmp_path / "memo", "SM8750")
    assert changed(one, other) == {"compiled", "package", "measured", "metrics", "bundle"}


def test_a_chip_s_prose_rebuilds_nothing_and_its_facts_rebuild_its_binaries(model: Model, tmp_path: Path) -> None:
    target = Target(Variant(model, "default", "fp16"), load_table().lookup("SM8650"))
    before = digests_of(target, tmp_path / "memo")
    prose = dataclasses.replace(target.soc, marketing=("Another",), note="x", date="2030-01-01")
    assert changed(before, digests_of(dataclasses.replace(target, soc=prose), tmp_path / "memo")) == set()
    facts = dataclasses.replace(target.soc, vtcm_mb=4)
    after = digests_of(dataclasses.replace(target, soc=facts), tmp_path / "memo")
    assert changed(before, after) == {"compiled", "package", "measured", "metrics", "bundle"}


def test_an_unverified_bundle_is_another_bundle(model: Model, tmp_path: Path) -> None:
    keys = Keys(PipToolchain(), tmp_path)
    target = Target(Variant(model, "default", "fp16"), load_table().lookup("SM8650"))
    assert keys.bundle(target, verified=True).digest != keys.bundle(target, verified=False).digest
    assert bundle_name(target, keys.toolchain).startswith("toy-1-default-fp16-SM8650-qairt")


@pytest.fixture
def exported(model: Model) -> Model:
    """The same model, its graph exported from PyTorch by export.py, which imports network.py."""
    (model.folder / "export.py").write_text("from network import Net\n")
    (model.folder / "network.py").write_text("class Net: ...\n")
    graph = Graph("net", {}, (InputSpec("x", (1, "n")),), None, "export.py:net")
    return dataclasses.replace(model, graphs=(graph,), requires=("torch==2.13.0",))


@pytest.mark.parametrize("file", ["export.py", "network.py"])
def test_the_code_of_an_export_and_what_it_imports_reach_everything(exported: Model, tmp_path: Path, file: str) -> None:
    before = digests(exported, tmp_path / "memo")
    (exported.folder / file).write_text("X = 1\n")
    assert changed(before, digests(exported, tmp_path / "memo")) == set(STAGES)


def test_other_code_of_the_model_reaches_no_export(exported: Model, tmp_path: Path) -> None:
    before = digests(exported, tmp_path / "memo")
    (exported.folder / "data.py").write_text("def samples(): return 1\n")
    assert changed(before, digests(exported, tmp_path / "memo")) == set(STAGES) - {"prepared", "compiled"}


EXPORTED_CHANGES: dict[str, Callable[[Model], Model]] = {
    "packages": lambda m: dataclasses.replace(m, requires=("torch==2.13.1",)),
    "weights": lambda m: with_source(m, sha256="cd" * 32),
    "bucket": lambda m: dataclasses.replace(m, buckets={"default": {"n": 9}}),
    "function": lambda m: dataclasses.replace(m, graphs=(dataclasses.replace(m.graphs[0], export="export.py:other"),)),
}


@pytest.mark.parametrize("change", EXPORTED_CHANGES)
def test_what_an_export_is_given_reaches_everything(exported: Model, tmp_path: Path, change: str) -> None:
    before = digests(exported, tmp_path / "memo")
    after = digests(EXPORTED_CHANGES[change](exported), tmp_path / "memo")
    assert changed(before, after) == set(STAGES)


def test_where_the_weights_of_an_export_come_from_reaches_the_bundle_alone(exported: Model, tmp_path: Path) -> None:
    before = digests(exported, tmp_path / "memo")
    after = digests(with_source(exported, locator="https://mirror.example/a.onnx"), tmp_path / "memo")
    assert changed(before, after) == {"bundle"}


def test_an_export_travels_with_what_does_not_depend_on_the_chip(exported: Model, tmp_path: Path) -> None:
    keys = Keys(PipToolchain(), tmp_path / "memo")
    stages = [key.stage for key in variant_keys(keys, Variant(exported, "default", "fp16"))]
    assert stages[:3] == ["source", "export", "prepare"]
