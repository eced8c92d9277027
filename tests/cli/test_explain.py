"""`qnn-forge explain`."""

from __future__ import annotations

import pytest

from qnn.catalogue import pages
from qnn.cli import run


@pytest.mark.parametrize("name", ["QF104", "qf104", "104"])
def test_a_page(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["explain", name]) == 0
    assert capsys.readouterr().out == (
        "QF104: a source that does not exist\n\n"
        "lint error, since 0.1.0 · exit code 3\n\n"
        "What\n  A graph, the licence or another source names a source that does not stand under `sources`.\n\n"
        "Why\n  There is no file to take.\n\n"
        "Mend\n  Correct the name, or add the source.\n"
    )


def test_zeros_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "5"]) == 0
    assert capsys.readouterr().out.startswith("QF005: a tab in the indentation\n")


def test_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{page.id}  {page.title}" for page in pages()]
    assert lines[0] == "QF001  model.yaml is missing"


def test_unknown_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "QF018"]) == 2
    assert 'there is no id "QF018"; the nearest are QF014, QF020, QF021' in capsys.readouterr().err


def test_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "tabs"]) == 2
    assert "the nearest are QF" in capsys.readouterr().err
