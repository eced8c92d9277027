"""Small ONNX models for tests, and the two ways to run them: as they are, and prepared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from qnn.model.spec import InputSpec
from qnn.prepare.pipeline import prepare
from qnn.prepare.prepared import PreparedGraph
from qnn.prepare.request import PrepareRequest

Array = NDArray[Any]
FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> NodeProto:
    """A node; its name is the operator and the first output unless given."""
    return helper.make_node(op_type, inputs, outputs, name=name or f"{op_type}_{outputs[0]}", **attributes)


def value(name: str, shape: Sequence[int | str | None] | None, dtype: int = FLOAT) -> Any:
    """A graph input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name: str, array: Any) -> TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(array), name)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
    ir: int = 8,
) -> ModelProto:
    """A model of the default domain."""
    initializers = [constant(name, array) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def saved(made: ModelProto, folder: Path, name: str = "source.onnx") -> Path:
    """The file of a model."""
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path


def specs(**shapes: Sequence[int | str]) -> tuple[InputSpec, ...]:
    """Inputs as model.yaml declares them."""
    return tuple(InputSpec(name, tuple(shape)) for name, shape in shapes.items())


def prepared(
    source: ModelProto | Path,
    folder: Path,
    inputs: Sequence[InputSpec],
    bucket: Mapping[str, int] | None = None,
    output: str = "out",
    rewrites: Mapping[str, bool] | None = None,
) -> tuple[PreparedGraph, ModelProto]:
    """The facts of the prepared graph and the model that was written; `rewrites` switches some on or off."""
    path = source if isinstance(source, Path) else saved(source, folder)
    (folder / output).mkdir()
    facts = prepare(PrepareRequest(path, "net", tuple(inputs), bucket or {}, folder / output, rewrites=rewrites or {}))
    return facts, onnx.load(folder / output / "net.onnx")


def run(source: ModelProto | Path, feeds: Mapping[str, Array]) -> list[Array]:
    """Every output on ONNX Runtime's CPU provider, graph optimisation off."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    given = str(source) if isinstance(source, Path) else source.SerializeToString()
    return list(ort.InferenceSession(given, options, providers=["CPUExecutionProvider"]).run(None, dict(feeds)))


def noise(*shape: int, seed: int = 0) -> Array:
    """float32 from the standard normal distribution."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def operators(made: ModelProto) -> list[str]:
    """Operator types in order."""
    return [entry.op_type for entry in made.graph.node]
