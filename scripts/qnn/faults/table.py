"""The table of known faults, faults.yaml, as dataclasses.

The file ships with the package and is held to its rules by tests, so a fault in it is a defect, not a user's error.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("faults.yaml")


class Outcome(StrEnum):
    """What qnn-forge does about a fault."""

    REWRITTEN = "rewritten"  # by a rewrite of qnn.prepare, on every chip
    REFUSED = "refused"  # before compiling, by this table
    COMPILER = "compiler"  # by the compiler, whose answer names no remedy; qnn-forge names node and remedy
    WATCHED = "watched"  # wrong for some data only: the gates decide, and then name the node and the remedy


class Shown(StrEnum):
    """What a probe shows on the emulator, compared with ONNX Runtime's CPU provider."""

    RIGHT = "right"
    WRONG = "wrong"
    FAILS = "fails"  # refused, an error, or a crash


@dataclass(frozen=True)
class Probe:
    """A tiny graph of qnn.faults.probes, a chip, what was seen of it as it is, and after preparation.

    `mended` is None where preparation does nothing about it.
    """

    graph: str
    soc: str
    raw: Shown
    mended: Shown | None


@dataclass(frozen=True)
class Fault:
    """One entry. `archs`, `precisions` empty: all. `rewrite` names the rewrite of an entry that is rewritten;
    `matcher` the function of qnn.faults.matchers that finds the pattern, for entries that are refused or watched."""

    id: str
    title: str
    operators: tuple[str, ...]
    pattern: str
    archs: tuple[str, ...]
    precisions: tuple[str, ...]
    qairt: tuple[str, ...]
    evidence: str
    outcome: Outcome
    rewrite: str | None
    matcher: str | None
    remedy: str
    probes: tuple[Probe, ...]

    def concerns(self, precision: str, arch: str) -> bool:
        """Whether the entry speaks of this precision and this arch."""
        return (not self.precisions or precision in self.precisions) and (not self.archs or arch in self.archs)


@functools.cache
def load_faults() -> tuple[Fault, ...]:
    """All entries, in the file's order. Read once a process."""
    return read_faults(FILE.read_bytes())


def fault_by_id(fault_id: str) -> Fault:
    """Raises KeyError for an id that is not in the table."""
    return {fault.id: fault for fault in load_faults()}[fault_id]


def read_faults(data: bytes) -> tuple[Fault, ...]:
    """The entries of a table; raises KeyError, TypeError or ValueError where it breaks the format."""
    loader = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
    document: dict[str, Any] = yaml.load(data, Loader=loader)  # noqa: S506 - BaseLoader makes only strings
    return tuple(_fault(dict(row)) for row in document["faults"])


def _fault(row: dict[str, Any]) -> Fault:
    fault = Fault(
        id=row.pop("id"),
        title=row.pop("title"),
        operators=tuple(row.pop("operators")),
        pattern=row.pop("pattern"),
        archs=tuple(row.pop("archs", ())),
        precisions=tuple(row.pop("precisions", ())),
        qairt=tuple(row.pop("qairt")),
        evidence=row.pop("evidence"),
        outcome=Outcome(row.pop("outcome")),
        rewrite=row.pop("rewrite", None),
        matcher=row.pop("matcher", None),
        remedy=row.pop("remedy"),
        probes=tuple(_probe(probe) for probe in row.pop("probes", ())),
    )
    if row:
        raise ValueError(f"{fault.id}: unknown keys {', '.join(row)}")
    return fault


def _probe(row: Mapping[str, str]) -> Probe:
    mended = row.get("mended")
    return Probe(row["graph"], row["soc"], Shown(row["raw"]), None if mended is None else Shown(mended))
