"""Types at the border: int64 inputs as declared, and none that HTP lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from qnn.errors.graphs import UndeclaredInt64, UnsupportedDtype
from qnn.model.spec import InputSpec
from tests.prepare.graphs import FLOAT, INT32, INT64, model, node, noise, operators, prepared, run, specs, value


def lookup() -> ModelProto:
    """Token ids shifted by a large number, looked up, and handed on as they came."""
    return model(
        [
            node("Add", ["ids", "shift"], ["shifted"]),
            node("Mod", ["shifted", "rows"], ["row"]),
            node("Gather", ["table", "row"], ["y"]),
            node("Identity", ["ids"], ["same"]),
        ],
        [value("ids", ["n", 4], INT64)],
        [value("y", None), value("same", ["n", 4], INT64)],
        {"shift": np.array([2**40]), "rows": np.int64(10), "table": noise(10, 3)},
    )


def test_an_int64_input_has_to_be_declared(tmp_path: Path) -> None:
    with pytest.raises(UndeclaredInt64, match="ids") as caught:
        prepared(lookup(), tmp_path, (InputSpec("ids", ("n", 4)),), {"n": 1})
    assert "`ids: {shape: [n, 4], dtype: int32}`" in caught.value.remedy


def test_an_int64_input_becomes_int32_exactly(tmp_path: Path) -> None:
    facts, made = prepared(lookup(), tmp_path, (InputSpec("ids", (1, 4), "int32"),))
    assert [str(tensor) for tensor in (*facts.inputs, *facts.outputs)] == [
        "ids int32[1,4]",
        "y float32[1,4,3]",
        "same int64[1,4]",
    ]
    ids = np.array([[2**31 - 1, -(2**31), 0, -7]])
    before, after = run(lookup(), {"ids": ids}), run(made, {"ids": ids.astype(np.int32)})
    for expected, got in zip(before, after, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert ("cast-input", "ids") in {(change.kind, change.subject) for change in facts.changes}


def test_an_int64_input_is_kept_when_declared_so(tmp_path: Path) -> None:
    facts, made = prepared(lookup(), tmp_path, (InputSpec("ids", (1, 4), "int64"),))
    assert facts.inputs[0].dtype == "int64"
    assert "Cast" not in operators(made)


def test_int32_stays_int32(tmp_path: Path) -> None:
    made = model([node("Add", ["x", "x"], ["y"])], [value("x", [2], INT32)], [value("y", [2], INT32)])
    facts, _ = prepared(made, tmp_path, (InputSpec("x", (2,), "int32"),))
    assert (facts.inputs[0].dtype, facts.changes) == ("int32", ())


@pytest.mark.parametrize("wanted", ["int32", "int64", "float16"])
def test_other_dtypes_cannot_be_declared(tmp_path: Path, wanted: str) -> None:
    made = model([node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", [2])])
    with pytest.raises(UnsupportedDtype, match=f"'x' is float32 and cannot be given as {wanted}"):
        prepared(made, tmp_path, (InputSpec("x", (2,), wanted),))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (TensorProto.DOUBLE, "float64"),
        (TensorProto.UINT64, "uint64"),
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.STRING, "string"),
    ],
)
def test_types_htp_lacks_are_refused_at_the_border(tmp_path: Path, dtype: int, name: str) -> None:
    made = model([node("Identity", ["x"], ["y"])], [value("x", [2], dtype)], [value("y", [2], dtype)])
    with pytest.raises(UnsupportedDtype, match=f"input 'x' is {name}, which HTP does not have"):
        prepared(made, tmp_path, (InputSpec("x", (2,)),))


def test_a_float64_output_is_refused(tmp_path: Path) -> None:
    made = model(
        [node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE)], [value("x", [2])], [value("y", [2], TensorProto.DOUBLE)]
    )
    with pytest.raises(UnsupportedDtype, match="output 'y' is float64"):
        prepared(made, tmp_path, (InputSpec("x", (2,)),))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(TensorProto.BOOL, "bool"), (TensorProto.UINT8, "uint8"), (TensorProto.FLOAT16, "float16"), (FLOAT, "float32")],
)
def test_types_htp_has_are_kept(tmp_path: Path, dtype: int, name: str) -> None:
    made = model([node("Cast", ["x"], ["y"], to=FLOAT)], [value("x", [2], dtype)], [value("y", [2])])
    facts, _ = prepared(made, tmp_path, (InputSpec("x", (2,)),))
    assert facts.inputs[0].dtype == name


def test_strings_inside_are_named(tmp_path: Path) -> None:
    made = model(
        [
            node("Cast", ["x"], ["text"], to=TensorProto.STRING),
            node("Cast", ["text"], ["y"], to=FLOAT),
        ],
        [value("x", [2])],
        [value("y", [2])],
    )
    with pytest.raises(UnsupportedDtype, match="'text' holds strings"):
        prepared(made, tmp_path, (InputSpec("x", (2,)),))


def test_a_subgraph_sees_the_cast_input(tmp_path: Path) -> None:
    """The input is used inside a branch, which is unwrapped once its condition is known."""
    branch = model([node("Add", ["ids", "ids"], ["sum"])], [], [value("sum", [2], INT64)]).graph
    other = model([node("Identity", ["ids"], ["copy"])], [], [value("copy", [2], INT64)]).graph
    made = model(
        [node("If", ["yes"], ["y"], then_branch=branch, else_branch=other)],
        [value("ids", [2], INT64)],
        [value("y", [2], INT64)],
        {"yes": np.array(True)},
    )
    _, after = prepared(made, tmp_path, (InputSpec("ids", (2,), "int32"),))
    (y,) = run(after, {"ids": np.array([5, -6], np.int32)})
    np.testing.assert_array_equal(y, np.array([10, -12]))


@pytest.mark.parametrize(("number", "name"), [(TensorProto.INT8, "int8"), (TensorProto.UINT16, "uint16")])
def test_types_for_quantized_numbers_alone_are_refused_where_nothing_is_quantized(
    tmp_path: Path, number: int, name: str
) -> None:
    made = model([node("Cast", ["x"], ["y"], to=FLOAT)], [value("x", [2], number)], [value("y", [2])])
    with pytest.raises(UnsupportedDtype, match=f"input 'x' is {name}, which HTP has for quantized numbers only"):
        prepared(made, tmp_path, specs(x=(2,)))
    (tmp_path / "output").mkdir()
    made = model([node("Cast", ["x"], ["y"], to=number)], [value("x", [2])], [value("y", [2], number)])
    with pytest.raises(UnsupportedDtype, match=f"output 'y' is {name}, which HTP has for quantized numbers only"):
        prepared(made, tmp_path / "output", specs(x=(2,)))


def test_bfloat16_inside_is_refused(tmp_path: Path) -> None:
    made = model(
        [node("Cast", ["x"], ["half"], to=TensorProto.BFLOAT16), node("Cast", ["half"], ["y"], to=FLOAT)],
        [value("x", [2])],
        [value("y", [2])],
    )
    with pytest.raises(UnsupportedDtype, match="tensor 'half' is bfloat16, which HTP does not have"):
        prepared(made, tmp_path, specs(x=(2,)))
