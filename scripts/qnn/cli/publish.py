"""qnn-forge publish and yank: bundles made public, and withdrawn."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.cli.console import out, print_error, print_json
from qnn.cli.options import json_option

if TYPE_CHECKING:
    from qnn.errors.base import ForgeError
    from qnn.publish.bundles import Bundle
    from qnn.publish.documents import Provenance
    from qnn.publish.patience import Patience
    from qnn.publish.target import Target

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument(
    "dist", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIST..."
)
@click.option("--to", "target", type=click.Choice(["github", "huggingface", "folder"]), required=True)
@click.option(
    "--repo",
    metavar="OWNER/NAME",
    help="Repository on GitHub ($GITHUB_REPOSITORY) or the Hub; {model} stands for the model's name.",
)
@click.option("--folder", type=_FOLDER, help="Where to with --to folder.")
@click.option("--base-url", metavar="URL", help="The URL that serves --folder, for notes and the index.")
@click.option("--models", type=_FOLDER, help="Folder of model folders: publish what their model.yaml sends there.")
@click.option("--results", multiple=True, type=_FILE, help="JSON of the build, to hold the archives against.")
@click.option("--attestation", type=_FILE, help="Attestation of the archives; becomes a file of each release.")
@click.option("--index", type=_FOLDER, help="Folder of the index to enter the files into, last of all.")
@click.option(
    "--max-wait",
    type=click.IntRange(min=0),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="The longest wait that a server may ask for.",
)
@click.option("--dry-run", is_flag=True, help="Say what would go where, and change nothing.")
@click.option("--i-may-redistribute-qairt", "libraries", is_flag=True, help="Let QAIRT's own libraries through.")
@json_option
def publish(  # noqa: PLR0913, PLR0917 - one parameter an option
    dist: tuple[Path, ...],
    target: str,
    repo: str | None,
    folder: Path | None,
    base_url: str | None,
    models: Path | None,
    results: tuple[Path, ...],
    attestation: Path | None,
    index: Path | None,
    max_wait: int,
    dry_run: bool,
    libraries: bool,
    as_json: bool,
) -> int:
    """Publish the bundles in DIST, the output folders of builds.

    Each archive is opened and held against its manifest, its binaries are read back, and its licence is looked at.
    When one is refused nothing is published. What is published already with the same bytes is left alone; anything
    else becomes the next revision. A publish that was interrupted goes on where it stood.

    \b
    qnn-forge publish dist --to github --repo acme/models --dry-run
    qnn-forge publish dist --to huggingface --repo 'acme/{model}' --index index
    qnn-forge publish dist --to folder --folder /srv/models --index /srv/models
    """
    from qnn.cli.publish_view import Lines, document, print_done, print_plan  # noqa: PLC0415 - start-up
    from qnn.publish.patience import Patience  # noqa: PLC0415
    from qnn.publish.run import plan_publish  # noqa: PLC0415
    from qnn.publish.run import publish as carry_out  # noqa: PLC0415

    repo = repo or (os.environ.get("GITHUB_REPOSITORY") if target == "github" else None)
    _require_place(target, repo, folder, models)
    accepted, refused = _accepted(dist, results, libraries=libraries)
    names = {bundle.unit.model for bundle in accepted}
    if target == "folder":
        homes, place = dict.fromkeys(names, ""), _folder(folder, base_url)
    else:
        homes, place = (_github if target == "github" else _hub)(repo, models, names, Patience(longest_pause=max_wait))
    wanted = tuple(bundle for bundle in accepted if bundle.unit.model in homes)
    left_out = tuple(sorted(bundle.file.name for bundle in accepted if bundle not in wanted))
    planned = plan_publish(place, wanted, refused)
    if not as_json:
        print_plan(planned, left_out)
    if planned.refused or dry_run:
        if as_json:
            print_json(document(planned, left_out, ()))
        for error in planned.refused:
            print_error(error)
        return int(planned.refused[0].exit_code) if planned.refused else 0
    done = carry_out(planned, wanted, _provenance(attestation), index, Lines())
    if as_json:
        print_json(document(planned, left_out, done))
    else:
        print_done(planned, done)
    return 0


@click.command()
@click.argument("model")
@click.argument("version")
@click.option("--soc", "socs", multiple=True, metavar="NAME", help="Files for this chip.")
@click.option("--file", "files", multiple=True, metavar="SHA256", help="The file with this digest.")
@click.option("--all", "everything", is_flag=True, help="All files of the version.")
@click.option("--reason", required=True, metavar="TEXT", help="What is wrong; pull shows it.")
@click.option("--index", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True)
def yank(
    model: str, version: str, socs: tuple[str, ...], files: tuple[str, ...], everything: bool, reason: str, index: Path
) -> None:
    """Withdraw published files of MODEL VERSION in the index: they stay where they are, and pull refuses them.

    \b
    qnn-forge yank silero-vad 6.2.3 --soc SM8650 --reason 'wrong on long audio' --index index
    """
    from qnn.index.update import ALL, yank as withdraw  # noqa: I001, PLC0415

    if not (socs or files or everything):
        raise click.UsageError("say what is withdrawn: --soc, --file or --all")
    for path in withdraw(index, model, version, (ALL,) if everything else (*socs, *files), reason):
        out().print(f"changed {path}", markup=False)


def _require_place(target: str, repo: str | None, folder: Path | None, models: Path | None) -> None:
    """Before an archive is opened."""
    if target == "folder" and folder is None:
        raise click.UsageError("--to folder needs --folder")
    if target == "github" and not repo:
        raise click.UsageError("--to github needs --repo")
    if target == "huggingface" and not repo and models is None:
        raise click.UsageError("--to huggingface needs --repo, or --models to read it from each model.yaml")


def _accepted(
    dist: Sequence[Path], results: Sequence[Path], *, libraries: bool
) -> tuple[tuple[Bundle, ...], tuple[ForgeError, ...]]:
    from qnn.child import HostPool  # noqa: PLC0415
    from qnn.publish.bundles import Checker, accept_all, find_archives, find_results  # noqa: PLC0415
    from qnn.toolchains.pip.toolchain import PipToolchain  # noqa: PLC0415

    archives = find_archives(dist)
    built = find_results(dist, results)
    log = Path(tempfile.mkdtemp(prefix="qnn-forge-publish-logs-")) / "read-back.log"
    # Reading a binary back needs none of what other jobs need imported.
    with HostPool(1, preload=()) as pool, pool.host() as host:
        return accept_all(archives, Checker(PipToolchain(), host, log, built, libraries))


def _folder(folder: Path | None, base_url: str | None) -> Target:
    from qnn.publish.folder import FolderTarget  # noqa: PLC0415

    assert folder is not None
    return FolderTarget(folder, base_url)


def _github(
    repo: str | None, models: Path | None, names: set[str], patience: Patience
) -> tuple[dict[str, str], Target]:
    """The models that go to GitHub, and the target."""
    from qnn.publish.declared import declared  # noqa: PLC0415
    from qnn.publish.gh import Gh  # noqa: PLC0415
    from qnn.publish.github import GithubTarget  # noqa: PLC0415

    assert repo is not None
    going = names if models is None else {name for name, wish in declared(models, names).items() if wish.github}
    server = os.environ.get("GITHUB_SERVER_URL") or f"https://{os.environ.get('GH_HOST') or 'github.com'}"
    commit = os.environ.get("GITHUB_SHA") if repo == os.environ.get("GITHUB_REPOSITORY") else None
    return dict.fromkeys(going, repo), GithubTarget(repo, gh=Gh(patience=patience), commit=commit, server=server)


def _hub(repo: str | None, models: Path | None, names: set[str], patience: Patience) -> tuple[dict[str, str], Target]:
    """The models that go to the Hub with the repository of each, and the target."""
    from qnn.publish.declared import declared  # noqa: PLC0415
    from qnn.publish.hub import HubTarget  # noqa: PLC0415
    from qnn.publish.hub_client import HubClient  # noqa: PLC0415

    wishes = {} if models is None else declared(models, names)
    own = {name: wish.huggingface for name, wish in wishes.items() if wish.huggingface}
    going = names if models is None else own.keys()
    homes = {name: (repo or own[name]).replace("{model}", name) for name in going}
    return homes, HubTarget(homes, HubClient(patience))


def _provenance(attestation: Path | None) -> Provenance:
    from qnn.provenance.run import run_from_environment  # noqa: PLC0415
    from qnn.publish.documents import Provenance  # noqa: PLC0415

    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return Provenance(run_from_environment(), int(epoch) if epoch.isdigit() else None, attestation)
