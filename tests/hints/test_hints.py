"""The command on a model that deserves several hints, with the real compiler; and what the job reads itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from qnn.hints.job import used_of
from qnn.hints.page import page
from qnn.hints.registry import RULES
from tests.e2e.conftest import Workshop, save

YAML = """\
name: toy
version: "1.0"
summary: Slow on purpose.
task: test
licence: {spdx: MIT}
sources:
  weights: {local: model.onnx}
graphs:
  net:
    source: weights
    inputs: {x: [2, 3, 64, width]}
buckets:
  wide: {width: 128}
precisions: [fp16]
targets: {socs: [SM8650, "SM767*"]}
checks: {samples: samples/, count: 1}
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A batch of 2, 40 channels, a layout turned twice, a HardSwish written out, a bucket a quarter full; SM7675 has
    no fp16."""
    shop = Workshop(tmp_path_factory.mktemp("slow"))
    (shop.model / "samples").mkdir(parents=True)
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(random.normal(0, 0.3, (40, 3, 3, 3)).astype(np.float32), "w0"),
        numpy_helper.from_array(random.normal(0, 0.1, (40, 40, 3, 3)).astype(np.float32), "w1"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], name="stem", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("HardSigmoid", ["c0"], ["gate"], name="gate", alpha=1 / 6, beta=0.5),
        helper.make_node("Mul", ["c0", "gate"], ["h"], name="swish"),
        helper.make_node("Conv", ["h", "w1"], ["y"], name="body", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ]
    save(shop.model / "model.onnx", nodes, {"x": [2, 3, 64, "width"]}, {"y": [2, 40, 64, "width"]}, weights)
    sample = np.zeros((2, 3, 64, 128), np.float32)
    sample[..., :32] = random.normal(0, 1, (2, 3, 64, 32))
    np.savez(shop.model / "samples" / "000.npz", x=sample)
    (shop.model / "model.yaml").write_text(YAML)
    pinned = shop.forge("pin", "toy")
    assert pinned.code == 0, pinned.err
    return shop


def test_each_hint_says_what_was_seen(slow: Workshop) -> None:
    run = slow.forge("hints", "toy", "--json")
    assert run.code == 0, run.err
    assert run.document["kind"] == "qnn-forge-hints"
    hints = {hint["id"]: hint for hint in run.document["hints"]}
    assert sorted(hints) == ["QH01", "QH03", "QH07", "QH10", "QH11", "QH12"]
    assert {hint["soc"] for hint in hints.values()} == {"SM8650"}
    assert any(line.startswith("body (Conv2d): in 40 → 64, out 40 → 64") for line in hints["QH01"]["details"])
    places = hints["QH03"]["details"]
    assert any(line.startswith("input x [2, 3, 64, 128] → [2, 64, 128, 3]") for line in places)
    assert any(line.startswith("output y [2, 64, 128, 40] → [2, 40, 64, 128]") for line in places)
    assert hints["QH07"]["details"] == ["swish (Mul): became ElementWiseMultiply"]
    assert hints["QH10"]["details"] == ["width of x: at most 32 of 128 are used"]
    assert "SM7675" in hints["QH11"]["found"]
    assert hints["QH12"]["found"] == "every input and output begins with a batch of 2"


def test_hints_are_kept_and_shown_to_people_and_in_a_report(slow: Workshop) -> None:
    kept = [path for path in (slow.store / "objects").rglob("hints.json") if path.is_file()]
    again = slow.forge("hints", "toy", "--soc", "SM8650")
    assert again.code == 0, again.err
    assert "toy-1.0-wide-fp16-SM8650 net: 6 hints" in again.out
    assert "QH12 a batch above 1: every input and output begins with a batch of 2" in again.out
    assert [path for path in (slow.store / "objects").rglob("hints.json") if path.is_file()] == kept
    document = slow.forge("hints", "toy", "--json").out
    (slow.root / "hints.json").write_text(document)
    report = slow.forge("report", "hints.json", "--format", "comment")
    assert report.code == 0, report.err
    assert "💡 6 hints for speed in 1 model" in report.out
    assert json.loads(slow.forge("report", "hints.json", "--format", "json").out)["hints"][0]["id"] == "QH01"


@pytest.mark.parametrize(
    ("array", "used"),
    [
        ([[1, 2, 3, 0, 0, 0]], 3),
        ([[1, 1, 1, 1]], 4),
        ([[0, 0, 0, 0]], None),
        ([[5, 0, 5, 0]], 3),
        ([[1, 2, 3, 4]], 3),
        ([[7, 0, 0, 0], [8, 9, 0, 0]], 2),
    ],
)
def test_what_is_padding(array: list[list[int]], used: int | None) -> None:
    assert used_of(np.array(array, np.float32), 1) == used


def test_the_page_has_every_rule() -> None:
    shipped = Path(__file__).parents[2] / "docs" / "hints.md"
    assert shipped.read_text(encoding="utf-8") == page(), "make it again: python -m qnn.hints.page docs/hints.md"
    assert all(f"## {rule.id}: {rule.title}\n" in page() for rule in RULES)
