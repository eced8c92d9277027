"""What is done with the function of export.py, in the model's environment. Loaded by qnn.model_code.runner there.

Needs NumPy and torch and nothing of qnn. `act` answers with a document: of kind ok, or a kind that
qnn.model_code.faults knows.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import json
import os
import random
import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

Document = dict[str, Any]
Tensors = dict[str, Any]

_KEYS = {"module", "inputs", "outputs", "opset", "exporter"}
# Weights beyond this go to a file of their own; a protobuf message ends at 2 GB.
_LARGE = 1 << 30
# Intermediates are written for a search up to this many bytes.
_MOST_INTERMEDIATES = 4 << 30
_PACKAGES = ("torch", "onnxscript", "onnx-ir", "onnx")
_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_SHOWN_LINES = 8
# How torch.export begins what is for its own developers.
_ADVICE = ("Caused by", "For more", "For extended", "If you suspect")


class _Fault(Exception):
    """What was wrong, as a kind that qnn.model_code.faults knows."""

    def __init__(
        self, kind: str, message: str, *, details: Iterable[str] = (), at: tuple[str, int] | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = list(details)
        self.at = at


@dataclass(frozen=True)
class _Export:
    """What export.py returned, checked. `outputs` is None where it names none."""

    module: Any
    inputs: Tensors
    outputs: list[str] | None
    opset: int | None
    legacy: bool


def act(request: Document, load: Callable[[], Callable[..., Any]]) -> Document:
    """Do what ``request["torch"]`` says: export, outputs or intermediates."""
    try:
        torch = _import_torch()
        _fix_seeds(torch)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return _ACTIONS[request["torch"]](request, torch, _call(load(), request, torch))
    except _Fault as fault:
        inside = fault.at is not None and Path(fault.at[0]).resolve().is_relative_to(request["folder"])
        file, line = fault.at if fault.at is not None and inside else (None, None)
        return {"kind": fault.kind, "message": str(fault), "line": line, "file": file, "details": fault.details}


def _import_torch() -> ModuleType:
    if importlib.util.find_spec("torch") is None:
        raise _Fault("torch", "there is no torch in the model's environment")
    return importlib.import_module("torch")


def _fix_seeds(torch: Any) -> None:
    """The same bytes every time: of random weights, and of constants that are computed on the way."""
    random.seed(0)
    np.random.seed(0)  # what code with the old interface uses
    torch.manual_seed(0)
    torch.set_num_threads(1)


def _call(function: Callable[..., Any], request: Document, torch: Any) -> _Export:
    me = os.getpid()
    sources = {name: Path(path) for name, path in request["sources"].items()}
    given = function(bucket=dict(request["bucket"]), sources=sources)
    if os.getpid() != me:
        os._exit(0)  # a fork of export.py that came back too
    code = getattr(inspect.unwrap(function), "__code__", None)
    at = None if code is None else (str(code.co_filename), int(code.co_firstlineno))
    export = _checked(given, torch, at)
    _compare_inputs(export.inputs, {name: tuple(shape) for name, shape in request["inputs"]}, at)
    export.module.eval()
    return export


def _checked(given: object, torch: Any, at: tuple[str, int] | None) -> _Export:
    """Raise the first thing that is wrong with what export.py returned."""
    for fault in _faults(given, torch):
        raise _Fault("export", fault, at=at)
    assert isinstance(given, Mapping)
    outputs = given.get("outputs")
    return _Export(
        module=given["module"],
        inputs=dict(given["inputs"]),
        outputs=None if outputs is None else list(outputs),
        opset=given.get("opset"),
        legacy=given.get("exporter") == "legacy",
    )


def _faults(given: object, torch: Any) -> Iterator[str]:
    """What is wrong with what export.py returned; each needs those before it to be right."""
    if not isinstance(given, Mapping):
        yield f"returned a {_kind(given)}, not a dictionary"
        return
    yield from (f"the dictionary it returned lacks {key}" for key in ("module", "inputs") if key not in given)
    yield from (f"the dictionary it returned has {key!r}, which means nothing" for key in given if key not in _KEYS)
    if not isinstance(given["module"], torch.nn.Module):
        yield f"module is a {_kind(given['module'])}, not a torch.nn.Module"
    yield from _faults_of_inputs(given["inputs"], torch)
    yield from _faults_of_options(given)
    outputs = given.get("outputs")
    if outputs is not None and len({*outputs, *given["inputs"]}) != len(outputs) + len(given["inputs"]):
        yield "outputs names something twice, or an input"


def _faults_of_inputs(inputs: object, torch: Any) -> Iterator[str]:
    if not isinstance(inputs, Mapping):
        yield f"inputs is a {_kind(inputs)}, not a dictionary of tensors"
        return
    if not inputs:
        yield "inputs is empty"
    for name, tensor in inputs.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            yield f"the input {name!r} is a {_kind(tensor)}, not a tensor under a name"


def _faults_of_options(given: Mapping[Any, Any]) -> Iterator[str]:
    outputs, opset, exporter = given.get("outputs"), given.get("opset"), given.get("exporter")
    listed = isinstance(outputs, list | tuple) and bool(outputs)
    if outputs is not None and not (listed and all(isinstance(name, str) and name for name in outputs)):
        yield "outputs is no list of names"
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int)):
        yield f"opset is a {_kind(opset)}, not a whole number"
    if exporter not in (None, "legacy"):
        yield f'exporter is {exporter!r}; the only choice is "legacy"'


def _compare_inputs(inputs: Tensors, wanted: Mapping[str, tuple[int, ...]], at: tuple[str, int] | None) -> None:
    faults = [f"lacks {name} {list(shape)}" for name, shape in wanted.items() if name not in inputs]
    faults += [f"has {name}, which model.yaml does not list" for name in inputs if name not in wanted]
    faults += [
        f"{name} has shape {list(inputs[name].shape)}, model.yaml gives {list(shape)}"
        for name, shape in wanted.items()
        if name in inputs and tuple(inputs[name].shape) != shape
    ]
    if faults:
        raise _Fault("export-inputs", f"of the example inputs, {faults[0]}", details=faults[1:], at=at)


def _forward(export: _Export, arguments: Iterable[Any], what: str, folder: str) -> Any:
    try:
        return export.module(*arguments)
    except Exception as error:
        traceback.print_exc()
        message = "".join(traceback.format_exception_only(error)).strip().splitlines() or [type(error).__name__]
        frames = traceback.extract_tb(error.__traceback__)[2:]
        shown = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
        own = _own([(frame.filename, frame.lineno or 1) for frame in frames], folder)
        raise _Fault("forward", f"on {what}: {message[0]}", details=[*message[1:4], *shown[-4:]], at=own) from error


def _named(export: _Export, results: Any, torch: Any) -> Tensors:
    """What forward returned, as tensors by name."""
    if isinstance(results, Mapping):
        tensors = {str(name): value for name, value in results.items() if value is not None}
    else:
        flat = list(results) if isinstance(results, list | tuple) else [results]
        flat = [value for value in flat if value is not None]
        tensors = {f"output_{number}" if len(flat) > 1 else "output": value for number, value in enumerate(flat)}
    wrong = [f"{name} is a {_kind(value)}" for name, value in tensors.items() if not isinstance(value, torch.Tensor)]
    if wrong or not tensors:
        raise _Fault("export-outputs", wrong[0] if wrong else "forward returns no tensor", details=wrong[1:])
    if export.outputs is None:
        return tensors
    if len(export.outputs) != len(tensors):
        message = f"forward returns {len(tensors)} tensors, outputs has {len(export.outputs)} names"
        raise _Fault("export-outputs", message)
    return dict(zip(export.outputs, tensors.values(), strict=True))


def _export(request: Document, torch: Any, export: _Export) -> Document:
    names = list(
        _named(export, _forward(export, export.inputs.values(), "the example inputs", request["folder"]), torch)
    )
    _write(request, torch, export, names)
    return {"kind": "ok", "exporter": "legacy" if export.legacy else "torch.export", "packages": _versions()}


def _write(request: Document, torch: Any, export: _Export, names: list[str]) -> Any:
    """Export to ``request["written"]``; the exporter's program, None from the older one."""
    arguments = tuple(export.inputs.values())
    common = {"input_names": list(export.inputs), "output_names": names, "opset_version": export.opset}
    if not export.legacy and importlib.util.find_spec("onnxscript") is None:
        raise _Fault("torch", "there is no onnxscript in the model's environment, which the exporter of torch needs")
    try:
        if export.legacy:
            torch.onnx.export(export.module, arguments, request["written"], dynamo=False, **common)
            return None
        program = torch.onnx.export(export.module, arguments, dynamo=True, verbose=False, **common)
        program.save(request["written"], external_data=_size(export.module) > _LARGE)
    except Exception as error:
        traceback.print_exc()
        raise _of_exporter(error, request["folder"]) from error
    return program


