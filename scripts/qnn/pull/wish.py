"""What somebody wants from the index, and what there is for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from qnn.chips.soc import Soc, qairt_key
from qnn.index.document import IndexFile, IndexVariant

_RUNTIME = re.compile(r"v?([0-9]{1,12}(?:\.[0-9]{1,18}){1,3})")


class Verdict(StrEnum):
    """What `pull` says: a file to use, one to use with a warning, one to be built first, or none."""

    USE = "use"
    WARN = "use with a warning"
    BUILD = "build it"
    NO = "no"


@dataclass(frozen=True)
class Runtime:
    """The QAIRT version on the device, as far as it is known: ``2.48`` means any 2.48."""

    text: str
    numbers: tuple[int, ...]

    def is_older_than(self, version: str) -> bool:
        """Whether `version`, cut to as many numbers as this one has, is newer."""
        return qairt_key(version)[: len(self.numbers)] > self.numbers


@dataclass(frozen=True)
class Wish:
    """What is asked for; None is whatever suits best. `yanked_too` counts only together with a revision."""

    model: str
    chip: Soc
    version: str | None = None
    bucket: str | None = None
    precision: str | None = None
    runtime: Runtime | None = None
    revision: int | None = None
    yanked_too: bool = False


@dataclass(frozen=True)
class Choice:
    """What there is: the file and its variant when there is one, why, what is near, how to build it.

    `reasons` are sentences, the first one says the most; `near` names what could be had instead.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    variant: IndexVariant | None = None
    file: IndexFile | None = None
    near: tuple[str, ...] = ()
    build: str | None = None


def parse_runtime(text: str) -> Runtime | None:
    """``2.48``, ``2.48.40`` or a whole build id (``v2.48.40.260702151143``); None for anything else."""
    found = _RUNTIME.fullmatch(text.strip())
    return None if found is None else Runtime(text.strip(), tuple(int(part) for part in found[1].split(".")))
