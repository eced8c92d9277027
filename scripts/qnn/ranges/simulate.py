"""What the graph computes when HTP's numbers stand where a tensor leaves fp16.

Nothing is rounded, so an output that differs differs because of the range, not because of rounding. The numbers
are those that qnn.verify.saturation documents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.canonical import sort_graph
from qnn.prepare.weights import is_far
from qnn.ranges.facts import Kind, OutputEffect
from qnn.ranges.rules import EXP_LOWEST, FP16_MAX, LOG_LOWEST, Site

# Outputs further off than this are wrong whatever the gates say. The default gates are 0.999 and 0.1 (fp16).
COSINE = 0.995
MAX_REL = 0.3
_GARBAGE = 131008.0
# Where numbers stop that grow too large; everything else stops at 131008 and is right up to there, if coarse.
_LIMITS = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul", "Relu"), 65536.0),
    **dict.fromkeys(("Div", "Reciprocal"), FP16_MAX),
}
_GARBAGE_TURNS = -500.0  # exp(-90) came out as -131008, exp(-1000) as +131008
_LOG_FLOOR = -7.625
_FOLLOWING = {"Exp": (Kind.EXP_LOW,), "Log": (Kind.LOG_LOW, Kind.LOG_HIGH), "Softplus": (Kind.EXP_LOW,)}
_OWN = "simulated/"  # what names of tensors made here begin with

Array = NDArray[Any]


def simulated(
    model: ModelProto, at: Sequence[Site], dtypes: Mapping[str, int], *, leave: Collection[str] = ()
) -> ModelProto:
    """A copy of the model with HTP's numbers at the sites, and with what follows from them.

    A sum that stopped at 131008 can drive an Exp behind it to where HTP answers with garbage (Magika's softmax does
    so), so every Exp, Softplus, Log and fraction answers as HTP does, but for the tensors of `leave`. `dtypes` are
    TensorProto's, of every float tensor.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    surgery = _Surgery(copy, dtypes)
    for site in at:
        if site.kind is not Kind.COARSE:
            surgery.operate(site.kind, site.tensor)
    done = {(site.kind, site.tensor) for site in at}
    for node in list(copy.graph.node):
        made = surgery.original(node.output[0])
        if made not in dtypes or made in leave:
            continue
        for kind in _FOLLOWING.get(node.op_type, ()):
            if (kind, made) not in done:
                surgery.operate(kind, made)
        if node.op_type in ("Div", "Reciprocal") or surgery.is_inverse_power(node):
            surgery.guard_division(made)
    sort_graph(copy)
    return copy


def effect(name: str, truth: Array, got: Array) -> OutputEffect:
    """How far one output is off. Of integers and booleans the cosine is the share of equal elements."""
    if truth.dtype.kind != "f":
        return OutputEffect(name, float((truth == got).mean()) if truth.size else 1.0, 0.0)
    a, b = _finite(truth), _finite(got)
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    cosine = float(a @ b) / norms if norms else float(not (a.any() or b.any()))
    scale = float(np.abs(a).max(initial=0.0)) or 1.0
    return OutputEffect(name, cosine, float(np.abs(a - b).max(initial=0.0)) / scale)


def _finite(array: Array) -> NDArray[np.float64]:
    plain = array.astype(np.float64).reshape(-1)
    return np.nan_to_num(plain, nan=FP16_MAX, posinf=FP16_MAX, neginf=-FP16_MAX)


def is_wrong(found: OutputEffect) -> bool:
    """Whether such an output is wrong beyond doubt."""
    return found.cosine < COSINE or found.max_rel > MAX_REL


