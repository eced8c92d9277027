"""Which store entries belong to a model's variants, and to the bundles made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qnn.build.keys import Keys
from qnn.chips.table import load_table, needs_fp16
from qnn.model.load import find_models, load_models
from qnn.plan.targets import Target, Variant, Wanted, plan_build, variants_of
from qnn.store import StageKey, Store
from qnn.toolchains.pip.toolchain import PipToolchain


def entries_wanted(
    store: Store, model: str, buckets: Sequence[str], precisions: Sequence[str], socs: Sequence[str]
) -> tuple[StageKey, ...]:
    """Keys of all that does not depend on the chip, and with `socs` of all that was made for those chips."""
    models = load_models(find_models([model]))
    wanted = Wanted(tuple(socs), tuple(buckets), tuple(precisions))
    keys = Keys(PipToolchain(), store.code_memo)
    found = [key for one in models for variant in variants_of(one, wanted) for key in variant_keys(keys, variant)]
    if socs:
        plan = plan_build(models, wanted, load_table())
        found += [key for target in plan.targets for key in target_keys(keys, target)]
    return tuple(found)


def variant_keys(keys: Keys, variant: Variant) -> Iterator[StageKey]:
    """Sources, prepared graphs, samples, float results and what leaves fp16's range."""
    for source in variant.model.sources.values():
        yield keys.source(source)
    for graph in variant.model.graphs:
        if graph.export is not None:
            yield keys.exported(variant, graph)
        yield keys.prepared(variant, graph)
        yield keys.samples(variant, graph)
        yield keys.reference(variant, graph)
        if needs_fp16(variant.precision):
            yield keys.ranges(variant, graph)
    if variant.model.checks.chain is not None:
        yield keys.chain_reference(variant, variant.model.checks.chain)


def target_keys(keys: Keys, target: Target) -> Iterator[StageKey]:
    """Binaries, package, measurements and the finished bundle."""
    for graph in target.variant.model.graphs:
        yield keys.compiled(target, graph)
        yield keys.measured(target, graph)
        if target.variant.model.checks.metric is not None:
            yield keys.metrics(target, graph)
    chain = target.variant.model.checks.chain
    if chain is not None:
        yield keys.chain(target, chain)
        if chain.metric is not None:
            yield keys.chain_metric(target, chain)
    yield keys.package(target)
    yield keys.bundle(target, verified=True)
    yield keys.bundle(target, verified=False)
