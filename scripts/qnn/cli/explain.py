"""`qnn-forge explain`: the page of an id, or all ids."""

from __future__ import annotations

import textwrap

import click

from qnn.catalogue import Page, pages

_WIDTH = 100


@click.command()
@click.argument("name", metavar="[ID]", required=False)
def explain(name: str | None) -> None:
    """Say what an id (QF104, or just 104) means, why it matters and how to mend it. Without an id, list all."""
    found = pages()
    if name is None:
        click.echo("".join(f"{page.id}  {page.title}\n" for page in found), nl=False)
        return
    wanted = _full(name)
    page = next((page for page in found if page.id == wanted), None)
    if page is None:
        raise click.UsageError(f'there is no id "{name}"; the nearest are {", ".join(_near(wanted, found))}')
    click.echo(_shown(page))


def _full(name: str) -> str:
    digits = name.strip().upper().removeprefix("QF")
    return f"QF{digits.zfill(3)}"


def _near(wanted: str, found: tuple[Page, ...]) -> list[str]:
    """Three ids: the nearest numbers, or those most like it if it is none."""
    ids = [page.id for page in found]
    digits = wanted.removeprefix("QF")
    if digits.isdecimal():
        number = int(digits)
        return sorted(sorted(ids, key=lambda known: abs(int(known[2:]) - number))[:3])
    import difflib  # noqa: PLC0415 - only a mistyped id needs it

    return difflib.get_close_matches(wanted, ids, 3, 0.0)


def _shown(page: Page) -> str:
    parts = [f"{page.id}: {page.title}", page.kind]
    for head, content in (("What", page.what), ("Why", page.why), ("Mend", page.mend)):
        parts.append(f"{head}\n{_wrapped(content)}")
    return "\n\n".join(parts)


def _wrapped(content: str) -> str:
    lines = content.split("\n")
    return "\n".join(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="  ") for line in lines)
