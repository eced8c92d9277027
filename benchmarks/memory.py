"""The memory that a large model takes to build: 1.5 GB of float weights as external data, one chip, all verified.

The peak is the largest proportional set size of all processes together, as it is seen twenty times a second; pages of
files that are mapped count as well. Limit: 2.5× the model's size.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.model_folder import Case, workplace
from benchmarks.process_cost import cost_of

CHIP = "SM8650"
LAYERS, WIDTH, ROWS = 24, 4096, 16
LIMIT = 2.5


def write_layers(path: Path, layers: int = LAYERS, width: int = WIDTH) -> Path:
    """Write `layers` square MatMuls, a Relu after each, as `path` and ``<path>.data``; returns the latter."""
    data = path.with_name(f"{path.name}.data")
    random = np.random.default_rng(0)
    nodes, weights, x, offset = [], [], "x", 0
    with data.open("wb") as out:
        for layer in range(layers):
            # Scaled so that the values stay as large as the input's from layer to layer.
            values = random.standard_normal((width, width), dtype=np.float32) * np.float32((2 / width) ** 0.5)
            out.write(values.tobytes())
            weight = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[width, width])
            weight.data_location = TensorProto.EXTERNAL
            for key, value in (("location", data.name), ("offset", str(offset)), ("length", str(values.nbytes))):
                entry = weight.external_data.add()
                entry.key, entry.value = key, value
            offset += values.nbytes
            weights.append(weight)
            nodes.append(helper.make_node("MatMul", [x, weight.name], [f"m{layer}"], name=f"m{layer}"))
            x = f"r{layer}"
            nodes.append(helper.make_node("Relu", [f"m{layer}"], [x], name=x))
    nodes.append(helper.make_node("Identity", [x], ["y"], name="y"))
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, width])],
        weights,
    )
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    )
    onnx.checker.check_model(str(path))
    return data


def main(layers: int = LAYERS, width: int = WIDTH) -> list[str]:
    """Make the model, build it, look at the peak."""
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        model = scratch / "model.onnx"
        data = write_layers(model, layers, width)
        sample = {"x": np.random.default_rng(1).standard_normal((ROWS, width), dtype=np.float32)}
        place = workplace(Case("layers", model, (f"x: [{ROWS}, {width}]",), sample, CHIP, data=data), scratch / "place")
        cost = cost_of(place.build(), cwd=place.root, env=place.environment)
        size = data.stat().st_size
    return [
        f"| {layers} MatMuls of {width} × {width} | model MB | wall s | CPU s | peak MB | ratio |",
        "|---|---:|---:|---:|---:|---:|",
        f"| `qnn-forge build --soc {CHIP}` | {size / 1e6:.0f} | {cost.wall:.0f} | {cost.cpu:.0f} "
        f"| {cost.peak_bytes / 1e6:.0f} | {cost.peak_bytes / size:.2f}× (limit {LIMIT}×) |",
    ]


if __name__ == "__main__":
    print("\n".join(main()))
