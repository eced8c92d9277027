"""What a build is asked to make: model × bucket × precision × SoC. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from qnn.chips.select import is_glob, select
from qnn.chips.table import ChipTable, Soc, needs_fp16, require_precision
from qnn.errors.base import ForgeError
from qnn.errors.plan import ChipNotTargeted, NothingToBuild, UnknownBucket, UnknownPrecision
from qnn.model.licences import restriction
from qnn.model.spec import Model

_RESTRICTED = "--allow-restricted builds it all the same"


@dataclass(frozen=True)
class Variant:
    """Everything that does not depend on the chip."""

    model: Model
    bucket: str
    precision: str

    @property
    def name(self) -> str:
        """silero-vad-6.2.3-default-fp16"""
        return f"{self.model.name}-{self.model.version}-{self.bucket}-{self.precision}"


@dataclass(frozen=True)
class Target:
    """One bundle to make."""

    variant: Variant
    soc: Soc

    @property
    def name(self) -> str:
        """silero-vad-6.2.3-default-fp16-SM8650"""
        return f"{self.variant.name}-{self.soc.name}"


@dataclass(frozen=True)
class Skipped:
    """A combination left out, and why."""

    variant: Variant
    soc: Soc
    reason: str


@dataclass(frozen=True)
class BuildPlan:
    """What to make, in order, and what was left out."""

    targets: tuple[Target, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class Wanted:
    """What the user asked for; an empty tuple means everything the model names.

    Models under a licence that not everybody may use (qnn.model.licences) are left out unless `allow_restricted`.
    """

    socs: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    allow_restricted: bool = False


def plan_build(models: Sequence[Model], wanted: Wanted, table: ChipTable) -> BuildPlan:
    """Every target of the models that the user wants, and the combinations left out with a reason.

    A chip the user names outright must be possible for at least one model: else ChipNotTargeted (QF206) when the
    models exclude it, NoFp16 (QF204) when the precisions need what it has not. A chip that only a glob or a word
    brought in is skipped instead. Raises NothingToBuild (QF207) when no target is left, UnknownBucket (QF208) and
    UnknownPrecision (QF209) for names that none of the models has, and the errors of qnn.chips.select.
    """
    targets: list[Target] = []
    skipped: list[Skipped] = []
    for model, variants in _having(models, wanted):
        restricted = "" if wanted.allow_restricted else restriction(model.licence.spdx)
        chosen = _chips(model, wanted, table)
        for variant in variants:
            for soc, excluded in chosen:
                reason = (restricted and restricted_reason(restricted)) or excluded or _lacks(soc, variant.precision)
                if reason:
                    skipped.append(Skipped(variant, soc, reason))
                else:
                    targets.append(Target(variant, soc))
    _require_named(named_outright(wanted.socs, table), targets, skipped)
    if not targets:
        raise NothingToBuild(
            "no model × bucket × precision × chip is left to build",
            remedy="widen --soc, --precision or --bucket, or the targets in model.yaml",
            details=[f"{skip.variant.name} on {skip.soc.name}: {skip.reason}" for skip in skipped[:10]],
        )
    return BuildPlan(tuple(targets), tuple(skipped))


def _having(models: Sequence[Model], wanted: Wanted) -> list[tuple[Model, tuple[Variant, ...]]]:
    """The models that have the buckets and precisions that are wanted; when none has, the error of the first."""
    having = []
    faults: list[ForgeError] = []
    for model in models:
        try:
            having.append((model, variants_of(model, wanted)))
        except (UnknownBucket, UnknownPrecision) as fault:
            faults.append(fault)
    if faults and not having:
        raise faults[0]
    return having


def restricted_reason(restricted: str) -> str:
    """Why a model of such a licence is left out."""
    return f"{restricted}; {_RESTRICTED}"


def variants_of(model: Model, wanted: Wanted) -> tuple[Variant, ...]:
    """The model's variants that are wanted, by bucket, then precision.

    Raises UnknownBucket (QF208) and UnknownPrecision (QF209) for names the model does not have.
    """
    return tuple(
        Variant(model, bucket, precision)
        for bucket in _narrow(sorted(model.buckets), wanted.buckets, model, UnknownBucket)
        for precision in _narrow(model.precisions, wanted.precisions, model, UnknownPrecision)
    )


def _chips(model: Model, wanted: Wanted, table: ChipTable) -> list[tuple[Soc, str]]:
    """Chips in the table's order with the reason to leave one out, or an empty string."""
    own = select(model.targets.socs, table)
    own_ids = {soc.soc_id for soc in own}
    excluded = {
        soc.soc_id: f"excluded by the model: {exclusion.reason}"
        for exclusion in model.targets.exclude
        for soc in select(exclusion.socs, table)
    }
    chosen = select(wanted.socs, table) if wanted.socs else own
    return [
        (soc, excluded.get(soc.soc_id, "" if soc.soc_id in own_ids else "not among the model's targets"))
        for soc in chosen
    ]


def _lacks(soc: Soc, precision: str) -> str:
    return f"{soc.name} has no fp16" if needs_fp16(precision) and not soc.fp16 else ""


def _require_named(named: frozenset[int], targets: Sequence[Target], skipped: Sequence[Skipped]) -> None:
    """A chip named outright that came to nothing is the user's question, so it gets an answer."""
    possible = {target.soc.soc_id for target in targets}
    for skip in skipped:
        if skip.soc.soc_id in named - possible:
            if skip.reason == _lacks(skip.soc, skip.variant.precision):
                require_precision(skip.soc, skip.variant.precision)
            if skip.reason.endswith(_RESTRICTED):
                continue  # that no model is left is said below
            raise ChipNotTargeted(
                f"{skip.soc.name} is not a target of {skip.variant.model.name}: {skip.reason}",
                remedy="leave the chip out, or change `targets` in the model.yaml",
            )


def named_outright(expressions: Sequence[str], table: ChipTable) -> frozenset[int]:
    """soc_ids of the chips that the expressions name one by one, not by a glob or a word."""
    found = set()
    for part in (part.strip() for expression in expressions for part in expression.split(",")):
        if part and not part.startswith("!") and not is_glob(part) and part.lower() not in table.words:
            found.add(table.lookup(part).soc_id)
    return frozenset(found)


def _narrow(
    own: Sequence[str], wanted: tuple[str, ...], model: Model, fault: type[UnknownBucket] | type[UnknownPrecision]
) -> list[str]:
    if not wanted:
        return list(own)
    kept = [name for name in own if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)]
    if not kept:
        raise fault(f"{model.name} has no {fault.what} {', '.join(wanted)}", remedy=f"choose among: {', '.join(own)}")
    return kept
