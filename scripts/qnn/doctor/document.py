"""A verdict as the JSON document of `qnn-forge doctor --json` (schema 1). Sizes are bytes."""

from __future__ import annotations

import math
from dataclasses import asdict

from qnn.doctor.facts import Facts, Failed, NotTried, Trial
from qnn.doctor.judge import Finding, Verdict, is_tested_pair
from qnn.toolchains.pip.toolchain import KNOWN_BUILDS

SCHEMA = 1


def document(facts: Facts, verdict: Verdict) -> dict[str, object]:
    """Everything that was found and what it means; the same keys whatever was found."""
    toolchain = facts.toolchain
    return {
        "schema": SCHEMA,
        "ok": verdict.sound,
        "version": facts.version,
        "machine": {
            **asdict(facts.machine),
            "libc": {"name": facts.machine.libc[0], "version": facts.machine.libc[1]},
        },
        "toolchain": {
            "name": "pip",
            "onnxruntime": toolchain.onnxruntime,
            "onnxruntime_qnn": toolchain.onnxruntime_qnn,
            "qairt": toolchain.qairt,
            "known_build": KNOWN_BUILDS.get(toolchain.onnxruntime_qnn or ""),
            "tested_pair": is_tested_pair(toolchain),
            "libraries": [asdict(library) for library in toolchain.libraries],
        },
        "store": asdict(facts.store),
        "trial": _trial(facts.trial),
        "kits": [asdict(kit) for kit in facts.kits],
        "abilities": {
            str(ability.work): {"possible": ability.possible, "because": list(ability.because)}
            for ability in verdict.abilities
        },
        "findings": [_finding(finding) for finding in verdict.findings],
    }


def _trial(trial: Trial) -> dict[str, object]:
    if isinstance(trial, NotTried):
        return {"result": "not tried", "reason": trial.reason}
    if isinstance(trial, Failed):
        return {"result": "failed", **asdict(trial)}
    # JSON has no NaN.
    return {"result": "worked", **asdict(trial), "worst": trial.worst if math.isfinite(trial.worst) else None}


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "id": finding.error.id,
        "kind": "error" if finding.stops else "warning",
        "message": finding.error.message,
        "remedy": finding.error.remedy,
        "details": list(finding.error.details),
    }
