"""The truth: the original float model on ONNX Runtime's CPU provider. A job for a child process.

Everything that could make the same file answer differently is switched off: graph optimisations, and all threads but
one. Measured with onnxruntime 1.32: runs with the same number of threads repeat bit for bit, but PP-OCRv4's detector
gives other last bits with two threads than with one, so results would depend on the machine's cores. One thread also
takes less CPU time (0.6 to 0.7 of two threads' on the models tried).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qnn.errors.numerics import ReferenceFailed, ReferenceNotFinite, SampleDoesNotFit
from qnn.tensors import TensorSpec

# The parent imports this module to make a request; NumPy and ONNX Runtime are imported by the job alone.
if TYPE_CHECKING:
    import onnxruntime as ort
    from numpy.typing import NDArray

_DTYPES = {
    "tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64", "tensor(bool)": "bool",
    "tensor(int8)": "int8", "tensor(int16)": "int16", "tensor(int32)": "int32", "tensor(int64)": "int64",
    "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32", "tensor(uint64)": "uint64",
}  # fmt: skip

# The option that names the folder of external data for a model given as bytes, and ONNX Runtime's words for two nodes
# of one name (1.32).
_WEIGHTS_BESIDE = "session.model_external_initializers_file_folder_path"
_SAME_NAME = "two nodes with same node name"


@dataclass(frozen=True)
class ReferenceRequest:
    """Run `model` (an ONNX file as its authors published it) over `samples`.

    `samples` are .npz files whose keys are input names. `output` (existing) receives ``000.npz`` … with the results
    under the model's output names, in the samples' order. `outputs` are tensors of the model to give in place of its
    own outputs (none: its own).
    """

    model: Path
    samples: tuple[Path, ...]
    output: Path
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReferenceResult:
    """The files written, one a sample, and the outputs as they came out (shapes of the first sample)."""

    files: tuple[Path, ...]
    outputs: tuple[TensorSpec, ...]


def reference(request: ReferenceRequest) -> ReferenceResult:
    """Compute and keep the float results of every sample.

    Integers of a sample are cast to the file's own integer dtype where no value changes (the model for the NPU may
    take int32 where the original takes int64). Raises ReferenceFailed (QF631) when the model does not load or run,
    SampleDoesNotFit (QF632) for names, dtypes and shapes, ReferenceNotFinite (QF630) for infinity or NaN in a result.
    """
    from qnn.npz import write_npz  # noqa: PLC0415
    from qnn.onnxruntime_errors import ORT_ERRORS  # noqa: PLC0415

    session = _session(request.model, request.outputs)
    names = [output.name for output in session.get_outputs()]
    files: list[Path] = []
    specs: tuple[TensorSpec, ...] = ()
    for number, sample in enumerate(request.samples):
        feed = _feed(session, _read(sample), sample.name)
        try:
            results = dict(zip(names, session.run(names, feed), strict=True))
        except ORT_ERRORS as error:
            raise _failed(f"{request.model.name} fails on sample {sample.name}", error) from None
        _require_finite(results, sample.name)
        target = request.output / f"{number:03d}.npz"
        write_npz(target, results)
        files.append(target)
        specs = specs or tuple(TensorSpec(name, str(array.dtype), array.shape) for name, array in results.items())
    return ReferenceResult(tuple(files), specs)


def _session(model: Path, outputs: tuple[str, ...]) -> ort.InferenceSession:
    import onnxruntime as ort  # noqa: PLC0415

    from qnn.onnxruntime_errors import ORT_ERRORS  # noqa: PLC0415

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    given: str | bytes = str(model)
    if outputs:
        given = _with_outputs(model, outputs)
        options.add_session_config_entry(_WEIGHTS_BESIDE, str(model.parent))
    try:
        return ort.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    except ORT_ERRORS as error:
        if _SAME_NAME not in str(error):
            raise _failed(f"{model.name} does not load", error) from None
    options.add_session_config_entry(_WEIGHTS_BESIDE, str(model.parent))
    try:
        return ort.InferenceSession(_without_node_names(given), options, providers=["CPUExecutionProvider"])
    except ORT_ERRORS as error:
        raise _failed(f"{model.name} does not load", error) from None


def _without_node_names(model: str | bytes) -> bytes:
    """The model without its nodes' names, which mean nothing: ONNX allows two of one name, ONNX Runtime does not."""
    import onnx  # noqa: PLC0415

    bare = onnx.ModelProto.FromString(model) if isinstance(model, bytes) else onnx.load(model, load_external_data=False)
    for node in bare.graph.node:
        node.ClearField("name")
    return bytes(bare.SerializeToString())


