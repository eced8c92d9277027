"""What would be built, and why: models and chips, narrowed by what changed, by labels and by a request. Pure."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from qnn.chips.select import select
from qnn.chips.soc import Group, Status
from qnn.chips.table import ChipTable, Soc, needs_fp16, require_precision
from qnn.errors.base import ForgeError, Place
from qnn.errors.plan import ChipNotTargeted, NothingToBuild, UnknownBucket, UnknownPrecision
from qnn.model.text import short
from qnn.plan.changes import Changes
from qnn.plan.labels import Labels
from qnn.plan.outline import Outline
from qnn.plan.targets import named_outright, restricted_reason


@dataclass(frozen=True)
class Request:
    """What is asked for; an empty tuple means everything. `changes` is None where nothing was said of a change.

    `socs` are chip expressions (qnn.chips.select), `buckets` and `precisions` globs. Models under a licence that not
    everybody may use are left out unless `allow_restricted`.
    """

    socs: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    labels: Labels = field(default_factory=Labels)
    changes: Changes | None = None
    allow_restricted: bool = False


@dataclass(frozen=True)
class PlannedVariant:
    """One variant to prepare, and the chips to compile it for, in the table's order and at least one.

    `why` holds for all of its chips; `chip_why` has a reason more for some, by name.
    """

    model: Outline
    bucket: str
    precision: str
    socs: tuple[Soc, ...]
    why: tuple[str, ...]
    chip_why: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """``silero-vad · fp16``; with the bucket when the model has several."""
        bucket = (self.bucket,) if len(self.model.buckets) > 1 else ()
        return " · ".join((self.model.name, *bucket, self.precision))

    def reasons(self, soc: Soc) -> tuple[str, ...]:
        """Why this variant is built for this chip; at least one reason."""
        own = self.chip_why.get(soc.name)
        return self.why if own is None else (*self.why, own)


@dataclass(frozen=True)
class LeftOut:
    """Chips that a variant is not built for, and why."""

    model: str
    bucket: str
    precision: str
    socs: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Plan:
    """The variants to build, by model, bucket and precision. `reasons` say why there are these and no others."""

    variants: tuple[PlannedVariant, ...]
    left_out: tuple[LeftOut, ...]
    reasons: tuple[str, ...]
    dry_run: bool


def folders_needed(names: Sequence[str], request: Request) -> tuple[str, ...]:
    """Which of the model folders have to be read to make the plan; planning one change must not read 1,000 files."""
    labels, changes = request.labels, request.changes
    if labels.skip:
        return ()
    wanted = [name for name in names if not labels.models or _any_matches(name, labels.models)]
    if changes is None or changes.everything or changes.chips:
        return tuple(wanted)
    return tuple(name for name in wanted if name in changes.models)


def make_plan(models: Sequence[Outline], request: Request, table: ChipTable) -> Plan:
    """The plan for the models, in whatever order they come.

    With `request.changes` an empty plan is an answer. Without, it is a mistake of the request: raises NothingToBuild
    (QF207); UnknownBucket (QF208) and UnknownPrecision (QF209) when no model has what is named; for a chip named
    outright that no model can be built for, ChipNotTargeted (QF206) or NoFp16 (QF204); and, with a place, the errors of
    qnn.chips.select for an expression of the request or of a model.yaml.
    """
    planner = _Planner(request, table)
    if request.labels.skip:
        return Plan((), (), ("label ci:skip: nothing is built",), request.labels.dry_run)
    ordered = sorted(models, key=lambda model: (model.name, model.folder))
    chosen = [model for model in ordered if planner.wants(model)]
    variants: list[PlannedVariant] = []
    left_out: list[LeftOut] = []
    for model in chosen:
        try:
            planner.add(model, variants, left_out)
        except ForgeError as error:
            raise error.at(Place(os.path.join(model.folder, "model.yaml"))) from None
    if request.changes is None and not request.labels.models and not planner.unmatched:
        _require_something(request, chosen, variants, left_out, table)
    return Plan(tuple(variants), tuple(left_out), _reasons(request, variants, planner), request.labels.dry_run)


_Own = tuple[tuple[Soc, ...], tuple[tuple[str, tuple[str, ...]], ...]]


class _Planner:
    """Chooses chips. Models write the same few expressions over and over, so each is looked up once."""

    def __init__(self, request: Request, table: ChipTable) -> None:
        self._request = request
        self._table = table
        self._asked = self._chips_asked_for()
        self._own: dict[tuple[object, ...], _Own] = {}
        self._default: dict[tuple[int, ...], frozenset[int]] = {}
        self._flagships = {soc.soc_id for soc in table.flagships}

    @property
    def unmatched(self) -> bool:
        """Whether labels name chips, but none that exists."""
        return bool(self._request.labels.socs) and not self._asked

    @property
    def narrows_chips(self) -> bool:
        """Whether a change is built for the default chips only."""
        request = self._request
        return request.changes is not None and self._asked is None and not request.labels.all_socs

    def wants(self, model: Outline) -> bool:
        """Whether labels and changes leave the model in."""
        labels, changes = self._request.labels, self._request.changes
        if labels.models and not _any_matches(model.name, labels.models):
            return False
        return changes is None or bool(changes.everything or changes.chips or _folder(model) in changes.models)

    def add(self, model: Outline, variants: list[PlannedVariant], left_out: list[LeftOut]) -> None:
        """Every variant of the model that is wanted, and the chips left out of it."""
        why = self._why(model)
        changed = self._request.changes.chips if self._request.changes is not None else {}
        for bucket in _kept(model.buckets, self._request.buckets):
            for precision in _kept(model.precisions, self._request.precisions):
                possible, skipped = self._possible(model, precision)
                if model.restriction and not self._request.allow_restricted:
                    left = tuple(soc.name for soc in possible)
                    possible, skipped = (), ((restricted_reason(model.restriction), left), *skipped)
                socs = self._chosen(possible, changed, whole=bool(why))
                if socs:
                    chip_why = {soc.name: changed[soc.soc_id] for soc in socs if soc.soc_id in changed}
                    variants.append(PlannedVariant(model, bucket, precision, socs, why, chip_why))
                if why:
                    left_out += (LeftOut(model.name, bucket, precision, names, reason) for reason, names in skipped)

    def _chosen(self, possible: tuple[Soc, ...], changed: Mapping[int, str], *, whole: bool) -> tuple[Soc, ...]:
        """The possible chips that are built: those the model is built for as a whole, and changed ones."""
        narrow = self._narrowed(possible) if whole else frozenset()
        if len(narrow) == len(possible):
            return possible
        return tuple(soc for soc in possible if soc.soc_id in narrow or soc.soc_id in changed)

    def _why(self, model: Outline) -> tuple[str, ...]:
        changes = self._request.changes
        if changes is None:
            return ("asked for",)
        own = changes.models.get(_folder(model))
        return changes.everything if own is None else (*changes.everything, own)

    def _chips_asked_for(self) -> frozenset[int] | None:
        """soc_ids that the request and the labels name, together; None when neither names any."""
        found = None
        if self._request.socs:
            found = frozenset(soc.soc_id for soc in select(self._request.socs, self._table))
        if self._request.labels.socs:
            labelled = frozenset(soc.soc_id for glob in self._request.labels.socs for soc in self._labelled(glob))
            found = labelled if found is None else found & labelled
        return found

    def _labelled(self, glob: str) -> tuple[Soc, ...]:
        """A label that names no chip is nobody's error to mend: it names nothing."""
        try:
            return select(glob, self._table)
        except ForgeError:
            return ()

    def _possible(self, model: Outline, precision: str) -> _Own:
        """The chips that were asked for and can be, and those that cannot with the reason."""
        key = (model.socs, model.exclude, needs_fp16(precision))
        if key not in self._own:
            self._own[key] = self._choose(model, precision)
        return self._own[key]

    def _choose(self, model: Outline, precision: str) -> _Own:
        own = {soc.soc_id for soc in select(model.socs, self._table)}
        excluded = {
            soc.soc_id: f"excluded by the model: {short(reason)}"
            for socs, reason in model.exclude
            for soc in select(socs, self._table)
        }
        possible: list[Soc] = []
        skipped: dict[str, list[str]] = {}
        for soc in self._table.socs:
            if soc.soc_id not in own if self._asked is None else soc.soc_id not in self._asked:
                continue
            reason = excluded.get(soc.soc_id) or ("" if soc.soc_id in own else "not among the model's targets")
            reason = reason or ("no fp16" if needs_fp16(precision) and not soc.fp16 else "")
            if reason:
                skipped.setdefault(reason, []).append(soc.name)
            else:
                possible.append(soc)
        return tuple(possible), tuple((reason, tuple(names)) for reason, names in skipped.items())

    def _narrowed(self, possible: tuple[Soc, ...]) -> frozenset[int]:
        """All of them; for a change without other wishes one chip of each group, and the flagships."""
        key = tuple(soc.soc_id for soc in possible)
        if key not in self._default:
            self._default[key] = frozenset(self._default_chips(possible) if self.narrows_chips else key)
        return self._default[key]

    def _default_chips(self, possible: tuple[Soc, ...]) -> Iterable[int]:
        groups: dict[Group, list[Soc]] = {}
        for soc in possible:
            groups.setdefault(soc.group, []).append(soc)
            if soc.soc_id in self._flagships:
                yield soc.soc_id
        for members in groups.values():
            yield min(members, key=self._rank).soc_id

    def _rank(self, soc: Soc) -> tuple[bool, bool, int]:
        return (soc.soc_id not in self._flagships, soc.status is not Status.PUBLIC, soc.soc_id)


