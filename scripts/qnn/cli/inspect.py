"""qnn-forge inspect: what a context binary holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.binary.consumers import CONSUMERS, complaints
from qnn.cli.console import out, print_error, print_json
from qnn.cli.options import json_option

if TYPE_CHECKING:
    from qnn.binary import ContextBinary
    from qnn.binary.info import GraphInfo, TensorInfo
    from qnn.binary.inspecting import Inspected
    from qnn.binary.remarks import ChipFacts
    from qnn.errors.base import ForgeError


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--for", "consumer", type=click.Choice(sorted(CONSUMERS)), help="Also hold them against a runtime.")
@json_option
def inspect(files: tuple[Path, ...], consumer: str | None, as_json: bool) -> int:
    """Say what context binaries hold: chip, QAIRT build, graphs, inputs and outputs.

    Read with Qualcomm's own libQnnSystem. A file that cannot be read, or that the runtime named with --for cannot
    use, does not keep the others from being shown; the exit code is then that of the first such file.

    \b
    qnn-forge inspect dist/*/*.bin
    qnn-forge inspect dist/*/*.bin --for sherpa-onnx
    qnn-forge inspect encoder.bin --json | jq '.files[0].soc'
    """
    from qnn.binary.document import SCHEMA_VERSION  # noqa: PLC0415
    from qnn.binary.inspecting import inspect_files  # noqa: PLC0415

    found = inspect_files(files)
    failed = [*found.failed, *_unfit(found, consumer)]
    if as_json:
        print_json(
            {
                "schema": SCHEMA_VERSION,
                "files": [{"path": str(path), **_document(binary)} for path, binary in found.read],
                "errors": [_fault(path, error) for path, error in failed],
            }
        )
    else:
        for path, binary in found.read:
            _show(path, binary)
        for _, error in failed:
            print_error(error)
    return int(failed[0][1].exit_code) if failed else 0


def _fault(path: Path, error: ForgeError) -> dict[str, str]:
    """What --json says of a file that could not be read; `log` where one was kept."""
    said = {"path": str(path), "id": error.id, "message": error.message}
    return said if error.log is None else said | {"log": str(error.log)}


def _unfit(found: Inspected, consumer: str | None) -> list[tuple[Path, ForgeError]]:
    from qnn.errors.base import Place  # noqa: PLC0415
    from qnn.errors.readback import NotForTheConsumer  # noqa: PLC0415

    unfit: list[tuple[Path, ForgeError]] = []
    for path, binary in found.read if consumer else ():
        said = complaints(binary, consumer or "")
        if said:
            error = NotForTheConsumer(
                f"{consumer} cannot use it: {said[0]}",
                remedy="give it one graph a binary, and inputs and outputs of types it exchanges",
                place=Place(str(path)),
                details=said[1:],
            )
            unfit.append((path, error))
    return unfit


def _chip(binary: ContextBinary) -> ChipFacts | None:
    from qnn.binary.remarks import ChipFacts  # noqa: PLC0415
    from qnn.chips.table import load_table  # noqa: PLC0415
    from qnn.errors.chips import ChipWithoutHtp, UnknownChip  # noqa: PLC0415

    if not binary.soc_model:
        return None
    try:
        soc = load_table().by_soc_id(binary.soc_model)
    except (UnknownChip, ChipWithoutHtp):
        return None
    return ChipFacts(soc.name, soc.arch, soc.vtcm_mb)


def _document(binary: ContextBinary) -> dict[str, object]:
    from qnn.binary.document import to_document  # noqa: PLC0415
    from qnn.binary.remarks import remarks  # noqa: PLC0415

    chip = _chip(binary)
    return to_document(binary, soc_name=chip.name if chip else None, remarks=remarks(binary, chip))


def _show(path: Path, binary: ContextBinary) -> None:
    from rich.markup import escape  # noqa: PLC0415
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from qnn.binary.remarks import remarks  # noqa: PLC0415

    chip = _chip(binary)
    console = out()
    console.print(f"[bold]{escape(str(path))}[/bold]  {binary.size:,} bytes")
    arch = "" if binary.dsp_arch is None else f"  v{binary.dsp_arch}"
    console.print(f"  chip     {chip.name if chip else 'unknown'} (soc_model {binary.soc_model}){arch}")
    console.print(f"  QAIRT    {binary.qairt_version or 'unknown'} ({escape(binary.build_id)})")
    console.print(
        f"  format   blob {binary.blob_version}, info {binary.info_version}, core API {binary.core_api_version}, "
        f"HTP API {binary.backend_api_version}"
    )
    console.print(f"  sha256   {binary.sha256}")
    for graph in binary.graphs:
        console.print(f"  graph    {escape(graph.name)}")
        console.print(f"           {_settings(graph)}")
        table = Table("", "name", "dtype", "shape", "quantization", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for side, tensors in (("in", graph.inputs), ("out", graph.outputs), ("updateable", graph.updateable)):
            for tensor in tensors:
                table.add_row(side, *(escape(cell) for cell in _cells(tensor)))
        console.print(Padding(table, (0, 0, 0, 11), expand=False))
    for remark in remarks(binary, chip):
        console.print(f"  [yellow]remark[/yellow]   {escape(remark)}")


def _settings(graph: GraphInfo) -> str:
    if graph.vtcm_mb is None:
        return "no notes of the HTP backend"
    parts = [
        f"VTCM {graph.vtcm_mb} MB",
        f"O{graph.optimization_level}",
        f"HVX threads {graph.hvx_threads or 'by the chip'}",
        f"DLBC {'on' if graph.dlbc else 'off'}",
        f"spill-fill {graph.spill_fill_bytes:,} bytes",
    ]
    if graph.memory is not None:
        parts += [f"I/O {graph.memory.io:,} bytes", f"constants {graph.memory.constants:,} bytes"]
    return ", ".join(parts)


def _cells(tensor: TensorInfo) -> tuple[str, str, str, str]:
    marks = tensor.dynamic or (False,) * len(tensor.shape)
    shape = ", ".join(f"{size}?" if mark else str(size) for size, mark in zip(tensor.shape, marks, strict=True))
    return tensor.name, tensor.dtype_label, f"[{shape}]", _quantization(tensor)


def _quantization(tensor: TensorInfo) -> str:
    found = tensor.quantization
    if found is None:
        return ""
    if not found.scales:
        return found.encoding
    bits = "" if found.bitwidth is None else f", {found.bitwidth} bits"
    if found.axis is None:
        return f"(q {found.offsets[0]:+d}) × {found.scales[0]:.6g}{bits}"
    return (
        f"{len(found.scales)} scales along axis {found.axis}, {min(found.scales):.6g} to {max(found.scales):.6g}{bits}"
    )