def _size(module: Any) -> int:
    tensors = [*module.parameters(), *module.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _of_exporter(error: BaseException, folder: str) -> _Fault:
    """The reason below the exporter's report, and the model's own line in it."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    lines = [line.rstrip() for line in str(root).splitlines() if line.strip()] or [type(root).__name__]
    places = [(file, int(line)) for file, line in _LINE.findall(str(root))]
    places += [
        (frame.filename, frame.lineno or 1)
        for cause in (root, error)
        for frame in traceback.extract_tb(cause.__traceback__)
    ]
    message = f"{type(root).__name__}: {lines[0]}"
    more = list(itertools.takewhile(lambda line: not line.startswith(_ADVICE), lines[1:_SHOWN_LINES]))
    return _Fault("exporter", message, details=more, at=_own(places, folder))


def _own(places: Iterable[tuple[str, int]], folder: str) -> tuple[str, int] | None:
    """The innermost of places that is in the model's folder."""
    own = [(file, line) for file, line in places if Path(file).resolve().is_relative_to(folder)]
    return own[-1] if own else None


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _outputs(request: Document, torch: Any, export: _Export) -> Document:
    """The module's own results on every sample, as ``000.npz`` … in ``request["output"]``."""
    npz = _load(request["npz"], "npz")
    torch.set_num_threads(max(1, os.cpu_count() or 1))
    if request["double"]:
        export.module.double()
    for number, path in enumerate(request["samples"]):
        arguments = _arguments(export, npz.read_npz(Path(path)), torch, double=request["double"])
        tensors = _named(export, _forward(export, arguments, f"sample {number}", request["folder"]), torch)
        npz.write_npz(
            Path(request["output"], f"{number:03d}.npz"),
            {name: _array(value, torch) for name, value in tensors.items()},
        )
    return {"kind": "ok"}


def _arguments(export: _Export, sample: Mapping[str, Any], torch: Any, *, double: bool) -> list[Any]:
    """A sample as forward takes it: in the examples' dtypes (a sample may be int32 where the module takes int64)."""
    arguments = []
    for name, example in export.inputs.items():
        wide = double and example.is_floating_point()
        tensor = torch.from_numpy(np.array(sample[name])).reshape(example.shape)
        arguments.append(tensor.to(torch.float64 if wide else example.dtype))
    return arguments


def _array(tensor: Any, torch: Any) -> Any:
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().contiguous().numpy()


def _intermediates(request: Document, torch: Any, export: _Export) -> Document:
    """Tensors of the exported program, on one sample, under the names that the ONNX file knows them by.

    ``request["names"]`` is a JSON file with those names; NNNNN.npy in ``request["output"]`` is the tensor of the
    name at that place. The answer has, by name, the operator of torch and the lines of Python it comes from.
    """
    if export.legacy:
        return {"kind": "ok", "origins": {}}
    names = list(
        _named(export, _forward(export, export.inputs.values(), "the example inputs", request["folder"]), torch)
    )
    program = _write(request, torch, export, names).exported_program
    wanted: list[str] = json.loads(Path(request["names"]).read_text(encoding="utf-8"))
    places = {name: number for number, name in enumerate(wanted)}
    results = next(node for node in program.graph.nodes if node.op == "output").args[0]
    renamed = {node.name: name for node, name in zip(results, names, strict=False) if hasattr(node, "name")}
    folder, origins = Path(request["output"]), {}
    written = 0

    class Recorder(torch.fx.Interpreter):  # type: ignore[misc] # torch is not here when types are checked
        def run_node(self, node: Any) -> Any:
            nonlocal written
            value = super().run_node(node)
            name = renamed.get(node.name, node.name)
            if name in places and isinstance(value, torch.Tensor) and written < _MOST_INTERMEDIATES:
                array = _array(value, torch)
                written += array.nbytes
                np.save(folder / f"{places[name]:05d}.npy", array)
                origins[name] = [str(node.target), *_trace(node.meta.get("stack_trace"), request["folder"])]
            return value

    npz = _load(request["npz"], "npz")
    arguments = iter(_arguments(export, npz.read_npz(Path(request["sample"])), torch, double=False))
    Recorder(program.graph_module).run(*(_argument(spec, program, arguments) for spec in _specs(program)))
    return {"kind": "ok", "origins": origins}


def _specs(program: Any) -> list[Any]:
    return list(program.graph_signature.input_specs)


def _argument(spec: Any, program: Any, arguments: Any) -> Any:
    """What the graph of an exported program takes at one place: a parameter, a buffer, a constant or an input."""
    if spec.kind.name == "USER_INPUT":
        return next(arguments)
    return program.state_dict[spec.target] if spec.target in program.state_dict else program.constants[spec.target]


def _trace(text: str | None, folder: str) -> list[str]:
    """The innermost line of the model's own code, and the innermost of all: ``network.py:12``."""
    places = [(file, int(line)) for file, line in _LINE.findall(text or "")]
    own = _own(places, folder)
    chosen = dict.fromkeys([*([own] if own else []), *places[-1:]])
    return [f"{Path(file).name}:{line}" for file, line in chosen]


def _load(file: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"qnn_forge_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


_ACTIONS: dict[str, Callable[[Document, Any, _Export], Document]] = {
    "export": _export,
    "outputs": _outputs,
    "intermediates": _intermediates,
}
