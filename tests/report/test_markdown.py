"""The comment and the summary: golden files of a mixed run, what is shown first, limits, and hostile texts."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnn.report.comment import LIMIT, MARKER, comment
from qnn.report.document import Report, Unreadable
from qnn.report.escape import visible
from qnn.report.fill import utf16
from qnn.report.fit import fit
from qnn.report.gather import About, gather, read_document
from qnn.report.origin import Origin, origin_of
from qnn.report.planned import read_plan
from qnn.report.summary import summary
from tests.report.documents import COMMIT, RUN, build, failed, hint, hints, job, lint, plan, problem, remark, target
from tests.report.rendered import render
from tests.report.test_escape import HOSTILE, anything

GOLDEN = Path(__file__).parent / "golden"
SUMMARY_LIMIT = 1 << 20


def made(*documents: dict[str, Any], plan: dict[str, Any] | None = None) -> Report:
    """A report of documents."""
    parts = [read_document(document, "x") for document in documents]
    return gather(parts, None if plan is None else read_plan(plan, "plan"), About(COMMIT, RUN))


def mixed() -> Report:
    """Two models that failed in three ways, one that is well, lint findings, a plan, warnings, skips, hints."""
    elsewhere = {
        "id": "QF501",
        "message": "the compiler crashed",
        "remedy": "read the log",
        "details": [],
        "place": "models/bee/model.yaml:12:3",
        "log": "/tmp/logs/9.log",
    }
    return made(
        build(
            failed("SM8550"), failed("SM8650"), target("SM8750"),
            failed("SM8650", model="bee", bucket="b5s", precision="w8a16", error=elsewhere),
            target("SM8550", model="cat", reused=True), target("SM8650", model="cat", verdict="unverified"),
            skipped=[{"variant": "cat-1.0-default-fp16", "soc": "SM8350", "reason": "no fp16"}],
            remarks=[remark(subject="cat-1.0-default-fp16 net"), remark(subject="bee-1.0-b5s-w8a16 net")],
        ),
        lint(problem("hint", id="QF105", message="nothing uses it", remedy="delete it")),
        hints(hint(), hint(model="cat", id="QH12", title="a batch above 1", found="a batch of 8", details=[])),
        plan=plan(
            job("SM8550,SM8650,SM8750"), job("SM8650,SM8850", model="models/bee", bucket="b5s", precision="w8a16")
        ),
    )  # fmt: skip


def origin() -> Origin:
    return dataclasses.replace(origin_of(COMMIT, RUN), branch="add-toy")


@pytest.mark.parametrize(("name", "text"), [("comment", comment), ("summary", summary)])
def test_golden(name: str, text: Any) -> None:
    written = text(mixed(), origin())
    path = GOLDEN / f"{name}.md"
    if os.environ.get("QNN_FORGE_GOLDEN") == "write":
        path.write_text(written, encoding="utf-8")
    assert written == path.read_text(encoding="utf-8"), "if this is meant: QNN_FORGE_GOLDEN=write pytest"


@pytest.mark.parametrize("text", [comment, summary])
def test_the_mixed_report_is_whole_markdown(text: Any) -> None:
    rendered = render(text(mixed(), origin()))
    assert rendered.unbalanced == []
    assert rendered.acting == []
    assert "|" not in rendered.text
    assert all(url.startswith("https://github.com/") for url in rendered.links)


def test_the_comment_begins_with_its_marker() -> None:
    assert comment(mixed(), origin()).startswith("<!-- qnn-forge report -->\n### ❌ 3 of 7 bundles failed, 1 missing\n")


def test_failures_alike_are_told_once_with_all_chips() -> None:
    text = comment(made(build(failed("SM8550"), failed("SM8650"))), origin())
    assert text.count("output y differs") == 1
    assert "<code>fp16</code> on <code>SM8550</code>, <code>SM8650</code>\n" in text
    assert "> toy-1.0-default-fp16 net: output y differs from the float model\n" in text


def test_one_failure_keeps_its_message() -> None:
    text = comment(made(build(failed("SM8550"))), origin())
    assert "> toy-1.0-default-fp16 net on SM8550: output y differs" in text


@pytest.mark.parametrize(
    ("names", "command"),
    [
        ({}, "qnn-forge build toy --bucket default --precision fp16 --soc SM8650"),
        ({"model": "a b$(x)"}, "qnn-forge build 'a b$(x)' --bucket default --precision fp16 --soc SM8650"),
        ({"model": "-x"}, "qnn-forge build --bucket default --precision fp16 --soc SM8650 -- -x"),
        ({"model": "a'`b"}, """qnn-forge build 'a'"'"'`b' --bucket default --precision fp16 --soc SM8650"""),
    ],
)
def test_the_command_that_shows_it_again(names: dict[str, Any], command: str) -> None:
    assert f"```sh\n{command}\n```\n" in comment(made(build(failed(**names))), origin())


def test_at_most_three_chips_stand_in_the_command() -> None:
    text = comment(made(build(*(failed(f"SM8{n}50") for n in range(1, 7)))), origin())
    assert "--soc SM8150,SM8250,SM8350\n" in text


def test_a_name_that_cannot_be_typed_gives_no_command() -> None:
    text = comment(made(build(failed(model="a\nb"))), origin())
    assert "```" not in text
    assert "no command is shown" in text


def test_a_fence_is_longer_than_what_it_holds() -> None:
    text = comment(made(build(failed(model="```"))), origin())
    assert "````sh\nqnn-forge build '```' --bucket default --precision fp16 --soc SM8650\n````\n" in text


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (made(build(target())), "✅ 1 bundle built and verified"),
        (made(build(target("A"), target("B"))), "✅ 2 bundles built and verified"),
        (made(build(target("A"), target("B", verdict="unverified"))), "⚠️ 2 bundles built, 1 of them not verified"),
        (made(build(target("A"), failed("B"))), "❌ 1 of 2 bundles failed"),
        (made(build(target()), plan=plan(job("SM8650,SM8750"))), "⛔ 1 of 2 bundles is missing"),
        (made(build()), "Nothing to build"),
        (made(plan=plan(job("A"), dry_run=True)), "Dry run: nothing was built"),
        (made(lint(problem(), problem())), "❌ 2 errors in model.yaml files: nothing was built"),
    ],
)
def test_headlines(report: Report, line: str) -> None:
    assert comment(report, origin()).startswith(f"{MARKER}\n### {line}\n")
    assert summary(report, origin()).startswith(f"## {line}\n")


def test_findings_link_to_their_line() -> None:
    text = comment(made(lint(problem(path="models/a b/model.yaml"))), origin())
    assert f'<a href="https://github.com/acme/models/blob/{COMMIT}/models/a%20b/model.yaml#L7">' in text
    assert "<details open><summary>Lint: 1 error in 1 model</summary>" in text


def test_a_failure_links_to_its_line() -> None:
    text = comment(made(build(failed(error={"place": "models/toy/model.yaml:12:3"}))), origin())
    assert f'<a href="https://github.com/acme/models/blob/{COMMIT}/models/toy/model.yaml#L12"><code>models/' in text


def test_documents_that_cannot_be_read_are_named() -> None:
    bad = tuple(Unreadable(f"{number}.json", "not JSON: x@y.zz") for number in range(7))
    text = comment(dataclasses.replace(made(), unreadable=bad), origin())
    assert text.startswith(f"{MARKER}\n### ⛔ 7 documents of the run could not be read\n")
    assert text.count("could not be read: not JSON") == 5
    assert "- and 2 more\n" in text
    assert render(text).acting == []


@pytest.mark.parametrize("path", ["../../x", "/etc/passwd"])
def test_findings_elsewhere_are_no_links(path: str) -> None:
    assert "acme/models/blob" not in comment(made(lint(problem(path=path))), origin())


def test_an_unknown_id_is_no_link() -> None:
    text = comment(made(build(failed(error={"id": "QF620](https://evil.example)"}))), Origin())
    assert render(text).links == []


def test_more_failures_open_fewer_models() -> None:
    few = comment(made(build(*(failed(model=f"m{n}") for n in range(3)))), origin())
    many = comment(made(build(*(failed(model=f"m{n}") for n in range(4)))), origin())
    assert (few.count("<details open>"), many.count("<details open>")) == (3, 0)


# Long reports


def many(models: int, bad: str, chips: int = 10) -> Report:
    """models × chips results; `bad` is none, some (one in seven) or all. Every message is another."""
    targets = []
    for number in range(models * chips):
        soc, model = f"SM8{number % chips}50", f"model-{number // chips:04d}"
        fails = bad == "all" or (bad == "some" and number % 7 == 0)
        error = {"message": f"{model} net on {soc}: output y{number} differs", "details": [f"cosine 0.{number}"] * 3}
        targets.append(failed(soc, model=model, error=error) if fails else target(soc, model=model))
    return made(build(*targets))


@pytest.mark.parametrize("bad", ["none", "some", "all"])
def test_three_thousand_results(bad: str) -> None:
    report = many(300, bad)
    text = comment(report, origin())
    assert 40_000 < utf16(text) <= LIMIT
    rendered = render(text)
    assert rendered.unbalanced == []
    assert "|" not in rendered.text
    left = re.search(r"\*\*([\d,]+) more bundles\*\* of models not shown here: see <a href", text)
    assert left is not None
    assert int(left[1].replace(",", "")) == 3000 - 10 * len(re.findall(r"<b><code>model-\d+</code></b>", text))


def test_three_thousand_results_in_a_summary() -> None:
    whole = summary(many(300, "some"), origin())
    assert len(whole.encode()) <= SUMMARY_LIMIT
    assert re.findall(r"^\| (✅|❌)", whole, re.MULTILINE) == ["❌"] * 429 + ["✅"] * 2571
    assert render(whole).unbalanced == []


def test_the_same_results_give_the_same_text() -> None:
    assert comment(many(30, "some"), origin()) == comment(many(30, "some"), origin())


def test_every_failing_model_comes_before_any_good_one() -> None:
    report = made(build(*(target(f"S{n}", model="aaa") for n in range(9)), failed(model="zzz"), failed(model="yyy")))
    text = comment(report, origin())
    order = re.findall(r"<b><code>(\w+)</code></b>", text)
    assert order == ["yyy", "zzz", "aaa"]


@pytest.mark.parametrize("models", [8, 20, 60])
def test_failures_lose_detail_before_models_are_left_out(models: int) -> None:
    text = comment(many(models, "all"), origin())
    assert utf16(text) <= LIMIT
    assert len(re.findall(r"<b><code>model-\d+</code></b>", text)) == models
    assert "of models not shown here" not in text
    told = len(re.findall(r"^> - cosine", text, re.MULTILINE)) // 3
    untold = sum(int(number) for number in re.findall(r"(\d+) more failures? of this model: see", text))
    assert told + untold == models * 10


def test_a_summary_that_is_too_long_keeps_the_worst() -> None:
    text = summary(many(20, "some"), origin(), limit=40_000)
    assert len(text.encode()) <= 40_000
    verdicts = re.findall(r"^\| (✅|❌)", text, re.MULTILINE)
    assert verdicts == sorted(verdicts, key="❌✅".index)
    assert verdicts.count("❌") == 29
    assert f"{200 - len(verdicts)} more bundles, none worse than these" in text
    assert render(text).unbalanced == []


# Hostile texts


def hostile(text: str) -> Report:
    """A report with one text in every place that holds one."""
    error = {"id": text, "message": text, "remedy": text, "details": [text, text], "place": text, "log": text}
    names: dict[str, Any] = {"model": text, "version": text, "bucket": text, "precision": text}
    graph = {"name": text, "size": 1, "cosine": None, "max_abs": None, "metric": text}
    good = target(f"{text}2", **names) | {"archive": text, "sha256": text, "graphs": [graph]}
    skip, said = {"variant": text, "soc": text, "reason": text}, remark(stage=text, subject=text, text=text)
    return made(
        build(failed(text, error=error, **names), good, skipped=[skip], remarks=[said]),
        lint(problem(path=text, message=text, remedy=text, id=text), problem("hint", path=text)),
        plan=plan(job(f"{text}3", model=text), reasons=[text]),
    )


SAFE = {
    "p", "span", "code", "pre", "b", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul",
    "li", "blockquote", "h2", "h3", "h4", "a",
}  # fmt: skip


def is_harmless(markdown: str) -> str:
    """Only our own tags and links, nothing GitHub acts on; gives the text."""
    rendered = render(markdown)
    assert set(rendered.tags) - {f"<!--{MARKER[4:-3]}-->"} <= SAFE
    assert rendered.unbalanced == []
    assert rendered.acting == []
    assert all(
        url.startswith(("https://github.com/acme/models/", "https://github.com/qnn-forge/")) for url in rendered.links
    )
    return rendered.text


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("made_of", [comment, summary])
def test_a_hostile_text_appears_and_does_nothing(text: str, made_of: Any) -> None:
    where = Origin(COMMIT, f"x{text}", RUN, "https://github.com/acme/models")
    shown = is_harmless(made_of(hostile(f"x{text}y"), where))
    assert visible(f"x{text}y").partition("/")[0] in shown


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(anything)
def test_any_text_does_nothing(text: str) -> None:
    report = hostile(text)
    is_harmless(comment(report, Origin(COMMIT, text, RUN, "https://github.com/acme/models")))
    is_harmless(summary(report, origin()))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.text(alphabet="@#:$|`<\n\u202eé日😀ש ", min_size=1, max_size=3).map(lambda text: text * 400),
    st.integers(1, 60),
    st.sampled_from([30_000, LIMIT]),
)
def test_no_text_makes_a_comment_too_long_or_breaks_it(text: str, number: int, limit: int) -> None:
    error = {"message": text, "remedy": text, "details": [text] * 30, "place": text, "log": text}
    report = made(
        build(
            *(failed(f"{n}", model=f"{n % 7}{text}", error=error) for n in range(number)),
            skipped=[{"variant": f"{n}{text}", "soc": text, "reason": text} for n in range(number)],
        ),
        lint(*(problem(path=text, message=text, remedy=text) for _ in range(number))),
        plan=plan(job("x", model=text), reasons=[text] * number),
    )
    written = comment(report, Origin(COMMIT, text, RUN, "https://github.com/acme/models"), limit)
    assert utf16(written) <= limit
    is_harmless(written)
    written = summary(report, origin(), 200_000)
    assert len(written.encode()) <= 200_000
    is_harmless(written)


def test_the_comment_of_a_fitted_report_still_counts_everything() -> None:
    report = fit(many(100, "some"), 100_000)
    assert len(report.results) < 1000
    assert "### ❌ 143 of 1,000 bundles failed\n" in comment(report, origin())


def test_hints_alone_make_a_report_that_says_nothing_failed() -> None:
    report = made(hints(hint()))
    assert report.tally.total == 0
    text = comment(report, origin())
    assert "<summary>💡 1 hint for speed in 1 model</summary>" in text
    assert "docs/hints.md" in text
    assert "block_0/Tanh (Tanh): became Tanh" in render(summary(report, origin())).text


def test_the_same_hint_of_two_jobs_is_said_once() -> None:
    assert len(made(hints(hint()), hints(hint(soc="SM8750"))).hints) == 1
    assert len(made(hints(hint()), hints(hint(graph="other"))).hints) == 2


def test_hints_that_do_not_fit_are_counted() -> None:
    report = made(hints(*(hint(graph=f"g{i}", found="x" * 290) for i in range(400))))
    text = comment(report, origin())
    assert utf16(text) <= LIMIT
    assert re.search(r"- 3\d\d more", text)
    assert len(fit(report, 100_000).hints) < 400


def test_what_two_jobs_remarked_is_said_once() -> None:
    report = made(build(target(), remarks=[remark()]), build(target("SM8750"), remarks=[remark(), remark(text="b")]))
    assert [said.text for said in report.remarks] == ["1 tensor leaves fp16's range", "b"]
    for text in (comment(report, origin()), summary(report, origin())):
        assert "2 warnings" in text
        assert "toy-1.0-default-fp16 net: 1 tensor leaves fp16's range" in render(text).text


def test_remarks_that_do_not_fit_are_counted() -> None:
    report = made(build(target(), remarks=[remark(subject=f"g{i}", text="x" * 290) for i in range(400)]))
    text = comment(report, origin())
    assert utf16(text) <= LIMIT
    assert re.search(r"- 3\d\d more", text)
    assert len(fit(report, 100_000).remarks) < 400


def test_hostile_hints_are_harmless() -> None:
    bad = "</details> @all <img src=x> `|`\n# x"
    report = made(hints(hint(title=bad, found=bad, change=bad, details=[bad], id=bad, graph=bad)))
    for text in (comment(report, origin()), summary(report, origin())):
        rendered = render(text)
        assert rendered.unbalanced == []
        assert rendered.acting == []
        assert "img" not in rendered.tags
