"""Every documented id (lint rules and errors) and its page: for `qnn-forge explain`, docs/lint/ and SARIF.

`python -m qnn.catalogue docs/lint` writes the pages. The docstring of the class is the page's only source.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import qnn.errors
from qnn.errors.base import ExitCode, ForgeError
from qnn.model.rules.base import Rule

_HEADS = ("What:", "Why:", "Mend:")

# The first digit of an id says what it is about; 0 and 1 are one kind.
_SUBJECTS = {
    "0": "The text and structure of model.yaml",
    "1": "What model.yaml says",
    "2": "Chips and targets",
    "3": "Sources",
    "4": "Graphs",
    "5": "Toolchain and child processes",
    "6": "Gates: read-back and numbers",
    "7": "Bundles, index, pull, provenance, publishing, libraries, devices",
    "8": "Code of models",
    "9": "This machine, the store, qnn-forge itself",
}


class CatalogueError(ValueError):
    """A defect of qnn-forge's own documentation: an id twice, a docstring without its three parts."""


@dataclass(frozen=True)
class Page:
    """What is known of one id. `name` is the class, `kind` is how it weighs; the three texts are Markdown."""

    id: str
    name: str
    title: str
    kind: str
    what: str
    why: str
    mend: str


def pages() -> tuple[Page, ...]:
    """The pages of all ids, sorted. Raises CatalogueError."""
    found = (*rule_pages(), *map(_error_page, _error_classes()))
    by_id: dict[str, Page] = {}
    for page in found:
        if page.id in by_id:
            raise CatalogueError(f"{page.id} is both {by_id[page.id].name} and {page.name}")
        by_id[page.id] = page
    return tuple(by_id[name] for name in sorted(by_id))


def rule_pages() -> tuple[Page, ...]:
    """The pages of the lint rules, sorted. Raises CatalogueError."""
    from qnn.model.rules.registry import RULES  # noqa: PLC0415 - the rules read this module's errors only

    return tuple(_rule_page(rule) for rule in RULES)


def _rule_page(rule: type[Rule]) -> Page:
    kind = f"lint {rule.kind}, since {rule.added_in}"
    if rule.kind == "error":
        kind += f" · exit code {int(ExitCode.MODEL)}"
    return Page(rule.id, rule.__name__, rule.title, kind, *_parts(rule))


def _error_page(error: type[ForgeError]) -> Page:
    return Page(error.id, error.__name__, error.title, f"error · exit code {int(error.exit_code)}", *_parts(error))


def _error_classes() -> Iterator[type[ForgeError]]:
    """Every documented ForgeError of the modules under qnn.errors."""
    for module in pkgutil.walk_packages(qnn.errors.__path__, "qnn.errors."):
        for thing in vars(importlib.import_module(module.name)).values():
            own = inspect.isclass(thing) and issubclass(thing, ForgeError) and thing.__module__ == module.name
            if own and thing.id:
                yield thing


def _parts(documented: type) -> tuple[str, str, str]:
    """The texts after What:, Why: and Mend: of a docstring, each unwrapped into paragraphs of one line."""
    found: dict[str, list[str]] = {}
    head = ""
    for line in inspect.cleandoc(documented.__doc__ or "").splitlines():
        start = next((head for head in _HEADS if line.startswith(head)), None)
        if start is not None:
            head = start
            line = line.removeprefix(start).strip()  # noqa: PLW2901 - the rest of the line belongs to the part
        found.setdefault(head, []).append(line)
    if tuple(found) != _HEADS:
        raise CatalogueError(f"{documented.__qualname__} needs a docstring with What:, Why: and Mend:, in this order")
    what, why, mend = (_unwrap(found[head]) for head in _HEADS)
    return what, why, mend


def _unwrap(lines: Sequence[str]) -> str:
    """Lines of a paragraph joined; blank lines, list items and indented blocks kept."""
    out: list[str] = []
    for line in lines:
        joins = out and out[-1] and line and not line.startswith((" ", "- ", "* ")) and not out[-1].startswith(" ")
        if joins:
            out[-1] += f" {line}"
        else:
            out.append(line)
    return "\n".join(out).strip()


def markdown(page: Page) -> str:
    """The page as docs/lint/QFnnn.md."""
    return (
        f"# {page.id}: {page.title}\n\n{page.kind}\n\n"
        f"## What\n\n{page.what}\n\n## Why\n\n{page.why}\n\n## Mend\n\n{page.mend}\n"
    )


def index(all_pages: Sequence[Page]) -> str:
    """docs/lint/README.md: all ids by what they are about."""
    lines = [
        "# Lint rules and errors",
        "",
        "Every message of qnn-forge carries an id. `qnn-forge explain ID` prints the same page.",
        "Lint errors stop a build. Lint hints are advice; one that does not apply to a model is skipped in its",
        "model.yaml, with the reason: `lint: {skip: [{id: QF122, reason: the first dimension is time}]}`.",
        "",
        "These pages are generated from the docstrings of the classes by `make docs`.",
    ]
    for digit, subject in _SUBJECTS.items():
        belonging = [page for page in all_pages if page.id[2] == digit]
        if belonging:
            lines += ["", f"## {subject}", "", "| id | what | kind |", "|---|---|---|"]
            lines += [f"| [{page.id}]({page.id}.md) | {page.title} | {page.kind} |" for page in belonging]
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """The content of every file of docs/lint by its name."""
    found = pages()
    return {f"{page.id}.md": markdown(page) for page in found} | {"README.md": index(found)}


def write(folder: Path) -> None:
    """Write all pages into a folder and delete those of ids that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = files()
    for stale in folder.glob("QF*.md"):
        if stale.name not in wanted:
            stale.unlink()
    for name, content in wanted.items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
