"""Which error each kind of fault is."""

from __future__ import annotations

from qnn.errors.base import ForgeError
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
    "flat": (MetricNotFlat, "return a dictionary of names to numbers, strings and booleans"),
    "metric-finite": (MetricNotFinite, "return a number that means something where there is nothing to measure"),
}
