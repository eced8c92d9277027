"""A stand-in for torch: enough of it to run export.py and in_torch.py, and an exporter for three operators.

Copied as ``torch.py`` into a folder that only the model's code sees. A module may set `planted` to the name of an
operator that the exporter shall get wrong.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

float32, float64, int64, bfloat16 = "float32", "float64", "int64", "bfloat16"
_OPERATORS = {"relu": "Relu", "add": "Add", "double": "Add"}
_state: dict[str, Any] = {"random": np.random.default_rng(), "mode": None}
DROP = False  # whether the exporter drops inputs that nothing uses
_WRONG = {"relu": "LeakyRelu", "add": "Sub"}


class Tensor:
    """An array that knows which operator made it of what."""

    def __init__(self, array: Any, maker: tuple[str, ...] = (), parts: tuple[Tensor, ...] = ()) -> None:
        self.array = np.asarray(array)
        self.maker, self.parts = maker, parts

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> str:
        return str(self.array.dtype)

    def is_floating_point(self) -> bool:
        return self.array.dtype.kind == "f"

    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.array.reshape(shape))

    def to(self, dtype: str) -> Tensor:
        return Tensor(self.array.astype(dtype))

    def clone(self) -> Tensor:
        return Tensor(self.array.copy(), self.maker, self.parts)

    def numel(self) -> int:
        return int(self.array.size)

    def element_size(self) -> int:
        return int(self.array.itemsize)

    def detach(self) -> Tensor:
        return self

    cpu = contiguous = detach

    def numpy(self) -> Any:
        return self.array


def zeros(*shape: int, dtype: str = float32) -> Tensor:
    return Tensor(np.zeros(shape, dtype))


def ones(*shape: int, dtype: str = float32) -> Tensor:
    return Tensor(np.ones(shape, dtype))


def rand(*shape: int) -> Tensor:
    return Tensor(_state["random"].random(shape, np.float32))


def from_numpy(array: Any) -> Tensor:
    return Tensor(array)


def _operator(function: Any) -> Any:
    """An operator that an open TorchFunctionMode is asked about; inside it is off, as the real one is."""

    @functools.wraps(function)
    def called(*tensors: Tensor) -> Any:
        mode, _state["mode"] = _state["mode"], None
        try:
            return function(*tensors) if mode is None else mode.__torch_function__(called, (), tensors)
        finally:
            _state["mode"] = mode

    return called


class TorchFunctionMode:
    """torch.overrides.TorchFunctionMode."""

    def __enter__(self) -> None:
        _state["mode"] = self

    def __exit__(self, *_: object) -> None:
        _state["mode"] = None


@_operator
def relu(x: Tensor) -> Tensor:
    return Tensor(np.maximum(x.array, 0), ("relu",), (x,))


@_operator
def add(x: Tensor, y: Tensor) -> Tensor:
    return Tensor(x.array + y.array, ("add",), (x, y))


@_operator
def double(x: Tensor) -> Tensor:
    return Tensor(x.array + x.array, ("double",), (x, x))


class Module:
    """torch.nn.Module without parameters."""

    planted = ""
    training = True

    def __call__(self, *inputs: Tensor) -> Any:
        assert not self.training
        return self.forward(*inputs)  # type: ignore[attr-defined]

    def eval(self) -> None:
        self.training = False

    def double(self) -> None:
        pass

    def parameters(self) -> Iterator[Any]:
        return iter(())

    buffers = parameters


def _onnx_package() -> Any:
    import onnx  # noqa: PLC0415 - an environment without it can do all but export

    return onnx


def _export(module: Module, inputs: tuple[Tensor, ...], file: str | None = None, **options: Any) -> Any:
    onnx_package = _onnx_package()
    if (options["opset_version"] or 0) > 1000:
        raise ValueError(f"the exporter knows no opset {options['opset_version']}")
    names = {id(tensor): name for tensor, name in zip(inputs, options["input_names"], strict=True)}
    results = module(*inputs)
    listed = results.values() if isinstance(results, dict) else results if isinstance(results, tuple) else (results,)
    tensors = [tensor for tensor in listed if tensor is not None]
    given = itertools.chain(options["output_names"], (f"more_{number}" for number in itertools.count()))
    names |= {id(tensor): name for tensor, name in zip(tensors, given, strict=False)}
    nodes: list[Any] = []
    weights: list[Any] = []
    for tensor in tensors:
        _emit(tensor, names, nodes, weights, module.planted)
    kept = [t for t in inputs if not DROP or any(names[id(t)] in node.input for node in nodes)]
    graph = onnx_package.helper.make_graph(
        nodes, "main", [_info(t, names) for t in kept], [_info(t, names) for t in tensors]
    )
    graph.initializer.extend(weights)
    model = onnx_package.helper.make_model(
        graph, opset_imports=[onnx_package.helper.make_opsetid("", options["opset_version"] or 20)], ir_version=10
    )
    model.producer_version, model.doc_string = "2.13.0", __file__  # the real one leaves paths in metadata as well

    def save(path: str, external_data: bool) -> None:
        assert not external_data
        onnx_package.save(model, path)

    if file is not None:
        assert options["dynamo"] is False
        save(file, external_data=False)
    return types.SimpleNamespace(save=save)


def _emit(tensor: Tensor, names: dict[int, str], nodes: list[Any], weights: list[Any], planted: str) -> None:
    onnx_package = _onnx_package()
    if not tensor.maker:
        if id(tensor) not in names:
            names[id(tensor)] = f"weight_{len(weights)}"
            weights.append(onnx_package.numpy_helper.from_array(tensor.array, names[id(tensor)]))
        return
    for part in tensor.parts:
        _emit(part, names, nodes, weights, planted)
    name = names.setdefault(id(tensor), f"{tensor.maker[0]}_{len(nodes)}")
    if not any(name in node.output for node in nodes):
        operator = (_WRONG if tensor.maker[0] == planted else _OPERATORS)[tensor.maker[0]]
        nodes.append(onnx_package.helper.make_node(operator, [names[id(part)] for part in tensor.parts], [name]))


def _info(tensor: Tensor, names: dict[int, str]) -> Any:
    onnx_package = _onnx_package()
    kind = onnx_package.helper.np_dtype_to_tensor_dtype(tensor.array.dtype)
    return onnx_package.helper.make_tensor_value_info(names[id(tensor)], kind, tensor.shape)


def manual_seed(seed: int) -> None:
    _state["random"] = np.random.default_rng(seed)


def set_num_threads(count: int) -> None:
    assert count > 0


no_grad = contextlib.nullcontext
overrides = types.SimpleNamespace(TorchFunctionMode=TorchFunctionMode)
nn = types.SimpleNamespace(Module=Module)
onnx = types.SimpleNamespace(export=_export)
