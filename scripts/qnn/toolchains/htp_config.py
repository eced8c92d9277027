"""The two JSON files that tell the full SDK's tools how to use the HTP. Pure, but for one function that writes them.

``htp_backend_extensions.json`` is given to qnn-context-binary-generator and qnn-net-run (--config_file) and names the
extensions library and the second file, ``htp_config.json``, which holds the options. Sources of keys and places:
Qualcomm's "QNN HTP Backend Extensions" (document 80-63442), its qairt Python API (backends/htp/config.py), the SDK's
accuracy evaluator, and the sherpa-onnx recipe; they agree on everything written here. Two forms exist for two keys:
the chip's number is `soc_id` in older and `soc_model` in newer tools (both are accepted, both are written), and
`context` is an object or a list of one (written as an object).

The tools ignore keys they do not know and graph names that match nothing. That is why every document is checked
against strict schemas of our own before it leaves here.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from qnn.chips.soc import Soc
from qnn.errors.htp_config import InvalidHtpConfig, UnknownGraphName
from qnn.toolchains.htp_options import HtpOptions, require_possible

EXTENSIONS_FILE = "htp_backend_extensions.json"
CONFIG_FILE = "htp_config.json"
EXTENSIONS_LIBRARY = "libQnnHtpNetRunExtensions.so"
_NOT_IN_A_NAME = re.compile(r"[^0-9A-Za-z_]")
_SCHEMAS = {EXTENSIONS_FILE: "htp_backend_extensions.schema.json", CONFIG_FILE: "htp_config.schema.json"}


@dataclass(frozen=True)
class HtpDocuments:
    """The two files' contents, JSON text that ends in a newline. All paths in them are relative."""

    extensions: str
    config: str

    @property
    def by_name(self) -> tuple[tuple[str, str], ...]:
        """File name and content."""
        return ((EXTENSIONS_FILE, self.extensions), (CONFIG_FILE, self.config))


def htp_documents(
    soc: Soc,
    graph_names: Sequence[str],
    options: HtpOptions,
    known_names: Sequence[str] | None = None,
) -> HtpDocuments:
    """The configuration for some graphs on one chip.

    `known_names` are the graphs that exist (of a context binary, or made from ONNX files by `converter_graph_name`);
    None: not known, then the names are taken as they are. Raises InvalidHtpOption (QF520), UnknownGraphName (QF521).
    """
    require_names(graph_names, known_names)
    require_possible(options, soc, len(graph_names))
    extensions = {
        "backend_extensions": {"shared_library_path": EXTENSIONS_LIBRARY, "config_file_path": CONFIG_FILE},
    }
    config: dict[str, Any] = {
        "graphs": [_graph(soc, graph_names, options)],
        "devices": [_device(soc, options)],
    }
    context = {"weight_sharing_enabled": options.weight_sharing, "extended_udma": options.extended_udma}
    if any(context.values()):
        config["context"] = {key: value for key, value in context.items() if value}
    documents = HtpDocuments(_text(extensions), _text(config))
    for name, content in documents.by_name:
        require_valid(name, content)
    return documents


def converter_graph_name(onnx_stem: str) -> str:
    """The name the SDK's converter gives the graph of ``<stem>.onnx``: letters, digits and underscores stay.

    Source: sherpa-onnx's recipe, where model-5-seconds-quantized becomes model_5_seconds_quantized.
    """
    return _NOT_IN_A_NAME.sub("_", onnx_stem)


def require_names(graph_names: Sequence[str], known_names: Sequence[str] | None) -> None:
    """Raise UnknownGraphName (QF521) for no names, an empty or repeated one, or one that is not among the known."""
    remedy = "give each graph's name once" if known_names is None else f"the graphs are {', '.join(known_names)}"
    if not graph_names or not all(graph_names):
        raise UnknownGraphName("no graph name is given" if not graph_names else "a graph name is empty", remedy=remedy)
    repeated = [name for name, count in Counter(graph_names).items() if count > 1]
    if repeated:
        raise UnknownGraphName(f"'{repeated[0]}' is given more than once", remedy=remedy)
    unknown = [name for name in graph_names if known_names is not None and name not in known_names]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known_names or (), 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise UnknownGraphName(f"there is no graph '{unknown[0]}'{hint}", remedy=remedy)


def require_valid(name: str, content: str) -> None:
    """Raise InvalidHtpConfig (QF522) when a document (EXTENSIONS_FILE or CONFIG_FILE) breaks its schema."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 0.1 s that other commands need not pay

    schema = json.loads(files("qnn.toolchains").joinpath(_SCHEMAS[name]).read_text(encoding="utf-8"))
    faults = sorted(Draft202012Validator(schema).iter_errors(json.loads(content)), key=lambda fault: fault.json_path)
    if faults:
        raise InvalidHtpConfig(
            f"{name} breaks its schema in {len(faults)} place(s)",
            remedy="correct the keys and values named here",
            details=[f"{fault.json_path}: {fault.message}" for fault in faults],
        )


def write_documents(documents: HtpDocuments, folder: Path) -> tuple[Path, ...]:
    """Write both files into `folder` (made when missing) and return their paths.

    Each file appears whole or not at all, the one that names the other last. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in reversed(documents.by_name):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=f".{name}.", delete=False) as part:
            try:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
                os.chmod(part.name, 0o644)
                os.replace(part.name, folder / name)
            except BaseException:
                os.unlink(part.name)
                raise
    return tuple(folder / name for name, _ in documents.by_name)


def _graph(soc: Soc, graph_names: Sequence[str], options: HtpOptions) -> dict[str, Any]:
    graph: dict[str, Any] = {
        "graph_names": list(graph_names),
        "O": options.optimization,
        # Always given: what leaving it out means has changed between SDK versions.
        "vtcm_mb": soc.vtcm_mb if options.vtcm_mb is None else options.vtcm_mb,
    }
    if soc.fp16 if options.fp16 is None else options.fp16:
        graph["fp16_relaxed_precision"] = 1
    if options.hvx_threads is not None:
        graph["hvx_threads"] = options.hvx_threads
    if options.dlbc:
        graph["dlbc"] = 1
    if options.dlbc_weights:
        graph["dlbc_weights"] = 1
    if options.weights_packing:
        graph["weights_packing"] = True
    return graph


def _device(soc: Soc, options: HtpOptions) -> dict[str, Any]:
    core = {
        "core_id": options.core_id,
        "perf_profile": options.perf_profile,
        "rpc_control_latency": options.rpc_control_latency,
        "rpc_polling_time": options.rpc_polling_time,
        "hmx_timeout_us": options.hmx_timeout_us,
    }
    device = {
        "device_id": options.device_id,
        "soc_id": soc.soc_id,
        "soc_model": soc.soc_id,
        "dsp_arch": soc.arch,
        "pd_session": options.pd_session,
        "cores": [{key: value for key, value in core.items() if value is not None}],
    }
    return {key: value for key, value in device.items() if value is not None}


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
