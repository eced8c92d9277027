"""Hints for models: what a build has is taken from the store, one compile a graph is made and its hints are kept."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.build.events import Silence
from qnn.build.maker import limits_of, numbered
from qnn.build.run import folders_of
from qnn.build.variants import VariantBuilder
from qnn.child import HostPool
from qnn.chips.select import select, select_each
from qnn.chips.table import ChipTable, Soc, needs_fp16
from qnn.hints.facts import BucketAxis, Hint, HintRequest
from qnn.model.spec import Graph, Model
from qnn.plan.targets import BuildPlan, Target
from qnn.prepare.prepared import load_prepared
from qnn.store import StageKey, Store
from qnn.store.code import code_digest
from qnn.toolchains.pip.toolchain import PipToolchain

LOOK_JOB = "qnn.hints.job:look"
_FILE = "hints.json"
_CODE = ("qnn.hints.*", "qnn.localize.trace", "qnn.localize.facts", "qnn.ranges.compiled_form", "qnn.npz")


@dataclass(frozen=True)
class GraphHints:
    """The hints of one graph of a target."""

    target: Target
    graph: str
    hints: tuple[Hint, ...]


def targets_of(plan: BuildPlan, table: ChipTable) -> tuple[Target, ...]:
    """One target a variant: a flagship where there is one, for hints hardly depend on the chip."""
    flagships = {soc.soc_id for soc in table.flagships}
    chosen: dict[str, Target] = {}
    for target in sorted(plan.targets, key=lambda target: target.soc.soc_id not in flagships):
        chosen.setdefault(target.variant.name, target)
    return tuple(sorted(chosen.values(), key=lambda target: target.name))


def integer_chips(model: Model, table: ChipTable) -> tuple[str, ...]:
    """The chips without floating point that the model asks for as such, when all its precisions need one.

    Those are what a part of its targets means that means no other chip: `public`, `all` and wide globs take along what
    there is, and nobody waits for a binary for it.
    """
    if not all(needs_fp16(precision) for precision in model.precisions):
        return ()
    excluded = {soc.soc_id for exclusion in model.targets.exclude for soc in select(exclusion.socs, table)}
    asked = {
        soc.soc_id
        for part in select_each(model.targets.socs, table)
        if not any(soc.fp16 for soc in part)
        for soc in part
    }
    chips: Sequence[Soc] = select(model.targets.socs, table)
    return tuple(soc.name for soc in chips if soc.soc_id in asked - excluded)


def bucket_axes(graph: Graph) -> tuple[BucketAxis, ...]:
    """The axes of a graph's inputs that a bucket's symbol sizes."""
    return tuple(
        BucketAxis(spec.name, axis, dim)
        for spec in graph.inputs
        for axis, dim in enumerate(spec.shape)
        if isinstance(dim, str)
    )


def run_hints(targets: Sequence[Target], table: ChipTable, store: Path, jobs: int) -> list[GraphHints]:
    """The hints of every graph of the targets. Raises the ForgeErrors of fetching, preparing and data.py."""
    results = []
    with Store(store) as opened, HostPool(jobs) as pool:
        builder = VariantBuilder(opened, PipToolchain(), pool, folders_of(store), Silence())
        for target in targets:
            for graph in target.variant.model.graphs:
                results.append(GraphHints(target, graph.name, _hints(builder, opened, pool, target, graph, table)))
    return results


def _hints(
    builder: VariantBuilder, store: Store, pool: HostPool, target: Target, graph: Graph, table: ChipTable
) -> tuple[Hint, ...]:
    variant = target.variant
    prepared = builder.prepared(variant, graph)
    axes = bucket_axes(graph)
    # Of the whole model, so said of its first graph alone.
    chips = integer_chips(variant.model, table) if graph == variant.model.graphs[0] else ()
    key = StageKey(
        "hints",
        code_digest(_CODE, store.code_memo),
        {
            "soc": [target.soc.soc_id, target.soc.vtcm_mb, target.soc.fp16],
            "precision": variant.precision,
            "chips": list(chips),
            "packages": [list(package) for package in PipToolchain().identity.packages],
        },
        {
            "prepared": builder.keys.prepared(variant, graph).digest,
            "samples": builder.keys.samples(variant, graph).digest,
        },
    )

    def produce(folder: Path) -> None:
        request = HintRequest(
            graph=graph.name,
            files=tuple(prepared.folder / name for name in load_prepared(prepared.folder).files),
            soc=target.soc,
            float_graph=needs_fp16(variant.precision),
            samples=numbered(builder.samples(variant, graph)),
            axes=axes,
            integer_chips=chips,
        )
        log = folders_of(store.root).logs / f"{key.stage}-{key.digest[:16]}.log"
        with pool.host() as host, tempfile.TemporaryDirectory(prefix="hints-", dir=store.root / "tmp") as work:
            found: tuple[Hint, ...] = host.call(LOOK_JOB, request, log=log, limits=limits_of(variant), cwd=Path(work))
        _save(found, folder)

    return _load(store.make(key, produce).entry.folder)


def _save(hints: tuple[Hint, ...], folder: Path) -> None:
    from cattrs import unstructure  # noqa: PLC0415

    (folder / _FILE).write_text(json.dumps(unstructure(hints), indent=1, sort_keys=True), encoding="utf-8")


def _load(folder: Path) -> tuple[Hint, ...]:
    from cattrs import structure  # noqa: PLC0415

    return structure(json.loads((folder / _FILE).read_text(encoding="utf-8")), tuple[Hint, ...])
