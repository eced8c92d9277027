"""qnn-forge pin: fill in sha256 and size of a model's sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.cli.console import err, out, print_error, print_json
from qnn.cli.downloads import download_bars
from qnn.cli.options import json_option, store_option
from qnn.errors.base import ExitCode, ForgeError
from qnn.errors.sources import PinOutdated

if TYPE_CHECKING:
    from qnn.sources.pinning import Found
    from qnn.sources.protocol import Policy


@click.command()
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--check", is_flag=True, help="Write nothing; fail if a pin is missing or wrong.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would change.")
@click.option(
    "--max-gb",
    type=click.FloatRange(min=0, min_open=True),
    default=4.0,
    show_default=True,
    metavar="N",
    help="Biggest file accepted.",
)
@store_option
@json_option
def pin(models: tuple[str, ...], check: bool, dry_run: bool, max_gb: float, store: Path, as_json: bool) -> int:
    """Fetch the sources of MODELs and write their sha256 and size into model.yaml.

    Everything else in the file stays as it is. All models are pinned when none is named.

    \b
    qnn-forge pin ppocr-v4
    qnn-forge pin --check
    """
    from qnn.model.load import find_models  # noqa: PLC0415 - not needed for --help
    from qnn.sources.protocol import GIB, Policy  # noqa: PLC0415

    writes = not check and not dry_run
    policy = Policy(unpinned_limit=int(max_gb * GIB))
    outcomes = [_pin(folder, store / "downloads", policy, writes=writes) for folder in find_models(models)]
    if as_json:
        print_json({"models": [_document(outcome) for outcome in outcomes], "written": writes})
    else:
        for outcome in outcomes:
            _print(outcome)
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    for failure in failures:
        print_error(failure)
    if failures:
        return int(failures[0].exit_code)
    if check and any(outcome.outdated for outcome in outcomes):
        raise _outdated(outcomes)
    return int(ExitCode.OK)


@dataclass(frozen=True)
class _Outcome:
    """What came of one model."""

    folder: Path
    found: tuple[Found, ...]
    failures: tuple[ForgeError, ...]

    @property
    def outdated(self) -> tuple[Found, ...]:
        return tuple(found for found in self.found if found.state != "same")


def _pin(folder: Path, downloads: Path, policy: Policy, *, writes: bool) -> _Outcome:
    from qnn.sources.pinning import survey, write_pins, written_sources  # noqa: PLC0415 - not needed for --help

    try:
        sources = written_sources(folder)
    except ForgeError as error:
        return _Outcome(folder, (), (error,))
    with download_bars(folder.name) as progress:
        surveyed = survey(sources, folder, downloads, progress=progress, policy=policy)
    outcome = _Outcome(folder, surveyed.found, surveyed.failures)
    if not writes or not outcome.outdated:
        return outcome
    try:
        write_pins(folder, {found.name: found.pin for found in outcome.outdated})
    except ForgeError as error:
        return replace(outcome, failures=(*outcome.failures, error))
    return outcome


def _document(outcome: _Outcome) -> dict[str, object]:
    sources = [
        {
            "name": found.name,
            "state": found.state.value,
            "sha256": found.pin.sha256,
            "size": found.pin.size,
            "old_sha256": found.old_sha256,
            "old_size": found.old_size,
        }
        for found in outcome.found
    ]
    failures = [{"id": failure.id, "message": failure.message} for failure in outcome.failures]
    return {
        "model": outcome.folder.name,
        "folder": str(outcome.folder),
        "sources": sources,
        "failures": failures,
    }


def _print(outcome: _Outcome) -> None:
    console = out()
    for found in outcome.found:
        line = f"{outcome.folder.name} {found.name}: {found.state.value}  {found.pin.sha256}  {found.pin.size} bytes"
        console.print(line, markup=False)
        if found.state == "changed":
            console.print(f"  was {found.old_sha256}  {found.old_size} bytes", markup=False)
    if any(found.state == "changed" for found in outcome.found):
        err().print("The file behind a pinned address is another one: find out why before you commit this.")


def _outdated(outcomes: Sequence[_Outcome]) -> PinOutdated:
    outdated = [(outcome.folder.name, found) for outcome in outcomes for found in outcome.outdated]
    details = []
    for model, found in outdated:
        details.append(f"{found.place} {model} {found.name}: {found.state.value}")
        details.append(f"  pinned sha256 {found.old_sha256 or '(none)'}, size {found.old_size or '(none)'}")
        details.append(f"  actual sha256 {found.pin.sha256}, size {found.pin.size}")
    names = sorted({model for model, _ in outdated})
    return PinOutdated(
        f"pins are missing or wrong: {len(outdated)} in {', '.join(names)}",
        remedy=f"qnn-forge pin {' '.join(names)}",
        place=outdated[0][1].place,
        details=details,
    )
