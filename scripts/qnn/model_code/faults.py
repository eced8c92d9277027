"""Which error each kind of fault is."""

from __future__ import annotations

from qnn.errors.base import ForgeError
from qnn.errors.chains import ChainEmpty, ChainInterface
from qnn.errors.export import (
    ExporterFailed,
    ExporterMissing,
    ExportInputs,
    ExportOutputs,
    ExportReturned,
    ForwardFailed,
    UnsafeWeights,
)
from qnn.errors.model_code import (
    MetricNotFinite,
    MetricNotFlat,
    ModelCodeDied,
    ModelCodeMissing,
    ModelCodeRaised,
    NotASample,
    SampleDtype,
    SampleNames,
    SampleNotFinite,
    SampleShape,
    TooFewSamples,
)

# The kinds of fault that the runner knows: the error, and what to do.
FAULTS: dict[str, tuple[type[ForgeError], str]] = {
    "missing": (ModelCodeMissing, "correct the name in model.yaml, or write the function"),
    "raised": (ModelCodeRaised, "mend the line named; the log has the whole traceback"),
    "exit": (ModelCodeDied, "return from the function instead of calling exit"),
    "count": (TooFewSamples, "yield as many samples as `count` says, or lower checks.count"),
    "type": (NotASample, 'yield one dictionary of NumPy arrays for each sample: yield {"input": array}'),
    "names": (SampleNames, "use exactly the names of the graph's inputs"),
    "shape": (SampleShape, "make arrays of the shapes that the function gets as `inputs`"),
    "dtype": (SampleDtype, "make the array with the dtype named, or use astype"),
    "finite": (SampleNotFinite, "look for 0/0 and log(0); write -10000 for -inf in a mask"),
    "chain": (ChainInterface, "make what model.yaml says the graph takes; the function gets it as `inputs`"),
    "chain-empty": (ChainEmpty, "choose a first sample on which there is something to find"),
    "flat": (MetricNotFlat, "return a dictionary of names to numbers, strings and booleans"),
    "metric-finite": (MetricNotFinite, "return a number that means something where there is nothing to measure"),
    "pickle": (UnsafeWeights, "take the weights as safetensors or a plain state dict"),
    "export": (ExportReturned, 'return {"module": module, "inputs": {name: tensor}}; see docs/pytorch.md'),
    "export-inputs": (ExportInputs, "make the examples of the names and shapes that model.yaml gives for this bucket"),
    "export-outputs": (ExportOutputs, "return tensors from forward, and give one name for each under `outputs`"),
    "torch": (ExporterMissing, "add to requires in model.yaml: torch==2.13.0, onnxscript==0.7.1"),
    "exporter": (ExporterFailed, 'write it another way, or return "exporter": "legacy" too'),
    "forward": (ForwardFailed, "see the exception: mostly it is the order, a shape or a dtype of the inputs"),
}
