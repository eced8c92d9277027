"""qnn-forge verify: check bundles again, from nothing but themselves."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qnn.cli.console import out, print_error, print_json
from qnn.cli.options import json_option

if TYPE_CHECKING:
    from qnn.bundle.manifest import Manifest
    from qnn.bundle.recheck import Recheck
    from qnn.errors.base import ForgeError


@click.command()
@click.argument("bundles", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="BUNDLE...")
@json_option
def verify(bundles: tuple[Path, ...], as_json: bool) -> int:
    """Check BUNDLEs (folders or .tar.gz) again, from nothing but themselves.

    Every file is held against the manifest, every binary is read back, and the golden inputs are run on the HTP
    emulator and compared with the golden outputs by the bundle's own gates. All bundles are checked; the exit code is
    that of the first that fails.
    """
    from qnn.bundle.recheck import check_files, opened_bundle, read_manifest, recheck  # noqa: PLC0415
    from qnn.child import HostPool  # noqa: PLC0415
    from qnn.errors.base import ForgeError  # noqa: PLC0415
    from qnn.toolchains.pip.toolchain import PipToolchain  # noqa: PLC0415

    toolchain = PipToolchain()
    documents: list[dict[str, Any]] = []
    errors: list[ForgeError] = []
    logs = Path(tempfile.mkdtemp(prefix="qnn-forge-verify-logs-"))
    with ExitStack() as ending:
        ending.callback(_drop_logs, logs, errors)
        host = ending.enter_context(ending.enter_context(HostPool(1)).host())
        for path in bundles:
            try:
                with opened_bundle(path) as folder:
                    manifest = read_manifest(folder)
                    check_files(folder, manifest)
                    checked = recheck(folder, manifest, toolchain, host, logs / f"{manifest.name}.log")
            except ForgeError as error:
                errors.append(error)
                documents.append(_failed(path, error))
                print_error(error)
            else:
                documents.append(_document(path, manifest, checked))
                if not as_json:
                    _print(path, manifest, checked)
    if as_json:
        print_json({"schema": 1, "bundles": documents})
    return int(errors[0].exit_code) if errors else 0


def _drop_logs(folder: Path, errors: list[ForgeError]) -> None:
    """Remove the logs, unless an error names one."""
    if all(error.log is None for error in errors):
        shutil.rmtree(folder, ignore_errors=True)


def _print(path: Path, manifest: Manifest, checked: tuple[Recheck, ...]) -> None:
    out().print(
        f"[green]ok[/green] {path}: {len(manifest.files)} files, {manifest.chip.name}, {manifest.golden} golden"
    )
    for graph in checked:
        for output in graph.outputs:
            out().print(f"   {graph.graph} {output.name}: cosine {output.cosine:.6f}, max abs {output.max_abs:.3g}")


def _document(path: Path, manifest: Manifest, checked: tuple[Recheck, ...]) -> dict[str, Any]:
    return {
        "path": str(path),
        "name": manifest.name,
        "verdict": "ok",
        "graphs": [
            {
                "name": graph.graph,
                "outputs": [
                    {"name": output.name, "cosine": output.cosine, "max_abs": output.max_abs}
                    for output in graph.outputs
                ],
            }
            for graph in checked
        ],
    }


def _failed(path: Path, error: ForgeError) -> dict[str, Any]:
    return {
        "path": str(path),
        "verdict": "failed",
        "error": {"id": error.id, "message": error.message, "details": list(error.details), "remedy": error.remedy},
    }
