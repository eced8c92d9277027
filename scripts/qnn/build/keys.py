"""The identity of every stage's output, computed from the model, the chip and the code alone.

Because a key holds the digests of its inputs' keys, the key of a finished bundle is known before anything is built:
a build with nothing to do reads nothing but its own result.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from qnn import __version__
from qnn.build.package import GOLDEN_SAMPLES
from qnn.chips.table import needs_fp16
from qnn.model.spec import Chain, Gates, Graph, MetricGate, Source
from qnn.plan.targets import Target, Variant
from qnn.sources.fetch import output_name
from qnn.store import StageKey, file_digest
from qnn.store.code import code_digest
from qnn.store.digest import Value
from qnn.toolchains.protocol import Toolchain

_PREPARE_PACKAGES = ("onnx", "onnxsim", "onnxruntime", "numpy")
# Packages whose version is part of some key: another pin of one of these makes new outputs.
KEY_PACKAGES = frozenset({*_PREPARE_PACKAGES, "onnxruntime-qnn"})
# Modules that make the keys themselves: a change of one may change any key.
KEY_MODULES = ("qnn.build.keys", "qnn.store.code", "qnn.store.digest")
# The modules whose code makes each stage's output.
_EXPORT = (
    "qnn.export.in_torch", "qnn.export.run", "qnn.export.take", "qnn.export.facts", "qnn.export.local_imports",
    "qnn.model_code.call", "qnn.model_code.runner", "qnn.model_code.process", "qnn.model_code.environment",
    "qnn.prepare.load", "qnn.prepare.strip", "qnn.prepare.weights", "qnn.prepare.wire", "qnn.prepare.write",
)  # fmt: skip
_PREPARE = ("qnn.prepare.*", "qnn.faults.found", "qnn.faults.match", "qnn.faults.matchers")
_MODEL_CODE = ("qnn.model_code.*", "qnn.build.inputs", "qnn.build.shipped", "qnn.npz", "qnn.tensors")
_CHAIN = (*_MODEL_CODE, "qnn.build.chain", "qnn.files")
_REFERENCE = ("qnn.verify.reference", "qnn.npz", "qnn.onnxruntime_errors")
_RANGES = ("qnn.ranges.*", "qnn.npz", "qnn.onnxruntime_errors")  # and qnn.prepare.*, through the graph's own key
_PARITY = ("qnn.export.*", "qnn.model_code.*")  # an exported file is held to its module where its results are made
_PACKAGE = ("qnn.build.package", "qnn.verify.golden", "qnn.npz", "qnn.tensors")
_MEASURE = ("qnn.verify.compare", "qnn.verify.comparison", "qnn.verify.saturation", "qnn.npz", "qnn.build.measured")
_COMPARE_CHAINS = (*_MEASURE, "qnn.build.chain", "qnn.build.chained")
_BUNDLE = (
    "qnn.bundle.*", "qnn.build.assemble", "qnn.build.chained", "qnn.build.compiled", "qnn.build.judge",
    "qnn.build.metrics", "qnn.build.remarks", "qnn.export.facts",
    "qnn.verify.comparison", "qnn.verify.gates", "qnn.verify.wording",
)  # fmt: skip


def stage_modules(toolchain: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Which modules' code is part of the key of each stage. `toolchain` is Toolchain.code_modules."""
    return {
        "export": _EXPORT,
        "prepare": _PREPARE,
        "samples": _MODEL_CODE,
        "reference": (*_REFERENCE, *_PARITY),
        "range": _RANGES,
        "compile": tuple(toolchain),
        "package": _PACKAGE,
        "measure": (*toolchain, *_MEASURE),
        "metric": _MODEL_CODE,
        "chain-reference": (*_CHAIN, *_REFERENCE),
        "chain": (*toolchain, *_CHAIN, *_COMPARE_CHAINS),
        "bundle": (*_BUNDLE, "qnn"),  # the version of qnn-forge stands in qnn/__init__.py
    }


