"""Faults of graphs that are exported from PyTorch: export.py, the exporter, and the file that came out."""

from qnn.errors.base import ExitCode, ForgeError


class ExportReturned(ForgeError):
    """What: The function of export.py returned something else than it should.

    Why: It is asked for a dictionary: `module` (a torch.nn.Module) and `inputs` (example tensors by name) must be
    there; `outputs` (names), `opset` (a number) and `exporter` ("legacy") may be. Anything else is a misunderstanding.

    Mend: `return {"module": model, "inputs": {"x": torch.zeros(1, 3, 224, 224)}}`; see docs/pytorch.md.
    """

    id = "QF821"
    title = "export.py returned the wrong thing"
    exit_code = ExitCode.MODEL_CODE


class ExportInputs(ForgeError):
    """What: The example inputs of export.py, or the inputs of the file exported from them, are not the inputs that
    model.yaml lists for the graph in this bucket. Every difference is named.

    Why: Shapes are fixed by the examples when the module is traced. A file with other shapes than model.yaml promises
    would fail later, or be right by accident.

    Mend: Make the examples with the sizes in `bucket`, under the names of `graphs.NAME.inputs`, in the order in which
    `forward` takes them. An input that the exported file lacks is one that `forward` does not use: take it out of
    model.yaml and of export.py.
    """

    id = "QF822"
    title = "export.py has other inputs than model.yaml"
    exit_code = ExitCode.MODEL_CODE


class ExportOutputs(ForgeError):
    """What: What `forward` returns cannot be the outputs of a graph, or there are not as many names as outputs.

    Why: Outputs are tensors with names. Numbers, strings and nested dictionaries have no place in a graph.

    Mend: Wrap the module in one whose `forward` returns a tensor, a tuple of tensors or a dictionary of tensors, and
    give one name for each under `outputs`.
    """

    id = "QF823"
    title = "the module's outputs are no tensors"
    exit_code = ExitCode.MODEL_CODE


class ExporterMissing(ForgeError):
    """What: The model's environment has no torch, or no onnxscript, which the exporter of torch needs.

    Why: export.py runs in an environment of its own, which holds what `requires` pins and nothing else.

    Mend: Add both to `requires` in model.yaml, pinned: `requires: [torch==2.13.0, onnxscript==0.7.1]`.
    """

    id = "QF824"
    title = "the environment cannot export"
    exit_code = ExitCode.MODEL_CODE


class ExporterFailed(ForgeError):
    """What: PyTorch's exporter could not turn the module into ONNX. Its own reason is shown, with the line of
    export.py where it has one; the log holds all of its report.

    Why: Most often `forward` decides by the values of tensors (`if x.sum() > 0`, `.item()`, a loop over a tensor), or
    uses an operator that has no ONNX form.

    Mend: Write the decision without values (torch.where, fixed loops), or move it out of the module. The older exporter
    traces instead, and takes some modules that the newer one does not: return `"exporter": "legacy"` too; what it
    traced wrongly is found by the comparison with the module.
    """

    id = "QF825"
    title = "PyTorch's exporter failed"
    exit_code = ExitCode.MODEL_CODE


class UnsafeWeights(ForgeError):
    """What: A file of weights is a pickle that holds more than tensors, and was not loaded.

    Why: Loading a pickle runs code that its author chose. So torch.load takes tensors, numbers and containers only
    (`weights_only`), whatever the code that calls it asks for.

    Mend: Take the weights as safetensors, or as a state dict (`torch.save(model.state_dict(), …)`). A class that is
    known to be harmless can be let in by name, in export.py: `torch.serialization.add_safe_globals([Class])`.
    """

    id = "QF826"
    title = "weights that would run code"
    exit_code = ExitCode.MODEL_CODE


class ParityFailed(ForgeError):
    """What: The exported ONNX file does not compute what the PyTorch module computes, on the model's own samples.
    The message names the output; the details name the first tensor on the way to it that differs, with the operator
    and the line of Python it comes from, where it can be found.

    Why: Exporters translate some operators wrongly for some arguments, and tracing forgets branches. All later checks
    compare with the exported file, so it is compared with the module first: on ONNX Runtime's CPU provider, cosine at
    least 0.999999 and no element off by more than 0.01 % of the largest; integers and booleans equal. Where the module
    itself is that far from its own results in double precision, the exporter is not to blame and the gate passes.

    Mend: Write the operation named in another way, or take the other exporter (`"exporter": "legacy"`, or without it)
    or another `opset`. If no tensor before the output differs, the difference arose before ONNX: look for
    `is_exporting()`, choices by the values of inputs, random numbers, and state that a call changes.
    """

    id = "QF827"
    title = "the exported file computes something else"
    exit_code = ExitCode.MODEL_CODE


class ForwardFailed(ForgeError):
    """What: The PyTorch module raised an exception on its example inputs or on a sample.

    Why: It is called as `module(*inputs)` in the order of the dictionary that export.py returned, without gradients,
    in evaluation mode, before anything is exported.

    Mend: Look at the exception: mostly it is the order, a shape or a dtype of the inputs. The log has the whole
    traceback.
    """

    id = "QF828"
    title = "the module fails on its inputs"
    exit_code = ExitCode.MODEL_CODE
