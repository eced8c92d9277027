"""The search, on a stand-in for the compiler that knows which nodes are wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qnn.localize.facts import Cause, QnnOp
from qnn.localize.plan import Plan
from qnn.localize.search import Search
from tests.localize.graphs import FakeNpu, chain, survey


def search(npu: FakeNpu, ops: tuple[QnnOp, ...] = ()) -> Search:
    return Search(Plan(npu.survey, ops), npu, lambda _: None)


@pytest.mark.parametrize("bisect", [False, True])
def test_the_first_wrong_node_is_named_and_proved(bisect: bool) -> None:
    npu = FakeNpu(chain(100), frozenset({"n71"}))
    found = search(npu).run(["n99"], bisect=bisect)
    assert [(one.tensor, one.cause) for one in found] == [("n71", Cause.NODE)]
    assert [node.name for node in found[0].nodes] == ["n71"]
    assert [output.wrong for output in found[0].rest] == [""]
    assert (71, 72, ("n71",)) in npu.asked


@given(length=st.integers(1, 130), data=st.data(), bisect=st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_wrong_node_of_a_chain_is_found_in_order(length: int, data: st.DataObject, bisect: bool) -> None:
    wrong = data.draw(st.sets(st.integers(0, length - 1), min_size=1, max_size=4))
    npu = FakeNpu(chain(length), frozenset(f"n{i}" for i in wrong))
    found = search(npu).run([f"n{length - 1}"], bisect=bisect)
    assert sorted(one.tensor for one in found) == sorted(f"n{i}" for i in wrong)


def test_bisecting_takes_few_compiles() -> None:
    npu = FakeNpu(chain(1600), frozenset({"n1234"}))
    found = search(npu)
    assert [one.tensor for one in found.run(["n1599"], bisect=True)] == ["n1234"]
    # Two a halving at most, one batch of probes, the node alone, the rest.
    assert len(npu.asked) <= 2 * 7 + 3
    assert all(stop - start <= 800 for start, stop, _ in npu.asked[:-1])


def test_probing_stops_at_the_first_wrong_batch() -> None:
    npu = FakeNpu(chain(500), frozenset({"n3"}))
    search(npu).run(["n499"], bisect=False)
    assert [len(outputs) for _, _, outputs in npu.asked] == [48, 1, 1]


def test_a_tensor_that_cannot_be_looked_at_is_left_out_and_said() -> None:
    npu = FakeNpu(chain(40), frozenset({"n20"}), refused=frozenset({"n11"}))
    one = search(npu)
    assert [found.tensor for found in one.run(["n39"], bisect=False)] == ["n20"]
    assert [left.tensor for left in one.unprobed] == ["n11"]
    assert one.unprobed[0].reason == "refused"


def test_a_wrong_tensor_that_cannot_be_looked_at_shows_in_the_next() -> None:
    npu = FakeNpu(chain(40), frozenset({"n20"}), refused=frozenset({"n20"}))
    (found,) = search(npu).run(["n39"], bisect=False)
    assert (found.tensor, found.cause) == ("n21", Cause.INPUTS)


class Amplifier(FakeNpu):
    """Every fifth node loses a little; only three such in a row make a tensor wrong."""

    def __call__(self, stretch, outputs=()):  # type: ignore[no-untyped-def]
        lossy = sum(1 for at in range(stretch.start, stretch.stop) if at % 5 == 0)
        self.wrong = frozenset(node.name for node in self.survey.nodes) if lossy >= 3 else frozenset()
        return super().__call__(stretch, outputs)


def test_an_error_that_is_a_sum_over_the_graph_is_no_nodes_fault() -> None:
    npu = Amplifier(chain(15))
    one = search(npu)
    found = one.run(["n14"], bisect=True)
    # The whole is 15 nodes, short enough to be probed at once.
    assert found[0].cause is Cause.INPUTS
    assert not one.spread_out


def test_a_bisection_says_that_both_halves_are_right() -> None:
    long = chain(60)

    class Sum(FakeNpu):
        def __call__(self, stretch, outputs=()):  # type: ignore[no-untyped-def]
            self.wrong = frozenset({"n0", "n59"}) if stretch.length == 60 and not outputs else frozenset()
            return super().__call__(stretch, outputs)

    one = search(Sum(long))
    assert one.run(["n59"], bisect=True) == ()
    assert one.spread_out
    assert [(step.start, step.stop, step.wrong) for step in one.steps] == [(0, 30, False), (30, 60, False)]


def test_a_fault_that_probes_hide_is_found_by_cutting_without_them() -> None:
    """A wrong fusion of n9 and n10: right when n9 is an output, wrong when the cut leaves both inside."""

    class Fusion(FakeNpu):
        def __call__(self, stretch, outputs=()):  # type: ignore[no-untyped-def]
            fused = stretch.start <= 9 and stretch.stop > 10 and "n9" not in outputs
            self.wrong = frozenset({"n10"}) if fused else frozenset()
            return super().__call__(stretch, outputs)

    npu = Fusion(chain(32))
    (found,) = search(npu).run(["n31"], bisect=False)
    assert {"n9", "n10"} <= {node.name for node in found.nodes}
    assert len(found.nodes) <= 4


def test_behind_a_value_that_fp16_cannot_hold_its_readers_are_left_out_too() -> None:
    graph = survey({"sum": ["x"], "mean": ["sum"], "root": ["mean"], "y": ["root"]}, ["y"])
    npu = FakeNpu(graph, frozenset({"sum", "mean"}), peak=1.88e5)
    (found,) = search(npu).run(["y"], bisect=False)
    assert found.tensor == "sum"
    assert (2, 4, ("y",)) in npu.asked


def test_a_node_that_does_not_compile_alone_is_said_so() -> None:
    class Alone(FakeNpu):
        def __call__(self, stretch, outputs=()):  # type: ignore[no-untyped-def]
            self.refused = frozenset({"n5"}) if stretch.length == 1 else frozenset()
            return super().__call__(stretch, outputs)

    (found,) = search(Alone(chain(9), frozenset({"n5"}))).run(["n8"], bisect=False)
    assert (found.tensor, found.cause, found.alone, found.reason) == ("n5", Cause.UNKNOWN, None, "refused")


def test_a_fused_operator_is_tried_alone_as_a_whole() -> None:
    graph = survey({"a": ["x"], "d": ["a"], "e": ["d"], "g": ["e", "a"], "h": ["g"]}, ["h"])
    npu = FakeNpu(graph, frozenset({"e"}))
    (found,) = search(npu, (QnnOp("Gelu", ("d", "e", "g")),)).run(["h"], bisect=False)
    assert (found.tensor, [node.name for node in found.nodes]) == ("g", ["d", "e", "g"])
    assert found.cause is Cause.NODE


def test_a_right_graph_is_not_searched() -> None:
    npu = FakeNpu(chain(5))
    assert search(npu).run([], bisect=False) == ()
    assert npu.asked == []
