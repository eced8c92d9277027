"""Every way to write an RMS norm becomes the operator; what only looks like one stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto

from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten, prepared_with

SQUARES = ("mul", "pow")
ROOTS = ("div-sqrt", "mul-reciprocal", "mul-one-over", "pow", "div-pow", "reciprocal-sqrt")
WEIGHTS = ("none", "flat", "rank", "left")


@dataclass(frozen=True)
class Form:
    """One way to write it."""

    square: str = "mul"
    root: str = "div-sqrt"
    weight: str = "flat"
    swapped: bool = False
    opset: int = 17
    epsilon: float = 1e-5
    shape: tuple[int, ...] = (2, 5, 40)

    def model(self, **changes: Any) -> ModelProto:
        """A graph with the norm between two other operators."""
        size = self.shape[-1]
        constants: dict[str, Any] = {
            "two": np.float32(2),
            "eps": np.float32(self.epsilon),
            "one": np.float32(1),
            "minus": np.float32(-0.5),
            "half": np.float32(0.5),
            "w": noise(*((1,) * (len(self.shape) - 1) if self.weight == "rank" else ()), size, seed=7),
            "axis": np.array([-1]),
        } | changes
        nodes = [node("Tanh", ["in"], ["t"]), node("Mul", ["t", "two"], ["x"])]
        nodes += [node("Mul", ["x", "x"], ["sq"]) if self.square == "mul" else node("Pow", ["x", "two"], ["sq"])]
        axes: dict[str, Any] = {} if self.opset >= 18 else {"axes": [-1]}
        nodes += [node("ReduceMean", ["sq", "axis"] if self.opset >= 18 else ["sq"], ["mean"], keepdims=1, **axes)]
        nodes += [node("Add", ["eps", "mean"] if self.swapped else ["mean", "eps"], ["var"]), *self._root()]
        last = "n"
        if self.weight != "none":
            nodes += [node("Mul", ["w", "n"] if self.weight == "left" else ["n", "w"], ["y"])]
            last = "y"
        nodes += [node("Neg", [last], ["out"])]
        return model(nodes, [value("in", self.shape)], [value("out", self.shape)], constants, opset=self.opset, ir=10)

    def _root(self) -> list[NodeProto]:
        swap = ("r", "x") if self.swapped else ("x", "r")
        match self.root:
            case "div-sqrt":
                return [node("Sqrt", ["var"], ["s"]), node("Div", ["x", "s"], ["n"])]
            case "div-pow":
                return [node("Pow", ["var", "half"], ["s"]), node("Div", ["x", "s"], ["n"])]
            case "mul-reciprocal":
                return [node("Sqrt", ["var"], ["s"]), node("Reciprocal", ["s"], ["r"]), node("Mul", swap, ["n"])]
            case "mul-one-over":
                return [node("Sqrt", ["var"], ["s"]), node("Div", ["one", "s"], ["r"]), node("Mul", swap, ["n"])]
            case "reciprocal-sqrt":
                return [node("Reciprocal", ["var"], ["s"]), node("Sqrt", ["s"], ["r"]), node("Mul", swap, ["n"])]
            case _:
                return [node("Pow", ["var", "minus"], ["r"]), node("Mul", swap, ["n"])]


FORMS = st.builds(
    Form,
    square=st.sampled_from(SQUARES),
    root=st.sampled_from(ROOTS),
    weight=st.sampled_from(WEIGHTS),
    swapped=st.booleans(),
    opset=st.sampled_from([13, 15, 17, 18, 20, 22, 23]),
    epsilon=st.sampled_from([0.0, 1e-12, 1e-6, 1e-5, 0.1]),
    shape=st.sampled_from([(4, 8), (1, 3, 16), (2, 2, 3, 40)]),
)


@settings(max_examples=40, deadline=None)
@given(FORMS, st.integers(0, 1000))
def test_every_form_becomes_the_operator(form: Form, seed: int) -> None:
    after = assert_rewritten(form.model(), {"in": noise(*form.shape, seed=seed)}, "rms-norm")
    assert operators(after) == ["Tanh", "Mul", "RMSNormalization", "Neg"]
    assert {entry.domain: entry.version for entry in after.opset_import} == {"": 23}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0, 26_000.0])
def test_large_and_small_rows(scale: float) -> None:
    form = Form(root="mul-reciprocal", square="pow")
    made = form.model(two=np.float32(2))
    del made.graph.node[0]
    made.graph.node[0].input[0] = "in"  # x = 2·in, without the Tanh
    assert_rewritten(made, {"in": noise(*form.shape) * np.float32(scale)}, "rms-norm")


def test_float16_with_casts_inside_is_cast_back_before_the_weight() -> None:
    made = model(
        [
            node("Cast", ["in"], ["x16"], to=TensorProto.FLOAT16),
            node("Cast", ["x16"], ["x"], to=TensorProto.FLOAT),
            node("Pow", ["x", "two"], ["sq"]),
            node("ReduceMean", ["sq"], ["mean"], axes=[-1]),
            node("Add", ["mean", "eps"], ["var"]),
            node("Sqrt", ["var"], ["s"]),
            node("Reciprocal", ["s"], ["r"]),
            node("Mul", ["x", "r"], ["n"]),
            node("Cast", ["n"], ["n16"], to=TensorProto.FLOAT16),
            node("Mul", ["w", "n16"], ["y16"]),
            node("Cast", ["y16"], ["out"], to=TensorProto.FLOAT),
        ],
        [value("in", [3, 8])],
        [value("out", [3, 8])],
        {"two": np.float32(2), "eps": np.float32(1e-6), "w": noise(8, seed=3).astype(np.float16)},
    )
    after = assert_rewritten(made, {"in": noise(3, 8)}, "rms-norm", within=2**-10)  # one step of fp16
    assert operators(after) == ["Cast", "RMSNormalization", "Cast"]


def test_what_the_old_form_gives_to_others_stays() -> None:
    made = Form(weight="none").model()
    made.graph.output.append(value("mean", [2, 5, 1]))
    after = assert_rewritten(made, {"in": noise(2, 5, 40)}, "rms-norm")
    assert "ReduceMean" in operators(after)


def test_two_norms_of_one_tensor() -> None:
    made = Form().model()
    made.graph.node.append(node("Mul", ["n", "w2"], ["z"]))
    made.graph.initializer.append(model([], [], [], {"w2": noise(40, seed=9)}).graph.initializer[0])
    made.graph.output.append(value("z", [2, 5, 40]))
    after = assert_rewritten(made, {"in": noise(2, 5, 40)}, "rms-norm")
    assert operators(after).count("RMSNormalization") == 1  # without a weight, since both weights follow it


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"axes": [1]}, "it does not normalise over the last axis"),
        ({"axes": [1, 2]}, "it does not normalise over the last axis"),
    ],
)
def test_other_axes_are_left_and_said(changed: dict[str, Any], said: str) -> None:
    made = Form().model()
    mean = next(n for n in made.graph.node if n.op_type == "ReduceMean")
    mean.attribute[0].CopyFrom(node("ReduceMean", [], ["_"], **changed).attribute[0])
    mean.attribute[1].CopyFrom(node("ReduceMean", [], ["_"], keepdims=1).attribute[0])
    [line] = assert_left(made, {"in": noise(2, 5, 40)}, "rms-norm")
    assert line.startswith("not-rewritten: Div_n (Div)")
    assert said in line


def test_layer_norm_is_none() -> None:
    made = Form().model()
    divide = next(n for n in made.graph.node if n.op_type == "Div")
    divide.input[0] = "t"  # divides another tensor than the one that was squared
    assert assert_left(made, {"in": noise(2, 5, 40)}, "rms-norm") == []


def test_cube_root_and_another_power_are_none() -> None:
    for changes in ({"half": np.float32(1 / 3)}, {"two": np.float32(3)}):
        made = Form(square="pow", root="div-pow").model(**changes)
        assert assert_left(made, {"in": np.abs(noise(2, 5, 40))}, "rms-norm") == []


def test_opset_that_cannot_be_raised_is_said() -> None:
    made = Form(opset=17).model()
    made.graph.node.append(node("RoiAlign", ["img", "rois", "idx"], ["roi"], output_height=2, output_width=2))
    made.graph.input.extend([value("img", [1, 1, 4, 4]), value("rois", [1, 4])])
    made.graph.initializer.append(model([], [], [], {"idx": np.array([0])}).graph.initializer[0])
    made.graph.output.append(value("roi", [1, 1, 2, 2]))
    made.opset_import[0].version = 15  # RoiAlign's default mode is another from 16 on
    feeds = {"in": noise(2, 5, 40), "img": noise(1, 1, 4, 4), "rois": np.array([[0, 0, 2, 2]], np.float32)}
    [line] = assert_left(made, feeds, "rms-norm")
    assert "RoiAlign (node RoiAlign_roi) means something else in opset 23 than in 15" in line


def test_reductions_splits_and_grids_keep_their_meaning_in_the_new_opset() -> None:
    made = Form(opset=17).model()
    made.graph.node.extend(
        [
            node("Split", ["in"], ["a", "b"], axis=2),
            node("ReduceMax", ["a"], ["m"], axes=[1], keepdims=0),
            node("Reshape", ["b", "four"], ["img"]),
            node("GridSample", ["img", "grid"], ["g"], mode="bilinear", align_corners=1),
            node("AveragePool", ["img"], ["p"], kernel_shape=[2, 2]),
        ]
    )
    made.graph.initializer.extend(
        model([], [], [], {"four": np.array([1, 1, 10, 20]), "grid": np.tanh(noise(1, 3, 3, 2))}).graph.initializer
    )
    made.graph.output.extend([value("m", [2, 20]), value("g", [1, 1, 3, 3]), value("p", [1, 1, 9, 19])])
    assert_rewritten(made, {"in": noise(2, 5, 40)}, "rms-norm")


def test_switched_off_by_name() -> None:
    _, after = prepared_with(Form().model(), {"in": noise(2, 5, 40)}, rms_norm=False)
    assert "RMSNormalization" not in operators(after)
    assert "Sqrt" in operators(after)


@pytest.mark.parametrize(
    ("shape", "flat"),
    [((2, 16, 32), True), ((4, 64, 16), True), ((1, 2, 3, 8), True), ((1, 64, 16), False), ((2, 16, 33), False)],
)
def test_short_rows_in_batches_are_a_matrix(shape: tuple[int, ...], *, flat: bool) -> None:
    made = Form(shape=shape, opset=23).model()
    after = assert_rewritten(made, {"in": noise(*shape)}, "rms-norm-rows", times=int(flat))
    assert operators(after) == [
        "Tanh",
        "Mul",
        *(["Reshape", "RMSNormalization", "Reshape"] if flat else ["RMSNormalization"]),
        "Neg",
    ]
