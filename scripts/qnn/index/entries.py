"""From a bundle's manifest to what the index says of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from qnn.bundle.manifest import Manifest, ManifestGraph, ManifestOutput
from qnn.index.document import (
    IndexFallback,
    IndexFile,
    IndexFileGraph,
    IndexGraph,
    IndexMetric,
    IndexNumeric,
)


def file_of(manifest: Manifest, name: str, size: int, sha256: str) -> IndexFile:
    """The entry of the archive `name` with the manifest's facts; addresses, revision and date still to be filled in."""
    chip, toolchain = manifest.chip, manifest.toolchain
    return IndexFile(
        name=name,
        urls=(),
        size=size,
        sha256=sha256,
        soc=chip.name,
        soc_id=chip.soc_id,
        arch=chip.arch,
        vtcm_mb=chip.vtcm_mb,
        hvx_threads=chip.hvx_threads,
        fp16=chip.fp16,
        qairt=toolchain.qairt,
        build_id=toolchain.build_id,
        # Context binaries are forward-only: measured, 2.48 loads on 2.51 and 2.51 does not on 2.48.
        minimum_runtime=toolchain.qairt,
        revision=0,
        published="",
        graphs=tuple(_file_graph(graph) for graph in manifest.graphs),
    )


def graphs_of(manifest: Manifest) -> tuple[IndexGraph, ...]:
    """The inputs and outputs of every graph's wrapper."""
    return tuple(IndexGraph(graph.name, graph.interface_inputs, graph.interface_outputs) for graph in manifest.graphs)


def fallback_of(manifests: Iterable[Manifest]) -> tuple[IndexFallback, ...]:
    """The float ONNX file of each graph: the one that its numbers were compared with, where it can be downloaded.

    None for graphs exported from PyTorch and for files of the model's own folder.
    """
    found: dict[str, IndexFallback] = {}
    for manifest in sorted(manifests, key=lambda one: one.name):
        sources = {source.name: source for source in manifest.sources if source.kind != "local"}
        for graph in manifest.graphs:
            own = sources.get(graph.reference or "")
            if own is not None:
                found.setdefault(
                    graph.name,
                    IndexFallback(own.kind, own.address, own.sha256, own.size, graph.name, own.member),
                )
    return tuple(found[name] for name in sorted(found))


def _file_graph(graph: ManifestGraph) -> IndexFileGraph:
    return IndexFileGraph(
        graph.name,
        graph.binary,
        graph.wrapper,
        tuple(_numeric(output) for output in graph.numerics),
        tuple(IndexMetric(metric.name, metric.float_value, metric.htp_value, metric.gate) for metric in graph.metrics),
    )


def _numeric(output: ManifestOutput) -> IndexNumeric:
    return IndexNumeric(
        output.name, output.gates, output.cosine, output.max_abs, output.max_rel, output.argmax, output.equal
    )
