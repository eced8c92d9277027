"""Read socs.yaml and without_htp.yaml, the data of the chip table.

Both ship with the package and are held to their rules by tests, so a fault here is a defect, not a user's error.
Everything is read as strings and converted field by field: that is quicker than YAML's own types (the whole table in
5 ms), and keeps versions and dates as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from qnn.chips.soc import Evidence, OtherChip, Soc, Status

SOCS_FILE = Path(__file__).with_name("socs.yaml")
OTHERS_FILE = Path(__file__).with_name("without_htp.yaml")


@dataclass(frozen=True)
class TableData:
    """The content of socs.yaml: rows, the names of the flagships, and what the letters of sources mean."""

    socs: tuple[Soc, ...]
    flagships: tuple[str, ...]
    lists: tuple[tuple[str, str], ...]


def read_socs(path: Path = SOCS_FILE) -> TableData:
    """socs.yaml as dataclasses. Raises KeyError, TypeError or ValueError for a row that breaks the format."""
    document = _document(path)
    return TableData(
        socs=tuple(_soc(dict(row)) for row in document["socs"]),
        flagships=tuple(document["flagships"]),
        lists=tuple(document["lists"].items()),
    )


def read_others(path: Path = OTHERS_FILE) -> tuple[OtherChip, ...]:
    """without_htp.yaml as dataclasses. Raises as `read_socs` does."""
    return tuple(_other(dict(row)) for row in _document(path)["chips"])


def _document(path: Path) -> dict[str, Any]:
    loader = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
    found: dict[str, Any] = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - BaseLoader makes only strings
    return found


def _soc(row: dict[str, Any]) -> Soc:
    fp16 = _boolean(row.pop("fp16"))
    return Soc(
        soc_id=int(row.pop("soc_id")),
        vtcm_mb=int(row.pop("vtcm_mb")),
        hvx_threads=int(row.pop("hvx_threads")),
        fp16=fp16,
        compiler_fp16=_boolean(row.pop("compiler_fp16")) if "compiler_fp16" in row else fp16,
        status=Status(row.pop("status")),
        sources=_evidence(row.pop("sources")),
        marketing=tuple(row.pop("marketing", ())),
        device=tuple(row.pop("device", ())),
        linux_soc0=tuple(int(number) for number in row.pop("linux_soc0", ())),
        aliases=tuple(row.pop("aliases", ())),
        **row,  # name, arch, first_qairt, date, note; an unknown key is a TypeError
    )


def _other(row: dict[str, Any]) -> OtherChip:
    number = row.pop("soc_id", None)
    return OtherChip(
        soc_id=None if number is None else int(number),
        compiles=_boolean(row.pop("compiles", "false")),
        marketing=tuple(row.pop("marketing", ())),
        aliases=tuple(row.pop("aliases", ())),
        **row,
    )


def _evidence(sources: Mapping[str, str]) -> tuple[Evidence, ...]:
    return tuple(Evidence(fact, tuple(lists.split())) for fact, lists in sources.items())


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text]
