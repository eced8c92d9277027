"""What the chip table holds: one `Soc` a chip with an HTP, one `OtherChip` for each known one without."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

# Hexagon versions with an HTP, oldest first. QAIRT 2.51 compiles for these.
ARCHES = ("v68", "v69", "v73", "v75", "v79", "v81", "v85")
# The oldest QAIRT the chip ids were looked up in; a chip it knows may well be known to older ones.
OLDEST_QAIRT = "2.48.40"


class Status(StrEnum):
    """Whether anybody but the compiler lists the chip."""

    PUBLIC = "public"
    COMPILER_ONLY = "compiler-only"


class Group(NamedTuple):
    """All that decides how a binary comes out. Chips of one group differ only in the soc_id written into it."""

    arch: str
    vtcm_mb: int
    fp16: bool
    hvx_threads: int

    def __str__(self) -> str:
        fp16 = "fp16" if self.fp16 else "no fp16"
        return f"{self.arch}, {self.vtcm_mb} MB VTCM, {self.hvx_threads} HVX threads, {fp16}"


@dataclass(frozen=True)
class Evidence:
    """Which lists state a fact (`id`, `arch`, `vtcm` or `fp16`); their codes are explained by `ChipTable.lists`."""

    fact: str
    lists: tuple[str, ...]


@dataclass(frozen=True)
class Soc:
    """One chip with an HTP: a row of socs.yaml, which explains the fields.

    `soc_id` is QNN's number (soc_model) and the only thing passed to tools. `vtcm_mb` is MB. `linux_soc0` are values
    of /sys/devices/soc0/soc_id, which is another number space. `compiler_fp16` is what the compiler does with a float
    graph; it differs from `fp16` where the compiler is more lenient than the chip.
    """

    name: str
    soc_id: int
    arch: str
    vtcm_mb: int
    hvx_threads: int
    fp16: bool
    compiler_fp16: bool
    first_qairt: str
    status: Status
    sources: tuple[Evidence, ...]
    date: str
    marketing: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    linux_soc0: tuple[int, ...] = ()
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def group(self) -> Group:
        """The chip's facts that matter to the compiler."""
        return Group(self.arch, self.vtcm_mb, self.fp16, self.hvx_threads)

    @property
    def arch_number(self) -> int:
        """75 for v75: the form `htp_arch` takes."""
        return int(self.arch[1:])

    @property
    def known_since(self) -> str:
        """`first_qairt` as a person should read it: an upper bound where it is the oldest one looked at."""
        return f"{self.first_qairt} or earlier" if self.first_qairt == OLDEST_QAIRT else self.first_qairt

    @property
    def names(self) -> tuple[str, ...]:
        """Everything a glob is matched with: the name, aliases and device strings, each once."""
        return tuple(dict.fromkeys((self.name, *self.aliases, *self.device)))


@dataclass(frozen=True)
class OtherChip:
    """A known chip for which nothing can be compiled: a row of without_htp.yaml.

    `dsp` is the Hexagon version, ``none`` or ``unknown``. `compiles` says whether the compiler accepts `soc_id`.
    """

    name: str
    soc_id: int | None
    dsp: str
    compiles: bool
    marketing: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def reason(self) -> str:
        """Why nothing can be compiled for it, in words that complete ``NAME: …``."""
        if self.note:
            return self.note
        if self.dsp in ("none", "unknown"):
            return "it has no Hexagon Tensor Processor"
        return f"its Hexagon DSP is {self.dsp}; the HTP begins with v68"


def qairt_key(version: str) -> tuple[int, ...]:
    """``2.49.40`` as numbers, to compare versions by."""
    return tuple(int(part) for part in version.split("."))
