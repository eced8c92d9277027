"""The table is whole, and its page says what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from qnn.faults.matchers import MATCHERS
from qnn.faults.page import faults_page
from qnn.faults.probe import PROBES
from qnn.faults.table import Fault, Outcome, Shown, fault_by_id, load_faults, read_faults
from qnn.prepare.rewrites import names

FAULTS = load_faults()
ROOT = Path(__file__).parents[2]


def test_ids_are_unique() -> None:
    assert len({fault.id for fault in FAULTS}) == len(FAULTS)


def test_every_probe_is_used_once_a_chip() -> None:
    used = [(probe.graph, probe.soc) for fault in FAULTS for probe in fault.probes]
    assert len(set(used)) == len(used)
    assert {graph for graph, _ in used} == set(PROBES)


def test_every_matcher_is_used() -> None:
    assert {fault.matcher for fault in FAULTS if fault.matcher is not None} == set(MATCHERS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_an_entry_has_what_its_outcome_needs(fault: Fault) -> None:
    assert fault.probes
    assert fault.remedy
    if fault.rewrite is not None:
        assert fault.outcome is Outcome.REWRITTEN
        assert fault.rewrite in names()
    assert (fault.matcher is not None) == (fault.outcome in (Outcome.REFUSED, Outcome.WATCHED))
    if fault.outcome is Outcome.REWRITTEN:
        assert {probe.mended for probe in fault.probes} == {Shown.RIGHT}
    else:
        assert Shown.RIGHT not in {probe.mended for probe in fault.probes}


def test_conditions() -> None:
    block = fault_by_id("blockwise-v68")
    assert block.concerns("w8a16", "v68")
    assert not block.concerns("w8a16", "v69")
    assert not block.concerns("fp16", "v68")
    assert fault_by_id("pad-edge").concerns("fp16", "v81")


def test_unknown_keys_are_refused() -> None:
    row = (
        "faults:\n- {id: a, title: t, operators: [Add], pattern: p, qairt: ['1'], evidence: e, outcome: watched, "
        "remedy: r, shape: s}\n"
    )
    with pytest.raises(ValueError, match="a: unknown keys shape"):
        read_faults(row.encode())


def test_page() -> None:
    written = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    assert written == faults_page(FAULTS), "run: python -m qnn.faults.page > docs/faults.md"
