"""The report: everything a run has to say, as one JSON document. `qnn-forge report --format json` writes it.

The dataclasses here are the document; report.schema.json (shipped) says the same to other languages and a test holds
the two together. Results stand worst first. Tallies count every result, also those a long report leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

SCHEMA_VERSION = 1
KIND = "qnn-forge-report"

Verdict = Literal["failed", "missing", "unverified", "ok"]
# Worst first. `missing` was planned, but no job handed a result over: it was cancelled, killed, or never began.
VERDICTS: tuple[Verdict, ...] = ("failed", "missing", "unverified", "ok")


@dataclass(frozen=True)
class Tally:
    """How many bundles there are of each verdict; `reused` counts those that the store had already."""

    failed: int
    missing: int
    unverified: int
    ok: int
    reused: int

    @property
    def total(self) -> int:
        """All bundles."""
        return self.failed + self.missing + self.unverified + self.ok

    @property
    def made(self) -> int:
        """Bundles that exist."""
        return self.unverified + self.ok

    @property
    def worst(self) -> Verdict:
        """The worst verdict that occurs; ok when there is nothing."""
        return next((verdict for verdict in VERDICTS if getattr(self, verdict)), "ok")


@dataclass(frozen=True)
class Graph:
    """One graph of a bundle: bytes of its binary, worst cosine and error of its outputs, its metric in a few words."""

    name: str
    size: int
    cosine: float | None
    max_abs: float | None
    metric: str


@dataclass(frozen=True)
class Failure:
    """Why there is no bundle: the error as `qnn-forge build` shows it. `log` is a file name, never a path."""

    id: str
    message: str
    remedy: str
    details: tuple[str, ...]
    place: str | None
    log: str | None


@dataclass(frozen=True)
class Result:
    """One bundle, or why there is none. `seconds` is wall time, `path` the model's folder as a command takes it."""

    model: str
    version: str
    path: str
    bucket: str
    precision: str
    soc: str
    verdict: Verdict
    reused: bool
    seconds: float
    archive: str | None
    sha256: str | None
    graphs: tuple[Graph, ...]
    failure: Failure | None

    @property
    def size(self) -> int:
        """Bytes of all binaries."""
        return sum(graph.size for graph in self.graphs)

    @property
    def cosine(self) -> float | None:
        """The worst cosine of all graphs."""
        return min((graph.cosine for graph in self.graphs if graph.cosine is not None), default=None)


@dataclass(frozen=True)
class Variant:
    """One model × bucket × precision over its chips: counts, bytes of the largest bundle's binaries, worst cosine."""

    model: str
    bucket: str
    precision: str
    tally: Tally
    size: int
    cosine: float | None


@dataclass(frozen=True)
class Skip:
    """Chips a variant is not built for, and why."""

    variant: str
    reason: str
    socs: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One lint finding; `kind` is error or hint."""

    id: str
    kind: Literal["error", "hint"]
    path: str
    line: int | None
    column: int | None
    message: str
    remedy: str


@dataclass(frozen=True)
class Lint:
    """What lint said of how many models. `findings` may be fewer than `errors` + `hints` in a long report."""

    errors: int
    hints: int
    models: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Hint:
    """What would make one graph faster: rule, what was found with its numbers, what to change."""

    model: str
    bucket: str
    precision: str
    soc: str
    graph: str
    id: str
    title: str
    found: str
    change: str
    details: tuple[str, ...]


@dataclass(frozen=True)
class Remark:
    """What a build said of something that it built all the same: the stage, what it was about, and the words."""

    stage: str
    subject: str
    text: str


@dataclass(frozen=True)
class Plan:
    """What was planned: jobs, their CPU minutes, bytes to keep, and why anything is built."""

    dry_run: bool
    jobs: int
    cpu_minutes: float
    bytes: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Unreadable:
    """A document a job handed over that could not be read, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Report:
    """A whole report. `variants` and `results` may be fewer than `tally` counts: a long report keeps the worst."""

    schema: int
    kind: str
    commit: str | None
    run_url: str | None
    tally: Tally
    variants: tuple[Variant, ...]
    results: tuple[Result, ...]
    skipped: tuple[Skip, ...]
    lint: Lint | None
    plan: Plan | None
    unreadable: tuple[Unreadable, ...]
    hints: tuple[Hint, ...] = ()
    remarks: tuple[Remark, ...] = ()


def rank(verdict: Verdict) -> int:
    """0 for the worst."""
    return VERDICTS.index(verdict)


def worst_first(results: Iterable[Result]) -> tuple[Result, ...]:
    """By verdict, then model, bucket, precision and chip: the same results give the same order."""
    return tuple(
        sorted(
            results,
            key=lambda result: (rank(result.verdict), result.model, result.bucket, result.precision, result.soc),
        )
    )


def tally_of(results: Iterable[Result]) -> Tally:
    """Count verdicts."""
    counts = dict.fromkeys((*VERDICTS, "reused"), 0)
    for result in results:
        counts[result.verdict] += 1
        counts["reused"] += result.reused
    return Tally(**counts)


def variants_of(results: Iterable[Result]) -> tuple[Variant, ...]:
    """One line a variant, worst first: most failed bundles, then most missing, then by name."""
    members: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        members.setdefault((result.model, result.bucket, result.precision), []).append(result)
    lines = (
        Variant(
            *names,
            tally=tally_of(own),
            size=max(result.size for result in own),
            cosine=min((result.cosine for result in own if result.cosine is not None), default=None),
        )
        for names, own in members.items()
    )
    return tuple(sorted(lines, key=_variant_order))


def _variant_order(variant: Variant) -> tuple[int, int, int, str, str, str]:
    tally = variant.tally
    return (
        rank(tally.worst), -tally.failed, -tally.missing, variant.model, variant.bucket, variant.precision,
    )  # fmt: skip
