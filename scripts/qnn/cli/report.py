"""`qnn-forge report`: what a run of builds has to say, as a step summary, a comment or JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["summary", "comment", "json"]),
    default="summary",
    show_default=True,
    help="Markdown for a step summary or a pull request, or the document that both are made of.",
)
@click.option("--plan", type=click.Path(path_type=Path), metavar="FILE", help="What `qnn-forge plan --json` printed.")
@click.option("--lint", type=click.Path(path_type=Path), metavar="FILE", help="What `lint --format json` printed.")
@click.option("--run-url", metavar="URL", help="The run's page, for links.")
@click.option("--commit", metavar="SHA", help="The full hash of the commit, for links.")
def report(
    files: tuple[Path, ...],
    form: str,
    plan: Path | None,
    lint: Path | None,
    run_url: str | None,
    commit: str | None,
) -> None:
    """Report on FILEs: what `qnn-forge build --json`, `hints --json` and `lint --format json` printed, or folders.

    A single file that `report --format json` wrote is shown again. A file that cannot be read is named in the report;
    bundles that the plan holds and no file does are missing. The exit code is 0 whatever the report says.

    \b
    qnn-forge build --soc flagships --json --keep-going > results.json
    qnn-forge report results.json --format comment
    """
    from qnn.report.comment import comment  # noqa: PLC0415
    from qnn.report.fit import to_json  # noqa: PLC0415
    from qnn.report.gather import About  # noqa: PLC0415
    from qnn.report.load import load  # noqa: PLC0415
    from qnn.report.origin import origin_of  # noqa: PLC0415
    from qnn.report.summary import summary  # noqa: PLC0415

    found = load(files, plan, lint, About(commit=commit, run_url=run_url))
    origin = origin_of(found.commit, found.run_url)
    match form:
        case "json":
            text = to_json(found)
        case "comment":
            text = comment(found, origin)
        case _:
            text = summary(found, origin)
    # Bytes, not text: what is written must not depend on the locale of the machine.
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()
