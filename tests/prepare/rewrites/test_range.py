"""Rewrites that keep numbers in fp16's range: sums to means, Exp, masks, scaled squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from tests.prepare.graphs import FLOAT, INT64, Array, model, node, noise, operators, run, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

SHAPE = (2, 3, 4, 5)


@settings(max_examples=25, deadline=None)
@given(
    axes=st.sets(st.integers(0, 3), min_size=1, max_size=4),
    negative=st.booleans(),
    keepdims=st.integers(0, 1),
    divide=st.booleans(),
    square=st.booleans(),
    opset=st.sampled_from([13, 17, 18, 22]),
)
def test_sum_divided_by_its_terms_is_a_mean(
    axes: set[int], *, negative: bool, keepdims: int, divide: bool, square: bool, opset: int
) -> None:
    terms = int(np.prod([SHAPE[axis] for axis in axes]))
    nodes = [node("Mul", ["x", "x"], ["s"])] if square else [node("Neg", ["x"], ["s"])]
    nodes += [node("ReduceSum", ["s", "axes"], ["total"], keepdims=keepdims)]
    nodes += [node("Div" if divide else "Mul", ["total", "n"], ["m"]), node("Exp", ["m"], ["y"])]
    constants = {
        "axes": np.array(sorted(axis - 4 if negative else axis for axis in axes)),
        "n": np.float32(terms if divide else 1 / terms),
    }
    rank = 4 if keepdims else 4 - len(axes)
    made = model(nodes, [value("x", SHAPE)], [value("y", [None] * rank)], constants, opset=opset, ir=10)
    after = assert_rewritten(made, {"x": noise(*SHAPE)}, "sum-to-mean")
    assert "ReduceSum" not in operators(after)


@pytest.mark.parametrize("factor", [1 / 5.001, 5.0, 1 / 4])
def test_sum_times_something_else_is_no_mean(factor: float) -> None:
    made = model(
        [node("ReduceSum", ["x", "axes"], ["total"]), node("Mul", ["total", "n"], ["y"])],
        [value("x", SHAPE)],
        [value("y", [2, 3, 4, 1])],
        {"axes": np.array([3]), "n": np.float32(factor)},
    )
    assert assert_left(made, {"x": noise(*SHAPE)}, "sum-to-mean") == []


def test_sum_that_is_also_used_itself_stays_beside_the_mean() -> None:
    made = model(
        [node("ReduceSum", ["x", "axes"], ["total"]), node("Mul", ["n", "total"], ["y"])],
        [value("x", SHAPE)],
        [value("y", [2, 3, 4, 1]), value("total", [2, 3, 4, 1])],
        {"axes": np.array([-1]), "n": np.float32(0.2)},
    )
    after = assert_rewritten(made, {"x": noise(*SHAPE)}, "sum-to-mean")
    assert sorted(operators(after)) == ["ReduceMean", "ReduceSum"]


def exponential(op: str, *before: Any, constants: dict[str, Any] | None = None, opset: int = 17) -> Any:
    nodes = [*before, node(op, ["a"], ["y"])]
    return model(nodes, [value("x", [2, 16])], [value("y", [2, 16])], constants, opset=opset)


WIDE = noise(2, 16) * np.float32(60)
LOW = np.float32(-50)


@pytest.mark.parametrize("op", ["Exp", "Softplus"])
@pytest.mark.parametrize("opset", [9, 11, 13, 17, 22])
def test_argument_is_clipped(op: str, opset: int) -> None:
    made = exponential(op, node("Neg", ["x"], ["a"]), opset=opset)
    after = assert_rewritten(made, {"x": np.maximum(WIDE, -20)}, "clip-exp")
    assert operators(after) == ["Neg", "Clip", op]


def test_one_clip_for_two_readers_and_none_for_others() -> None:
    made = exponential("Exp", node("Neg", ["x"], ["a"]))
    made.graph.node.extend([node("Softplus", ["a"], ["z"]), node("Tanh", ["a"], ["t"])])
    made.graph.output.extend([value("z", [2, 16]), value("t", [2, 16])])
    after = assert_rewritten(made, {"x": np.maximum(WIDE, -20)}, "clip-exp", times=2)
    assert operators(after).count("Clip") == 1
    clip = next(n for n in after.graph.node if n.op_type == "Clip")
    readers = {n.op_type for n in after.graph.node if clip.output[0] in n.input}
    assert readers == {"Exp", "Softplus"}


@pytest.mark.parametrize(
    ("before", "constants"),
    [
        ([node("Sigmoid", ["x"], ["a"])], {}),
        ([node("Clip", ["x", "low"], ["a"])], {"low": np.float32(-79)}),
        ([node("Tanh", ["x"], ["t"]), node("Mul", ["t", "k"], ["a"])], {"k": np.float32(-70)}),
        ([node("Relu", ["x"], ["r"]), node("Add", ["r", "k"], ["a"])], {"k": np.float32(-80)}),
        ([node("Softmax", ["x"], ["r"]), node("Sub", ["r", "k"], ["a"])], {"k": np.float32(5)}),
        ([node("Greater", ["x", "k"], ["g"]), node("Where", ["g", "k", "m"], ["a"])], {"k": np.float32(0), "m": LOW}),
        ([node("Max", ["x", "k"], ["m"]), node("Min", ["m", "t"], ["a"])], {"k": np.float32(-50), "t": np.float32(3)}),
    ],
)  # fmt: skip
def test_argument_that_cannot_be_low_is_not_clipped(before: list[Any], constants: dict[str, Any]) -> None:
    made = exponential("Exp", *before, constants=constants)
    assert assert_left(made, {"x": WIDE}, "clip-exp") == []


def test_argument_that_can_be_low_after_all() -> None:
    for before, constants in (
        ([node("Relu", ["x"], ["r"]), node("Neg", ["r"], ["a"])], {}),
        ([node("Tanh", ["x"], ["t"]), node("Mul", ["t", "k"], ["a"])], {"k": np.float32(85)}),
        ([node("Min", ["x", "k"], ["a"])], {"k": np.float32(0)}),
    ):
        made = exponential("Exp", *before, constants=constants)
        assert_rewritten(made, {"x": np.minimum(WIDE, 3)}, "clip-exp")


def test_quantized_exp_keeps_its_group() -> None:
    made = exponential(
        "Exp",
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        constants={"s": np.float32(1), "z": np.uint8(200)},
    )
    assert assert_left(made, {"x": WIDE}, "clip-exp") == []


SCORES = noise(1, 2, 6, 6) * np.float32(5)
PADDED = np.array([[1, 1, 1, 1, 0, 0]], np.int64)


def attention(mask: list[Any], constants: dict[str, Any], **feeds: Array) -> tuple[Any, dict[str, Array]]:
    """softmax(scores + mask)."""
    inputs = [value("s", [1, 2, 6, 6])]
    inputs += [value(name, array.shape, INT64 if array.dtype == np.int64 else FLOAT) for name, array in feeds.items()]
    nodes = [*mask, node("Add", ["s", "m"], ["a"]), node("Softmax", ["a"], ["p"], axis=-1)]
    return model(nodes, inputs, [value("p", [1, 2, 6, 6])], constants), {"s": SCORES, **feeds}


LOWEST = np.float32(np.finfo(np.float32).min)
CAUSAL = np.triu(np.ones((6, 6), np.float32), 1)


@pytest.mark.parametrize("low", [LOWEST, np.float32(-np.inf), np.float32(-1e9), np.float32(-65504)])
def test_constant_mask(low: np.float32) -> None:
    with np.errstate(invalid="ignore"):
        mask = np.where(CAUSAL > 0, low, np.float32(0)).astype(np.float32)
    made, feeds = attention([node("Identity", ["c"], ["m"])], {"c": mask})
    after = assert_rewritten(made, feeds, "softmax-mask")
    assert min(float(w.min()) for w in weights(after)) == -1e4


def weights(made: Any) -> list[Array]:
    from onnx import numpy_helper  # noqa: PLC0415

    return [numpy_helper.to_array(tensor) for tensor in made.graph.initializer]


def test_mask_chosen_by_where_from_a_fed_one() -> None:
    made, feeds = attention(
        [
            node("Cast", ["pad"], ["b"], to=TensorProto.BOOL),
            node("Unsqueeze", ["b", "axes"], ["b4"]),
            node("And", ["b4", "causal"], ["keep"]),
            node("Where", ["keep", "zero", "low"], ["m"]),
        ],
        {"axes": np.array([1, 2]), "causal": CAUSAL[None, None] == 0, "zero": np.float32(0), "low": LOWEST},
        pad=PADDED,
    )
    assert_rewritten(made, feeds, "softmax-mask")


def test_one_minus_the_mask_times_a_large_number() -> None:
    mask = [
        node("Unsqueeze", ["pad", "axes"], ["p4"]),
        node("Cast", ["p4"], ["f"], to=TensorProto.FLOAT),
        node("Sub", ["one", "f"], ["gone"]),
        node("Mul", ["gone", "low"], ["m"]),
    ]
    constants = {"axes": np.array([1, 2]), "one": np.float32(1), "low": np.float32(-1e9)}
    made, feeds = attention(mask, constants, pad=PADDED)
    [said] = assert_left(made, feeds, "softmax-mask")  # the input could hold a 2
    assert "may be other than 0 and 1" in said
    mask.insert(1, node("Cast", ["p4"], ["yes"], to=TensorProto.BOOL))
    mask[2] = node("Cast", ["yes"], ["f"], to=TensorProto.FLOAT)
    made, feeds = attention(mask, constants, pad=PADDED)
    assert_rewritten(made, feeds, "softmax-mask")


def test_scores_filled_by_where_and_the_guard_behind() -> None:
    made = model(
        [
            node("Where", ["causal", "low", "s"], ["a"]),
            node("Softmax", ["a"], ["p"], axis=-1),
            node("IsNaN", ["p"], ["nan"]),
            node("Where", ["nan", "zero", "p"], ["y"]),
        ],
        [value("s", [1, 2, 6, 6])],
        [value("y", [1, 2, 6, 6])],
        {"causal": CAUSAL > 0, "low": np.float32(-np.inf), "zero": np.float32(0)},
    )
    after = assert_rewritten(made, {"s": SCORES}, "softmax-mask", times=2)
    assert operators(after) == ["Where", "Softmax"]


# Left padding: of the second sample the first three queries see nothing.
LEFT = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]], np.int64)
SEEN = [node("Cast", ["pad"], ["b"], to=TensorProto.BOOL), node("Unsqueeze", ["b", "axes"], ["b4"])]
KEPT = [*SEEN, node("And", ["b4", "causal"], ["keep"])]
SUM = node("Add", ["s", "m"], ["a"])


@pytest.mark.parametrize(
    "nodes",
    [
        [*KEPT, node("Where", ["keep", "zero", "low"], ["m"]), SUM],
        [*KEPT, node("Cast", ["keep"], ["f"], to=FLOAT), node("Sub", ["one", "f"], ["g"]),
         node("Mul", ["g", "low"], ["m"]), SUM],
        # places that both mask are lower than those that one masks
        [*SEEN, node("Where", ["b4", "zero", "low"], ["n"]), node("Where", ["causal", "zero", "low"], ["c"]),
         node("Add", ["s", "c"], ["m"]), node("Add", ["m", "n"], ["a"])],
        [*SEEN, node("Where", ["b4", "zero", "low"], ["n"]), node("Where", ["causal", "s", "low"], ["c"]),
         node("Add", ["c", "n"], ["a"])],
    ],
    ids=["where", "product", "two", "where of scores"],
)  # fmt: skip
@pytest.mark.parametrize("low", [LOWEST, np.float32(-1e9)])
def test_rows_that_are_masked_whole(nodes: list[Any], low: np.float32) -> None:
    made, feeds = left_padded(nodes, low)
    after = assert_rewritten(made, feeds, "masked-rows")
    assert min(float(w.min()) for w in weights(after) if w.dtype == np.float32) == -1e4


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Where", ["keep", "zero", "low"], ["m"]), SUM],
        [node("Where", ["keep", "s", "low"], ["a"])],
    ],
    ids=["sum", "where of scores"],
)
def test_rows_without_a_number_are_0_behind_the_guard(nodes: list[Any]) -> None:
    guard = [node("IsNaN", ["p"], ["nan"]), node("Where", ["nan", "zero", "p"], ["y"])]
    made, feeds = left_padded([*KEPT, *nodes], np.float32(-np.inf), guard, "y")
    after = assert_rewritten(made, feeds, "masked-rows")
    assert not run(after, feeds)[0][1, :, :3].any()
    assert "IsNaN" not in operators(after)


def test_scores_count_in_rows_under_a_mask_of_minus_ten_thousand() -> None:
    made, feeds = left_padded([*KEPT, node("Where", ["keep", "zero", "low"], ["m"]), SUM], np.float32(-1e4))
    # beside -10,000 float32 keeps three digits behind the point
    assert_rewritten(made, feeds, "masked-rows", within=1e-3)


def left_padded(
    nodes: list[Any], low: np.float32, behind: Sequence[Any] = (), output: str = "p"
) -> tuple[Any, dict[str, Array]]:
    """Layers before and behind the masked softmax of [2, 2, 6, 6]."""
    constants = {"axes": np.array([1, 2]), "causal": CAUSAL[None, None] == 0, "zero": np.float32(0), "low": low}
    made = model(
        [node("MatMul", ["x", "w"], ["s"]), *nodes, node("Softmax", ["a"], ["p"], axis=-1), *behind],
        [value("x", [2, 2, 6, 6]), value("pad", [2, 6], INT64)],
        [value(output, [2, 2, 6, 6])],
        {**constants, "one": np.float32(1), "w": noise(6, 6)},
    )
    return made, {"x": noise(2, 2, 6, 6), "pad": LEFT}


def test_masks_without_whole_rows_are_left() -> None:
    mask = np.where(CAUSAL > 0, LOWEST, np.float32(0))
    made, feeds = attention([node("Identity", ["c"], ["m"])], {"c": mask})
    assert assert_left(made, feeds, "masked-rows") == []
    mask[2] = LOWEST
    made, feeds = attention([node("Identity", ["c"], ["m"])], {"c": mask})
    assert_rewritten(made, feeds, "masked-rows")


@pytest.mark.parametrize("low", [LOWEST, np.float32(-1e4)])
def test_a_mask_of_keys_alone_masks_no_row_whole_and_costs_nothing(low: np.float32) -> None:
    made, feeds = left_padded([*SEEN, node("Where", ["b4", "zero", "low"], ["m"]), SUM], low)
    assert assert_left(made, feeds, "masked-rows") == []


def test_ordinary_negative_numbers_and_other_adds_are_left() -> None:
    bias = noise(6, 6) * np.float32(1000) - np.float32(20_000)
    made, feeds = attention([node("Identity", ["c"], ["m"])], {"c": bias})
    assert assert_left(made, feeds, "softmax-mask") == []
    made = model(
        [node("Add", ["s", "c"], ["a"]), node("Relu", ["a"], ["p"])],
        [value("s", [1, 2, 6, 6])],
        [value("p", [1, 2, 6, 6])],
        {"c": np.float32(-1e9)},
    )
    assert assert_left(made, {"s": SCORES}, "softmax-mask") == []


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("reduce", ["ReduceSum", "ReduceMean"])
@pytest.mark.parametrize("square", ["Mul", "Pow"])
def test_squares_under_a_root_are_scaled_when_asked(epsilon: float, reduce: str, square: str) -> None:
    axes: dict[str, Any] = {} if reduce == "ReduceSum" else {"axes": [1]}
    nodes = [
        node(square, ["x", "x" if square == "Mul" else "two"], ["sq"]),
        node(reduce, ["sq", "ax"] if reduce == "ReduceSum" else ["sq"], ["r"], keepdims=1, **axes),
        node("Add", ["r", "eps"], ["e"]),
        node("Sqrt", ["e"], ["root"]),
        node("Div", ["x", "root"], ["y"]),
    ]
    constants = {"two": np.float32(2), "ax": np.array([1]), "eps": np.float32(epsilon)}
    made = model(nodes, [value("x", [3, 40, 2])], [value("y", [3, 40, 2])], constants)
    x = noise(3, 40, 2) * np.float32(20_000)
    after = assert_rewritten(made, {"x": x}, "scaled-squares")
    changes, _ = prepared_with(made, {"x": x})
    assert not any("scaled-squares" in change for change in changes)  # off by default
    factor = next(float(w) for w in weights(after) if w.size == 1 and 0 < w < 1 and np.log2(w) == int(np.log2(w)))
    assert float(np.square(65504 * factor)) * (40 if reduce == "ReduceSum" else 1) <= 65536


FAR = np.array(
    [[LOWEST, -np.inf, -1e9, -7e4, -4e4, -1.5, -1, -6e-8, 0, 6e-8, 1, 4e4, 7e4, 1e9, np.inf, -LOWEST]], np.float32
)


@pytest.mark.parametrize("operator", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
@pytest.mark.parametrize(("bound", "left"), [(-1.0, False), (0.0, True), (1.0, True), (-30_000.0, False)])
def test_fed_numbers_are_compared_beyond_fp16(operator: str, bound: float, *, left: bool) -> None:
    sides = ["c", "x"] if left else ["x", "c"]
    nodes = [node(operator, sides, ["k"]), node("Cast", ["k"], ["y"], to=FLOAT)]
    made = model(nodes, [value("x", FAR.shape)], [value("y", FAR.shape)], {"c": np.float32(bound)})
    after = assert_rewritten(made, {"x": FAR}, "fed-compare")
    below = (operator[0] == "L") != left
    assert ("Max" in operators(after), "Min" in operators(after)) == (below, not below)


def test_computed_numbers_and_far_bounds_are_compared_as_they_are() -> None:
    for layer, bound in (("Relu", 0.0), ("Identity", -40_000.0)):
        nodes = [node(layer, ["x"], ["a"]), node("Less", ["a", "c"], ["k"]), node("Cast", ["k"], ["y"], to=FLOAT)]
        made = model(nodes, [value("x", FAR.shape)], [value("y", FAR.shape)], {"c": np.float32(bound)})
        assert assert_left(made, {"x": FAR}, "fed-compare") == []


@pytest.mark.parametrize(("operator", "factor"), [("Mul", 1e8), ("Mul", 70_000.0), ("Div", 1e6), ("Div", 2.0**30)])
def test_factors_beyond_fp16_come_in_two_parts(operator: str, factor: float) -> None:
    for shape in ((), (1, 1)):
        constants = {"c": np.full(shape, factor, np.float32)}
        made = model([node(operator, ["x", "c"], ["y"])], [value("x", [3, 5])], [value("y", [3, 5])], constants)
        after = assert_rewritten(made, {"x": noise(3, 5)}, "large-factor", within=0.0)
        assert max(float(w.max()) for w in weights(after)) <= 65504
        assert operators(after) == ["Mul", operator]


@pytest.mark.parametrize(("nodes", "factor"), [(["x", "c"], 65_504.0), (["x", "c"], -1e9), (["c", "x"], 1e6)])
def test_other_factors_are_left(nodes: list[str], factor: float) -> None:
    made = model([node("Div", nodes, ["y"])], [value("x", [3, 5])], [value("y", [3, 5])], {"c": np.float32(factor)})
    assert assert_left(made, {"x": noise(3, 5)}, "large-factor") == []
