"""The range runs of variants, for `qnn-forge range`: all of them, whatever one of them says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.build.events import Silence
from qnn.build.inputs import place_of
from qnn.build.run import folders_of
from qnn.build.variants import VariantBuilder
from qnn.child import HostPool
from qnn.chips.table import needs_fp16
from qnn.errors.base import ForgeError
from qnn.errors.ranges import RangeRunFailed
from qnn.plan.targets import Variant
from qnn.ranges.facts import RangeFacts, load_ranges
from qnn.ranges.verdict import refusal
from qnn.store import Store
from qnn.toolchains.pip.toolchain import PipToolchain


@dataclass(frozen=True)
class RangeResult:
    """One graph of a variant: what was found, and the error it would be in a build."""

    variant: Variant
    facts: RangeFacts
    fault: ForgeError | None


def run_ranges(variants: Sequence[Variant], store: Path, jobs: int, samples: int) -> list[RangeResult]:
    """Look at every graph of the variants with a float precision, on `samples` of its samples.

    Raises the ForgeErrors of fetching, preparing and data.py.
    """
    results = []
    with Store(store) as opened, HostPool(jobs) as pool:
        builder = VariantBuilder(opened, PipToolchain(), pool, folders_of(store), Silence())
        for variant in variants:
            for graph in variant.model.graphs if needs_fp16(variant.precision) else ():
                facts = load_ranges(builder.ranges(variant, graph, samples).folder)
                fault = _fault(facts, variant.model.checks.ranges.get(graph.name, {}))
                place = None if fault is None else place_of(variant.model, ("graphs", graph.name))
                results.append(
                    RangeResult(variant, facts, fault if place is None or fault is None else fault.at(place))
                )
    return results


def _fault(facts: RangeFacts, acknowledged: Mapping[str, str]) -> ForgeError | None:
    if not facts.unmeasured:
        return refusal(facts, acknowledged)
    return RangeRunFailed(facts.unmeasured, remedy="read ONNX Runtime's reason; a build leaves the check out")
