"""What `make zoo` keeps and writes: records that outlive a broken run, an order that sees most first, a page."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from benchmarks.zoo import page, records
from benchmarks.zoo.records import Record, Row

from qnn.chips.table import load_table
from qnn.model.spec import Checks, Graph, InputSpec, Licence, Limits, Model, Publish, Source, SourceKind, Targets
from qnn.plan.targets import BuildPlan, Wanted, plan_build

TABLE = load_table()


def model(name: str, size: int, *, licence: str = "MIT", socs: tuple[str, ...] = ("public",)) -> Model:
    return Model(
        name=name, version="1", summary="", task="test", licence=Licence(licence, attribution="somebody"),
        sources={"w": Source("w", SourceKind.LOCAL, "w.onnx", None, "0" * 64, size)},
        graphs=(Graph("net", {"*": "w"}, (InputSpec("x", (1,)),), "w"),), buckets={"default": {}},
        precisions=("fp16",), targets=Targets(socs), checks=Checks(), requires=(), limits=Limits(), publish=Publish(),
        folder=Path("models") / name,
    )  # fmt: skip


LARGE, SMALL = model("large", 10**8, socs=("SM8650", "SM8550", "SM8750")), model("small", 10**4)
MODELS = (LARGE, SMALL)


@pytest.fixture(scope="module")
def plan() -> BuildPlan:
    return plan_build(MODELS, Wanted(socs=("groups",)), TABLE)


def record(name: str, soc: str, *, error: str = "", cosine: float | None = 0.99987, seconds: float = 12.3) -> Record:
    rows = (
        ()
        if error
        else (Row("net", 1_234_567, cosine, 0.0123, "iou 0.99"), Row("chain", 0, 0.5, None, "text equal 1/1"))
    )
    return Record(name, "default", "fp16", soc, "2.51.0", seconds, rows, error)


def test_records_are_kept_sorted_and_read_back(tmp_path: Path) -> None:
    file = tmp_path / "zoo.json"
    assert records.load(file) == {}
    made = [record("small", "SM8650"), record("large", "SM8650", error="QF620"), record("large", "SM8550", cosine=None)]
    records.save(file, made)
    assert list(records.load(file).values()) == sorted(made, key=lambda one: one.key)
    first = file.read_bytes()
    records.save(file, reversed(made))
    assert file.read_bytes() == first
    assert list(tmp_path.iterdir()) == [file]


def test_the_chip_that_is_shown_comes_first_then_one_of_each_arch_and_small_models_before_large_ones(
    plan: BuildPlan,
) -> None:
    order = page.in_order(plan, ())
    assert sorted(map(page.key_of, order)) == sorted(map(page.key_of, plan.targets))
    assert [(target.variant.model.name, target.soc.name) for target in order[:2]] == [
        ("small", "SM8650"),
        ("large", "SM8650"),
    ]
    archs = list(dict.fromkeys(target.soc.arch for target in order))
    chips = list(dict.fromkeys(target.soc.name for target in order))
    of_each = {next(target.soc.name for target in order if target.soc.arch == arch) for arch in archs}
    assert set(chips[: len(of_each)]) == of_each


def test_what_has_a_record_is_made_last(plan: BuildPlan) -> None:
    known = [("small", "default", "fp16", "SM8650")]
    order = list(map(page.key_of, page.in_order(plan, known)))
    assert order[-1] == known[0]
    assert order[:-1] == [key for key in map(page.key_of, page.in_order(plan, ())) if key != known[0]]


def test_the_page_says_what_was_built_what_failed_and_what_is_missing(plan: BuildPlan) -> None:
    made = [record("small", "SM8650"), record("small", "SM8550", error="QF620"), record("large", "SM8650", cosine=0.97)]
    text = page.render(MODELS, plan, made, TABLE)
    assert (
        f"{len(plan.targets)} bundles are planned: 2 built and verified, 1 failed, {len(plan.targets) - 3} not" in text
    )
    lines = text.splitlines()
    assert "| small | net | 1.23 MB | 0.999870 | 0.012 | iou 0.99 | 12 |" in lines
    assert "|  | chain | – | 0.5000 | – | text equal 1/1 |  |" in lines
    (heading,) = [line for line in lines if line.startswith("| model | ") and "SM8550" in line]
    cells = {
        line.split(" | ")[0][2:]: dict(zip(heading.split(" | ")[1:], line.split(" | ")[1:], strict=True))
        for line in lines[lines.index(heading) + 2 : lines.index("## Chips") - 1]
    }
    # The worst graph counts, not the chain, whose graphs may stand in another order.
    assert (cells["small"]["SM8650"], cells["small"]["SM8550"]) == ("0.999870", "**QF620**")
    assert (cells["large"]["SM8650"], cells["large"]["SM8550"], cells["large"]["SM8450"]) == ("0.9700", "…", "–")


def test_a_model_of_a_restricted_licence_is_marked(plan: BuildPlan) -> None:
    restricted = dataclasses.replace(SMALL, name="mine", licence=Licence("AGPL-3.0-only"))
    text = page.render((*MODELS, restricted), plan, [], TABLE)
    assert "| [mine](../models/mine/model.yaml) | test | AGPL-3.0-only (only with `--allow-restricted`) |  |" in text
