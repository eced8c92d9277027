"""Every float tensor of a graph, seen once, with only so many held at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.canonical import sort_graph
from qnn.prepare.weights import is_far, span_of
from qnn.ranges.compiled_form import run, session_of

FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE})

Array = NDArray[Any]


@dataclass(frozen=True)
class Probe:
    """One tensor to look at: TensorProto's type number, and bytes as far as its shape is known."""

    name: str
    dtype: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return int(prod(self.shape) * tensor_dtype_to_np_dtype(self.dtype).itemsize)


def probes_of(model: ModelProto) -> list[Probe]:
    """The float tensors that nodes make, in the order in which they are made."""
    inferred = onnx.shape_inference.infer_shapes(_without_weights(model))
    infos = {v.name: v for v in (*inferred.graph.value_info, *model.graph.value_info, *model.graph.output)}
    found = []
    for node in model.graph.node:
        for name in node.output:
            tensor = infos[name].type.tensor_type if name in infos else None
            if tensor is not None and tensor.elem_type in FLOATS:
                shape = tuple(int(dim.dim_value) for dim in tensor.shape.dim)
                found.append(Probe(name, int(tensor.elem_type), shape))
    return found


def look(
    model: ModelProto, folder: Path, feeds: Mapping[str, Array], probes: list[Probe], budget: int
) -> Iterator[tuple[str, Array]]:
    """(name, values) of every probe; each lives until the next is asked for, and about `budget` bytes are held.

    The graph is run once for each group that fits the budget, each time only as far as the group needs it.
    """
    for group in grouped(probes, budget):
        part = _part(model, group)
        # Weights in files are given as inputs, mapped: a session would copy them, for every group again.
        far = _take_far(part)
        given = {**feeds, **dict(_mapped(far, folder))}
        needed = {value.name for value in part.graph.input}
        names = [probe.name for probe in group]
        arrays = run(session_of(part, folder), names, {name: given[name] for name in needed})
        arrays.reverse()
        for name in names:
            yield name, arrays.pop()


def grouped(probes: list[Probe], budget: int) -> Iterator[list[Probe]]:
    """Neighbours whose bytes together stay within the budget; a larger one is a group of its own."""
    group: list[Probe] = []
    held = 0
    for probe in probes:
        if group and held + probe.size > budget:
            yield group
            group, held = [], 0
        group.append(probe)
        held += probe.size
    if group:
        yield group


def weights_of(model: ModelProto, folder: Path) -> Iterator[tuple[str, Array]]:
    """(name, values) of every float initializer; those in files are mapped, not read."""
    for tensor in model.graph.initializer:
        if tensor.data_type not in FLOATS:
            continue
        if is_far(tensor):
            yield from _mapped([tensor], folder)
        else:
            yield tensor.name, onnx.numpy_helper.to_array(tensor)


def _mapped(far: list[TensorProto], folder: Path) -> Iterator[tuple[str, Array]]:
    for tensor in far:
        span, dtype = span_of(tensor), tensor_dtype_to_np_dtype(tensor.data_type)
        yield tensor.name, np.memmap(folder / span.file, dtype, "r", offset=span.offset, shape=tuple(tensor.dims))


def _take_far(part: ModelProto) -> list[TensorProto]:
    """Turn the far weights of float types into graph inputs; returns them."""
    weights = list(part.graph.initializer)
    del part.graph.initializer[:]
    far = [tensor for tensor in weights if is_far(tensor) and tensor.data_type in FLOATS]
    taken = {tensor.name for tensor in far}
    part.graph.initializer.extend(tensor for tensor in weights if tensor.name not in taken)
    part.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in far
    )
    return far


def _without_weights(model: ModelProto) -> ModelProto:
    """A copy that shape inference can take: far weights as inputs."""
    light = ModelProto()
    light.CopyFrom(model)
    far = [tensor for tensor in light.graph.initializer if is_far(tensor)]
    light.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in far
    )
    near = [tensor for tensor in light.graph.initializer if not is_far(tensor)]
    del light.graph.initializer[:]
    light.graph.initializer.extend(near)
    return light


def _part(model: ModelProto, group: list[Probe]) -> ModelProto:
    """The graph cut down to what makes a group of tensors."""
    part = ModelProto()
    part.CopyFrom(model)
    del part.graph.output[:]
    part.graph.output.extend(
        onnx.helper.make_tensor_value_info(probe.name, probe.dtype, list(probe.shape)) for probe in group
    )
    sort_graph(part)
    used = {name for node in part.graph.node for name in node.input}
    kept = [value for value in part.graph.input if value.name in used]
    del part.graph.input[:]
    part.graph.input.extend(kept)
    return part
