"""qnn-forge pull: the one file that loads on a chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qnn.cli.console import err, out, print_json
from qnn.cli.index_options import from_option, open_desk
from qnn.cli.options import json_option
from qnn.errors.base import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from qnn.chips.soc import Soc
    from qnn.pull.bases import Base, Desk
    from qnn.pull.run import Found, Taken
    from qnn.pull.wish import Runtime

_REPOSITORY = "qnn-forge/qnn-forge"


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL[==VERSION]...")
@click.option("--soc", metavar="NAME", help="The chip: any of its names, ro.soc.model, soc_id:N or soc0:N.")
@click.option(
    "--device", is_flag=False, flag_value="", metavar="[SERIAL]", help="Ask the device that adb sees for its chip."
)
@click.option("--bucket", metavar="NAME", help="The shape bucket.  [default: the only one]")
@click.option("--precision", metavar="NAME", help="The precision.  [default: the best that the chip has]")
@click.option("--runtime", metavar="VERSION", help="The QAIRT version on the device, as 2.48.  [default: any]")
@click.option("--revision", type=click.IntRange(min=1), metavar="N", help="Exactly this revision.")
@click.option("--allow-yanked", is_flag=True, help="With --revision: take it even if it is yanked.")
@from_option
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), default=Path(), help="Where bundles go.  [default: here]"
)
@click.option("--print-url", is_flag=True, help="Print the address and download nothing.")
@click.option("--require-attestation", is_flag=True, help="Refuse a file without a valid attestation.")
@click.option(
    "--attested-by", default=_REPOSITORY, show_default=True, metavar="OWNER/REPO", help="Whose attestation counts."
)
@click.option(
    "--trusted-root", type=click.Path(path_type=Path), metavar="FILE", help="Roots of trust, to check offline."
)
@click.option("--accept-warnings", is_flag=True, help="Exit code 0 also for a file made for another, fitting chip.")
@click.option("--jobs", type=click.IntRange(min=1), default=4, show_default=True, help="Downloads at once.")
@json_option
def pull(**options: Any) -> int:
    """Get the one bundle of each MODEL that loads on a chip, checked, into a folder.

    Exit codes: 0 use · 20 use with a warning · 21 build it · 22 no. Nothing is downloaded unless there is a file
    for every MODEL.

    \b
    qnn-forge pull silero-vad --soc SM8650
    qnn-forge pull ppocr-v4==4.0 --soc "8 Elite" --bucket p320 --runtime 2.48
    qnn-forge pull silero-vad --device --print-url
    """
    return _pull(_Options(**options))


@dataclass(frozen=True)
class _Options:
    """The command line."""

    models: tuple[str, ...]
    soc: str | None
    device: str | None
    bucket: str | None
    precision: str | None
    runtime: str | None
    revision: int | None
    allow_yanked: bool
    index: str | None
    folder: Path
    print_url: bool
    require_attestation: bool
    attested_by: str
    trusted_root: Path | None
    accept_warnings: bool
    jobs: int
    as_json: bool

    @property
    def asked(self) -> list[tuple[str, str | None]]:
        """Models and versions, each once."""
        parts = [model.partition("==") for model in dict.fromkeys(self.models)]
        return [(name, version or None) for name, _, version in parts]


def _pull(options: _Options) -> int:
    from qnn.pull.bases import open_base  # noqa: PLC0415 - not needed for --help
    from qnn.pull.explain import miss  # noqa: PLC0415
    from qnn.pull.run import Trust, look_up, take_all  # noqa: PLC0415
    from qnn.pull.wish import Verdict, Wish  # noqa: PLC0415

    if (options.soc is None) == (options.device is None):
        raise click.UsageError("say which chip: --soc NAME or --device, one of them")
    if options.allow_yanked and options.revision is None:
        raise click.UsageError("--allow-yanked needs the exact --revision")
    base = open_base(options.index)
    rest = (options.bucket, options.precision, _runtime(options.runtime), options.revision, options.allow_yanked)
    trust = Trust(options.attested_by, options.require_attestation, options.trusted_root)
    with open_desk() as desk:
        chip = _chip(options, base, desk)
        founds = [look_up(Wish(name, chip, version, *rest), base, desk) for name, version in options.asked]
        missed = miss(founds)
        wanted = missed is None and not options.print_url
        taken = take_all(founds, options.folder, base, desk, trust, options.jobs) if wanted else ()
    if options.as_json:
        print_json({"pulls": _entries(founds, taken, base)})
    if missed is not None:
        raise missed
    if not options.as_json:
        _print(founds, taken, err() if options.print_url else out())
        if options.print_url:
            click.echo("\n".join(_places(found, base)[0] for found in founds))
    warned = any(found.choice.verdict is Verdict.WARN for found in founds)
    return int(ExitCode.PULL_WARNING if warned and not options.accept_warnings else ExitCode.OK)


def _runtime(text: str | None) -> Runtime | None:
    from qnn.pull.wish import parse_runtime  # noqa: PLC0415

    if text is None:
        return None
    parsed = parse_runtime(text)
    if parsed is None:
        raise click.UsageError(f"--runtime: {text!r} is not a QAIRT version such as 2.48 or 2.51.0")
    return parsed


def _chip(options: _Options, base: Base, desk: Desk) -> Soc:
    """The chip by the alias table of the index, which may know chips that this qnn-forge does not."""
    from qnn.errors.chips import ChipWithoutHtp  # noqa: PLC0415
    from qnn.errors.pull import NothingFits  # noqa: PLC0415
    from qnn.index.chips import chip_table, find_chip  # noqa: PLC0415
    from qnn.index.document import CHIPS, ChipsIndex  # noqa: PLC0415
    from qnn.pull.bases import read_document  # noqa: PLC0415
    from qnn.pull.device_chip import soc_model  # noqa: PLC0415
    from qnn.pull.explain import fallback_lines  # noqa: PLC0415
    from qnn.pull.run import document_of  # noqa: PLC0415

    name = soc_model(options.device or None) if options.soc is None else options.soc
    table = chip_table(read_document(base, CHIPS, ChipsIndex, desk))
    try:
        return find_chip(table, name)
    except ChipWithoutHtp as error:
        documents = [document_of(model, version, base, desk) for model, version in options.asked]
        lines = [line for document in documents if document is not None for line in fallback_lines(document)]
        raise NothingFits(error.message, remedy="run the float model on the CPU", details=lines) from None


def _places(found: Found, base: Base) -> list[str]:
    file = found.choice.file
    return [] if file is None else [str(base.place(address)) for address in file.urls]


def _entries(founds: Sequence[Found], taken: Sequence[Taken], base: Base) -> list[dict[str, Any]]:
    folders = {id(one.found): one for one in taken}
    return [_entry(found, folders.get(id(found)), base) for found in founds]


def _entry(found: Found, taken: Taken | None, base: Base) -> dict[str, Any]:
    choice, chip = found.choice, found.wish.chip
    entry: dict[str, Any] = {
        "model": found.wish.model,
        "version": found.document.version if found.document else found.wish.version,
        "chip": {"name": chip.name, "soc_id": chip.soc_id},
        "verdict": choice.verdict.value,
        "reasons": list(choice.reasons),
        "near": list(choice.near),
        "build": choice.build,
        "file": None,
    }
    if choice.file is not None and choice.variant is not None:
        file = choice.file
        entry |= {"bucket": choice.variant.bucket, "precision": choice.variant.precision}
        names = "name size sha256 soc soc_id arch vtcm_mb hvx_threads qairt minimum_runtime revision published yanked"
        entry["file"] = {name: getattr(file, name) for name in names.split()} | {"urls": _places(found, base)}
    if taken is not None:
        entry["folder"] = str(taken.folder)
        entry["attested"] = None if taken.attested is None else asdict(taken.attested)
        entry["note"] = taken.note
    return entry


def _print(founds: Sequence[Found], taken: Sequence[Taken], console: Console) -> None:
    from qnn.sources.protocol import printable  # noqa: PLC0415 - the index is text from outside

    folders = {id(one.found): one for one in taken}
    for found in founds:
        first, *more = found.choice.reasons
        console.print(printable(f"{found.choice.verdict.value}: {first}"), markup=False)
        for line in (*more, *(f"to have one of its own: {build}" for build in [found.choice.build] if build)):
            console.print(printable(f"  {line}"), markup=False)
        one = folders.get(id(found))
        if one is not None:
            proof = one.note if one.attested is None else f"attested by {one.attested.signer} at {one.attested.commit}"
            console.print(printable(f"  {proof}"), markup=False)
            console.print(str(one.folder), markup=False)
