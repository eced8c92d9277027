"""qnn-forge provenance: what an attestation of bundles says."""

from __future__ import annotations

from pathlib import Path

import click

from qnn.cli.console import out, print_json
from qnn.cli.options import json_option


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    help="Where they are written.",
)
@json_option
def provenance(folders: tuple[Path, ...], folder: Path, as_json: bool) -> None:
    """Write SHA256SUMS and predicate.json of the bundles in build FOLDERs: what is signed when they are attested.

    In a GitHub workflow predicate.json names the workflow, its commit and its run; elsewhere it says that the build
    was a local one. release.yaml hands both files to the attest action.

    \b
    qnn-forge provenance dist --out provenance
    """
    from qnn.provenance.describe import describe  # noqa: PLC0415
    from qnn.provenance.run import run_from_environment  # noqa: PLC0415
    from qnn.publish.bundles import find_archives  # noqa: PLC0415

    written = describe(find_archives(folders), run_from_environment(), folder)
    if as_json:
        print_json({"schema": 1, "files": [str(path) for path in written]})
        return
    for path in written:
        out().print(str(path), markup=False)
