"""Documents as the commands print them, for a report to be made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RUN = "https://github.com/acme/models/actions/runs/42"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def target(soc: str = "SM8650", **changes: Any) -> dict[str, Any]:
    """A bundle that went well, with what is changed."""
    names = {"model": "toy", "version": "1.0", "bucket": "default", "precision": "fp16"} | changes
    name = "-".join(names[key] for key in ("model", "version", "bucket", "precision")) + f"-{soc}"
    return {
        "name": name,
        "soc": soc,
        "verdict": "ok",
        "reused": False,
        "seconds": 1.25,
        "folder": f"dist/{name}-qairt2.51.0",
        "archive": f"dist/{name}-qairt2.51.0.tar.gz",
        "sha256": "ab" * 32,
        "graphs": [{"name": "net", "size": 770000, "cosine": 0.999914, "max_abs": 0.065, "metric": "iou 0.9984"}],
        "error": None,
        **names,
    }


def failed(soc: str = "SM8650", *, error: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A bundle that failed at a gate."""
    made = target(soc, **changes)
    said = {
        "id": "QF620",
        "message": f"{made['name'].removesuffix(f'-{soc}')} net on {soc}: output y differs from the float model",
        "remedy": "give this output a gate of its own",
        "details": ["y: cosine 0.98 is below 0.999"],
        "place": None,
        "log": None,
    }
    none: dict[str, Any] = {"verdict": "failed", "folder": None, "archive": None, "sha256": None, "graphs": []}
    return made | none | {"error": said | (error or {})}


def build(*targets: dict[str, Any], **lists: list[dict[str, str]]) -> dict[str, Any]:
    """What `qnn-forge build --json` prints; `lists` are its skipped and its remarks."""
    return {"schema": 1, "out": "dist", "targets": list(targets), "skipped": [], "remarks": [], **lists}


def remark(**changes: str) -> dict[str, str]:
    """One remark of a build."""
    return {"stage": "range", "subject": "toy-1.0-default-fp16 net", "text": "1 tensor leaves fp16's range"} | changes


def problem(kind: str = "error", **changes: Any) -> dict[str, Any]:
    """One finding of lint."""
    found = {
        "id": "QF104",
        "kind": kind,
        "path": "models/toy/model.yaml",
        "line": 7,
        "column": 9,
        "message": 'there is no source "x"',
        "remedy": "add it under sources",
    }
    return found | changes


def lint(*problems: dict[str, Any], models: int = 1) -> dict[str, Any]:
    """What `qnn-forge lint --format json` prints."""
    errors = sum(found["kind"] == "error" for found in problems)
    return {"errors": errors, "hints": len(problems) - errors, "models": models, "problems": list(problems)}


def hint(**changes: Any) -> dict[str, Any]:
    """One hint for speed."""
    found = {
        "model": "toy",
        "version": "1.0",
        "bucket": "default",
        "precision": "fp16",
        "soc": "SM8650",
        "graph": "net",
        "id": "QH04",
        "title": "a GELU that is not fused",
        "found": "GELU is written out in a form that does not become Gelu, 2 times",
        "change": "use the ONNX operator Gelu",
        "details": ["block_0/Tanh (Tanh): became Tanh", "block_1/Tanh (Tanh): became Tanh"],
    }
    return found | changes


def hints(*found: dict[str, Any]) -> dict[str, Any]:
    """What `qnn-forge hints --json` prints."""
    return {"schema": 1, "kind": "qnn-forge-hints", "hints": list(found)}


def job(socs: str, **changes: Any) -> dict[str, Any]:
    """A compile job of a plan."""
    made = {"name": "x", "id": "x", "prepare_id": "x", "model": "models/toy", "bucket": "default", "precision": "fp16"}
    return made | {"socs": socs, "minutes": 1.5} | changes


def plan(*jobs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What `qnn-forge plan --json` prints, as far as a report reads it."""
    head = {"schema": 1, "empty": not jobs, "dry_run": False, "parts": 1, "targets": 3, "jobs": 4, "cpu_minutes": 6.5}
    return head | {"bytes": 2_310_000, "reasons": ["models/toy/model.yaml changed"], "compile": list(jobs)} | changes


def write(folder: Path, name: str, document: object) -> Path:
    """The document in a file."""
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
