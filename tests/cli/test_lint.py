"""`qnn-forge lint` from the command line's side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qnn.cli import run
from tests.model.sample import FILES, MODEL, edited, write_model

BAD = {**FILES, "model.yaml": edited(MODEL, "text: licence", "text: license")}
HINTED = {**FILES, "model.yaml": edited(MODEL, "640, width: 640", "320, width: 320")}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_all_models_are_good(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(Path("models"))
    assert run(["lint"]) == 0
    assert capsys.readouterr() == ("", "1 model checked: no problems\n")


def test_text_errors_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(Path("models"), BAD)
    assert run(["lint", "reader"]) == 3
    assert capsys.readouterr() == (
        'models/reader/model.yaml:7:9 QF104 there is no source "license"; did you mean "licence"?\n'
        'models/reader/model.yaml:29:3 QF105 hint: nothing uses the source "licence"; delete it, or use it\n',
        "1 model checked: 1 error, 1 hint\n",
    )


def test_hints_alone_are_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(Path("models"), HINTED)
    assert run(["lint"]) == 0
    assert capsys.readouterr().err == "1 model checked: 1 hint\n"


def test_every_model_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(Path("models"), BAD)
    write_model(Path("models"), {"model.yaml": "\t- x\n"}, name="a")
    Path("models/b").mkdir()
    assert run(["lint"]) == 3
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["models/a/model.yaml:1:1", "QF005"],
        ["models/b/model.yaml", "QF001"],
        ["models/reader/model.yaml:7:9", "QF104"],
        ["models/reader/model.yaml:29:3", "QF105"],
    ]
    assert err == "3 models checked: 3 errors, 1 hint\n"


def test_github(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(Path("models"), BAD)
    assert run(["lint", "--format", "github"]) == 3
    assert capsys.readouterr().out.splitlines()[0] == (
        "::error file=models/reader/model.yaml,line=7,col=9,title=QF104::"
        'there is no source "license"; did you mean "licence"?'
    )


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_one_document_on_stdout(capsys: pytest.CaptureFixture[str], form: str) -> None:
    write_model(Path("models"), BAD)
    assert run(["lint", "--format", form]) == 3
    document = json.loads(capsys.readouterr().out)
    results = document["problems"] if form == "json" else document["runs"][0]["results"]
    assert [result["id" if form == "json" else "ruleId"] for result in results] == ["QF104", "QF105"]


def test_unknown_model(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(Path("models"))
    assert run(["lint", "raeder"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert 'QF101 there is no model "raeder"' in err
    assert 'did you mean "reader"?' in err
