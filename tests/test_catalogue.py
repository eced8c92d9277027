"""Every id is documented once, and docs/lint/ is what the classes say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qnn import catalogue
from qnn.errors.base import ExitCode, ForgeError
from qnn.model.rules.registry import RULES

DOCS = Path(__file__).parents[1] / "docs" / "lint"


def test_every_id_has_one_page() -> None:
    found = catalogue.pages()
    assert [page.id for page in found] == sorted({page.id for page in found})
    assert {rule.id for rule in RULES} < {page.id for page in found}
    assert {"QF100", "QF501", "QF999"} < {page.id for page in found}


@pytest.mark.parametrize("page", catalogue.pages(), ids=lambda page: page.id)
def test_page_is_whole(page: catalogue.Page) -> None:
    assert re.fullmatch(r"QF\d{3}", page.id)
    assert page.title
    assert page.title[-1] not in ".:"
    for text in (page.what, page.why, page.mend):
        assert len(text) > len("A full stop.")
        assert text[-1] in ".)`"


# Which exit codes the ids of a hundred, or of a ten, may have: docs/exit-codes.md says the same to people.
_CODES: dict[str, set[int]] = {
    "QF0": {3},
    "QF1": {3},
    "QF2": {4},
    "QF3": {5},
    "QF4": {6},
    "QF5": {7},
    "QF6": {8},
    "QF70": {9},
    "QF71": {9, 12},
    "QF72": {5, 9, 11, 13},
    "QF73": {9, 13, 21, 22},
    "QF74": {9, 11, 12},
    "QF75": {12},
    "QF76": {12},
    "QF77": {4, 5, 9},
    "QF78": {4, 13},
    "QF79": {8, 13},
    "QF8": {10},
    "QF9": {11},
}


def test_exit_codes_follow_the_ids() -> None:
    for page in catalogue.pages():
        code = re.search(r"exit code (\d+)", page.kind)
        if code and page.id != "QF999":
            assert int(code[1]) in (_CODES.get(page.id[:3]) or _CODES[page.id[:4]]), page.id


def test_every_exit_code_is_explained() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| .* \|(.*)\|$", (DOCS.parent / "exit-codes.md").read_text("utf-8"), re.M))
    assert {int(code) for code in rows} == {int(code) for code in ExitCode}
    for page in catalogue.pages():
        code = re.search(r"exit code (\d+)", page.kind)
        if code:
            named = re.findall(r"QF[0-9x]{3}", rows[code[1]])
            assert any(re.fullmatch(ids.replace("x", "."), page.id) for ids in named), (page.id, code[1])


def test_docs_are_what_the_classes_say() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.iterdir()}
    assert written == catalogue.files(), "run: python -m qnn.catalogue docs/lint"


def test_writing_deletes_stale_pages_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "QF998.md").touch()
    (tmp_path / "notes.txt").touch()
    catalogue.write(tmp_path)
    assert not (tmp_path / "QF998.md").exists()
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / "QF104.md").read_text(encoding="utf-8") == (
        "# QF104: a source that does not exist\n\nlint error, since 0.1.0 · exit code 3\n\n"
        "## What\n\nA graph, the licence or another source names a source that does not stand under `sources`.\n\n"
        "## Why\n\nThere is no file to take.\n\n## Mend\n\nCorrect the name, or add the source.\n"
    )
    assert "| [QF104](QF104.md) | a source that does not exist |" in (tmp_path / "README.md").read_text("utf-8")


def test_an_id_twice_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(ForgeError):
        """What: A. Why: B. Mend: C."""

        id = "QF104"
        title = "twice"

    Twice.__doc__ = "What: A.\n\nWhy: B.\n\nMend: C."
    monkeypatch.setattr(catalogue, "_error_classes", lambda: iter([Twice]))
    with pytest.raises(catalogue.CatalogueError, match="QF104 is both KnownSource and Twice"):
        catalogue.pages()


@pytest.mark.parametrize("doc", [None, "Text.", "What: A.\n\nMend: C.", "Why: B.\n\nWhat: A.\n\nMend: C."])
def test_a_page_needs_its_three_parts(monkeypatch: pytest.MonkeyPatch, doc: str | None) -> None:
    odd = type("Odd", (ForgeError,), {"__doc__": doc, "id": "QF998", "title": "odd"})
    monkeypatch.setattr(catalogue, "_error_classes", lambda: iter([odd]))
    with pytest.raises(catalogue.CatalogueError, match="Odd needs a docstring"):
        catalogue.pages()


def test_paragraphs_and_lists_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = "What: A\nb.\n\nC.\n\nWhy: D:\n\n- e\n- f\n\nMend: G."
    odd = type("Odd", (ForgeError,), {"__doc__": doc, "id": "QF998", "title": "odd"})
    monkeypatch.setattr(catalogue, "_error_classes", lambda: iter([odd]))
    page = next(page for page in catalogue.pages() if page.id == "QF998")
    assert (page.what, page.why, page.mend) == ("A b.\n\nC.", "D:\n\n- e\n- f", "G.")
