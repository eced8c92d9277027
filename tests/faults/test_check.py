"""`qnn-forge faults`, and what counts as a difference."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from qnn.cli import run
from qnn.errors.faults import FaultsDiffer
from qnn.faults import table
from qnn.faults.measure import Measured, require_agreement
from qnn.faults.probe import Seen, compare
from qnn.faults.table import Probe, Shown, fault_by_id

RIGHT, WRONG, FAILS = (Seen(shown, "…") for shown in (Shown.RIGHT, Shown.WRONG, Shown.FAILS))


@pytest.mark.parametrize(
    ("raw", "mended", "word"),
    [(WRONG, RIGHT, "holds"), (RIGHT, RIGHT, "gone"), (FAILS, RIGHT, "changed"), (WRONG, WRONG, "unmended")],
)
def test_words(raw: Seen, mended: Seen, word: str) -> None:
    probe = Probe("pad-edge", "SM8650", Shown.WRONG, Shown.RIGHT)
    measured = Measured(fault_by_id("pad-edge"), probe, raw, mended)
    assert measured.word == word
    if word == "holds":
        require_agreement([measured])
        return
    with pytest.raises(FaultsDiffer) as caught:
        require_agreement([measured])
    assert caught.value.message.startswith("1 of 1 probes")
    assert caught.value.details[0].startswith(f"pad-edge, pad-edge on SM8650: {word}: table wrong, right after")


def test_compare() -> None:
    ones = np.ones((2, 2), np.float32)
    assert compare({"y": ones}, {"y": ones * 1.01}).shown is Shown.RIGHT
    assert compare({"y": ones}, {"y": ones * 1.03}).shown is Shown.WRONG
    assert compare({"y": np.array([1, 2])}, {"y": np.array([1, 3])}) == Seen(Shown.WRONG, "1 of 2 elements of y differ")
    assert compare({"y": ones}, {"y": ones[0]}).shown is Shown.WRONG
    assert compare({"a": ones, "b": ones}, {"a": ones, "b": ones * 2}).detail == "b is off by 1 of its full scale"


def test_list_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["faults", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["faults"]
    assert {"id": "pad-edge", "rewrite": "pad-by-gather"}.items() <= next(
        entry for entry in listed if entry["id"] == "pad-edge"
    ).items()
    assert run(["faults", "show", "blockwise-v68"]) == 0
    shown = capsys.readouterr().out
    assert "archs          v68" in shown
    assert "probe          blockwise-weights on SM8350: fails" in shown
    assert run(["faults", "show", "pad-egde"]) == 2
    assert "did you mean 'pad-edge'?" in capsys.readouterr().err


def test_check_with_the_real_compiler(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry that holds; the same with a wrong claim is a difference."""
    assert run(["faults", "check", "integer-mod", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["agree"]
    assert [(probe["graph"], probe["seen"]) for probe in report["probes"]] == [
        ("integer-mod", {"raw": "wrong", "mended": "right"}),
        ("integer-fmod", {"raw": "fails", "mended": "right"}),
    ]
    entry = fault_by_id("integer-mod")
    claimed = replace(entry, probes=(replace(entry.probes[1], raw=Shown.WRONG),))
    monkeypatch.setattr(table, "load_faults", lambda: (claimed,))
    assert run(["faults", "check", "--json"]) == 6
    out, err = capsys.readouterr()
    assert [probe["word"] for probe in json.loads(out)["probes"]] == ["changed"]
    assert "QF451 1 of 1 probes" in err
    assert "integer-fmod on SM8650: changed: table wrong" in err
