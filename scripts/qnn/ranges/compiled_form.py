"""The graph as the compiler gets it: ONNX Runtime fuses some patterns before it hands a graph over.

Its basic optimisations (level 1, on in every compile) make LayerNormalization of the written-out form, whose squares
then never exist; so ranges are measured on the graph after them. Large weights are left in their files: they are
shown as graph inputs, and referred to by offset in every model that is run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto

from qnn.errors.ranges import RangeRunFailed
from qnn.onnxruntime_errors import ORT_ERRORS
from qnn.prepare.load import load
from qnn.prepare.weights import Span, is_far, put_far, span_of

_FATAL_ONLY = 4


def compiled_form(path: Path) -> ModelProto:
    """The optimised graph of a prepared ONNX file; far weights refer to files in the same folder by name.

    Raises RangeRunFailed (QF441).
    """
    model = prepared_form(path)
    far = {tensor.name: tensor for tensor in model.graph.initializer if is_far(tensor)}
    shown = ModelProto()
    shown.CopyFrom(model)
    del shown.graph.initializer[:]
    shown.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name not in far)
    shown.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in far.values()
    )
    optimised = _optimise(shown)
    real = [value for value in optimised.graph.input if value.name not in far]
    del optimised.graph.input[:]
    optimised.graph.input.extend(real)
    optimised.graph.initializer.extend(far.values())
    return optimised


def prepared_form(path: Path) -> ModelProto:
    """The graph of a prepared ONNX file as it is; far weights refer to files in the same folder by name."""
    model = load(path)
    for tensor in model.graph.initializer:
        if is_far(tensor):
            span = span_of(tensor)
            put_far(tensor, Span(Path(span.file.name), span.offset, span.length))
    return model


def session_of(model: ModelProto, folder: Path) -> onnxruntime.InferenceSession:
    """A session of a model whose far weights are in `folder`: CPU, nothing optimised, one thread.

    Raises RangeRunFailed (QF441).
    """
    options = _options(onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    return _open(model, options)


def run(session: onnxruntime.InferenceSession, names: list[str], feeds: Mapping[str, NDArray]) -> list[NDArray]:  # type: ignore[type-arg]
    """The tensors `names`; raises RangeRunFailed (QF441)."""
    try:
        return list(session.run(names, dict(feeds)))
    except ORT_ERRORS as error:
        raise _failed(error) from error


def _optimise(model: ModelProto) -> ModelProto:
    with tempfile.TemporaryDirectory(prefix="qnn-forge-range-") as folder:
        options = _options(onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)
        options.optimized_model_filepath = str(Path(folder) / "optimised.onnx")
        _open(model, options)
        return onnx.load(options.optimized_model_filepath)


def _options(level: onnxruntime.GraphOptimizationLevel) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = level
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options


def _open(model: ModelProto, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except ORT_ERRORS as error:
        raise _failed(error) from error


def _failed(error: Exception) -> RangeRunFailed:
    return RangeRunFailed(
        f"the prepared graph does not run in float: {' '.join(str(error).split())[:300]}",
        remedy="read ONNX Runtime's reason; `qnn-forge prepare` makes the graph that was run",
    )
