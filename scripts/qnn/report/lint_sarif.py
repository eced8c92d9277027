"""What `qnn-forge lint` found as SARIF 2.1.0, which GitHub code scanning and editors read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from qnn import __version__
from qnn.catalogue import Page, rule_pages
from qnn.errors.base import Place
from qnn.errors.model import Kind, Problem

HOME = "https://github.com/qnn-forge/qnn-forge"
PAGES = f"{HOME}/blob/main/docs/lint"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Kind.ERROR: "error", Kind.HINT: "note"}


def sarif(problems: Sequence[Problem]) -> dict[str, object]:
    """One run with the metadata of every rule that spoke, and one result for each problem."""
    pages = {page.id: page for page in rule_pages()}
    spoken = sorted({problem.id for problem in problems})
    kinds = {problem.id: problem.kind for problem in problems}
    driver = {
        "name": "qnn-forge",
        "version": __version__,
        "informationUri": HOME,
        "rules": [_rule(pages[name], kinds[name]) for name in spoken],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": list(_results(problems, spoken)),
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(page: Page, kind: Kind) -> dict[str, object]:
    address = f"{PAGES}/{page.id}.md"
    return {
        "id": page.id,
        "name": page.name,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.what},
        "help": {
            "text": f"{page.what}\n\n{page.why}\n\n{page.mend}",
            "markdown": f"{page.what}\n\n{page.why}\n\n{page.mend}\n\n[{page.id}]({address})",
        },
        "helpUri": address,
        "defaultConfiguration": {"level": _LEVELS[kind]},
    }


def _results(problems: Iterable[Problem], spoken: list[str]) -> Iterable[dict[str, object]]:
    for problem in problems:
        yield {
            "ruleId": problem.id,
            "ruleIndex": spoken.index(problem.id),
            "level": _LEVELS[problem.kind],
            "message": {"text": f"{problem.message}; {problem.remedy}"},
            "locations": [{"physicalLocation": _location(problem.place)}],
        }


def _location(place: Place) -> dict[str, object]:
    # A whole-file problem gets line 1: GitHub shows no result without a region.
    region = {"startLine": place.line or 1, "startColumn": place.column or 1}
    return {"artifactLocation": {"uri": quote(place.path)}, "region": region}
