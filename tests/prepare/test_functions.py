"""Functions: the model's own are inlined, and those operators that the compiler knows only by their definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from qnn.prepare.functions import INLINED_OPERATORS
from tests.prepare.graphs import model, node, noise, operators, prepared, run, specs, value


def between_convs(op_type: str, opset: int, constants: dict[str, Any], **attributes: Any) -> ModelProto:
    weights = {"w": noise(8, 3, 3, 3), "w2": noise(4, 8, 1, 1, seed=1)}
    return model(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
            node(op_type, ["a", *constants], ["m"], **attributes),
            node("Conv", ["m", "w2"], ["y"]),
        ],
        [value("x", [1, 3, 6, 6])],
        [value("y", None)],
        weights | constants,
        opset=opset,
        ir=10,
    )


@pytest.mark.parametrize(
    ("op_type", "opset", "constants", "attributes"),
    [
        ("Mish", 22, {}, {}),
        ("Softsign", 22, {}, {}),
        ("Celu", 22, {}, {"alpha": 0.7}),
        ("Shrink", 22, {}, {}),
        ("Shrink", 22, {}, {"lambd": 0.2, "bias": 0.1}),
        ("MeanVarianceNormalization", 22, {}, {}),
        ("ReduceL1", 22, {"axes": np.array([3])}, {}),
        ("ReduceSumSquare", 22, {"axes": np.array([2])}, {}),
        ("CenterCropPad", 22, {"shape": np.array([8, 4])}, {"axes": [2, 3]}),
    ],
)
def test_operators_without_an_htp_form_become_their_definition(
    tmp_path: Path, op_type: str, opset: int, constants: dict[str, Any], attributes: dict[str, Any]
) -> None:
    made = between_convs(op_type, opset, constants, **attributes)
    facts, after = prepared(made, tmp_path, specs(x=(1, 3, 6, 6)))
    assert not set(operators(after)) & set(INLINED_OPERATORS)
    assert ("inlined", op_type) in {(change.kind, change.subject) for change in facts.changes}
    feeds = {"x": noise(1, 3, 6, 6, seed=2)}
    np.testing.assert_allclose(run(after, feeds)[0], run(made, feeds)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op_type", ["Gelu", "HardSwish", "Softplus", "LogSoftmax", "Elu"])
def test_operators_with_an_htp_form_stay(tmp_path: Path, op_type: str) -> None:
    facts, after = prepared(between_convs(op_type, 22, {}), tmp_path, specs(x=(1, 3, 6, 6)))
    assert "inlined" not in {change.kind for change in facts.changes}
    if op_type != "LogSoftmax":  # the rewrite log-softmax-range writes it out
        kept = [
            name for name in operators(after) if name not in {"Clip", "Reshape"}
        ]  # rewrites put these round Softplus
        assert kept == ["Conv", op_type, "Conv"]


def test_an_operator_older_than_its_definition_stays(tmp_path: Path) -> None:
    """Softsign is an operator since opset 1 and defined by others since 18 only."""
    made = between_convs("Softsign", 17, {})
    _, after = prepared(made, tmp_path, specs(x=(1, 3, 6, 6)))
    feeds = {"x": noise(1, 3, 6, 6)}
    np.testing.assert_allclose(run(after, feeds)[0], run(made, feeds)[0], rtol=1e-6, atol=1e-6)


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17)]
    inner = helper.make_function("own", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], opsets)
    outer = helper.make_function(
        "own",
        "FourTimes",
        ["a"],
        ["c"],
        [node("Twice", ["a"], ["b"], domain="own"), node("Twice", ["b"], ["c"], domain="own")],
        [*opsets, helper.make_opsetid("own", 1)],
    )
    made = model([node("FourTimes", ["x"], ["y"], domain="own")], [value("x", ["n"])], [value("y", ["n"])])
    made.opset_import.append(helper.make_opsetid("own", 1))
    made.functions.extend([inner, outer])
    facts, after = prepared(made, tmp_path, specs(x=(3,)))
    assert operators(after) == ["Add", "Add"]
    assert not after.functions
    assert facts.opsets == {"": 17}
    assert {change.subject for change in facts.changes if change.kind == "inlined"} == {"Twice", "FourTimes"}
    np.testing.assert_array_equal(run(after, {"x": noise(3)})[0], 4 * noise(3))
