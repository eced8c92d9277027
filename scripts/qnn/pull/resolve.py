"""Which file of a version suits a wish. Pure; docs/index.md says the same in prose, for other languages.

The axes in turn: bucket, precision, fp16 of the chip, chip, runtime, revision, yanked. The one that leaves nothing is
the one that a miss is explained by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qnn.chips.soc import OLDEST_QAIRT, Soc, qairt_key
from qnn.index.document import IndexFile, IndexVariant, VersionIndex
from qnn.pull.wish import Choice, Verdict, Wish

# Best first: the closer to the float model the better. Others come after these, by name.
PRECISIONS = ("fp16", "mixed", "w8a16", "w8a8", "w4a16")
# Precisions with float parts on the NPU, which need a chip with fp16. Which parts of a mixed one are float is not known
# here, so it counts as needing it.
FLOAT_PRECISIONS = frozenset({"fp16", "mixed"})
# The oldest QAIRT that qnn-forge builds with, as far as a runtime has to match it.
_OLDEST_BUILDABLE = ".".join(OLDEST_QAIRT.split(".")[:2])


@dataclass(frozen=True)
class _Candidate:
    variant: IndexVariant
    file: IndexFile


class _Miss(Exception):
    """An axis left nothing; the choice says which and why."""

    def __init__(self, verdict: Verdict, *reasons: str, near: tuple[str, ...] = (), build: str | None = None) -> None:
        super().__init__(reasons[0])
        self.choice = Choice(verdict, reasons, near=near, build=build)


def resolve(document: VersionIndex, wish: Wish) -> Choice:
    """The best file of this version for the wish, or why there is none. Nothing depends on the order in which the
    document lists its files.
    """
    try:
        variants = _of_precision(document, _of_bucket(document, wish), wish)
        files = [_Candidate(variant, file) for variant in variants for file in variant.files]
        fitting = _of_chip(document, wish, variants, files)
        usable = _of_revision(document, wish, _of_runtime(document, wish, variants, fitting))
    except _Miss as miss:
        return miss.choice
    return _use(document, wish, min(usable, key=_rank(wish)), fitting)


def loads(file: IndexFile, chip: Soc) -> bool:
    """Whether a file may load on a chip: made for it, or for one of its arch with no more VTCM and HVX threads.

    More of either fails: an SM8850 file (8 HVX threads) gives error 1002 on an SM8845 (6).
    """
    return _is_own(file, chip) or (
        file.arch == chip.arch and file.vtcm_mb <= chip.vtcm_mb and file.hvx_threads <= chip.hvx_threads
    )


def _is_own(file: IndexFile, chip: Soc) -> bool:
    return file.soc_id == chip.soc_id


def _of_bucket(document: VersionIndex, wish: Wish) -> tuple[IndexVariant, ...]:
    buckets = {variant.bucket: variant.dimensions for variant in document.variants}
    near = tuple(
        f"--bucket {name}" + (f" ({', '.join(f'{key} {value}' for key, value in sizes.items())})" if sizes else "")
        for name, sizes in sorted(buckets.items())
    )
    if wish.bucket is None and len(buckets) > 1:
        raise _Miss(Verdict.NO, f"{_title(document)} has {len(buckets)} shape buckets; say which", near=near)
    found = tuple(variant for variant in document.variants if wish.bucket in (None, variant.bucket))
    if not found:
        raise _Miss(Verdict.NO, f"{_title(document)} has no bucket '{wish.bucket}'", near=near)
    return found


def _of_precision(document: VersionIndex, variants: tuple[IndexVariant, ...], wish: Wish) -> tuple[IndexVariant, ...]:
    there = sorted({variant.precision for variant in variants}, key=_precision_rank)
    found = tuple(variant for variant in variants if wish.precision in (None, variant.precision))
    if not found:
        raise _Miss(
            Verdict.NO,
            f"{_title(document)} is not published in precision {wish.precision}",
            near=tuple(f"--precision {name}" for name in there),
        )
    fitting = tuple(variant for variant in found if wish.chip.fp16 or variant.precision not in FLOAT_PRECISIONS)
    if not fitting:
        wanted = " and ".join(sorted({variant.precision for variant in found}))
        raise _Miss(
            Verdict.NO,
            f"{wish.chip.name} has no fp16, which precision {wanted} needs",
            near=tuple(f"--precision {name}" for name in there if name not in FLOAT_PRECISIONS),
        )
    return fitting


def _of_chip(
    document: VersionIndex, wish: Wish, variants: tuple[IndexVariant, ...], files: list[_Candidate]
) -> list[_Candidate]:
    chip = wish.chip
    found = [one for one in files if loads(one.file, chip)]
    if not found:
        nearest = sorted(files, key=lambda one: (_distance(one.file, chip), one.file.soc))
        raise _Miss(
            Verdict.BUILD,
            f"{_title(document)} is not published for {chip.name} ({chip.group}), nor for a chip whose files it loads",
            near=tuple(dict.fromkeys(f"{one.file.soc}: {_why_not(one.file, chip)}" for one in nearest))[:3],
            build=_command(wish, variants),
        )
    return found


def _of_runtime(
    document: VersionIndex, wish: Wish, variants: tuple[IndexVariant, ...], files: list[_Candidate]
) -> list[_Candidate]:
    runtime = wish.runtime
    if runtime is None:
        return files
    found = [one for one in files if not runtime.is_older_than(one.file.minimum_runtime)]
    if found:
        return found
    oldest = min((one.file.minimum_runtime for one in files), key=qairt_key)
    reason = (
        f"every file of {_title(document)} for {wish.chip.name} was made by a newer QAIRT than the runtime "
        f"{runtime.text}: a context binary loads on the QAIRT that made it and on newer ones, never on older ones"
    )
    near = (f"a runtime of QAIRT {oldest} or newer on the device loads what is published",)
    if runtime.is_older_than(OLDEST_QAIRT):
        too_old = f"nothing can be built for it: the oldest QAIRT that qnn-forge builds with is {_OLDEST_BUILDABLE}"
        raise _Miss(Verdict.NO, reason, too_old, near=near)
    toolchain = f"build it with a toolchain of QAIRT {runtime.text} or older (docs/toolchains.md)"
    raise _Miss(Verdict.BUILD, reason, toolchain, near=near, build=_command(wish, variants))


def _of_revision(document: VersionIndex, wish: Wish, files: list[_Candidate]) -> list[_Candidate]:
    """The wanted revision, without what is yanked unless exactly that is wanted."""
    kept = [one for one in files if wish.revision in (None, one.file.revision)]
    if not kept:
        raise _Miss(
            Verdict.NO,
            f"{_title(document)} has no revision {wish.revision} that fits {wish.chip.name}",
            near=tuple(f"--revision {number}" for number in sorted({one.file.revision for one in files})),
        )
    forced = wish.yanked_too and wish.revision is not None
    usable = [one for one in kept if one.file.yanked is None or forced]
    if not usable:
        raise _Miss(
            Verdict.NO,
            f"every file of {_title(document)} that fits {wish.chip.name} is yanked",
            *dict.fromkeys(f"revision {one.file.revision} is yanked: {one.file.yanked}" for one in kept),
            near=(f"--revision {max(one.file.revision for one in kept)} --allow-yanked takes it all the same",),
        )
    return usable


def _use(document: VersionIndex, wish: Wish, best: _Candidate, files: list[_Candidate]) -> Choice:
    file, chip = best.file, wish.chip
    what = f"{_title(document)} {best.variant.name}, revision {file.revision}"
    runtime = f"made by QAIRT {file.qairt}; the device needs a runtime of QAIRT {file.minimum_runtime} or newer"
    newer = sorted({one.file.qairt for one in files if wish.runtime and wish.runtime.is_older_than(one.file.qairt)})
    notes = [f"files of QAIRT {', '.join(newer)} are newer than the runtime"] if newer else []
    if file.yanked is not None:
        notes.append(f"it is yanked, and taken because --allow-yanked says so: {file.yanked}")
    if _is_own(file, chip):
        verdict = Verdict.USE if file.yanked is None else Verdict.WARN
        return Choice(verdict, (f"{what}, made for {chip.name} itself", runtime, *notes), best.variant, file)
    warning = (
        f"{what}, made for {file.soc} ({file.arch}, {file.vtcm_mb} MB VTCM, {file.hvx_threads} HVX threads), not for "
        f"{chip.name} ({chip.group}): it uses nothing that {chip.name} lacks, but was not checked for it"
    )
    return Choice(Verdict.WARN, (warning, runtime, *notes), best.variant, file, build=_command(wish, (best.variant,)))


def _rank(wish: Wish) -> Callable[[_Candidate], tuple[object, ...]]:
    """Sorts the best first; every candidate has a place of its own."""

    def rank(one: _Candidate) -> tuple[object, ...]:
        file = one.file
        return (
            not _is_own(file, wish.chip),
            _precision_rank(one.variant.precision),
            -file.vtcm_mb,
            -file.hvx_threads,
            tuple(-number for number in qairt_key(file.qairt)),
            -file.revision,
            file.soc_id,
        )

    return rank


def _precision_rank(precision: str) -> tuple[int, str]:
    place = PRECISIONS.index(precision) if precision in PRECISIONS else len(PRECISIONS)
    return place, precision


def _distance(file: IndexFile, chip: Soc) -> tuple[int, int, int]:
    return (
        abs(int(file.arch[1:]) - chip.arch_number) if file.arch[1:].isdecimal() else 1000,
        abs(file.vtcm_mb - chip.vtcm_mb),
        abs(file.hvx_threads - chip.hvx_threads),
    )


def _why_not(file: IndexFile, chip: Soc) -> str:
    if file.arch != chip.arch:
        return f"its files are for {file.arch}, {chip.name} is {chip.arch}"
    if file.vtcm_mb > chip.vtcm_mb:
        return f"its files use {file.vtcm_mb} MB of VTCM, {chip.name} has {chip.vtcm_mb}"
    return f"its files use {file.hvx_threads} HVX threads, {chip.name} has {chip.hvx_threads}"


def _command(wish: Wish, variants: tuple[IndexVariant, ...]) -> str:
    """The build command for exactly what was wanted."""
    best = min(variants, key=lambda variant: _precision_rank(variant.precision))
    return f"qnn-forge build {wish.model} --soc {wish.chip.name} --bucket {best.bucket} --precision {best.precision}"


def _title(document: VersionIndex) -> str:
    return f"{document.model} {document.version}"
