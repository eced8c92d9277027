"""A report from elsewhere is read as an attacker's: only exactly a report is one."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.errors.report import UnreadableReport
from qnn.report.document import Report
from qnn.report.fit import fit, to_json
from qnn.report.schema import report_schema
from qnn.report.strict import MAX_BYTES, read_file, read_report
from tests.report.test_markdown import hostile, many, mixed

SHIPPED = Path(__file__).parents[2] / "scripts" / "qnn" / "report" / "report.schema.json"


def document(report: Report | None = None) -> dict[str, Any]:
    """The mixed report as a document."""
    read: dict[str, Any] = json.loads(to_json(report or mixed()))
    return read


def changed(path: str, value: Any) -> dict[str, Any]:
    """The document with one value changed; a path of None as last value deletes."""
    made = document()
    *way, last = path.split(".")
    inner: Any = made
    for step in way:
        inner = inner[int(step)] if step.isdigit() else inner[step]
    if value is DELETE:
        del inner[last]
    else:
        inner[int(last) if last.isdigit() else last] = value
    return made


DELETE = object()


def test_what_is_written_is_read() -> None:
    assert read_report(to_json(mixed()).encode(), "x") == mixed()


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("schema", 2, "its schema version is not 1"),
        ("schema", True, "its schema version is not 1"),
        ("schema", "1", "its schema version is not 1"),
        ("kind", "report", "its kind is not qnn-forge-report"),
        ("extra", 1, r"extra fields found \(extra\) @ \$"),
        ("tally", DELETE, r"required field missing @ \$\.tally"),
        ("tally.ok", -1, r"\$\.tally\.ok"),
        ("tally.ok", True, r"\$\.tally\.ok"),
        ("tally.ok", 1.0, r"\$\.tally\.ok"),
        ("tally.ok", 2**60, r"\$\.tally\.ok"),
        ("results", "abc", r"\$\.results"),
        ("results", {}, r"\$\.results"),
        ("results.0", [], r"\$\.results\[0\]"),
        ("results.0.verdict", "good", r"\$\.results\[0\]\.verdict"),
        ("results.0.verdict", ["ok"], r"\$\.results\[0\]\.verdict"),
        ("results.0.model", 5, r"\$\.results\[0\]\.model"),
        ("results.0.model", "x" * 5000, r"\$\.results\[0\]\.model"),
        ("results.0.model", None, r"\$\.results\[0\]\.model"),
        ("results.0.seconds", "1", r"\$\.results\[0\]\.seconds"),
        ("results.0.reused", 0, r"\$\.results\[0\]\.reused"),
        ("results.0.failure", "x", r"\$\.results\[0\]\.failure"),
        ("results.0.failure.details", "abc", r"\$\.results\[0\]\.failure"),
        ("lint.findings.0.kind", "warning", r"\$\.lint"),
        ("plan", [], r"\$\.plan"),
        ("commit", 1, r"\$\.commit"),
    ],
)
def test_anything_else_is_refused(path: str, value: Any, reason: str) -> None:
    with pytest.raises(UnreadableReport, match=reason):
        read_report(json.dumps(changed(path, value)).encode(), "x")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b" " * (MAX_BYTES + 1), "more than 1,048,576 bytes"),
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 150_000, "nested too deeply"),
        (b"1", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"kind": "qnn-forge-report", "schema": NaN}', "NaN is not a JSON number"),
        (b'{"kind": "qnn-forge-report", "kind": "x"}', "a key stands there twice"),
        (b'{"kind": "qnn-forge-report", "schema": ' + b"1" * 10_000 + b"}", "not JSON"),
    ],
)
def test_what_is_no_report_at_all(raw: bytes, reason: str) -> None:
    with pytest.raises(UnreadableReport, match=reason):
        read_report(raw, "report.json")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_refused(raw: bytes) -> None:
    with pytest.raises(UnreadableReport):
        read_report(raw, "x")


def test_reasons_are_short() -> None:
    with pytest.raises(UnreadableReport) as caught:
        read_report(json.dumps(document() | {"k" * 100_000: 1}).encode(), "x")
    assert len(caught.value.message) < 600


# Files


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_file(tmp_path / "a", 3) == b"abc"
    with pytest.raises(UnreadableReport, match="a: more than 2 bytes"):
        read_file(tmp_path / "a", 2)


def test_nothing_but_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "gone"):
        with pytest.raises(UnreadableReport, match=name):
            read_file(tmp_path / name, 10)


# Size


@pytest.mark.parametrize("limit", [20_000, 100_000, MAX_BYTES])
@pytest.mark.parametrize("bad", ["none", "some", "all"])
def test_a_long_report_keeps_the_worst_within_its_limit(limit: int, bad: str) -> None:
    report = many(100, bad)
    raw = to_json(report, limit).encode()
    assert len(raw) <= limit
    assert limit == MAX_BYTES or len(raw) > limit * 0.5
    read = read_report(raw, "x")
    assert read.tally == report.tally
    assert read.results == report.results[: len(read.results)]
    assert read.variants == report.variants[: len(read.variants)]


def test_a_report_that_fits_is_left_alone() -> None:
    assert fit(mixed()) is not None
    assert fit(mixed()) == mixed()


def test_a_report_of_long_lists_fits() -> None:
    report = mixed()
    assert report.lint is not None
    assert report.plan is not None
    long = dataclasses.replace(
        report,
        lint=dataclasses.replace(report.lint, findings=report.lint.findings * 20_000),
        plan=dataclasses.replace(report.plan, reasons=("r" * 1000,) * 5_000),
        skipped=report.skipped * 20_000,
    )
    raw = to_json(long).encode()
    assert len(raw) <= MAX_BYTES
    read = read_report(raw, "x")
    assert len(read.results) == len(report.results)
    assert read.lint is not None
    assert 100 < len(read.lint.findings) < 20_000


def test_what_is_kept_is_the_first_of_a_list() -> None:
    report = mixed()
    assert report.plan is not None
    reasons = tuple(f"{number}" + "r" * (4000 if number % 2 else 1) for number in range(100))
    long = fit(dataclasses.replace(report, plan=dataclasses.replace(report.plan, reasons=reasons)), 60_000)
    assert long.plan is not None
    assert 0 < len(long.plan.reasons) < 100
    assert long.plan.reasons == reasons[: len(long.plan.reasons)]


def test_half_a_surrogate_pair_is_carried() -> None:
    report = hostile("a\ud800b")
    assert read_report(to_json(report).encode(), "x") == report


# Schema


def test_the_shipped_schema_is_what_the_dataclasses_say() -> None:
    assert json.loads(SHIPPED.read_text(encoding="utf-8")) == report_schema(), (
        "run: python -m qnn.report.schema scripts/qnn/report/report.schema.json"
    )


def test_the_schema_accepts_reports_and_refuses_what_reading_refuses() -> None:
    validator = jsonschema.Draft202012Validator(report_schema())
    validator.check_schema(report_schema())
    validator.validate(document())
    for path, value in [("kind", "x"), ("results.0.verdict", "good"), ("tally.ok", -1), ("extra", 1), ("lint", 5)]:
        assert not validator.is_valid(changed(path, value)), path
