"""qnn-forge search: what there is in the index."""

from __future__ import annotations

from dataclasses import asdict

import click

from qnn.cli.console import out, print_json
from qnn.cli.index_options import from_option, open_desk
from qnn.cli.options import json_option


@click.command()
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--task", metavar="TASK", help="Only models for this task (as text-recognition).")
@click.option("--soc", metavar="NAME", help="Only models with files for this chip.")
@from_option
@json_option
def search(words: tuple[str, ...], task: str | None, soc: str | None, index: str | None, as_json: bool) -> int:
    """List the models of the index whose name, summary or task has every WORD; all of them without one.

    \b
    qnn-forge search speech
    qnn-forge search --task text-recognition --soc SM8650
    """
    from qnn.index.chips import chip_table, find_chip  # noqa: PLC0415 - not needed for --help
    from qnn.index.document import CHIPS, ROOT, ChipsIndex, RootIndex  # noqa: PLC0415
    from qnn.pull.bases import open_base, read_document  # noqa: PLC0415
    from qnn.pull.listing import matching  # noqa: PLC0415
    from qnn.sources.protocol import printable  # noqa: PLC0415

    base = open_base(index)
    with open_desk() as desk:
        root = read_document(base, ROOT, RootIndex, desk)
        chip = None if soc is None else find_chip(chip_table(read_document(base, CHIPS, ChipsIndex, desk)), soc)
    found = matching(root, words, task, chip)
    if as_json:
        print_json({"models": [asdict(model) for model in found]})
        return 0
    if not found:
        click.echo("no model of the index is like that", err=True)
        return 0
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - plain text: what the index says is not markup

    table = Table("model", "version", "task", "licence", "chips", "summary")
    for model in found:
        cells = (
            model.name, model.latest, model.task, model.licence or "none", str(len(model.soc_ids)), model.summary,
        )  # fmt: skip
        table.add_row(*(Text(printable(cell)) for cell in cells))
    out().print(table)
    return 0
