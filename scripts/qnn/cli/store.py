"""qnn-forge store: look at, prune and check the store of stage outputs."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.cli.console import out, print_json
from qnn.cli.options import json_option, store_option

if TYPE_CHECKING:
    from qnn.store import Entry

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@click.group()
def store() -> None:
    """Look at, prune and check the store of stage outputs."""


@store.command()
@store_option
@json_option
def info(store: Path, as_json: bool) -> None:
    """Say how many outputs of each stage the store holds and how large they are, and what is kept beside them."""
    from rich.table import Table  # noqa: PLC0415

    from qnn.store import Store  # noqa: PLC0415
    from qnn.store.prune import SIDE_FOLDERS  # noqa: PLC0415

    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    with Store(store) as opened:
        for entry in opened.entries():
            counts[entry.stage] += 1
            sizes[entry.stage] += entry.size
        for name in SIDE_FOLDERS:
            files = [path for path in (opened.root / name).rglob("*") if path.is_file() and not path.is_symlink()]
            counts[name], sizes[name] = len(files), sum(path.stat().st_size for path in files)
    if as_json:
        stages = {stage: {"entries": counts[stage], "bytes": sizes[stage]} for stage in counts}
        print_json({"schema": 1, "root": str(store), "bytes": sizes.total(), "stages": stages})
        return
    table = Table("stage", "entries", "size", box=None)
    for stage in sorted(counts):
        table.add_row(stage, str(counts[stage]), _megabytes(sizes[stage]))
    table.add_row("all", str(counts.total()), _megabytes(sizes.total()))
    out().print(f"{store}")
    out().print(table)


class _Size(click.ParamType[int]):
    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", str(value).strip().upper())
        if found is None:
            self.fail(f"{value!r} is not a size; write 500M or 10G", param, ctx)
        return int(float(found[1]) * _UNITS[found[2]])


@store.command()
@click.option("--max-size", type=_Size(), help="Keep at most this much, the most recently used (500M, 10G).")
@click.option("--max-age", type=click.FloatRange(min=0), metavar="DAYS", help="Remove what was not used for so long.")
@click.option(
    "--side",
    is_flag=True,
    help="Also remove downloads (of builds, libs and pull), environments and logs; they come again.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@store_option
@json_option
def prune(
    *, max_size: int | None, max_age: float | None, side: bool, dry_run: bool, store: Path, as_json: bool
) -> None:
    """Remove what has not been used for longest. Refuses while a build is running."""
    from qnn.store import Store  # noqa: PLC0415
    from qnn.store.prune import doomed, prune, prune_side  # noqa: PLC0415

    if max_size is None and max_age is None and not side:
        raise click.UsageError("say what to keep: --max-size or --max-age, or --side")
    choose = doomed if dry_run else prune
    with Store(store) as opened:
        removed = choose(opened, max_bytes=max_size, max_age_days=max_age, now=time.time())
        if side and not dry_run:
            prune_side(opened)
    size = sum(entry.size for entry in removed)
    if as_json:
        names = [{"stage": entry.stage, "digest": entry.digest, "bytes": entry.size} for entry in removed]
        print_json({"schema": 1, "dry_run": dry_run, "bytes": size, "removed": names})
    else:
        out().print(f"{'would remove' if dry_run else 'removed'} {len(removed)} entries, {_megabytes(size)}")


@store.command()
@store_option
@json_option
def verify(store: Path, as_json: bool) -> int:
    """Check every file's size and sha256; remove damaged entries, which the next build then makes again."""
    from qnn.errors.base import ExitCode  # noqa: PLC0415
    from qnn.store import Store  # noqa: PLC0415
    from qnn.store.store import damage  # noqa: PLC0415

    damaged = {}
    total = 0
    with Store(store) as opened:
        for entry in list(opened.entries()):
            total += 1
            wrong = damage(entry)
            if wrong:
                damaged[entry.digest] = {"stage": entry.stage, "wrong": wrong}
                opened.remove(entry.digest)
    if as_json:
        print_json({"schema": 1, "checked": total, "damaged": damaged})
    else:
        for digest, found in sorted(damaged.items()):
            out().print(f"{found['stage']} {digest[:16]}: {'; '.join(found['wrong'])}; removed")
        out().print(f"{total} entries checked, {len(damaged)} damaged")
    return int(ExitCode.SYSTEM if damaged else ExitCode.OK)


@store.command(name="export")
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--model", required=True, metavar="MODEL", help="A name below models/, or a folder.")
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Only these shape buckets (globs).")
@click.option("--precision", "precisions", multiple=True, metavar="NAME", help="Only these precisions (globs).")
@click.option("--soc", "socs", multiple=True, metavar="EXPR", help="Also what was made for these chips.")
@store_option
@json_option
def export_(
    *,
    archive: Path,
    model: str,
    buckets: tuple[str, ...],
    precisions: tuple[str, ...],
    socs: tuple[str, ...],
    store: Path,
    as_json: bool,
) -> None:
    """Pack what the store has of a MODEL into ARCHIVE (a tar), for another machine."""
    from qnn.build.selection import entries_wanted  # noqa: PLC0415
    from qnn.store import Store  # noqa: PLC0415
    from qnn.store.transport import pack  # noqa: PLC0415

    with Store(store) as opened:
        entries = pack(opened, entries_wanted(opened, model, buckets, precisions, socs), archive)
    _say("exported", entries, as_json=as_json)


@store.command(name="import")
@click.argument("archives", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path, dir_okay=False))
@store_option
@json_option
def import_(*, archives: tuple[Path, ...], store: Path, as_json: bool) -> None:
    """Take over what ARCHIVES (tars that `export` made) hold, after checking every byte."""
    from qnn.store import Store  # noqa: PLC0415
    from qnn.store.transport import unpack  # noqa: PLC0415

    with Store(store) as opened:
        entries = tuple(entry for archive in archives for entry in unpack(opened, archive))
    _say("imported", entries, as_json=as_json)


def _say(verb: str, entries: tuple[Entry, ...], *, as_json: bool) -> None:
    size = sum(entry.size for entry in entries)
    if as_json:
        named = [{"stage": entry.stage, "digest": entry.digest, "bytes": entry.size} for entry in entries]
        print_json({"schema": 1, "bytes": size, "entries": named})
    else:
        out().print(f"{verb} {len(entries)} entries, {_megabytes(size)}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
