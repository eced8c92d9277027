"""docs/zoo.md, from the models and what was measured of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from benchmarks.zoo.records import Key, Record
from qnn.chips.soc import Soc
from qnn.chips.table import ChipTable
from qnn.model.licences import restriction
from qnn.model.spec import Model
from qnn.plan.targets import BuildPlan, Target

# The chip whose bundles the first table shows: of those that have all models, the one most people have.
SHOWN = "SM8650"

_HEAD = """\
Written by `make zoo`, which builds and verifies every model of `models/` on one chip of each kind (arch, VTCM, fp16,
HVX threads) with the compiler and the emulator of the installed toolchain. A workflow runs it every week. No number
here is from a device."""
_ON_ONE = """\
Size of the context binary, the worst output against the float model, the worst sample of the model's own metric, and
the wall time of making the bundle (with export and preparation, on a machine that was not idle). The row `chain` is the
graphs one after another, each on what those before it gave on HTP, against the same on float."""
_ON_ALL = """\
The worst cosine over all graphs of the bundle, or the error that stopped it (`qnn-forge explain QFnnn`); – where the
chip is not among the model's targets, … where it was not built yet. Kinds without fp16 are not here: no model of the
zoo is quantized."""


def render(models: Sequence[Model], plan: BuildPlan, records: Sequence[Record], table: ChipTable) -> str:
    """The page. Records are of the plan's targets; what has none is shown as not built."""
    by_key = {record.key: record for record in records}
    variants = list(dict.fromkeys(key_of(target)[:3] for target in plan.targets))
    socs = sorted({target.soc.name: target.soc for target in plan.targets}.values(), key=lambda soc: soc.name)
    parts = [
        "# The zoo",
        _HEAD,
        _summary(plan, records),
        "## Models",
        "\n".join(_models(models)),
        f"## On {SHOWN}",
        _ON_ONE,
        "\n".join(_shown([by_key[key] for key in sorted(by_key) if key[3] == SHOWN])),
        "## On every kind of chip",
        _ON_ALL,
        "\n".join(_matrix(variants, socs, by_key, plan)),
        "## Chips",
        "\n".join(_chips(socs, table)),
    ]
    return "\n\n".join(parts) + "\n"


def key_of(target: Target) -> Key:
    """What a record of the target is about."""
    variant = target.variant
    return variant.model.name, variant.bucket, variant.precision, target.soc.name


def in_order(plan: BuildPlan, known: Collection[Key]) -> list[Target]:
    """The targets so that a run that is broken off has seen most: what has no record yet first, then the chip that is
    shown first, then one of each arch, then the others; on each chip the small models first.
    """
    first = {target.soc.arch: target.soc.name for target in reversed(plan.targets)}

    def rank(target: Target) -> tuple[bool, bool, bool, str, int, str]:
        soc, model = target.soc, target.variant.model
        size = sum(source.size or 0 for source in model.sources.values())
        return key_of(target) in known, soc.name != SHOWN, first[soc.arch] != soc.name, soc.name, size, target.name

    return sorted(plan.targets, key=rank)


def _summary(plan: BuildPlan, records: Sequence[Record]) -> str:
    failed = sum(bool(record.error) for record in records)
    versions = ", ".join(sorted({record.qairt for record in records})) or "none"
    hours = sum(record.seconds for record in records) / 3600
    return (
        f"{len(plan.targets)} bundles are planned: {len(records) - failed} built and verified, {failed} failed, "
        f"{len(plan.targets) - len(records)} not built yet.\nQAIRT {versions}; {hours:.1f} hours of wall time in all."
    )


def _models(models: Sequence[Model]) -> Iterator[str]:
    yield "| model | task | licence of the weights | by |"
    yield "|---|---|---|---|"
    for model in models:
        note = " (only with `--allow-restricted`)" if restriction(model.licence.spdx) else ""
        licence = model.licence.spdx or f"none: {model.licence.reason}"
        yield (
            f"| [{model.name}](../models/{model.name}/model.yaml) | {model.task} | {licence}{note} "
            f"| {model.licence.attribution or ''} |"
        )


def _shown(records: Sequence[Record]) -> Iterator[str]:
    yield "| model | graph | size | cosine | max error | metric | seconds |"
    yield "|---|---|---|---|---|---|---|"
    for record in records:
        name = record.model if record.bucket == "default" else f"{record.model} {record.bucket}"
        for number, row in enumerate(record.rows):
            yield (
                f"| {name if number == 0 else ''} | {row.name} | {_size(row.size)} | {_cosine(row.cosine)} "
                f"| {'–' if row.max_abs is None else f'{row.max_abs:.2g}'} | {row.metric or '–'} "
                f"| {f'{record.seconds:.0f}' if number == 0 and record.seconds else ''} |"
            )
        if record.error:
            yield f"| {'' if record.rows else name} | | | | | **failed: {record.error}** | |"


def _matrix(
    variants: Sequence[tuple[str, str, str]], socs: Sequence[Soc], records: Mapping[Key, Record], plan: BuildPlan
) -> Iterator[str]:
    planned = {key_of(target) for target in plan.targets}
    yield "| model | " + " | ".join(soc.name for soc in socs) + " |"
    yield "|---|" + "---|" * len(socs)
    for model, bucket, precision in variants:
        cells = (
            _cell(records.get(key), planned=key in planned)
            for key in ((model, bucket, precision, soc.name) for soc in socs)
        )
        yield f"| {model if bucket == 'default' else f'{model} {bucket}'} | " + " | ".join(cells) + " |"


def _cell(record: Record | None, *, planned: bool) -> str:
    if record is None:
        return "…" if planned else "–"
    if record.error:
        return f"**{record.error}**"
    return _cosine(min((row.cosine for row in record.rows if row.cosine is not None and row.size), default=None))


def _chips(socs: Sequence[Soc], table: ChipTable) -> Iterator[str]:
    yield "| chip | arch | VTCM | HVX threads | chips of this kind |"
    yield "|---|---|---|---|---|"
    for soc in socs:
        kind = sum(other.group == soc.group for other in table.socs)
        yield f"| {soc.name} | {soc.arch} | {soc.vtcm_mb} MB | {soc.hvx_threads} | {kind} |"


def _size(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size else "–"


def _cosine(cosine: float | None) -> str:
    """As many digits as tell it from 1."""
    if cosine is None:
        return "–"
    return f"{cosine:.6f}" if cosine >= 0.9995 else f"{cosine:.4f}"
