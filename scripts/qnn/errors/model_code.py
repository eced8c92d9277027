"""Faults of a model's own code: data.py, metric.py, export.py, and the packages they require."""

from qnn.errors.base import ExitCode, ForgeError


class ModelCodeMissing(ForgeError):
    """What: The file or the function that model.yaml names for data, metric or export is not there.

    Why: `checks.data: data.py:samples` means the function `samples` of data.py, next to model.yaml.

    Mend: Correct the name in model.yaml, or write the function.
    """

    id = "QF801"
    title = "model code is missing"
    exit_code = ExitCode.MODEL_CODE


class ModelCodeRaised(ForgeError):
    """What: data.py, metric.py or export.py raised an exception, or cannot be imported. The message names the line of
    the model's own code it came from; calls inside libraries are left out, and are in the log.

    Why: The code runs in a process of its own with the working directory in a scratch folder, no tokens or other
    secrets in its environment, a home folder of its own, and only the packages that `requires` names (or qnn-forge's
    own, when it names none).

    Mend: Mend the line named. A module that is not found belongs under `requires` in model.yaml, pinned
    (`pillow==13.0.0`). Files of the model are found beside `__file__`, fetched files in `sources`.
    """

    id = "QF802"
    title = "model code raised an exception"
    exit_code = ExitCode.MODEL_CODE


class ModelCodeTimedOut(ForgeError):
    """What: data.py, metric.py or export.py did not end within the model's time limit and was stopped, with
    all it had started.

    Why: A limit keeps one model from blocking all others.

    Mend: Make it faster (fewer or shorter samples, no downloads: fetch files as `sources`), or raise `limits.minutes`.
    """

    id = "QF803"
    title = "model code ran out of time"
    exit_code = ExitCode.MODEL_CODE


class ModelCodeDied(ForgeError):
    """What: The process of data.py, metric.py or export.py ended before the function was through: it called
    exit, crashed in a library, or was killed.

    Why: Without the function's result there is nothing to check the model with.

    Mend: Read the log named in the message; after a crash it holds the Python lines that were running. Remove calls
    of sys.exit. A kill by the system means too much memory: yield samples one by one instead of returning a list.
    """

    id = "QF804"
    title = "model code ended too soon"
    exit_code = ExitCode.MODEL_CODE


class TooFewSamples(ForgeError):
    """What: There are fewer samples than `checks.count` asks for.

    Why: `count` is what a user reads as the number of inputs the model was checked with.

    Mend: Yield `count` samples (the function is told how many), add files to the samples folder, or lower
    `checks.count`.
    """

    id = "QF805"
    title = "too few samples"
    exit_code = ExitCode.MODEL_CODE


class NotASample(ForgeError):
    """What: data.py gave something else than dictionaries of NumPy arrays.

    Why: A sample is one dictionary, input name to NumPy array, with exactly the graph's inputs. Lists and tensors of
    other libraries are not converted, because their dtype would be a guess.

    Mend: `yield {"input": array}` once for each sample; make arrays with `np.array(…, np.float32)` or
    `tensor.numpy()`.
    """

    id = "QF806"
    title = "a sample is no dictionary of arrays"
    exit_code = ExitCode.MODEL_CODE


class SampleNames(ForgeError):
    """What: A sample lacks an input of the graph, or has one that the graph has not.

    Why: Samples are fed by name.

    Mend: Use the names that model.yaml lists under `graphs.NAME.inputs`; the function gets them as `inputs`.
    """

    id = "QF807"
    title = "a sample has other inputs than the graph"
    exit_code = ExitCode.MODEL_CODE


class SampleShape(ForgeError):
    """What: An array of a sample has another shape than the graph's input in this bucket.

    Why: Binaries for the NPU have fixed shapes. Nothing is padded or cut for you.

    Mend: Make arrays of the shapes that the function gets as `inputs`, with the leading batch dimension.
    """

    id = "QF808"
    title = "a sample has another shape than the graph"
    exit_code = ExitCode.MODEL_CODE


class SampleDtype(ForgeError):
    """What: An array of a sample has another dtype than the graph's input.

    Why: Nothing is cast for you: NumPy's default float64 and int64 are often not what was meant.

    Mend: `array.astype(np.float32)` (or the dtype named), best where the array is made.
    """

    id = "QF809"
    title = "a sample has another dtype than the graph"
    exit_code = ExitCode.MODEL_CODE


class SampleNotFinite(ForgeError):
    """What: An array of a sample holds infinity or NaN.

    Why: The NPU has neither. A mask of -inf comes out as some finite number there, and nothing can be checked with it.

    Mend: Look for 0/0 and log(0) where the array is made. In an additive attention mask write -10000 for -inf.
    """

    id = "QF810"
    title = "a sample is not finite"
    exit_code = ExitCode.MODEL_CODE


class MetricNotFlat(ForgeError):
    """What: metric.py returned something else than a dictionary of names to numbers, strings and booleans.

    Why: Each value is compared on its own, shown in a table, and kept in the manifest.

    Mend: Return `{"text": …, "iou": …}`. Reduce an array to one number, or join a list into a string.
    """

    id = "QF811"
    title = "the metric is not a flat dictionary"
    exit_code = ExitCode.MODEL_CODE


class MetricNotFinite(ForgeError):
    """What: metric.py returned infinity or NaN for a value.

    Why: No gate can hold it: every comparison with NaN is false.

    Mend: Say what the value is where there is nothing to measure: an IoU of two empty masks is 1.
    """

    id = "QF812"
    title = "the metric is not finite"
    exit_code = ExitCode.MODEL_CODE


class EnvironmentFailed(ForgeError):
    """What: The Python environment for the model's `requires` could not be made. pip's last lines are shown.

    Why: data.py, metric.py and export.py run with exactly the packages that model.yaml pins, in an environment of
    their own that is made once and kept.

    Mend: See that each pin exists for this Python version (`pip download NAME==VERSION`) and that the pins agree with
    each other. pip uses its own configuration: mirrors and proxies are set there.
    """

    id = "QF820"
    title = "the model's environment cannot be made"
    exit_code = ExitCode.MODEL_CODE
