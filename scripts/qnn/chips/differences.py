"""Hold what the compiler said of every soc_id against the chip table. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from qnn.binary.info import qairt_version
from qnn.chips.probe import Answer, Refusal
from qnn.chips.soc import OtherChip, Soc, qairt_key
from qnn.chips.sweep import Crash, Observation
from qnn.chips.table import ChipTable
from qnn.errors.chips import ChipTableDiffers

_FIRST_HTP = 68
# Up to 2.48.40 an unset vtcm_mb gave 4 MB for every chip; since then it gives the chip's maximum.
_VTCM_SHOWN_SINCE = (2, 49, 40)
_MB = 1 << 20


class Kind(StrEnum):
    """How the compiler and the table differ about one id."""

    MISSING = "missing"  # in the table, but refused by the compiler
    CHANGED = "changed"  # a fact is not as in the table
    NEW = "new"  # an HTP that the table does not have
    CRASHED = "crashed"  # no answer


@dataclass(frozen=True)
class Difference:
    """One way in which the table and the compiler differ about an id.

    `field` and `table` are empty unless the kind is CHANGED; `compiler` is then the field's value, else what the
    compiler said as a whole.
    """

    kind: Kind
    soc_id: int
    name: str
    field: str
    table: str
    compiler: str

    def __str__(self) -> str:
        what = f"{self.kind} {self.soc_id} {self.name}: "
        if self.kind is Kind.CHANGED:
            return f"{what}{self.field} is {self.compiler} by the compiler, {self.table} in the table"
        return what + self.compiler


@dataclass(frozen=True)
class SweepReport:
    """The outcome of a check.

    `qairt` is the compiler's version. `agreeing` chips of the table answered as it says; `later` are those whose
    first_qairt is newer than the compiler, which it rightly refuses; `without_htp` ids were accepted by the compiler
    although no HTP is behind them. `vtcm_checked` is False where the compiler is too old to tell.
    """

    qairt: str
    asked: int
    agreeing: tuple[int, ...]
    later: tuple[int, ...]
    without_htp: tuple[int, ...]
    differences: tuple[Difference, ...]
    vtcm_checked: bool

    def require_agreement(self) -> None:
        """Raise ChipTableDiffers (QF205) with every difference, if there is one."""
        if self.differences:
            raise ChipTableDiffers(
                f"QAIRT {self.qairt} and the chip table differ (differences: {len(self.differences)})",
                remedy="correct the table (socs.yaml, without_htp.yaml) after finding a second source",
                details=[str(difference) for difference in self.differences],
            )


def compare(observations: Iterable[Observation], table: ChipTable) -> SweepReport:
    """Hold what the compiler said against the table. Pure.

    Raises ChipTableDiffers (QF205) when no id at all gave a binary, because then the compiler itself does not work.
    """
    seen = {observation.soc_id: observation for observation in observations}
    qairt = _qairt(seen.values())
    socs = {soc.soc_id: soc for soc in table.socs}
    others = {other.soc_id: other for other in table.others if other.soc_id is not None}
    differences: list[Difference] = []
    agreeing, later, without_htp = [], [], []
    for soc_id in sorted(seen):
        observation, soc = seen[soc_id], socs.get(soc_id)
        if soc is None:
            found = _unlisted(observation, others.get(soc_id))
            if not found and isinstance(observation.quantized, Answer):
                without_htp.append(soc_id)
        elif isinstance(observation.quantized, Refusal) and qairt_key(soc.first_qairt) > qairt_key(qairt):
            later.append(soc_id)
            continue
        else:
            found = _listed(observation, soc, qairt)
            if not found:
                agreeing.append(soc_id)
        differences += found
    return SweepReport(
        qairt=qairt,
        asked=len(seen),
        agreeing=tuple(agreeing),
        later=tuple(later),
        without_htp=tuple(without_htp),
        differences=tuple(differences),
        vtcm_checked=_shows_vtcm(qairt),
    )


def _qairt(observations: Iterable[Observation]) -> str:
    replies = [observation.quantized for observation in observations]
    for reply in replies:
        if isinstance(reply, Answer):
            return _version(reply)
    failures = [reply.message for reply in replies if not isinstance(reply, Answer)]
    raise ChipTableDiffers(
        "the compiler made no binary for any chip, so it does not work here",
        remedy="install the pinned packages (onnxruntime and onnxruntime-qnn of one tested pair) and run it again",
        details=list(dict.fromkeys(failures))[:3],
    )


def _listed(observation: Observation, soc: Soc, qairt: str) -> list[Difference]:
    reply = observation.quantized
    if not isinstance(reply, Answer):
        return [_no_answer(observation.soc_id, soc.name, reply)]
    if isinstance(observation.fp16, Crash):
        return [_no_answer(observation.soc_id, soc.name, observation.fp16)]
    expected = _expected(soc, qairt)
    told = _told(reply, fp16=isinstance(observation.fp16, Answer))
    return [
        Difference(Kind.CHANGED, soc.soc_id, soc.name, field, expected[field], told[field])
        for field in expected
        if expected[field].casefold() != told[field].casefold()
    ]


def _expected(soc: Soc, qairt: str) -> dict[str, str]:
    facts = {
        "soc_id": str(soc.soc_id),
        "name": soc.name,
        "arch": soc.arch,
        "hvx_threads": str(soc.hvx_threads),
        "fp16": _yes(soc.compiler_fp16),
    }
    if _shows_vtcm(qairt):
        facts["vtcm_mb"] = str(soc.vtcm_mb)
    if qairt_key(soc.first_qairt) > qairt_key(qairt):
        facts["first_qairt"] = soc.first_qairt
    return facts


def _told(reply: Answer, *, fp16: bool) -> dict[str, str]:
    settings = reply.settings
    return {
        "soc_id": _text(reply.soc_model),
        "name": _text(settings.name),
        "arch": f"v{reply.dsp_arch}" if reply.dsp_arch else _text(None),
        "hvx_threads": _text(settings.hvx_threads),
        "vtcm_mb": _text(None if settings.vtcm_bytes is None else settings.vtcm_bytes // _MB),
        "fp16": _yes(fp16),
        "first_qairt": _version(reply),
    }


def _unlisted(observation: Observation, other: OtherChip | None) -> list[Difference]:
    """Differences about an id without a row: news if an HTP is behind it that was not known to be none."""
    reply = observation.quantized
    name = other.name if other else "(unlisted)"
    if isinstance(reply, Refusal):
        return []  # also for chips without an HTP: whether their ids are still taken matters to nobody
    if isinstance(reply, Crash):
        return [_no_answer(observation.soc_id, name, reply)]
    arch = reply.dsp_arch or 0
    if other is not None and other.compiles:
        if arch == 0 or f"v{arch}" == other.dsp:
            return []
        return [Difference(Kind.CHANGED, observation.soc_id, name, "dsp", other.dsp, f"v{arch}")]
    if arch < _FIRST_HTP:
        return []
    told = _told(reply, fp16=isinstance(observation.fp16, Answer))
    facts = ", ".join(f"{field} {told[field]}" for field in ("arch", "vtcm_mb", "hvx_threads", "fp16"))
    return [Difference(Kind.NEW, observation.soc_id, _text(reply.settings.name), "", "", facts)]


def _no_answer(soc_id: int, name: str, reply: Refusal | Crash) -> Difference:
    kind = Kind.MISSING if isinstance(reply, Refusal) else Kind.CRASHED
    return Difference(kind, soc_id, name, "", "", reply.message)


def _version(reply: Answer) -> str:
    return qairt_version(reply.build_id) or "0.0.0"


def _shows_vtcm(qairt: str) -> bool:
    return qairt_key(qairt) >= _VTCM_SHOWN_SINCE


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _text(value: object) -> str:
    return "not stated" if value is None else str(value)
