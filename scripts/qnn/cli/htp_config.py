"""qnn-forge htp-config: the two JSON files that the full SDK's tools take."""

from __future__ import annotations

from pathlib import Path

import click

from qnn.cli.console import out, print_json
from qnn.cli.options import json_option


@click.command("htp-config")
@click.option("--soc", required=True, metavar="NAME", help="The chip, by any of its names.")
@click.option("--graph", "graphs", multiple=True, metavar="NAME", help="A graph's name; repeat for more.")
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A context binary or ONNX file whose graph names are meant; other names are refused.",
)
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An HTP option; repeat for more.")
@click.option("--out", "folder", type=click.Path(path_type=Path), default=Path(), show_default=True, help="Folder.")
@json_option
def htp_config(
    soc: str,
    graphs: tuple[str, ...],
    sources: tuple[Path, ...],
    options: tuple[str, ...],
    folder: Path,
    as_json: bool,
) -> None:
    """Write htp_backend_extensions.json and htp_config.json for graphs on a chip.

    Run the SDK's tool in the folder they are in, with --config_file htp_backend_extensions.json: all paths in them are
    relative. VTCM is always the chip's unless an option says less.

    \b
    Options: optimization (1-3), vtcm_mb, fp16, hvx_threads, dlbc, dlbc_weights, weights_packing, perf_profile,
    rpc_control_latency, rpc_polling_time, hmx_timeout_us (microseconds), pd_session, weight_sharing, extended_udma,
    device_id, core_id.

    \b
    qnn-forge htp-config --soc SM8650 --graph encoder --graph decoder --option weight_sharing=true --out config
    qnn-forge htp-config --soc SM8550 --from encoder.onnx --option hvx_threads=4
    """
    from qnn.chips.table import load_table  # noqa: PLC0415
    from qnn.toolchains.htp_config import htp_documents, write_documents  # noqa: PLC0415
    from qnn.toolchains.htp_options import parse_options  # noqa: PLC0415

    chip = load_table().lookup(soc)
    known = _names(sources) if sources else None
    documents = htp_documents(chip, graphs or known or (), parse_options(options), known)
    written = write_documents(documents, folder)
    if as_json:
        print_json({"schema": 1, "soc": chip.name, "files": [str(path) for path in written]})
        return
    for path in written:
        out().print(str(path), markup=False)


def _names(sources: tuple[Path, ...]) -> tuple[str, ...]:
    """The graph names of context binaries (as they hold them) and ONNX files (as the SDK's converter makes them)."""
    from qnn.binary.inspecting import inspect_files  # noqa: PLC0415
    from qnn.binary.sniff import FileKind, sniff_file  # noqa: PLC0415
    from qnn.toolchains.htp_config import converter_graph_name  # noqa: PLC0415

    models = [path for path in sources if sniff_file(path) is FileKind.ONNX]
    found = inspect_files([path for path in sources if path not in models])
    for _, error in found.failed:
        raise error
    names = [converter_graph_name(path.stem) for path in models]
    names += [graph.name for _, binary in found.read for graph in binary.graphs]
    return tuple(dict.fromkeys(names))
