"""docs/device-errors/: a page for each known error, and their list. `python -m qnn.device.pages FOLDER` writes them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from qnn.device.catalogue import KnownError, known_errors


def pages() -> dict[str, str]:
    """File name → text of every page. Pure."""
    errors = known_errors()
    return {"README.md": _overview(errors), **{f"{one.id}.md": _page(one) for one in errors}}


def _page(one: KnownError) -> str:
    head = f"{one.code} {one.name}" if one.code is not None else one.title
    parts = [
        f"# {head}",
        *([f"{one.title[0].upper()}{one.title[1:]}. {one.code} is {one.code:#x}."] if one.code is not None else []),
        f"**Cause.** {one.cause}",
        "**Check**\n\n" + _list(one.check),
        "**Fix**\n\n" + _list(one.fix),
    ]
    if one.says:
        parts.append("**Said as** (patterns)\n\n" + _list([f"`{pattern.pattern}`" for pattern in one.says]))
    if one.seen:
        parts.append("**Seen in**\n\n" + _list([f"<{url}>" for url in one.seen]))
    parts.append("[All known errors](README.md)")
    return "\n\n".join(parts) + "\n"


def _overview(errors: Sequence[KnownError]) -> str:
    rows = [f"| [{one.id}]({one.id}.md) | {f'`{one.name}`' if one.name else ''} | {one.title} |" for one in errors]
    return "\n".join(
        [
            "# Errors on a device",
            "",
            "What QNN, qnn-net-run and FastRPC say on a device, and what it means. `qnn-forge device run` recognises "
            "them; `qnn-forge device errors 1008` prints one. QNN says several numbers for one fault: the first one "
            "counts.",
            "",
            "| error | symbol | what it is |",
            "| --- | --- | --- |",
            *rows,
            "",
            "The numbers and symbols are those of QNN's public headers. Causes are from Qualcomm's documentation and "
            "from public reports, named on each page; none of them was met on a device of ours.",
            "",
        ]
    )


def _list(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def main(folder: Path) -> None:
    """Write all pages; remove those of errors that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in folder.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
