"""plain-functions, plain-forms, function-written-out and log-softmax-range: every form, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from tests.prepare.graphs import Array, model, node, noise, operators, run, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

_WIDE = np.linspace(-9, 9, 60, dtype=np.float32).reshape(3, 20)
_UNIT = np.linspace(-0.99, 0.99, 60, dtype=np.float32).reshape(3, 20)


def _one(
    op_type: str, x: Array, opset: int = 17, dtype: int = TensorProto.FLOAT, **attributes: Any
) -> tuple[ModelProto, dict[str, Array]]:
    made = model([node(op_type, ["x"], ["y"], **attributes)], [value("x", x.shape)], [value("y", None, dtype)],
                 opset=opset)  # fmt: skip
    return made, {"x": x}


@pytest.mark.parametrize(
    ("op_type", "x", "attributes"),
    [
        ("Softsign", _WIDE, {}),
        ("Shrink", _WIDE, {"lambd": 1.5, "bias": 0.5}),
        ("Shrink", _WIDE, {}),
        ("Sinh", _WIDE, {}),
        ("Sinh", _UNIT, {}),
        ("Cosh", _WIDE, {}),
        ("Asinh", _WIDE * 7000, {}),
        ("Acosh", np.abs(_WIDE) * 7000 + 1, {}),
        ("Acosh", np.abs(_UNIT) + 1, {}),
        ("Atanh", _UNIT, {}),
        ("Asin", _UNIT, {}),
        ("Acos", _UNIT, {}),
        ("Hardmax", np.round(_WIDE), {"axis": 1}),
        ("Hardmax", np.round(_WIDE), {"axis": 0}),
    ],
)
def test_functions(op_type: str, x: Array, attributes: dict[str, Any]) -> None:
    after = assert_rewritten(*_one(op_type, x, **attributes), "plain-functions")
    assert op_type not in operators(after)


def test_pow_by_integers() -> None:
    nodes = [node("Pow", ["x", "k"], ["a"]), node("Pow", ["a", "n"], ["y"])]
    made = model(nodes, [value("x", [3, 20]), value("n", [20], TensorProto.INT32)], [value("y", [3, 20])],
                 {"k": np.int64(2)})  # fmt: skip
    feeds = {"x": _UNIT, "n": np.arange(20, dtype=np.int32) % 4}
    assert_rewritten(made, feeds, "plain-functions", times=2)


def test_pow_by_floats_stays() -> None:
    made = model([node("Pow", ["x", "k"], ["y"])], [value("x", [3, 20])], [value("y", [3, 20])], {"k": np.float32(2)})
    assert assert_left(made, {"x": _UNIT}, "plain-functions") == []


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("op_type", ["ReduceSumSquare", "ReduceL1", "ReduceLogSum"])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions(op_type: str, opset: int, keep: int) -> None:
    """From opset 18 on these are functions of ONNX, which preparation writes out before any rewrite."""
    made, feeds = _one(op_type, np.abs(noise(2, 4, 5)) + 0.1, opset, axes=[-1, 0], keepdims=keep)
    after = assert_rewritten(made, feeds, "plain-forms")
    assert op_type not in operators(after)


def test_norm_of_order_one_and_rows_of_zeros() -> None:
    x = noise(2, 3, 5)
    x[1, 2] = 0
    assert_rewritten(*_one("LpNormalization", x, axis=1, p=1), "plain-forms")
    assert_left(*_one("LpNormalization", x, axis=1, p=2), "plain-forms")


@pytest.mark.parametrize("fed", ["fed", "constant"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 1.0), (1.0, 0.7), (0.3, 0.7)])
def test_gemm(alpha: float, beta: float, fed: str) -> None:
    feeds = {"x": noise(5, 4)}
    operands: dict[str, Array] = {"b": noise(6, 5, seed=1), "c": noise(6, seed=2)}
    if fed == "fed":
        feeds, operands = {**feeds, **operands}, {}
    gemm = node("Gemm", ["x", "b", "c"], ["y"], alpha=alpha, beta=beta, transA=1, transB=1)
    made = model([gemm], [value(name, array.shape) for name, array in feeds.items()], [value("y", [4, 6])], operands)
    assert_rewritten(made, feeds, "plain-forms")


def test_batch_norm_in_training() -> None:
    constants = {name: np.abs(noise(4, seed=seed)) + 0.1 for seed, name in enumerate("sbmv")}
    norm = node("BatchNormalization", ["x", *"sbmv"], ["y", "rm", "rv"], training_mode=1, momentum=0.7)
    made = model(
        [norm], [value("x", [3, 4, 5])], [value("y", [3, 4, 5]), value("rm", [4]), value("rv", [4])], constants
    )
    assert_rewritten(made, {"x": noise(3, 4, 5) * 3 + 1}, "plain-forms")


@pytest.mark.parametrize("fed", ["fed", "constant"])
def test_boolean_attention_mask(fed: str) -> None:
    mask = {"m": np.tril(np.ones((6, 6), bool))}
    feeds: dict[str, Array] = {name: noise(1, 2, 6, 4, seed=seed) for seed, name in enumerate("qkv")}
    given = [value(name, array.shape) for name, array in feeds.items()]
    given += [value("m", [6, 6], TensorProto.BOOL)] if fed == "fed" else []
    made = model([node("Attention", [*"qkvm"], ["y"])], given, [value("y", [1, 2, 6, 4])],
                 {} if fed == "fed" else mask, opset=23, ir=11)  # fmt: skip
    assert_rewritten(made, {**feeds, **(mask if fed == "fed" else {})}, "plain-forms")


_Nodes = Callable[[], list[Any]]
_WRITTEN: Mapping[str, tuple[str, _Nodes]] = {
    "sigmoid": ("Sigmoid", lambda: [
        node("Exp", ["x"], ["e"]), node("Add", ["one", "e"], ["s"]), node("Div", ["e", "s"], ["y"])]),
    "tanh of twice x": ("Tanh", lambda: [
        node("Mul", ["x", "two"], ["d"]), node("Exp", ["d"], ["e"]), node("Add", ["e", "minus"], ["a"]),
        node("Add", ["e", "one"], ["b"]), node("Div", ["a", "b"], ["y"])]),
    "tanh of both signs": ("Tanh", lambda: [
        node("Exp", ["x"], ["p"]), node("Mul", ["x", "minus"], ["o"]), node("Exp", ["o"], ["n"]),
        node("Sub", ["p", "n"], ["a"]), node("Add", ["n", "p"], ["b"]), node("Div", ["a", "b"], ["y"])]),
    "log of sigmoid": ("Softplus", lambda: [node("Sigmoid", ["x"], ["s"]), node("Log", ["s"], ["y"])]),
    "log of softmax": ("LogSoftmax", lambda: [node("Softmax", ["x"], ["s"], axis=0), node("Log", ["s"], ["y"])]),
    "softmax by a reciprocal": ("Softmax", lambda: [
        node("Exp", ["x"], ["e"]), node("ReduceSum", ["e", "axes"], ["t"]), node("Reciprocal", ["t"], ["r"]),
        node("Mul", ["r", "e"], ["y"])]),
    "softmax by a norm of order 1": ("Softmax", lambda: [
        node("Exp", ["x"], ["e"]), node("ReduceL1", ["e"], ["t"], axes=[1]), node("Div", ["e", "t"], ["y"])]),
}  # fmt: skip
_NUMBERS = {"one": np.float32(1), "two": np.float32(2), "minus": np.float32(-1), "axes": np.array([1])}


@pytest.mark.parametrize("form", sorted(_WRITTEN))
def test_written_functions(form: str) -> None:
    wanted, nodes = _WRITTEN[form]
    made = model(nodes(), [value("x", [3, 20])], [value("y", [3, 20])], _NUMBERS)
    # ONNX Runtime's own float32 Sigmoid of -9 is off by 1e-4 of itself; the rewritten form is right to 1e-7.
    after = assert_rewritten(made, {"x": _WIDE}, "function-written-out", within=1e-4 if "log of si" in form else 1e-6)
    left = {"Log", "Reciprocal", *({"Exp"} if wanted != "Softplus" else ())}
    assert wanted in operators(prepared_with(made, {"x": _WIDE}, log_softmax_range=False)[1])
    assert not left & set(operators(after)) or wanted == "LogSoftmax"


def test_what_looks_like_written_functions() -> None:
    """Other constants, another tensor in the fraction: left, and the same numbers."""
    for one, minus in ((2.0, -1.0), (1.0, -2.0)):
        numbers = {**_NUMBERS, "one": np.float32(one), "minus": np.float32(minus)}
        made = model(_WRITTEN["tanh of twice x"][1](), [value("x", [3, 20])], [value("y", [3, 20])], numbers)
        assert_left(made, {"x": _WIDE}, "function-written-out")
    numbers = {**_NUMBERS, "minus": np.float32(-2)}
    made = model(_WRITTEN["tanh of both signs"][1](), [value("x", [3, 20])], [value("y", [3, 20])], numbers)
    assert_left(made, {"x": _WIDE}, "function-written-out")


@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (13, 0), (18, -1)])
def test_log_softmax(opset: int, axis: int) -> None:
    made, feeds = _one("LogSoftmax", _WIDE * 60, opset=opset, axis=axis)
    after = assert_rewritten(made, feeds, "log-softmax-range")
    exponents = [entry for entry in after.graph.node if entry.op_type == "Exp"]
    assert len(exponents) == 1
    assert run(made, feeds)[0].min() < -300


def test_log_softmax_of_bounded_numbers_stays() -> None:
    nodes = [node("Tanh", ["x"], ["t"]), node("LogSoftmax", ["t"], ["y"], axis=-1)]
    made = model(nodes, [value("x", [3, 20])], [value("y", [3, 20])])
    assert_left(made, {"x": _WIDE}, "log-softmax-range")
