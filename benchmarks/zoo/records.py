"""What was measured of the models so far. One file; a run that is broken off goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Row:
    """One graph of a bundle, or its chain: bytes, worst cosine and greatest error of its outputs, metric in words."""

    name: str
    size: int
    cosine: float | None
    max_abs: float | None
    metric: str


@dataclass(frozen=True)
class Record:
    """One model × bucket × precision on one chip. `seconds` is wall time of making the bundle from nothing but what
    does not depend on the chip; 0 when it was found in the store and never timed. `error` is the id of what failed.
    """

    model: str
    bucket: str
    precision: str
    soc: str
    qairt: str
    seconds: float
    rows: tuple[Row, ...]
    error: str

    @property
    def key(self) -> Key:
        """What the record is about."""
        return self.model, self.bucket, self.precision, self.soc


def load(file: Path) -> dict[Key, Record]:
    """The records of a file, by what they are about; none when there is no file yet."""
    if not file.exists():
        return {}
    records = (_record(item) for item in json.loads(file.read_text(encoding="utf-8")))
    return {record.key: record for record in records}


def save(file: Path, records: Iterable[Record]) -> None:
    """Write the records, sorted; a reader sees the old file or the new one."""
    ordered = sorted(records, key=lambda record: record.key)
    partial = file.with_name(f"{file.name}.part")
    partial.write_text(json.dumps([asdict(record) for record in ordered], indent=1) + "\n", encoding="utf-8")
    os.replace(partial, file)


def _record(item: Mapping[str, Any]) -> Record:
    return Record(**{**item, "rows": tuple(Row(**row) for row in item["rows"])})
