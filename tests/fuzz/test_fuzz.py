"""360 inputs of all kinds: never a traceback, always an id, nothing left behind. More with ``python -m tests.fuzz``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnn.child import Host
from tests.fuzz.__main__ import main
from tests.fuzz.kinds import kinds
from tests.fuzz.outcome import BadOutcome, judged
from tests.fuzz.warm import warm_host

_RANDOMS = st.randoms(use_true_random=False)
# An attempt takes a tenth of a second, and a drawn graph is large in hypothesis's eyes.
_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with warm_host() as host:
        yield host


def attempt(kind: str, random: Random, host: Host) -> None:
    with tempfile.TemporaryDirectory(prefix="qnn-forge-fuzz-") as scratch:
        kinds(host)[kind](random, Path(scratch))


@settings(max_examples=80, suppress_health_check=_HEALTH)
@given(_RANDOMS)
def test_model_yaml(host: Host, random: Random) -> None:
    attempt("yaml", random, host)


@settings(max_examples=90, suppress_health_check=_HEALTH)
@given(_RANDOMS)
def test_onnx_files(host: Host, random: Random) -> None:
    attempt("onnx", random, host)


@settings(max_examples=60, suppress_health_check=_HEALTH)
@given(_RANDOMS)
def test_archives_verified(host: Host, random: Random) -> None:
    attempt("verify", random, host)


@settings(max_examples=30, suppress_health_check=_HEALTH)
@given(_RANDOMS)
def test_archives_pulled(host: Host, random: Random) -> None:
    attempt("pull", random, host)


@settings(max_examples=40, suppress_health_check=_HEALTH)
@given(_RANDOMS)
def test_index_documents(host: Host, random: Random) -> None:
    attempt("index", random, host)


@settings(max_examples=60, suppress_health_check=_HEALTH)
@given(_RANDOMS)
def test_context_binaries(host: Host, random: Random) -> None:
    attempt("inspect", random, host)


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ("raise ValueError('x')", "a defect shows"),
        ("from qnn.errors.bundles import InvalidManifest as E; raise E('x', remedy='')", None),
        ("import click; click.echo('Traceback (most recent call last):')", "a defect shows"),
        ("import sys; sys.stderr.write('QF998'); return 9", "QF998 is no documented id"),
        ("return 9", "it failed without an id"),
        ("import sys; sys.stderr.write('QF701 remedy: x'); return 5", "exit code 5, but QF701 has 9"),
        ("import tempfile; tempfile.mkstemp()", "left behind: tmp"),
    ],
)
def test_what_must_not_happen_is_noticed(
    told: str, complaint: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {}
    exec(f"def told():\n    {told}", made)
    monkeypatch.setattr("qnn.cli.verify.verify", click.command("verify")(made["told"]))
    if complaint is None:
        assert judged(["verify"], tmp_path).ids[0] == "QF701"
        return
    with pytest.raises(BadOutcome, match=complaint):
        judged(["verify"], tmp_path)


def test_the_long_run_says_what_it_drew_and_how_it_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["6", "--seed", "1", "--kind", "yaml"]) == 0
    first = capsys.readouterr().out
    assert "6 inputs of yaml" in first
    assert main(["6", "--seed", "1", "--kind", "yaml"]) == 0
    assert capsys.readouterr().out == first
    assert main(["6", "--minutes", "0"]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("tests.fuzz.documents.judged", _bad)
    assert main(["3", "--seed", "1", "--kind", "yaml"]) == 1
    said = capsys.readouterr().out
    assert "again: python -m tests.fuzz 1 --kind yaml --seed 1 --from 0" in said
    assert "3 of 3 inputs of yaml did harm" in said


def test_an_input_that_did_harm_is_kept_and_others_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = tmp_path / "keep"
    assert main(["2", "--kind", "index", "--keep", str(keep)]) == 0
    assert not keep.exists()
    monkeypatch.setattr("tests.fuzz.documents.judged", _bad)
    assert main(["2", "--kind", "yaml", "--from", "7", "--keep", str(keep)]) == 1
    assert sorted(path.name for path in keep.iterdir()) == ["yaml-7", "yaml-8"]
    assert (keep / "yaml-7" / "fault.txt").read_text() == (
        "yaml: a defect shows\nagain: python -m tests.fuzz 1 --kind yaml --seed 0 --from 7\n"
    )
    assert list((keep / "yaml-7").rglob("model.yaml"))


def _bad(*_: object) -> None:
    raise BadOutcome("a defect shows")