@dataclass
class Keys:
    """Makes keys for one toolchain; `memo` is the folder of qnn.store.code."""

    toolchain: Toolchain
    memo: Path

    def source(self, source: Source) -> StageKey:
        """A fetched file: its content is its identity, wherever it comes from."""
        return StageKey("source", "", {"name": output_name(source), "sha256": source.sha256, "size": source.size})

    def exported(self, variant: Variant, graph: Graph) -> StageKey:
        """The ONNX file that a graph's export function gives. Its code is the file it is in and what that imports."""
        assert graph.export is not None
        model = variant.model
        parameters: dict[str, Value] = {
            "graph": graph.name,
            "export": graph.export,
            "inputs": [[spec.name, list(spec.shape)] for spec in graph.inputs],
            "bucket": dict(model.buckets[variant.bucket]),
            "requires": list(model.requires),
            "packages": _versions(("onnx", "numpy")),
        }
        inputs = {
            **self._export_code(model.folder, graph.export.partition(":")[0]),
            **{f"source {name}": self.source(source).digest for name, source in model.sources.items()},
        }
        return StageKey("export", self._code(*_EXPORT), parameters, inputs)

    def prepared(self, variant: Variant, graph: Graph) -> StageKey:
        """A graph with fixed shapes, simplified and in canonical form."""
        model = variant.model
        parameters: dict[str, Value] = {
            "graph": graph.name,
            "inputs": [[spec.name, list(spec.shape), spec.dtype] for spec in graph.inputs],
            "bucket": dict(model.buckets[variant.bucket]),
            "outputs": list(graph.outputs),
            "rewrites": dict(graph.rewrites),
            "packages": _versions(_PREPARE_PACKAGES),
        }
        inputs = self._original(variant, graph, None if graph.export else graph.source_for(variant.precision))
        return StageKey("prepare", self._code(*_PREPARE), parameters, inputs)

    def samples(self, variant: Variant, graph: Graph) -> StageKey:
        """The real inputs a graph is checked with."""
        model = variant.model
        checks = model.checks
        parameters = {
            "graph": graph.name,
            "data": checks.data,
            "count": checks.samples,
            "requires": list(model.requires),
            "packages": _versions(("numpy", "onnxruntime")),
        }
        inputs = {
            "prepared": self.prepared(variant, graph).digest,
            **self._model_code(variant),
            **{f"source {name}": self.source(source).digest for name, source in model.sources.items()},
        }
        if checks.samples_dir is not None:
            inputs.update(self._sample_files(model.folder / checks.samples_dir))
        return StageKey("samples", self._code(*_MODEL_CODE), parameters, inputs)

    def reference(self, variant: Variant, graph: Graph) -> StageKey:
        """Float results of the original graph on the samples; those of an exported one are held to its module."""
        inputs = {
            **self._original(variant, graph, graph.reference),
            "samples": self.samples(variant, graph).digest,
        }
        parameters: dict[str, Value] = {
            "outputs": list(graph.outputs),
            "packages": _versions(("onnxruntime", "numpy")),
        }
        code = self._code(*_REFERENCE) if graph.export is None else self._code(*_REFERENCE, *_PARITY)
        return StageKey("reference", code, parameters, inputs)

    def ranges(self, variant: Variant, graph: Graph, samples: int = 1) -> StageKey:
        """What leaves fp16 in a float run of the prepared graph on its first samples."""
        inputs = {
            "prepared": self.prepared(variant, graph).digest,
            "samples": self.samples(variant, graph).digest,
        }
        parameters: dict[str, Value] = {"count": samples, "packages": _versions(("onnxruntime", "numpy"))}
        return StageKey("range", self._code(*_RANGES), parameters, inputs)

    def compiled(self, target: Target, graph: Graph) -> StageKey:
        """A context binary and its wrapper."""
        soc = target.soc
        parameters: dict[str, Value] = {
            **self._toolchain(),
            "graph": graph.name,
            "soc_id": soc.soc_id,
            "arch": soc.arch,
            "vtcm_mb": soc.vtcm_mb,
            "fp16": soc.fp16,
            "float": needs_fp16(target.variant.precision),
        }
        inputs = {"prepared": self.prepared(target.variant, graph).digest}
        return StageKey("compile", self._code(*self.toolchain.code_modules), parameters, inputs)

    def package(self, target: Target) -> StageKey:
        """The files of a bundle that are verified: binaries, wrappers, golden inputs and outputs."""
        graphs = target.variant.model.graphs
        inputs = {
            **{f"{graph.name} binary": self.compiled(target, graph).digest for graph in graphs},
            **{f"{graph.name} samples": self.samples(target.variant, graph).digest for graph in graphs},
            **{f"{graph.name} reference": self.reference(target.variant, graph).digest for graph in graphs},
        }
        return StageKey("package", self._code(*_PACKAGE), {"golden": GOLDEN_SAMPLES}, inputs)

    def measured(self, target: Target, graph: Graph) -> StageKey:
        """What the packaged binary of one graph computes on the emulator, compared with the reference."""
        inputs = {
            "package": self.package(target).digest,
            "samples": self.samples(target.variant, graph).digest,
            "reference": self.reference(target.variant, graph).digest,
        }
        code = self._code(*self.toolchain.code_modules, *_MEASURE)
        parameters: dict[str, Value] = {**self._toolchain(), "graph": graph.name, "soc_id": target.soc.soc_id}
        return StageKey("measure", code, parameters, inputs)

    def metrics(self, target: Target, graph: Graph) -> StageKey:
        """The model's task metric on float and on HTP outputs."""
        model = target.variant.model
        parameters = {"graph": graph.name, "metric": model.checks.metric, "requires": list(model.requires)}
        inputs = {
            "measured": self.measured(target, graph).digest,
            "samples": self.samples(target.variant, graph).digest,
            "reference": self.reference(target.variant, graph).digest,
            **self._model_code(target.variant),
            **{f"source {name}": self.source(source).digest for name, source in model.sources.items()},
        }
        return StageKey("metric", self._code(*_MODEL_CODE), parameters, inputs)

    def chain_reference(self, variant: Variant, chain: Chain) -> StageKey:
        """The model's graphs as a chain on float."""
        model = variant.model
        inputs = {
            **{f"{graph.name} reference": self.reference(variant, graph).digest for graph in model.graphs},
            **self._model_code(variant),
            **{f"source {name}": self.source(source).digest for name, source in model.sources.items()},
        }
        parameters: dict[str, Value] = {
            "feed": chain.feed,
            "rounds": chain.rounds,
            "graphs": [graph.name for graph in model.graphs],
            "requires": list(model.requires),
        }
        return StageKey("chain-reference", self._code(*_CHAIN, *_REFERENCE), parameters, inputs)

    def chain(self, target: Target, chain: Chain) -> StageKey:
        """The model's graphs as a chain on the emulator, compared with the float chain."""
        inputs = {
            "package": self.package(target).digest,
            "chain-reference": self.chain_reference(target.variant, chain).digest,
            "first": self.measured(target, target.variant.model.graphs[0]).digest,
        }
        code = self._code(*self.toolchain.code_modules, *_CHAIN, *_COMPARE_CHAINS)
        return StageKey("chain", code, {**self._toolchain(), "soc_id": target.soc.soc_id}, inputs)

    def chain_metric(self, target: Target, chain: Chain) -> StageKey:
        """The metric of the whole chain on float and on HTP."""
        inputs = {"chain": self.chain(target, chain).digest}
        return StageKey("chain-metric", self._code(*_MODEL_CODE), {"metric": chain.metric}, inputs)

    def bundle(self, target: Target, verified: bool) -> StageKey:
        """A finished bundle: package, manifest, archive."""
        variant, soc = target.variant, target.soc
        model = variant.model
        parameters: dict[str, Value] = {
            "forge": __version__,
            "name": bundle_name(target, self.toolchain),
            "summary": model.summary,
            "task": model.task,
            "version": model.version,
            "licence": asdict(model.licence),
            "precision": variant.precision,
            "dimensions": dict(model.buckets[variant.bucket]),
            "soc": [soc.name, soc.soc_id, soc.arch, soc.vtcm_mb, soc.hvx_threads, soc.fp16],
            "verified": verified,
            "gates": asdict(model.checks.gates),
            "output_gates": _plain(model.checks.output_gates),
            "metric_gates": _plain(model.checks.metric_gates),
            "sources": {name: [source.kind.value, source.locator] for name, source in model.sources.items()},
        }
        inputs = {"package": self.package(target).digest}
        if needs_fp16(variant.precision):
            parameters["ranges"] = {graph: sorted(known) for graph, known in model.checks.ranges.items()}
            inputs.update({f"{graph.name} range": self.ranges(variant, graph).digest for graph in model.graphs})
        if verified:
            inputs.update({f"{graph.name} measured": self.measured(target, graph).digest for graph in model.graphs})
            if model.checks.metric is not None:
                inputs.update({f"{graph.name} metrics": self.metrics(target, graph).digest for graph in model.graphs})
        chain = model.checks.chain
        if verified and chain is not None:
            parameters["chain"] = [chain.metric, {name: asdict(gate) for name, gate in chain.metric_gates.items()}]
            inputs["chain"] = self.chain(target, chain).digest
        if model.licence.text is not None:
            inputs["licence"] = self.source(model.sources[model.licence.text]).digest
        return StageKey("bundle", self._code(*_BUNDLE), parameters, inputs)

    def _original(self, variant: Variant, graph: Graph, name: str | None) -> dict[str, str]:
        """The ONNX file that a graph starts from: the export, or the source named with its external data."""
        if name is None:
            return {"export": self.exported(variant, graph).digest}
        model = variant.model
        source = model.sources[name]
        beside = {f"beside {other}": self.source(model.sources[other]).digest for other in source.beside}
        return {"source": self.source(source).digest, **beside}

    def _toolchain(self) -> dict[str, Value]:
        identity = self.toolchain.identity
        return {"toolchain": identity.name, "qairt": identity.qairt, "packages": dict(identity.packages)}

    @cached_property
    def _codes(self) -> dict[tuple[str, ...], str]:
        return {}

    def _code(self, *modules: str) -> str:
        if modules not in self._codes:
            self._codes[modules] = code_digest(modules, self.memo)
        return self._codes[modules]

    @cached_property
    def _files(self) -> dict[tuple[Path, str], dict[str, str]]:
        return {}

    def _model_code(self, variant: Variant) -> dict[str, str]:
        """Every Python file of the model folder: data.py may import its neighbours."""
        return self._hashed(variant.model.folder, "*.py", "code")

    def _export_code(self, folder: Path, file: str) -> dict[str, str]:
        """The file of an export function and what it imports of the model's folder."""
        if (folder, file) not in self._files:
            from qnn.export.local_imports import local_imports  # noqa: PLC0415

            self._files[folder, file] = {
                f"code {path}": file_digest(folder / path) for path in local_imports(folder, file)
            }
        return self._files[folder, file]

    def _sample_files(self, folder: Path) -> dict[str, str]:
        return self._hashed(folder, "*.npz", "sample")

    def _hashed(self, folder: Path, pattern: str, label: str) -> dict[str, str]:
        if (folder, pattern) not in self._files:
            self._files[folder, pattern] = {
                f"{label} {path.name}": file_digest(path) for path in sorted(folder.glob(pattern))
            }
        return self._files[folder, pattern]


def bundle_name(target: Target, toolchain: Toolchain) -> str:
    """silero-vad-6.2.3-default-fp16-SM8650-qairt2.51.0"""
    return f"{target.name}-qairt{toolchain.identity.qairt}"


@functools.cache
def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    return {name: version(name) for name in packages}


def _plain(gates: Mapping[str, Mapping[str, Gates]] | Mapping[str, Mapping[str, MetricGate]]) -> dict[str, Value]:
    return {graph: {name: asdict(gate) for name, gate in named.items()} for graph, named in gates.items()}
