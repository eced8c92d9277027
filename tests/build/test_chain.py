"""Graphs one after another: who gets what, what is kept, and how the end is judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from qnn.build.chain import Step, read_chain, run_chain
from qnn.build.chained import Chained, ChainGraph, CompareChains, compare_chains, load_chain, save_chain
from qnn.build.judge import judge_chain
from qnn.build.measured import MetricValue
from qnn.chips.table import load_table
from qnn.errors.chains import ChainDiverged
from qnn.errors.numerics import MetricFailed, VerifyFailed
from qnn.model.spec import (
    Chain,
    Checks,
    Gates,
    Graph,
    InputSpec,
    Licence,
    Limits,
    MetricGate,
    Model,
    Publish,
    Targets,
)  # fmt: skip
from qnn.npz import read_npz, write_npz
from qnn.plan.targets import Target, Variant

GRAPHS = tuple(Graph(name, {"*": name}, (InputSpec("x", (1,)),), name) for name in ("find", "read"))


def number(path: Path) -> float:
    return float(read_npz(path)["x"][0])


def write(path: Path, value: float) -> Path:
    write_npz(path, {"x": np.array([value], np.float32)})
    return path


def run(folder: Path, rounds: int) -> list[str]:
    """A chain on numbers: a graph adds 1, a feed gives the sum of all results before it and, for `read`, the round."""
    told: list[str] = []

    def feed(graph: Graph, turn: int, steps: Sequence[Step], output: Path) -> tuple[Path, ...]:
        told.append(f"{graph.name} {turn} after {' '.join(step.graph for step in steps)}")
        total = sum(number(path) for step in steps for path in step.outputs)
        values = [total, 100.0 + turn] if graph.name == "read" else [total]
        return tuple(write(output / f"{place:03d}.npz", value) for place, value in enumerate(values))

    def ran(graph: Graph, samples: tuple[Path, ...], output: Path) -> None:
        told.append(f"{graph.name} on {[number(path) for path in samples]}")
        for path in samples:
            write(output / path.name, number(path) + 1)

    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    first = Step("find", 0, (write(scratch / "000.npz", 3.0),), (write(scratch / "001.npz", 4.0),))
    (folder / "chain").mkdir()
    run_chain(GRAPHS, rounds, first, feed=feed, run=ran, folder=folder / "chain")
    return told


def test_the_first_step_was_run_before_and_every_other_is_fed_with_all_steps_before_it(tmp_path: Path) -> None:
    assert run(tmp_path, rounds=2) == [
        "read 0 after find",
        "read on [4.0, 100.0]",
        "find 1 after find read",
        "find on [110.0]",  # 4 + 5 + 101
        "read 1 after find read find",
        "read on [221.0, 101.0]",
    ]


def test_the_steps_that_were_kept_are_read_back(tmp_path: Path) -> None:
    run(tmp_path, rounds=2)
    steps = read_chain(tmp_path / "chain", len(GRAPHS))
    assert [(step.graph, step.round, len(step.inputs), len(step.outputs)) for step in steps] == [
        ("find", 0, 1, 1),
        ("read", 0, 2, 2),
        ("find", 1, 1, 1),
        ("read", 1, 2, 2),
    ]
    assert number(steps[0].inputs[0]) == 3.0
    assert [number(path) for path in steps[3].outputs] == [222.0, 102.0]


def test_runs_are_compared_graph_by_graph_unless_their_numbers_differ(tmp_path: Path) -> None:
    def steps(side: str, values: dict[str, list[float]]) -> tuple[Step, ...]:
        (tmp_path / side).mkdir()
        return tuple(
            Step(graph, 0, (), tuple(write(tmp_path / side / f"{graph}{n}.npz", v) for n, v in enumerate(results)))
            for graph, results in values.items()
        )

    truth = steps("float", {"find": [1.0, 2.0], "read": [5.0]})
    htp = steps("htp", {"find": [1.0, 2.5], "read": [5.0, 6.0]})
    found = compare_chains(CompareChains(truth, htp, (("find", ("x",)), ("read", ("x",)))))
    assert [(graph.name, graph.float_runs, graph.htp_runs) for graph in found] == [("find", 2, 2), ("read", 1, 2)]
    assert found[0].outputs[0].max_abs == 0.5
    assert len(found[0].outputs[0].samples) == 2
    assert found[1].outputs == ()
    save_chain(found, tmp_path)
    assert load_chain(tmp_path) == found


def target(chain: Chain, gates: Gates | None = None) -> Target:
    model = Model(
        name="toy", version="1", summary="", task="t", licence=Licence("MIT"), sources={}, graphs=GRAPHS,
        buckets={"default": {}}, precisions=("fp16",), targets=Targets(("all",)),
        checks=Checks(chain=chain, gates=gates or Gates()), requires=(), limits=Limits(), publish=Publish(),
        folder=Path("models/toy"),
    )  # fmt: skip
    return Target(Variant(model, "default", "fp16"), load_table().lookup("SM8650"))


def compared(tmp_path: Path, truth: list[float], htp: list[float]) -> ChainGraph:
    sides = []
    for name, values in (("truth", truth), ("htp", htp)):
        (tmp_path / name).mkdir()
        files = tuple(write(tmp_path / name / f"{place}.npz", value) for place, value in enumerate(values))
        sides.append((Step("read", 0, (), files),))
    (graph,) = compare_chains(CompareChains(sides[0], sides[1], (("read", ("x",)),)))
    return graph


def test_without_a_metric_the_last_graph_must_pass_its_gates(tmp_path: Path) -> None:
    graph = compared(tmp_path, [1.0], [1.3])
    judge_chain(target(Chain("chain.py:feed"), Gates(max_abs=0.5)), Chained((graph,), ()))
    with pytest.raises(VerifyFailed, match="the chain of toy-1-default-fp16 on SM8650"):
        judge_chain(target(Chain("chain.py:feed"), Gates(max_abs=0.1)), Chained((graph,), ()))


def test_another_number_of_runs_needs_a_metric_to_be_judged(tmp_path: Path) -> None:
    graph = compared(tmp_path, [1.0], [1.0, 2.0])
    with pytest.raises(ChainDiverged, match="read ran 2 times, and 1 times on float"):
        judge_chain(target(Chain("chain.py:feed")), Chained((graph,), ()))


@pytest.mark.parametrize(("on_htp", "passes"), [("a b", True), ("a c", False)])
def test_with_a_metric_its_gates_judge_and_nothing_else(tmp_path: Path, on_htp: str, passes: bool) -> None:
    chained = Chained((compared(tmp_path, [1.0], [9.0, 9.0]),), (MetricValue("text", 0, "a b", on_htp),))
    asked = target(Chain("chain.py:feed", metric="chain.py:evaluate", metric_gates={"text": MetricGate(equal=True)}))
    if passes:
        judge_chain(asked, chained)
    else:
        with pytest.raises(MetricFailed, match="the chain of toy"):
            judge_chain(asked, chained)
