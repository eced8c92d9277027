"""From documents on disk to a report: what is read, merged, missing, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qnn.errors.report import UnreadableReport
from qnn.report.document import Plan, Report, Skip, Tally
from qnn.report.fit import to_json
from qnn.report.gather import About
from qnn.report.load import load
from tests.report.documents import COMMIT, RUN, build, failed, job, lint, plan, problem, target, write


def report(folder: Path, *documents: object, plan: object = None, lint: object = None) -> Report:
    """The report of documents written to files."""
    files = [write(folder, f"{number}.json", document) for number, document in enumerate(documents)]
    planned = None if plan is None else write(folder, "plan.txt", plan)
    linted = None if lint is None else write(folder, "lint.txt", lint)
    return load(files, planned, linted, About(COMMIT, RUN))


def test_results_are_worst_first_and_counted(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        build(target("SM8550", reused=True), failed("SM8650"), target("SM8750", verdict="unverified")),
        build(failed("SM8550", model="ant"), target("SM8650", model="ant")),
    )
    assert [(result.verdict, result.model, result.soc) for result in found.results] == [
        ("failed", "ant", "SM8550"),
        ("failed", "toy", "SM8650"),
        ("unverified", "toy", "SM8750"),
        ("ok", "ant", "SM8650"),
        ("ok", "toy", "SM8550"),
    ]
    assert found.tally == Tally(failed=2, missing=0, unverified=1, ok=2, reused=1)
    assert [(variant.model, variant.tally.failed, variant.tally.total) for variant in found.variants] == [
        ("ant", 1, 2),
        ("toy", 1, 3),
    ]
    assert (found.commit, found.run_url) == (COMMIT, RUN)


def test_variants_with_more_failures_come_first(tmp_path: Path) -> None:
    found = report(
        tmp_path, build(failed("A", model="ant"), failed("A", model="bee"), failed("B", model="bee"), target())
    )
    assert [variant.model for variant in found.variants] == ["bee", "ant", "toy"]


def test_order_of_files_and_targets_does_not_matter(tmp_path: Path) -> None:
    one = report(tmp_path, build(target("A"), failed("B")), build(target("C")))
    other = report(tmp_path, build(target("C")), build(failed("B"), target("A")))
    assert one == other


def test_a_later_result_of_a_bundle_replaces_the_first(tmp_path: Path) -> None:
    found = report(tmp_path, build(failed()), build(target()))
    assert found.tally == Tally(failed=0, missing=0, unverified=0, ok=1, reused=0)


def test_paths_of_the_machine_are_left_out(tmp_path: Path) -> None:
    error = {"log": "/home/runner/store/logs/7.log", "place": "/home/runner/models/toy/model.yaml"}
    found = report(tmp_path, build(failed(error=error)))
    failure = found.results[0].failure
    assert failure is not None
    assert (failure.log, failure.place) == ("7.log", "model.yaml")
    assert report(tmp_path, build(target())).results[0].archive == "toy-1.0-default-fp16-SM8650-qairt2.51.0.tar.gz"


def test_long_texts_are_cut(tmp_path: Path) -> None:
    error = {"message": "m" * 10_000, "details": ["d" * 5_000] * 30}
    failure = report(tmp_path, build(failed(error=error))).results[0].failure
    assert failure is not None
    assert len(failure.message) == 1200
    assert failure.message[-1] == "…"
    assert [len(line) for line in failure.details] == [300] * 20 + [len("10 more lines")]


def test_planned_bundles_without_a_result_are_missing(tmp_path: Path) -> None:
    found = report(tmp_path, build(target("SM8550")), plan=plan(job("SM8550,SM8650"), job("SM8750")))
    assert found.tally == Tally(failed=0, missing=2, unverified=0, ok=1, reused=0)
    assert [result.soc for result in found.results if result.verdict == "missing"] == ["SM8650", "SM8750"]
    assert found.plan == Plan(False, 4, 6.5, 2_310_000, ("models/toy/model.yaml changed",))


def test_the_matrices_of_a_plan_are_read_too(tmp_path: Path) -> None:
    found = report(tmp_path, plan=plan(compile=[{"include": [job("A,B")]}, {"include": [job("C")]}]))
    assert [result.soc for result in found.results] == ["A", "B", "C"]


def test_a_job_without_chips_plans_nothing(tmp_path: Path) -> None:
    assert report(tmp_path, plan=plan(job(""), job("A,"))).tally.missing == 1


def test_nothing_is_missing_from_a_dry_run(tmp_path: Path) -> None:
    assert report(tmp_path, plan=plan(job("SM8650"), dry_run=True)).results == ()


@pytest.mark.parametrize(
    ("folder", "path"), [("models/toy", "toy"), ("networks/toy", "networks/toy"), ("networks/toy/", "networks/toy/")]
)
def test_a_model_is_where_the_plan_says(tmp_path: Path, folder: str, path: str) -> None:
    found = report(tmp_path, build(target()), plan=plan(job("SM8650", model=folder)))
    assert [result.path for result in found.results] == [path]


def test_skips_of_one_reason_are_joined(tmp_path: Path) -> None:
    skips = [{"variant": "toy-1.0-default-fp16", "soc": soc, "reason": "no fp16"} for soc in ("B", "A", "B")]
    found = report(tmp_path, build(target(), skipped=skips))
    assert found.skipped == (Skip("toy-1.0-default-fp16", "no fp16", ("A", "B")),)


def test_lint_documents_are_joined_errors_first(tmp_path: Path) -> None:
    found = report(
        tmp_path, lint(problem("hint", id="QF105"), problem(line=9), models=2), lint=lint(problem(path="a", line=None))
    ).lint
    assert found is not None
    assert (found.errors, found.hints, found.models) == (2, 1, 3)
    assert [(finding.kind, finding.path, finding.line) for finding in found.findings] == [
        ("error", "a", None),
        ("error", "models/toy/model.yaml", 9),
        ("hint", "models/toy/model.yaml", 7),
    ]


def test_a_folder_stands_for_its_json_files(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    write(inner, "one.json", build(target("A")))
    write(tmp_path, "two.json", build(target("B")))
    write(tmp_path, "notes.txt", {})
    assert load([tmp_path], None, None, About()).tally.ok == 2


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"schema": 1, "targ', "not JSON: Unterminated string starting at: line 1 column 15 (char 14)"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "not JSON: a key stands there twice"),
        (b"{}", "neither results of a build nor findings of lint"),
        (b'{"schema": 2, "targets": []}', "its schema version is not 1"),
        (b'{"schema": 1, "targets": {}}', "invalid value for type, expected tuple @ $.targets"),
        (b'{"schema": 1, "targets": [1]}', "invalid value for type, expected _BuildTarget @ $.targets[0]"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path: Path, raw: bytes, reason: str) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(raw)
    found = load([bad, write(tmp_path, "good.json", build(target()))], None, None, About())
    assert [(item.name, item.reason) for item in found.unreadable] == [("bad.json", reason)]
    assert found.tally.ok == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = load([tmp_path / "gone.json"], tmp_path / "plan.json", tmp_path / "lint.json", About())
    assert [(item.name, item.reason) for item in found.unreadable] == [
        (name, "No such file or directory") for name in ("gone.json", "lint.json", "plan.json")
    ]


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    document = json.dumps(build(target())).replace("0.999914", "NaN").replace("0.065", "Infinity")
    (tmp_path / "nan.json").write_text(document)
    (graph,) = load([tmp_path / "nan.json"], None, None, About()).results[0].graphs
    assert (graph.cosine, graph.max_abs) == (None, None)


def test_a_report_can_be_shown_again(tmp_path: Path) -> None:
    first = report(tmp_path, build(target(), failed("SM8550")), plan=plan(job("SM8850")), lint=lint(problem()))
    path = tmp_path / "report.json"
    path.write_text(to_json(first))
    assert load([path], None, None, About()) == first
    assert load([path], None, None, About(commit="f" * 40)).commit == "f" * 40


def test_a_damaged_report_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "report.json", {"kind": "qnn-forge-report", "schema": 9})
    with pytest.raises(UnreadableReport, match=r"report\.json: its schema version is not 1"):
        load([path], None, None, About())