def _with_outputs(model: Path, outputs: tuple[str, ...]) -> bytes:
    """The model with other tensors as its outputs; its external data stays where it is."""
    import onnx  # noqa: PLC0415

    cut = onnx.load(str(model), load_external_data=False)
    made = {name for node in cut.graph.node for name in node.output} | {value.name for value in cut.graph.input}
    unknown = [name for name in outputs if name not in made]
    if unknown:
        raise ReferenceFailed(
            f"{model.name} has no tensor {unknown[0]!r}, at which the graph is cut",
            remedy="name the same tensors in the reference's file, or another file as graphs.NAME.reference",
        )
    del cut.graph.output[:]
    cut.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return bytes(cut.SerializeToString())


def _read(sample: Path) -> dict[str, NDArray[Any]]:
    from qnn.npz import read_npz  # noqa: PLC0415

    try:
        return read_npz(sample)
    except ValueError as error:
        raise SampleDoesNotFit(str(error), remedy="write the sample again with numpy.savez") from None


def _feed(session: ort.InferenceSession, arrays: Mapping[str, NDArray[Any]], sample: str) -> dict[str, NDArray[Any]]:
    wanted = {value.name: value for value in session.get_inputs()}
    lacks, extra = sorted(wanted.keys() - arrays.keys()), sorted(arrays.keys() - wanted.keys())
    if lacks or extra:
        faults = [f"lacks {', '.join(lacks)}"] if lacks else []
        faults += [f"has {', '.join(extra)}, which the model has not"] if extra else []
        raise SampleDoesNotFit(
            f"sample {sample} {' and '.join(faults)}",
            remedy="give exactly the model's inputs by their ONNX names, or another file as graphs.NAME.reference",
            details=[f"the model's inputs: {', '.join(wanted)}"],
        )
    return {name: _fit(value, arrays[name], sample) for name, value in wanted.items()}


def _fit(value: Any, array: NDArray[Any], sample: str) -> NDArray[Any]:
    """The array in the dtype the file declares; refuses a change of value and a wrong shape."""
    import numpy as np  # noqa: PLC0415

    declared = _DTYPES.get(value.type)
    dims: list[object] = list(value.shape)
    fixed = len(dims) == array.ndim and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(dims, array.shape, strict=False)
    )
    if not fixed:
        raise _unfit(f"sample {sample}: {value.name} has shape {list(array.shape)}, the model declares {dims}")
    if declared is None:
        raise _unfit(f"{value.name} is declared as {value.type}, which no .npz file can hold")
    if str(array.dtype) == declared:
        return array
    dtype = np.dtype(declared)
    if array.dtype.kind not in "iu" or dtype.kind not in "iu":
        raise _unfit(f"sample {sample}: {value.name} is {array.dtype}, the model takes {declared}")
    limits = np.iinfo(dtype)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        raise _unfit(f"sample {sample}: {value.name} holds values that do not fit the model's {declared}")
    return array.astype(dtype)


def _require_finite(results: Mapping[str, Any], sample: str) -> None:
    import numpy as np  # noqa: PLC0415

    for name, array in results.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise ReferenceFailed(
                f"output {name} is not a tensor of numbers but {kind}", remedy="export the tensors instead"
            )
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        bad = np.argwhere(~np.isfinite(array))
        first = tuple(int(i) for i in bad[0])
        raise ReferenceNotFinite(
            f"output {name} of the float model holds {len(bad)} of {array.size} elements that are not finite on sample "
            f"{sample}, the first {array[first]} at {list(first)}",
            remedy="give inputs in the model's range, or leave the output out of the graph",
        )


def _unfit(message: str) -> SampleDoesNotFit:
    return SampleDoesNotFit(message, remedy="make the sample's arrays what the model declares")


def _failed(message: str, error: Exception) -> ReferenceFailed:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return ReferenceFailed(
        f"{message}: {lines[0]}", remedy="see ONNX Runtime's reason; try another opset or export", details=lines[1:6]
    )
