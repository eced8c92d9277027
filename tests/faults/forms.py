"""The graphs of data/sweep.csv, made again from their form: what was swept on the emulator, and what came of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.prepare.graphs import Array, noise

DATA = Path(__file__).parent / "data" / "sweep.csv"


@dataclass(frozen=True)
class Swept:
    """One graph of the sweep: how the compiler (QAIRT 2.51, SM8650) did with it as it is, and prepared.

    `raw` and `prepared` are right, wrong, or fails (refused, an error, a crash); `prepared` is empty where it was not
    measured.
    """

    kind: str
    form: Mapping[str, Any]
    raw: str
    prepared: str

    def __str__(self) -> str:
        return f"{self.kind} {json.dumps(self.form, sort_keys=True)}"


def read_sweep() -> list[Swept]:
    """All rows."""
    with DATA.open(newline="", encoding="utf-8") as stream:
        return [
            Swept(row["kind"], json.loads(row["form"]), row["raw"], row["prepared"]) for row in csv.DictReader(stream)
        ]


def graph_of(swept: Swept) -> tuple[ModelProto, dict[str, Array]]:
    """The model and its inputs."""
    return _MAKERS[swept.kind](dict(swept.form))


def _model(
    op_type: str, x: Array, constants: Mapping[str, Any], inputs: list[str], opset: int, **attributes: Any
) -> tuple[ModelProto, dict[str, Array]]:
    graph = helper.make_graph(
        [helper.make_node(op_type, inputs, ["y"], name="node", **attributes)],
        "swept",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), {"x": x}


def _resize_sizes(form: dict[str, Any]) -> tuple[ModelProto, dict[str, Array]]:
    mode = {"mode": form["mode"], "coordinate_transformation_mode": form["ct"]}
    if form["nm"]:
        mode["nearest_mode"] = form["nm"]
    opset = {"half_pixel_symmetric": 19, "tf_half_pixel_for_nn": 11}.get(form["ct"], 17)
    none = np.zeros(0, np.float32)
    constants = {"roi": none, "scales": none, "sizes": np.array([*form["shape"][:2], *form["size"]], np.int64)}
    return _model("Resize", noise(*form["shape"]), constants, ["x", "roi", "scales", "sizes"], opset, **mode)


def _resize_scales(form: dict[str, Any]) -> tuple[ModelProto, dict[str, Array]]:
    mode = {"mode": form["mode"], "coordinate_transformation_mode": form["ct"]}
    if form["nm"]:
        mode["nearest_mode"] = form["nm"]
    constants = {"scales": np.array([1, 1, *form["scales"]], np.float32)}
    return _model("Resize", noise(*form["shape"]), constants, ["x", "", "scales"], 17, **mode)


def _resize_old(form: dict[str, Any]) -> tuple[ModelProto, dict[str, Array]]:
    operator = "Upsample" if form["opset"] == 9 else "Resize"
    constants = {"scales": np.array([1, 1, *form["scales"]], np.float32)}
    return _model(operator, noise(*form["shape"]), constants, ["x", "scales"], form["opset"], mode=form["mode"])


def _pad(form: dict[str, Any]) -> tuple[ModelProto, dict[str, Array]]:
    constants = {"pads": np.array(form["pads"], np.int64)}
    opset = 19 if form["mode"] == "wrap" else 17
    return _model("Pad", noise(*form["shape"]), constants, ["x", "pads"], opset, mode=form["mode"])


def _conv_transpose(form: dict[str, Any]) -> tuple[ModelProto, dict[str, Array]]:
    axes = form["nd"]
    x = noise(1, form["cin"], *((20,) if axes == 1 else (7, 9)))
    constants = {"w": noise(form["cin"], form["mult"], *[form["k"]] * axes, seed=1)}
    if form["bias"]:
        constants["b"] = noise(form["mult"] * form["group"], seed=2)
    return _model(
        "ConvTranspose",
        x,
        constants,
        ["x", *constants],
        17,
        group=form["group"],
        strides=[form["s"]] * axes,
        pads=[form["pb"]] * axes + [form["pe"]] * axes,
        output_padding=[form["op"]] * axes,
        dilations=[form["dil"]] * axes,
    )


def _pool(form: dict[str, Any]) -> tuple[ModelProto, dict[str, Array]]:
    axes, operator = form["nd"], form.get("op", "MaxPool")
    further = {"ceil_mode": form["ceil"]} if form.get("ceil") else {}
    if form.get("cip"):
        further["count_include_pad"] = 1
    x = np.abs(noise(1, 4, *[form["n"]] * axes)) + 0.5
    pads = [form["pb"]] * axes + [form["pe"]] * axes
    kernel, strides = [form["k"]] * axes, [form["s"]] * axes
    return _model(operator, x, {}, ["x"], 17, kernel_shape=kernel, strides=strides, pads=pads, **further)


_MAKERS: Mapping[str, Callable[[dict[str, Any]], tuple[ModelProto, dict[str, Array]]]] = {
    "resize-sizes": _resize_sizes,
    "resize-scales": _resize_scales,
    "resize-old": _resize_old,
    "pad": _pad,
    "convtranspose": _conv_transpose,
    "pool": _pool,
    "maxpool": _pool,
}
