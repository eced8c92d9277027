"""`qnn-forge lint`: every problem of model YAML files."""

from __future__ import annotations

import click

from qnn.cli.console import print_json
from qnn.errors.base import ExitCode
from qnn.errors.model import Kind
from qnn.model.load import find_models, lint_model
from qnn.report import lint as report


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github", "sarif", "json"]),
    default="text",
    show_default=True,
    help="Lines for people, workflow commands for GitHub, or one SARIF or JSON document.",
)
@click.pass_context
def lint(ctx: click.Context, models: tuple[str, ...], form: str) -> None:
    """Check models: names under models/, folders, or model.yaml files. Without any, all under models/.

    Reports every problem, not the first. Errors end with exit code 3; hints are advice. `qnn-forge explain ID` says
    more about each.
    """
    folders = find_models(models)
    problems = [problem for folder in folders for problem in lint_model(folder)]
    match form:
        case "github":
            click.echo(report.github(problems), nl=False)
        case "json":
            print_json(report.as_json(problems, len(folders)))
        case "sarif":
            from qnn.report.lint_sarif import sarif  # noqa: PLC0415 - start-up

            print_json(sarif(problems))
        case _:
            click.echo(report.text(problems), nl=False)
    click.echo(report.summary(problems, len(folders)), err=True)
    if any(problem.kind is Kind.ERROR for problem in problems):
        ctx.exit(ExitCode.MODEL)
