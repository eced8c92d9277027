"""Puts a bundle together: the verified package, the manifest and the README around it, the archive of it all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from qnn import __version__
from qnn.build.chained import Chained
from qnn.build.compiled import load_compiled
from qnn.build.install import ARCHIVE_SUFFIX
from qnn.build.judge import verdict_of
from qnn.build.keys import Keys, bundle_name
from qnn.build.measured import Measured
from qnn.build.metrics import summarise
from qnn.build.package import GOLDEN_SAMPLES
from qnn.bundle.archive import write_archive
from qnn.bundle.manifest import (
    SCHEMA_VERSION,
    Manifest,
    ManifestChain,
    ManifestChainGraph,
    ManifestChip,
    ManifestExport,
    ManifestFile,
    ManifestGraph,
    ManifestModel,
    ManifestOutput,
    ManifestSource,
    ManifestToolchain,
    to_json,
)
from qnn.bundle.readme import readme
from qnn.bundle.recheck import MANIFEST
from qnn.chips.table import needs_fp16
from qnn.export.facts import load_export
from qnn.files import link_or_copy
from qnn.model.spec import Gates, Graph
from qnn.plan.targets import Target
from qnn.prepare.prepared import load_prepared
from qnn.store import Entry, KnownDigests
from qnn.verify.comparison import Kind, OutputComparison

LICENCE = "LICENSE.txt"
README = "README.txt"


@dataclass(frozen=True)
class Parts:
    """What a bundle is put together from; mappings are by graph name.

    `exported` has the graphs that came from PyTorch; `remarks` is what the build said of each graph; `measured` is
    empty for a bundle that was not verified; `chained` is None then, and for a model without a chain; `licence` is the
    text of the weights' licence.
    """

    package: Entry
    compiled: Mapping[str, Entry]
    prepared: Mapping[str, Entry]
    exported: Mapping[str, Entry]
    remarks: Mapping[str, tuple[str, ...]]
    measured: Mapping[str, Measured]
    chained: Chained | None
    licence: Path | None


def assemble_bundle(target: Target, keys: Keys, parts: Parts, known: KnownDigests, folder: Path) -> None:
    """Write ``<name>/`` with everything a user gets and ``<name>.tar.gz`` of it into `folder`."""
    name = bundle_name(target, keys.toolchain)
    root = folder / name
    for file in parts.package.files:
        (root / file.name).parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(parts.package.folder / file.name, root / file.name)
    if parts.licence is not None:
        shutil.copyfile(parts.licence, root / LICENCE)
    graphs = tuple(_graph(target, graph, parts) for graph in target.variant.model.graphs)
    build_ids = {load_compiled(entry.folder).build_id for entry in parts.compiled.values()}
    manifest = _manifest(target, keys, name, graphs, build_ids.pop(), verified=bool(parts.measured))
    manifest = replace(manifest, chain=_chain(target, parts.chained))
    (root / README).write_text(readme(manifest), encoding="utf-8")
    manifest = replace(manifest, files=_files(root, known))
    (root / MANIFEST).write_text(to_json(manifest), encoding="utf-8")
    write_archive(root, name, folder / f"{name}{ARCHIVE_SUFFIX}")


def _manifest(
    target: Target, keys: Keys, name: str, graphs: tuple[ManifestGraph, ...], build_id: str, *, verified: bool
) -> Manifest:
    variant, soc, identity = target.variant, target.soc, keys.toolchain.identity
    model = variant.model
    return Manifest(
        schema=SCHEMA_VERSION,
        name=name,
        forge=__version__,
        model=ManifestModel(
            name=model.name,
            version=model.version,
            summary=model.summary,
            task=model.task,
            licence=model.licence.spdx,
            licence_reason=model.licence.reason,
            attribution=model.licence.attribution,
        ),
        bucket=variant.bucket,
        dimensions=dict(sorted(model.buckets[variant.bucket].items())),
        precision=variant.precision,
        chip=ManifestChip(soc.name, soc.soc_id, soc.arch, soc.vtcm_mb, soc.hvx_threads, soc.fp16),
        toolchain=ManifestToolchain(identity.name, identity.qairt, build_id, dict(identity.packages)),
        verified=verified,
        samples=model.checks.samples if verified else 0,
        golden=min(GOLDEN_SAMPLES, model.checks.samples),
        sources=tuple(
            ManifestSource(
                source.name, source.kind.value, source.locator, source.member, source.sha256 or "", source.size or 0
            )
            for _, source in sorted(model.sources.items())
        ),
        stages=_stages(target, keys, verified=verified),
        graphs=graphs,
        files=(),
    )


def _stages(target: Target, keys: Keys, *, verified: bool) -> dict[str, str]:
    """The digest of every stage output that went into the bundle."""
    stages = {"package": keys.package(target).digest}
    for graph in target.variant.model.graphs:
        if graph.export is not None:
            stages[f"export {graph.name}"] = keys.exported(target.variant, graph).digest
        stages[f"prepare {graph.name}"] = keys.prepared(target.variant, graph).digest
        stages[f"samples {graph.name}"] = keys.samples(target.variant, graph).digest
        stages[f"reference {graph.name}"] = keys.reference(target.variant, graph).digest
        if needs_fp16(target.variant.precision):
            stages[f"range {graph.name}"] = keys.ranges(target.variant, graph).digest
        stages[f"compile {graph.name}"] = keys.compiled(target, graph).digest
        if verified:
            stages[f"verify {graph.name}"] = keys.measured(target, graph).digest
    chain = target.variant.model.checks.chain
    if verified and chain is not None:
        stages["chain"] = keys.chain(target, chain).digest
    return stages


def _export(entry: Entry | None) -> ManifestExport | None:
    if entry is None:
        return None
    facts = load_export(entry.folder)
    # Which build of a version it was (2.13.0+cpu) depends on the machine, and what it exported does not.
    packages = {name: version.partition("+")[0] for name, version in facts.packages.items()}
    return ManifestExport(facts.exporter, facts.opset, packages)


def _graph(target: Target, graph: Graph, parts: Parts) -> ManifestGraph:
    compiled = load_compiled(parts.compiled[graph.name].folder)
    prepared = load_prepared(parts.prepared[graph.name].folder)
    measured = parts.measured.get(graph.name)
    checks = target.variant.model.checks
    return ManifestGraph(
        name=graph.name,
        binary=f"{graph.name}.bin",
        wrapper=f"{graph.name}_ctx.onnx",
        graph_name=compiled.graph_name,
        inputs=compiled.inputs,
        outputs=compiled.outputs,
        interface_inputs=prepared.inputs,
        interface_outputs=prepared.outputs,
        blob_version=compiled.blob_version,
        vtcm_mb=compiled.vtcm_mb,
        hvx_threads=compiled.hvx_threads,
        optimization_level=compiled.optimization_level,
        spill_fill_bytes=compiled.spill_fill_bytes,
        rewrites=tuple(str(change) for change in prepared.changes),
        numerics=()
        if measured is None
        else tuple(
            _output(output, verdict_of(checks, graph.name, output, target.variant.precision).gates)
            for output in measured.outputs
        ),
        metrics=() if measured is None else summarise(measured.metrics, checks.metric_gates.get(graph.name, {})),
        export=_export(parts.exported.get(graph.name)),
        source=None if graph.export is not None else graph.source_for(target.variant.precision),
        reference=graph.reference,
        remarks=parts.remarks[graph.name],
    )


def _chain(target: Target, chained: Chained | None) -> ManifestChain | None:
    checks = target.variant.model.checks
    if chained is None or checks.chain is None:
        return None
    return ManifestChain(
        rounds=checks.chain.rounds,
        graphs=tuple(
            ManifestChainGraph(
                name=graph.name,
                float_runs=graph.float_runs,
                htp_runs=graph.htp_runs,
                numerics=tuple(_output(output, Gates()) for output in graph.outputs),
            )
            for graph in chained.graphs
        ),
        metrics=summarise(chained.metrics, checks.chain.metric_gates),
    )


def _output(output: OutputComparison, gates: Gates) -> ManifestOutput:
    """The numbers of one output; those that mean nothing for its kind are None."""
    real = output.kind is Kind.FLOAT
    return ManifestOutput(
        name=output.name,
        elements=output.elements,
        cosine=output.cosine if real else None,
        max_abs=output.max_abs if real else None,
        max_rel=output.max_rel if real else None,
        argmax=None if output.rows is None else 1 - output.rows.disagreeing / max(output.rows.rows, 1),
        equal=None if real else output.exact,
        gates=gates,
    )


def _files(root: Path, known: KnownDigests) -> tuple[ManifestFile, ...]:
    return tuple(
        ManifestFile(path.relative_to(root).as_posix(), known.of(path), path.stat().st_size)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    )
