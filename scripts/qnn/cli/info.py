"""qnn-forge info: everything the index says of one model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from qnn.cli.console import out, print_json
from qnn.cli.index_options import from_option, open_desk
from qnn.cli.options import json_option

if TYPE_CHECKING:
    from rich.table import Table

    from qnn.index.document import IndexVariant, ModelIndex, VersionIndex


@click.command()
@click.argument("model", metavar="MODEL[==VERSION]")
@from_option
@json_option
def info(model: str, index: str | None, as_json: bool) -> int:
    """Say which versions, variants, chips and numbers the index has of MODEL; by default of its latest version.

    \b
    qnn-forge info silero-vad
    qnn-forge info ppocr-v4==4.0 --json
    """
    from qnn.errors.pull import NothingFits  # noqa: PLC0415 - not needed for --help
    from qnn.index.document import to_json  # noqa: PLC0415
    from qnn.pull.bases import open_base  # noqa: PLC0415
    from qnn.pull.run import document_of, find_model  # noqa: PLC0415
    from qnn.pull.wish import Choice  # noqa: PLC0415
    from qnn.sources.protocol import printable  # noqa: PLC0415

    name, _, version = model.partition("==")
    base = open_base(index)
    with open_desk() as desk:
        versions = find_model(name, base, desk)
        if isinstance(versions, Choice):
            raise NothingFits(
                printable(versions.reasons[0]),
                remedy="see `qnn-forge search`",
                details=[printable(f"near: {near}") for near in versions.near],
            )
        document = document_of(name, version or None, base, desk)
    if document is None:
        raise NothingFits(
            printable(f"{name} has no version {version}"),
            remedy="name one of its versions",
            details=[printable(f"near: {name}=={one.version}") for one in versions.versions],
        )
    if as_json:
        print_json({"model": json.loads(to_json(versions)), "version": json.loads(to_json(document))})
        return 0
    _print(versions, document)
    return 0


def _print(versions: ModelIndex, document: VersionIndex) -> None:
    from qnn.pull.explain import fallback_lines  # noqa: PLC0415
    from qnn.pull.listing import graph_line  # noqa: PLC0415
    from qnn.sources.protocol import printable  # noqa: PLC0415

    console = out()
    head = [
        f"{document.model} {document.version}: {document.summary}",
        f"task {document.task}, licence {document.licence or f'none: {document.licence_reason}'}",
        "versions: "
        + ", ".join(one.version + (" (yanked)" if one.yanked else "") for one in reversed(versions.versions)),
        *fallback_lines(document),
    ]
    for line in head:
        console.print(printable(line), markup=False)
    for variant in document.variants:
        console.print()
        console.print(printable(f"{variant.name} {_sizes(variant)}".rstrip()), markup=False)
        for graph in variant.graphs:
            console.print(printable(f"  {graph_line(graph)}"), markup=False)
        console.print(_table(variant))


def _sizes(variant: IndexVariant) -> str:
    return ", ".join(f"{name} {size}" for name, size in variant.dimensions.items())


def _table(variant: IndexVariant) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - plain text: what the index says is not markup

    from qnn.pull.listing import worst_numbers  # noqa: PLC0415
    from qnn.sources.protocol import printable  # noqa: PLC0415

    table = Table("chip", "arch", "VTCM", "QAIRT", "revision", "MB", "numbers", "yanked")
    for file in variant.files:
        cells = (
            file.soc,
            file.arch,
            f"{file.vtcm_mb} MB",
            file.qairt,
            str(file.revision),
            f"{file.size / 1e6:.1f}",
            worst_numbers(file),
            file.yanked or "",
        )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table
