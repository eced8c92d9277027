"""Operators on integers of 8 and 16 bits, and on booleans, compute the same numbers in wider types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto

from tests.prepare.graphs import FLOAT, INT32, INT64, Array, model, node, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

NAME = "small-integers"
UINT8, INT8, UINT16, INT16, BOOL = (getattr(TensorProto, name) for name in ("UINT8", "INT8", "UINT16", "INT16", "BOOL"))
SMALL = {UINT8, INT8, UINT16, INT16}
IMAGE = np.random.default_rng(0).integers(0, 256, (1, 4, 6, 6)).astype(np.uint8)
MASK = np.random.default_rng(1).random((3, 8)) < 0.5

Given = tuple[Sequence[NodeProto], Mapping[str, Any]]

# Nodes from x uint8[1,4,6,6] to t uint8, and their constants.
_IMAGES: dict[str, Given] = {
    "gather": ([node("Gather", ["x", "at"], ["t"], axis=1)], {"at": np.array([2, 1, 0])}),
    "split-concat": ([node("Split", ["x"], ["a", "b"], axis=1), node("Concat", ["b", "a"], ["t"], axis=1)], {}),
    "pad": ([node("Pad", ["x", "by"], ["t"])], {"by": np.array([0, 0, 1, 0, 0, 0, 2, 1])}),
    "pad-value": ([node("Pad", ["x", "by", "v"], ["t"])], {"by": np.array([0] * 7 + [3]), "v": np.uint8(200)}),
    "tile": ([node("Tile", ["x", "by"], ["t"])], {"by": np.array([1, 1, 2, 1])}),
    "expand": ([node("Expand", ["x", "to"], ["t"])], {"to": np.array([2, 4, 6, 6])}),
    "clip": ([node("Clip", ["x", "low", "high"], ["t"])], {"low": np.uint8(9), "high": np.uint8(200)}),
    "where": ([node("Greater", ["x", "k"], ["g"]), node("Where", ["g", "x", "k"], ["t"])], {"k": np.uint8(100)}),
    "add-wraps": ([node("Add", ["x", "k"], ["t"])], {"k": np.uint8(100)}),
    "sub-wraps": ([node("Sub", ["k", "x"], ["t"])], {"k": np.uint8(100)}),
    "mul-wraps": ([node("Mul", ["x", "x"], ["t"])], {}),
    "add-fits": ([node("Div", ["x", "k"], ["d"]), node("Add", ["d", "k"], ["t"])], {"k": np.uint8(100)}),
    "mod": ([node("Mod", ["x", "k"], ["t"])], {"k": np.uint8(7)}),
    "max-pool": ([node("MaxPool", ["x"], ["t"], kernel_shape=[2, 2], strides=[2, 2])], {}),
    "depth-to-space": ([node("DepthToSpace", ["x"], ["t"], blocksize=2)], {}),
    "resize": (
        [node("Resize", ["x", "", "s"], ["t"], coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
        {"s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "reduce": ([node("ReduceMax", ["x"], ["t"], axes=[1])], {}),
    "chain": (
        [
            node("Max", ["x", "k"], ["m"]),
            node("Transpose", ["m"], ["r"], perm=[0, 2, 3, 1]),
            node("Slice", ["r", "zero", "two", "last"], ["s"]),
            node("Concat", ["s", "s"], ["t"], axis=0),
        ],
        {"k": np.uint8(9), "zero": np.array([0]), "two": np.array([2]), "last": np.array([3])},
    ),
}


def made_of(given: Given, x: Array, output: int = FLOAT) -> ModelProto:
    """x → the nodes → t → Cast → y; the output has the type of x where that is wanted."""
    nodes, constants = given
    kind = {np.uint8: UINT8, np.int8: INT8, np.uint16: UINT16, np.int16: INT16, np.bool_: BOOL}[x.dtype.type]
    last = [] if output == kind else [node("Cast", ["t"], ["y"], to=output)]
    outputs = [value("t" if output == kind else "y", None, output)]
    return model([*nodes, *last], [value("x", x.shape, kind)], outputs, dict(constants))


def small_operators(made: ModelProto) -> set[str]:
    """The operators that read or make small integers, Cast and what only moves left out."""
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*made.graph.value_info, *made.graph.input)}
    kinds |= {t.name: t.data_type for t in made.graph.initializer}
    found = {n.op_type for n in made.graph.node if SMALL & {kinds.get(name, 0) for name in (*n.input, *n.output)}}
    return found - {"Cast", "Reshape", "Slice", "Transpose"}


@pytest.mark.parametrize("name", _IMAGES)
@pytest.mark.parametrize("output", [FLOAT, UINT8])
def test_an_image_is_the_same(name: str, output: int) -> None:
    made = made_of(_IMAGES[name], IMAGE, output)
    after = assert_rewritten(made, {"x": IMAGE}, NAME, times=len([n for n in made.graph.node if n.op_type != "Cast"]))
    assert small_operators(after) == set()


def test_a_chain_stays_wide() -> None:
    after = assert_rewritten(made_of(_IMAGES["chain"], IMAGE), {"x": IMAGE}, NAME, times=4)
    assert operators(after) == ["Cast", "Max", "Transpose", "Slice", "Concat", "Cast"]


def test_only_what_may_leave_its_type_is_brought_back() -> None:
    _, after = prepared_with(made_of(_IMAGES["add-fits"], IMAGE), {"x": IMAGE}, integer_mod=False)
    assert "Mod" in operators(after)  # the quotient's bounds are not looked at
    _, after = prepared_with(made_of(_IMAGES["clip"], IMAGE), {"x": IMAGE}, integer_mod=False)
    assert "Mod" not in operators(after)


def test_an_image_that_is_passed_through() -> None:
    made = made_of(([node("Identity", ["x"], ["t"])], {}), IMAGE, UINT8)
    after = assert_rewritten(made, {"x": IMAGE}, NAME)
    assert operators(after) == ["Cast", "Cast"]


def test_casts_between_types_wrap_as_integers_do() -> None:
    numbers = np.array([[0, 1, 127, 128, 255, 300, -1, -129, 70000, -70000]], np.int32)
    for target in (INT8, INT16, UINT8, UINT16):
        made = model(
            [node("Cast", ["x"], ["c"], to=target), node("Cast", ["c"], ["y"], to=INT32)],
            [value("x", [1, 10], INT32)],
            [value("y", [1, 10], INT32)],
        )
        after = assert_rewritten(made, {"x": numbers}, NAME)
        assert small_operators(after) == set()


def test_a_cast_that_fits_uint8_stays() -> None:
    made = model(
        [
            node("Clip", ["x", "low", "high"], ["c"]),
            node("Cast", ["c"], ["u"], to=UINT8),
            node("Cast", ["u"], ["y"], to=INT32),
        ],
        [value("x", [1, 3], INT32)],
        [value("y", [1, 3], INT32)],
        {"low": np.int32(0), "high": np.int32(255)},
    )
    assert assert_left(made, {"x": np.array([[-5, 7, 999]], np.int32)}, NAME) == []


@pytest.mark.parametrize(
    ("target", "least", "most"), [(INT8, -128, 127), (INT16, -(2**15), 2**15 - 1), (UINT16, 0, 65535)]
)
def test_other_small_types(target: int, least: int, most: int) -> None:
    """An input of such a type is refused later, so it comes from int32 here."""
    x = np.random.default_rng(2).integers(least, most, (2, 9), np.int32)
    made = model(
        [
            node("Cast", ["i"], ["x"], to=target),
            node("Gather", ["x", "k"], ["m"], axis=1),
            node("Concat", ["m", "x"], ["t"], axis=1),
            node("Cast", ["t"], ["y"], to=FLOAT),
        ],
        [value("i", x.shape, INT32)],
        [value("y", None)],
        {"k": np.array([8, 0])},
    )
    after = assert_rewritten(made, {"i": x}, NAME, times=3)
    assert small_operators(after) == set()


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Pad", ["x", "by"], ["t"])],
        [node("Equal", ["x", "row"], ["t"])],
    ],
    ids=["pad", "equal"],
)
def test_booleans(nodes: list[NodeProto]) -> None:
    made = made_of((nodes, {"by": np.array([1, 0, 0, 2]), "row": MASK[:1].copy()}), MASK)
    assert_rewritten(made, {"x": MASK}, NAME)


def test_quantized_integers_are_left() -> None:
    scale, zero = np.float32(0.1), np.uint8(128)
    made = model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            node("Gather", ["q", "at"], ["g"], axis=1),
            node("DequantizeLinear", ["g", "s", "z"], ["y"]),
        ],
        [value("x", [2, 5])],
        [value("y", None)],
        {"s": scale, "z": zero, "at": np.array([4, 0])},
    )
    assert assert_left(made, {"x": np.ones((2, 5), np.float32)}, NAME) == []


def test_a_uint8_output_behind_a_conv_is_cast_flat() -> None:
    made = model(
        [
            node("Conv", ["x", "w"], ["c"]),
            node("Abs", ["c"], ["a"]),
            node("Floor", ["a"], ["f"]),
            node("Cast", ["f"], ["y"], to=UINT8),
        ],
        [value("x", [1, 3, 5, 5])],
        [value("y", [1, 2, 5, 5], UINT8)],
        {"w": np.full((2, 3, 1, 1), 7, np.float32)},
    )
    feeds = {"x": np.random.default_rng(0).normal(0, 3, (1, 3, 5, 5)).astype(np.float32)}
    after = assert_rewritten(made, feeds, "cast-flat")
    assert operators(after)[-3:] == ["Reshape", "Cast", "Reshape"]


def test_a_uint8_output_without_layers_stays() -> None:
    made = model([node("Cast", ["x"], ["y"], to=UINT8)], [value("x", [1, 2, 3])], [value("y", [1, 2, 3], UINT8)])
    assert assert_left(made, {"x": np.ones((1, 2, 3), np.float32)}, "cast-flat") == []


@pytest.mark.parametrize("kind", [INT32, INT64])
@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([node("Neg", ["i"], ["y"])], {}),
        ([node("Sign", ["i"], ["y"])], {}),
        ([node("Relu", ["i"], ["y"])], {}),
        ([node("BitwiseNot", ["i"], ["y"])], {}),
        ([node("BitwiseAnd", ["k", "i"], ["y"])], {"k": 255}),
        ([node("Pow", ["i", "k"], ["y"])], {"k": 3}),
        ([node("Pow", ["i", "k"], ["y"])], {"k": 2}),
    ],
    ids=lambda given: given[0].op_type if isinstance(given, list) else None,
)
def test_operators_on_integers(nodes: list[NodeProto], constants: dict[str, Any], kind: int) -> None:
    numpy_kind = np.int32 if kind == INT32 else np.int64
    arrays = {name: np.asarray(array, numpy_kind) for name, array in constants.items()}
    cast = node("Cast", ["x"], ["i"], to=kind)
    made = model([cast, *nodes], [value("x", [2, 5], INT32)], [value("y", None, kind)], arrays, opset=18)
    feeds = {"x": np.array([[0, 7, -7, 300, -301], [1, -1, 255, 256, -999]], np.int32)}
    after = assert_rewritten(made, feeds, "integer-plain")
    assert nodes[0].op_type not in operators(after)


@pytest.mark.parametrize(("opset", "attributes"), [(12, {"axes": [1]}), (17, {"axes": [-1], "keepdims": 0}), (17, {})])
@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceSumSquare"])
def test_reductions_of_integers(operator: str, opset: int, attributes: dict[str, Any]) -> None:
    """From opset 18 on ONNX defines them by others, and they are inlined."""
    made = model(
        [node(operator, ["x"], ["y"], **attributes)],
        [value("x", [2, 5], INT32)],
        [value("y", None, INT32)],
        opset=opset,
    )
    feeds = {"x": np.array([[0, 7, -7, 300, -301], [1, -1, 255, 256, -999]], np.int32)}
    assert "ReduceSum" in operators(assert_rewritten(made, feeds, "integer-plain"))


def test_powers_and_masks_of_other_numbers_are_left() -> None:
    for operator, number in (("Pow", -1), ("Pow", 9), ("BitwiseAnd", 6)):
        made = model(
            [node(operator, ["x", "k"], ["y"])],
            [value("x", [1, 3], INT32)],
            [value("y", [1, 3], INT32)],
            {"k": np.int32(number)},
            opset=18,
        )
        assert assert_left(made, {"x": np.array([[1, 2, -3]], np.int32)}, "integer-plain") == []


AT = np.array([0, -1, 3, -4, -3], np.int32)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("operator", ["Gather", "GatherElements", "ScatterElements"])
def test_negative_positions_at_run_time(operator: str, kind: type) -> None:
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "at": AT.astype(kind)}
    if operator != "Gather":
        feeds["at"] = np.stack([feeds["at"]] * 3)[:, : 2 if operator == "ScatterElements" else 5]
    if operator == "ScatterElements":
        feeds["new"] = np.full((3, 2), -1, np.float32)
    inputs = [value(name, array.shape, FLOAT if array.dtype.kind == "f" else INT32 if kind is np.int32 else INT64)
              for name, array in feeds.items()]  # fmt: skip
    made = model([node(operator, list(feeds), ["y"], axis=1)], inputs, [value("y", None)])
    after = assert_rewritten(made, feeds, "computed-index")
    assert operators(after).count("Where") == 1


def test_positions_that_are_known_not_to_be_negative_are_left() -> None:
    """Bounded ones and constants."""
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    bounded = [node("Max", ["at", "zero"], ["p"]), node("Gather", ["x", "p"], ["y"])]
    cases: list[tuple[list[NodeProto], dict[str, Any]]] = [
        (bounded, {"zero": np.int32(0)}),
        ([node("Gather", ["x", "k"], ["y"])], {"k": np.array([-1])}),
    ]
    for nodes, constants in cases:
        made = model(nodes, [value("x", [3, 4]), value("at", [2], INT32)], [value("y", None)], constants)
        feeds = {"x": table, "at": np.array([2, 0], np.int32)}
        assert assert_left(made, feeds, "computed-index") == []
