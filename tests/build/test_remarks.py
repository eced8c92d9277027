"""What a build says of a graph that leaves fp16's range and comes out right."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from qnn.build.events import Stage
from qnn.build.remarks import range_remark
from qnn.build.run import BuildRequest
from qnn.cli import build_view
from qnn.cli.build_view import Spoken
from qnn.plan.targets import BuildPlan
from qnn.ranges.facts import Finding, Kind, RangeFacts


def finding(tensor: str, node: str = "/eps") -> Finding:
    return Finding(
        Kind.UNDERFLOW, tensor, "Add" if node else "constant", node, 1e-12, "is 0 in fp16", "raise it", None, False
    )


def facts(*findings: Finding, unmeasured: str = "") -> RangeFacts:
    return RangeFacts("net", 1, (), findings, (), unmeasured)


def test_the_line_names_two_tensors_and_counts_the_rest() -> None:
    assert range_remark(facts(finding("a")), {}) == (
        "1 tensor leaves fp16's range, and the outputs come out right all the same: "
        "a (node /eps) is 0 in fp16 (`qnn-forge range` says more)"
    )
    line = range_remark(facts(*(finding(name, "") for name in "abcd")), {})
    assert line is not None
    assert line.startswith("4 tensors leave fp16's range")
    assert "a (constant) is 0 in fp16; b (constant) is 0 in fp16; and 2 more (" in line
    assert "c (" not in line


def test_acknowledged_tensors_are_not_said() -> None:
    assert range_remark(facts(finding("a")), {"a": "an epsilon"}) is None
    line = range_remark(facts(finding("a"), finding("b")), {"a": "an epsilon"})
    assert line is not None
    assert line.startswith("1 tensor leaves")
    assert "b (node /eps)" in line


def test_nothing_found_says_nothing_and_nothing_measured_does() -> None:
    assert range_remark(facts(), {}) is None
    assert range_remark(facts(unmeasured="no kernel\n  for it"), {}) == (
        "fp16's range was not checked: no kernel for it"
    )


def test_a_remark_goes_to_stderr_and_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    listener = Spoken()
    stage = Stage("range", "toy-1.0-s16-fp16 net")
    listener.begins(stage)
    listener.remarks(stage, ("[a] leaves",))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "warning: toy-1.0-s16-fp16 net: [a] leaves\n")
    assert [(remark.stage, remark.text) for remark in listener.said] == [(stage, "[a] leaves")]


def test_on_a_terminal_a_remark_stands_above_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, color_system=None, width=200)
    monkeypatch.setattr(build_view, "err", lambda: console)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    stage = Stage("range", "toy-1.0-s16-fp16 net")
    request = BuildRequest(BuildPlan((), ()), "none", Path(), Path(), 1, keep_going=False)
    with build_view.progress(request) as listener:
        listener.begins(stage)
        listener.remarks(stage, ("[a] leaves",))
        listener.ends(stage, 1.5, reused=False)
    assert "warning: toy-1.0-s16-fp16 net: [a] leaves" in shown.getvalue()
    assert "range      toy-1.0-s16-fp16 net  1.5 s" in shown.getvalue()
    assert [remark.text for remark in listener.said] == ["[a] leaves"]
