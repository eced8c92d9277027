"""The report's sentences."""

from __future__ import annotations

from qnn.localize.facts import Cause, Culprit, Located, Measured, NodeFacts, Spread, Step, Unprobed
from qnn.localize.verdict import lines
from tests.localize.graphs import measured

NODE = NodeFacts("norm/Sum", "ReduceSum", ("square",), ("sum",))
SEEN = Measured(
    "sum", (1, 8, 1), 0.81, 0.2, 5.7e4, 1.88e5, 2, 0, "2 of 8 elements are 131008", (Spread(1, 8, (2,), 0.96),)
)


def located(**changes: object) -> Located:
    facts: dict[str, object] = {
        "target": "toy-1.0-default-fp16-SM8650",
        "graph": "net",
        "sample": 0,
        "threshold": 0.999,
        "nodes": 7,
        "outputs": (measured("y", "cosine 0.50000"),),
        "preparation": (measured("y"),),
        "culprits": (),
        "steps": (),
        "unprobed": (),
        "probed": 6,
        "compiles": 4,
        "spread_out": False,
    }
    return Located(**{**facts, **changes})  # type: ignore[arg-type]


def culprit(cause: Cause, alone: Measured | None, rest: tuple[Measured, ...], reason: str = "") -> Culprit:
    return Culprit("sum", (NODE,), ("ReduceSum",), SEEN, cause, alone, reason, rest)


def test_a_nodes_own_fault() -> None:
    found = located(culprits=(culprit(Cause.NODE, SEEN, (measured("y"),)),))
    assert list(lines(found)) == [
        "toy-1.0-default-fp16-SM8650 net, sample 0, 7 nodes",
        "  output y: cosine 0.50000",
        "  6 tensors looked at in 4 compiles",
        "1. tensor sum [1, 8, 1]: 2 of 8 elements are 131008",
        "   made by node norm/Sum (ReduceSum), on the NPU ReduceSum",
        "   largest error 5.7e+04, largest value 1.88e+05",
        "   along axis 1 (of 8): index 2 holds 96% of the error",
        "   the node alone, with true inputs, is wrong as well (2 of 8 elements are 131008): the fault is here",
        "   fp16 ends at 65504: no node can give or take the true value",
        "   with its true value every output is right: nothing else is wrong",
    ]


def test_an_error_that_came_in_and_more_behind_it() -> None:
    said = "\n".join(lines(located(culprits=(culprit(Cause.INPUTS, measured("sum"), (measured("y", "cosine 0.9"),)),))))
    assert "alone, with true inputs, is right (cosine 1.00000): the error comes in with the inputs" in said
    assert "with its true value the outputs are still wrong (y: cosine 0.9), so there is more behind it" in said


def test_what_could_not_be_looked_at() -> None:
    left = tuple(Unprobed(f"t{i}", "refused") for i in range(8))
    said = list(lines(located(culprits=(culprit(Cause.UNKNOWN, None, (), "no form"),), unprobed=left)))
    assert "   alone it cannot be looked at: no form" in said
    assert said[-2:] == ["not looked at: t5: refused", "not looked at: 2 more"]


def test_a_sum_of_small_errors_and_a_hidden_fusion() -> None:
    steps = (Step(0, 4, 0.9995, False), Step(4, 7, 0.9993, False))
    said = "\n".join(lines(located(steps=steps, spread_out=True)))
    assert "nodes 0 to 3 alone: right, worst cosine 0.99950" in said
    assert "no part of the graph alone is wrong" in said
    assert "the fault is in a fusion of the compiler" in "\n".join(lines(located()))


def test_preparation_is_blamed_for_its_own() -> None:
    said = "\n".join(lines(located(preparation=(measured("y", "cosine 0.98000"),))))
    assert (
        "the prepared graph on the CPU is off already: output y: cosine 0.98000, which is not the NPU's doing" in said
    )


def test_a_right_graph() -> None:
    said = list(lines(located(outputs=(measured("y"),))))
    assert said[-1] == "every output agrees with the same graph on the CPU (cosine 0.999 and more)"