def _folder(model: Outline) -> str:
    return os.path.basename(os.path.normpath(model.folder))


def _any_matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _kept(own: Sequence[str], globs: tuple[str, ...]) -> list[str]:
    return [name for name in own if _any_matches(name, globs)] if globs else list(own)


def _require_something(
    request: Request,
    models: Sequence[Outline],
    variants: Sequence[PlannedVariant],
    left_out: Sequence[LeftOut],
    table: ChipTable,
) -> None:
    """What was named outright and came to nothing is a question, so it gets an answer."""
    for globs, own, fault in (
        (request.buckets, {name for model in models for name in model.buckets}, UnknownBucket),
        (request.precisions, {name for model in models for name in model.precisions}, UnknownPrecision),
    ):
        for glob in globs:
            if models and not any(fnmatch.fnmatchcase(name, glob) for name in own):
                raise fault(f"no model has a {fault.what} {glob}", remedy=f"choose among: {', '.join(sorted(own))}")
    built = {soc.soc_id for variant in variants for soc in variant.socs}
    for soc in (soc for soc in table.socs if soc.soc_id in named_outright(request.socs, table) - built):
        reasons = [skip for skip in left_out if soc.name in skip.socs]
        if reasons and reasons[0].reason == "no fp16":
            require_precision(soc, reasons[0].precision, table)
        why = f": {reasons[0].reason}" if reasons else ""
        raise ChipNotTargeted(
            f"{soc.name} is not a target of any model that is asked for{why}",
            remedy="leave the chip out, or change `targets` in the model.yaml",
        )
    if not variants:
        raise NothingToBuild(
            "no model × bucket × precision × chip is left to build",
            remedy="widen the request, or the targets in model.yaml",
            details=[f"{skip.model} {skip.bucket} {skip.precision}: {skip.reason}" for skip in left_out[:10]],
        )


