"""What the scripts beside this one share: the request of a run, and calling qnn-forge."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Where a job's files are. A relative path, since expressions name the runner's folders wrongly inside a container.
WORK = Path("qnn-forge-work")
# GitHub starts at most so many jobs of one matrix.
MATRIX_LIMIT = 256
_IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:-]*@sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Request:
    """The inputs of build-models.yaml. Lists are words separated by spaces or commas."""

    models: tuple[str, ...]
    models_dir: str
    socs: tuple[str, ...]
    precisions: tuple[str, ...]
    image: str
    changed_from: str
    labels: str
    shard: int | None  # which share of the plan; None when the run is for all of it
    shard_jobs: int
    join: bool  # no prepare job for a variant that has one compile job


def request(text: str) -> Request:
    """The request in `toJSON(inputs)`; leaves with a message when the image is not named by digest."""
    given: dict[str, Any] = {key: value for key, value in json.loads(text or "{}").items() if value is not None}
    if given.get("image") and not _IMAGE.fullmatch(given["image"]):
        sys.exit("::error title=Image::name the image by digest: registry/owner/name@sha256:…")
    return Request(
        models=words(given.get("models", "")),
        models_dir=given.get("models-dir") or "models",
        socs=words(given.get("socs", "")),
        precisions=words(given.get("precisions", "")),
        image=given.get("image", ""),
        changed_from=given.get("changed-from", ""),
        labels=given.get("labels", ""),
        shard=int(given["shard"]) if "shard" in given else None,
        join=given.get("join") in {True, "true"},
        shard_jobs=min(int(given.get("shard-jobs") or MATRIX_LIMIT), MATRIX_LIMIT),
    )


def words(text: str) -> tuple[str, ...]:
    """'a, b c' → (a, b, c)."""
    return tuple(word for word in re.split(r"[\s,]+", text) if word)


def output(*command: str) -> str:
    """Standard output of a qnn-forge command; leaves with its exit code when it fails."""
    done = subprocess.run(["qnn-forge", *command], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stdout)
        sys.exit(done.returncode)
    return done.stdout


def run(*command: str) -> None:
    """Run a qnn-forge command; leaves with its exit code when it fails."""
    code = subprocess.run(["qnn-forge", *command], check=False).returncode
    if code:
        sys.exit(code)


def append(variable: str, text: str) -> None:
    """Add to one of the files GitHub reads: GITHUB_OUTPUT, GITHUB_STEP_SUMMARY."""
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text)
