"""How a publish is shown: the plan as a table or JSON, files as they go, addresses in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qnn.cli.console import err, out
from qnn.errors.base import ForgeError
from qnn.publish.run import Done, Planned
from qnn.publish.target import LocalFile


class Lines:
    """Progress as a line a file, on stderr."""

    def sent(self, file: LocalFile) -> None:
        """A file arrived."""
        err().print(f"sent  {file.name} ({file.size:,} bytes)", markup=False)

    def kept(self, file: LocalFile) -> None:
        """A file was there already."""
        err().print(f"there {file.name}", markup=False)


def print_plan(planned: Planned, left_out: Sequence[str]) -> None:
    """What would go where."""
    from rich.table import Table  # noqa: PLC0415 - start-up

    for plan in planned.units:
        out().print(f"{plan.unit} to {planned.target.place(plan.unit)}", markup=False)
        table = Table(box=None, pad_edge=False)
        for heading in ("", "revision", "file", "bytes", "sha256"):
            table.add_column(heading, justify="right" if heading == "bytes" else "left")
        for release in plan.releases:
            for file in release.bundles:
                word = "there" if file.name in release.waiting else "send"
                table.add_row(word, f"r{release.revision}", file.name, f"{file.size:,}", file.sha256[:12])
        for skip in plan.skips:
            file = skip.file
            table.add_row("published", f"r{skip.revision}", file.name, f"{file.size:,}", file.sha256[:12])
        out().print(table)
    for name in left_out:
        out().print(f"left out: {name} (its model.yaml does not send it to {planned.target.name})", markup=False)
    if planned.refused:
        out().print(f"{len(planned.refused)} refused, so nothing is published")


def print_done(planned: Planned, done: Sequence[Done]) -> None:
    """Where everything is now."""
    for one in done:
        revisions = ", ".join(f"r{release.revision}" for release in one.plan.releases)
        out().print(f"{one.plan.unit}: {'published ' + revisions if revisions else 'nothing new'}", markup=False)
        for address in one.addresses.values():
            out().print(f"   {address}", markup=False)
        for path in one.index:
            out().print(f"   index: {path}", markup=False)
    if not planned.units:
        out().print("nothing to publish")


def document(planned: Planned, left_out: Sequence[str], done: Sequence[Done]) -> dict[str, Any]:
    """The same as JSON; `addresses` and `index` are there once it is done."""
    finished = {one.plan.unit: one for one in done}
    return {
        "schema": 1,
        "target": planned.target.name,
        "published": bool(done),
        "units": [
            {
                "model": plan.unit.model,
                "version": plan.unit.version,
                "place": planned.target.place(plan.unit),
                "releases": [
                    {
                        "revision": release.revision,
                        "files": [
                            _file(file) | {"state": "there" if file.name in release.waiting else "send"}
                            for file in release.bundles
                        ],
                    }
                    for release in plan.releases
                ],
                "skips": [_file(skip.file) | {"revision": skip.revision} for skip in plan.skips],
                **_outcome(finished.get(plan.unit)),
            }
            for plan in planned.units
        ],
        "left_out": list(left_out),
        "refused": [_error(error) for error in planned.refused],
    }


def _outcome(done: Done | None) -> dict[str, Any]:
    if done is None:
        return {}
    return {"addresses": dict(done.addresses), "index": [str(path) for path in done.index]}


def _file(file: LocalFile) -> dict[str, Any]:
    return {"name": file.name, "size": file.size, "sha256": file.sha256}


def _error(error: ForgeError) -> dict[str, Any]:
    return {"id": error.id, "message": error.message, "details": list(error.details), "remedy": error.remedy}