_MOST_MODELS = 20  # named one by one in the reasons


def _reasons(request: Request, variants: Sequence[PlannedVariant], planner: _Planner) -> tuple[str, ...]:
    labels, changes = request.labels, request.changes
    reasons: list[str] = []
    if changes is None:
        reasons.append("no change was given: everything asked for is planned")
    else:
        reasons += changes.everything
        reasons += [f"{name}: {why}" for name, why in sorted(changes.models.items())[:_MOST_MODELS]]
        if len(changes.models) > _MOST_MODELS:
            reasons.append(f"{len(changes.models) - _MOST_MODELS} more models changed")
        reasons += sorted(changes.chips.values())
        reasons += changes.notes
        if changes.idle:
            reasons.append(f"{changes.idle} changed file{'s build' if changes.idle > 1 else ' builds'} nothing")
        if not (changes.everything or changes.models or changes.chips):
            reasons.append("nothing that is built was changed")
        elif planner.narrows_chips and any(variant.why for variant in variants):
            reasons.append("chips: one of each group, and the flagships (label socs:all for every one)")
    reasons += [f"label model:{short(glob)}" for glob in labels.models] + [
        f"label soc:{short(glob)}" for glob in labels.socs
    ]
    if labels.all_socs:
        reasons.append("label socs:all: every chip of the models")
    if labels.dry_run:
        reasons.append("label ci:dry-run: nothing is built, this is only the plan")
    if not variants:
        reasons.append("nothing is left to build")
    return tuple(reasons)
