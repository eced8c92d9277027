"""The four forms of lint's findings."""

from __future__ import annotations

from qnn.errors.base import Place
from qnn.errors.model import Kind, Problem
from qnn.report import lint

ERROR = Problem("QF104", Kind.ERROR, Place("models/a/model.yaml", 7, 9), 'no source "x"', "add it")
HINT = Problem("QF105", Kind.HINT, Place("models/a/model.yaml", 29, 3), "nothing uses it", "delete it")
WHOLE = Problem("QF001", Kind.ERROR, Place("models/b/model.yaml"), "there is none", "add one")
ODD = Problem("QF023", Kind.ERROR, Place("models/a,b:c%/model.yaml", 1, 2), "100%: a,b", "line\r\nbreak")


def test_text() -> None:
    assert lint.text([ERROR, HINT, WHOLE]) == (
        'models/a/model.yaml:7:9 QF104 no source "x"; add it\n'
        "models/a/model.yaml:29:3 QF105 hint: nothing uses it; delete it\n"
        "models/b/model.yaml QF001 there is none; add one\n"
    )


def test_github() -> None:
    assert lint.github([ERROR, HINT, WHOLE]) == (
        '::error file=models/a/model.yaml,line=7,col=9,title=QF104::no source "x"; add it\n'
        "::notice file=models/a/model.yaml,line=29,col=3,title=QF105::nothing uses it; delete it\n"
        "::error file=models/b/model.yaml,title=QF001::there is none; add one\n"
    )


def test_github_escapes_what_would_end_a_property_or_the_command() -> None:
    assert lint.github([ODD]) == (
        "::error file=models/a%2Cb%3Ac%25/model.yaml,line=1,col=2,title=QF023::100%25: a,b; line%0D%0Abreak\n"
    )


def test_json() -> None:
    assert lint.as_json([ERROR, HINT, WHOLE], models=3) == {
        "errors": 2,
        "hints": 1,
        "models": 3,
        "problems": [
            {
                "id": "QF104",
                "kind": "error",
                "path": "models/a/model.yaml",
                "line": 7,
                "column": 9,
                "message": 'no source "x"',
                "remedy": "add it",
            },
            {
                "id": "QF105",
                "kind": "hint",
                "path": "models/a/model.yaml",
                "line": 29,
                "column": 3,
                "message": "nothing uses it",
                "remedy": "delete it",
            },
            {
                "id": "QF001",
                "kind": "error",
                "path": "models/b/model.yaml",
                "line": None,
                "column": None,
                "message": "there is none",
                "remedy": "add one",
            },
        ],
    }


def test_summary() -> None:
    assert lint.summary([], 1) == "1 model checked: no problems"
    assert lint.summary([HINT], 2) == "2 models checked: 1 hint"
    assert lint.summary([ERROR, HINT, WHOLE], 3) == "3 models checked: 2 errors, 1 hint"
