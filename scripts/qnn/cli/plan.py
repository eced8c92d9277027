"""qnn-forge plan: what would be built, why, and what it would cost."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from qnn.cli.options import json_option

if TYPE_CHECKING:
    from qnn.plan.changes import Changes
    from qnn.plan.jobs import Jobs
    from qnn.plan.labels import Labels
    from qnn.plan.planner import Plan


@click.command()
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--soc", "socs", multiple=True, metavar="EXPR", help="Chips: names, globs, all, public, flagships.")
@click.option("--precision", "precisions", multiple=True, metavar="NAME", help="Only these precisions (globs).")
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Only these shape buckets (globs).")
@click.option("--changed-from", "base", metavar="REF", help="Only what changed since HEAD left this commit or branch.")
@click.option(
    "--changed",
    type=click.File("r", encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="Only what these files ask for: one path a line.",
)
@click.option("--labels", metavar="JSON", help="Labels of the pull request, as a JSON list of names.")
@click.option(
    "--models-dir",
    type=click.Path(path_type=Path),
    default=Path("models"),
    show_default=True,
    help="The folder of models.",
)
@click.option(
    "--verify",
    "policy",
    type=click.Choice(["all", "per-arch"]),
    default="all",
    show_default=True,
    help="Run every binary on the emulator, or one chip of each arch in a job.",
)
@click.option("--dry-run", is_flag=True, help="Mark the plan as one that is not to be carried out.")
@click.option("--github", is_flag=True, help="One line of JSON with the matrices of a workflow.")
@click.option("--part", type=click.IntRange(min=1), metavar="N", help="With --github: which part of a large plan (1).")
@click.option("--allow-restricted", is_flag=True, help="Also models whose licence restricts their use (QF157).")
@click.option("--join", is_flag=True, help="No job for preparing a variant whose chips are compiled in one job.")
@json_option
def plan(  # noqa: PLR0913, PLR0917 - one parameter an option
    models: tuple[str, ...],
    socs: tuple[str, ...],
    precisions: tuple[str, ...],
    buckets: tuple[str, ...],
    base: str | None,
    changed: IO[str] | None,
    labels: str | None,
    models_dir: Path,
    policy: str,
    dry_run: bool,
    github: bool,
    part: int | None,
    allow_restricted: bool,
    join: bool,
    as_json: bool,
) -> None:
    """Say what would be built of MODELs (names or globs; all of them when none is named), why, and what it costs.

    \b
    qnn-forge plan
    qnn-forge plan 'silero-*' --soc flagships
    qnn-forge plan --changed-from origin/main --labels '["socs:all"]'
    git diff --name-only main... | qnn-forge plan --changed -
    """
    import dataclasses  # noqa: PLC0415

    from qnn.chips.table import load_table  # noqa: PLC0415
    from qnn.cli.console import print_json  # noqa: PLC0415
    from qnn.plan.costs import load_costs  # noqa: PLC0415
    from qnn.plan.documents import plan_document  # noqa: PLC0415
    from qnn.plan.jobs import join_single, make_jobs  # noqa: PLC0415
    from qnn.plan.outline import read_outlines  # noqa: PLC0415
    from qnn.plan.planner import Request, folders_needed, make_plan  # noqa: PLC0415

    if github and as_json:
        raise click.UsageError("--json and --github are two forms; choose one")
    if base is not None and changed is not None:
        raise click.UsageError("--changed-from and --changed are two ways to say what changed; choose one")
    if part is not None and not github:
        raise click.UsageError("--part belongs to --github")
    wishes = _labels(labels)
    folders = _folders(models, models_dir)
    request = Request(
        socs=tuple(part.strip() for expression in socs for part in expression.split(",") if part.strip()),
        buckets=buckets,
        precisions=precisions,
        labels=dataclasses.replace(wishes, dry_run=wishes.dry_run or dry_run),
        changes=None if wishes.skip else _changes(base, changed, models_dir),
        allow_restricted=allow_restricted,
    )
    outlines = read_outlines([folders[name] for name in folders_needed(list(folders), request)])
    made = make_plan(outlines, request, load_table())
    jobs = make_jobs(made.variants, load_costs(), policy)
    jobs = join_single(jobs, load_costs()) if join else jobs
    if github:
        _print_github(made, jobs, part)
    elif as_json:
        print_json(plan_document(made, jobs))
    else:
        from qnn.cli.plan_view import print_plan  # noqa: PLC0415

        print_plan(made, jobs)


def _folders(named: tuple[str, ...], models_dir: Path) -> dict[str, Path]:
    """Folders by name, sorted; a MODEL may be a glob over the names in the folder of models."""
    import fnmatch  # noqa: PLC0415

    from qnn.chips.select import is_glob  # noqa: PLC0415
    from qnn.errors.model import UnknownModel  # noqa: PLC0415
    from qnn.model.load import find_models  # noqa: PLC0415

    plain = [name for name in named if not is_glob(name)]
    found = list(find_models(plain, models_dir)) if plain or not named else []
    for glob in (name for name in named if is_glob(name)):
        matching = [folder for folder in find_models((), models_dir) if fnmatch.fnmatchcase(folder.name, glob)]
        if not matching:
            raise UnknownModel(
                f'no model matches "{glob}"', remedy=f"the names are those of the folders in {models_dir}/"
            )
        found += (folder for folder in matching if folder not in found)
    folders = {folder.resolve().name: folder for folder in sorted(found)}
    if len(folders) < len(found):
        raise click.UsageError("two of the models have one name; plan them one after the other")
    return folders


def _labels(written: str | None) -> Labels:
    import json  # noqa: PLC0415

    from qnn.plan.labels import read_labels  # noqa: PLC0415

    try:
        names = json.loads(written) if written else []
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise click.BadParameter("it must be a JSON list of texts", param_hint="--labels")
    return read_labels(names)


def _changes(base: str | None, changed: IO[str] | None, models_dir: Path) -> Changes | None:
    if base is None and changed is None:
        return None
    import os  # noqa: PLC0415

    from qnn.build.keys import KEY_MODULES, KEY_PACKAGES, stage_modules  # noqa: PLC0415
    from qnn.model.load import find_models  # noqa: PLC0415
    from qnn.plan.changes import ChangedFile, KeyParts, changes_of, needs_texts  # noqa: PLC0415
    from qnn.plan.git import changed_since  # noqa: PLC0415
    from qnn.toolchains.pip.toolchain import PipToolchain  # noqa: PLC0415

    if changed is not None:
        lines = (line.rstrip("\r\n") for line in changed)
        files = [ChangedFile(os.path.normpath(line)) for line in lines if line]
    else:
        files = list(changed_since(str(base), Path(), needs_texts))
    parts = KeyParts(stage_modules(PipToolchain.code_modules), KEY_MODULES, KEY_PACKAGES)
    present = {folder.name for folder in find_models((), models_dir)}
    return changes_of(files, os.path.relpath(models_dir), present, parts)


def _print_github(made: Plan, jobs: Jobs, part: int | None) -> None:
    """One line, for GITHUB_OUTPUT."""
    import json  # noqa: PLC0415

    from qnn.plan.documents import github_document  # noqa: PLC0415

    count = len(jobs.parts)
    if part is None and count > 1:
        click.echo(f"this is part 1 of {count}: the plan is too large for one run (see --part)", err=True)
    if part is not None and part > count:
        raise click.UsageError(f"there is no part {part}: the plan has {count}")
    click.echo(json.dumps(github_document(made, jobs, part or 1), sort_keys=True, ensure_ascii=True))
