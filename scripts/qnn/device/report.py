"""The report of a check on a device: what ran where and what came out. To be signed, so one text for one report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from qnn import __version__
from qnn.bundle.manifest import Manifest
from qnn.chips.soc import Soc
from qnn.device.facts import DeviceFacts
from qnn.device.net_run import Latency
from qnn.device.runtime import Runtime
from qnn.verify.comparison import OutputComparison
from qnn.verify.gates import Verdict

SCHEMA_VERSION = 1
KIND = "qnn-device-report"


@dataclass(frozen=True)
class GraphOutcome:
    """One graph: an output's comparison and verdict each, and how long it took (None where it was not timed)."""

    graph: str
    binary: str
    outputs: tuple[OutputComparison, ...]
    verdicts: tuple[Verdict, ...]
    latency: Latency | None

    @property
    def passed(self) -> bool:
        """Whether every output keeps its gates."""
        return all(verdict.passed for verdict in self.verdicts)


@dataclass(frozen=True)
class Outcome:
    """A whole check. `manifest_sha256` names the bundle; `net_run_sha256` is of the program on the device."""

    manifest: Manifest
    manifest_sha256: str
    facts: DeviceFacts
    chip: Soc
    runtime: Runtime
    net_run_sha256: str
    graphs: tuple[GraphOutcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every output of every graph keeps its gates."""
        return all(graph.passed for graph in self.graphs)


def document(outcome: Outcome) -> dict[str, object]:
    """The report (schema 1): no time of day, no path of this machine, no serial number of the device. Pure."""
    manifest, facts, chip, runtime = outcome.manifest, outcome.facts, outcome.chip, outcome.runtime
    return {
        "kind": KIND,
        "schema": SCHEMA_VERSION,
        "forge": __version__,
        "passed": outcome.passed,
        "bundle": {
            "name": manifest.name,
            "model": manifest.model.name,
            "version": manifest.model.version,
            "bucket": manifest.bucket,
            "precision": manifest.precision,
            "qairt": manifest.toolchain.qairt,
            "build_id": manifest.toolchain.build_id,
            "manifest_sha256": outcome.manifest_sha256,
            "files": {file.path: file.sha256 for file in manifest.files},
            "samples": manifest.golden,
        },
        "device": {
            "model": facts.model,
            "ro_soc_model": facts.soc_model,
            "board": facts.board,
            "abi": facts.abi,
            "android": facts.android,
            "chip": {"name": chip.name, "soc_id": chip.soc_id, "arch": chip.arch, "vtcm_mb": chip.vtcm_mb},
        },
        "runtime": {
            "qairt": runtime.qairt,
            "build_id": runtime.build_id,
            "libraries": {file.name: file.sha256 for file in runtime.libraries},
            "net_run_sha256": outcome.net_run_sha256,
        },
        "graphs": [_graph(graph) for graph in outcome.graphs],
    }


def canonical(report: Mapping[str, object]) -> bytes:
    """The report as it is signed: UTF-8, keys sorted, no white space, one newline at the end."""
    text = json.dumps(report, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _graph(graph: GraphOutcome) -> dict[str, object]:
    took = graph.latency
    return {
        "name": graph.graph,
        "binary": graph.binary,
        "outputs": [
            _output(comparison, verdict) for comparison, verdict in zip(graph.outputs, graph.verdicts, strict=True)
        ],
        "latency": None
        if took is None
        else {
            "warm_ups": took.warm_ups,
            "runs": took.runs,
            "mean_us": took.mean_us,
            "net_run_average_us": took.average_us,
            "net_run_min_us": took.min_us,
            "net_run_max_us": took.max_us,
            "accelerator_average_us": took.accelerator_us,
        },
    }


def _output(comparison: OutputComparison, verdict: Verdict) -> dict[str, object]:
    gates = verdict.gates
    return {
        "name": comparison.name,
        "passed": verdict.passed,
        "elements": comparison.elements,
        "equal": comparison.equal,
        "cosine": comparison.cosine,
        "max_abs": comparison.max_abs,
        "max_rel": comparison.max_rel,
        "gates": {
            name: value
            for name, value in (
                ("cosine", gates.cosine),
                ("max_abs", gates.max_abs),
                ("max_rel", gates.max_rel),
                ("argmax", gates.argmax),
            )
            if value is not None
        },
        "failures": [failure.sentence for failure in verdict.failures],
    }