class _Surgery:
    """Edits of one model."""

    def __init__(self, model: ModelProto, dtypes: Mapping[str, int]) -> None:
        self._graph = model.graph
        self._dtypes = dtypes
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._arguments = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type in _FOLLOWING}
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._renamed: dict[str, str] = {}
        self._count = 0

    def operate(self, kind: Kind, tensor: str) -> None:
        """Put HTP's numbers where the tensor has others."""
        if tensor in self._initializers:
            self._constant(self._initializers[tensor], kind)
            return
        raw = self._free(tensor)
        match kind:
            case Kind.OVERFLOW:
                self._end(self._clip(raw, tensor), tensor)
            case Kind.UNDERFLOW:
                half = self._node("Cast", [self._clip(raw, tensor)], to=TensorProto.FLOAT16)
                self._end(self._node("Cast", [half], to=self._dtypes[tensor]), tensor)
            case Kind.NAN:
                number = self._scalar(_GARBAGE, tensor)
                self._end(self._node("Where", [self._node("IsNaN", [raw]), number, raw]), tensor)
            case Kind.EXP_LOW:
                x = self._arguments[tensor]
                lower = self._node("Less", [x, self._scalar(_GARBAGE_TURNS, x)])
                plus, minus = (self._scalar(sign * _GARBAGE, tensor) for sign in (1, -1))
                garbage = self._node("Where", [lower, plus, minus])
                self._instead(tensor, raw, "Less", EXP_LOWEST, garbage)
            case Kind.LOG_LOW:
                self._instead(tensor, raw, "Less", LOG_LOWEST, self._scalar(_LOG_FLOOR, tensor))
            case Kind.LOG_HIGH:
                self._instead(tensor, raw, "Greater", FP16_MAX, self._scalar(0.0, tensor))
            case _:
                raise AssertionError(kind)

    def original(self, made: str) -> str:
        """The tensor of the model that a node makes, perhaps under another name by now."""
        return self._renamed.get(made, made)

    def is_inverse_power(self, node: NodeProto) -> bool:
        """Whether the node raises to a constant negative power."""
        exponent = self._initializers.get(node.input[1]) if node.op_type == "Pow" else None
        if exponent is None or is_far(exponent):
            return False
        return bool((onnx.numpy_helper.to_array(exponent) < 0).all())

    def guard_division(self, tensor: str) -> None:
        """0/0 is 0 on HTP, and a number divided by 0 stops at 65504."""
        clipped = self._clip(self._free(tensor), tensor)
        self._end(self._node("Where", [self._node("IsNaN", [clipped]), self._scalar(0.0, tensor), clipped]), tensor)

    def _instead(self, tensor: str, raw: str, compare: str, limit: float, value: str) -> None:
        """Another value where the argument of the function that makes the tensor is beyond a limit."""
        x = self._arguments[tensor]
        beyond = self._node(compare, [x, self._scalar(limit, x)])
        self._end(self._node("Where", [beyond, value, raw]), tensor)

    def _constant(self, tensor: TensorProto, kind: Kind) -> None:
        if is_far(tensor):
            return  # large weights that leave fp16 are reported; their effect is not simulated
        array = onnx.numpy_helper.to_array(tensor)
        limit = _GARBAGE
        changed = np.clip(np.nan_to_num(array, nan=limit, posinf=limit, neginf=-limit), -limit, limit)
        if kind is Kind.UNDERFLOW:
            changed = changed.astype(np.float16)
        tensor.CopyFrom(onnx.numpy_helper.from_array(changed.astype(array.dtype), tensor.name))

    def _free(self, tensor: str) -> str:
        """Another name for what makes (or, of an input, what is) the tensor; its readers wait for `_end`."""
        self._count += 1
        maker = self._makers.get(tensor)
        if maker is None:  # a graph input: its readers read the new tensor
            return tensor
        raw = f"{tensor}/raw{self._count}"
        self._renamed[raw] = tensor
        for index, name in enumerate(maker.output):
            if name == tensor:
                maker.output[index] = raw
        return raw

    def _end(self, value: str, tensor: str) -> None:
        """Let `value` be what the tensor's readers get."""
        if tensor in self._makers:
            self._makers[tensor] = self._append(onnx.helper.make_node("Identity", [value], [tensor]))
            return
        for node in self._graph.node:
            if not node.output[0].startswith(_OWN):
                for index, name in enumerate(node.input):
                    if name == tensor:
                        node.input[index] = value

    def _clip(self, raw: str, tensor: str) -> str:
        maker = self._makers.get(tensor)
        limit = _LIMITS.get("" if maker is None else maker.op_type, _GARBAGE)
        below = self._node("Min", [raw, self._scalar(limit, tensor)])
        return self._node("Max", [below, self._scalar(-limit, tensor)])

    def _scalar(self, value: float, like: str) -> str:
        self._count += 1
        name = f"{_OWN}constant{self._count}"
        array = np.asarray(value, tensor_dtype_to_np_dtype(self._dtypes[like]))
        self._graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _node(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        self._count += 1
        output = f"{_OWN}{op_type}{self._count}"
        self._append(onnx.helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def _append(self, node: NodeProto) -> NodeProto:
        added = self._graph.node.add()
        added.CopyFrom(node)
        return added
