"""Functions of one tensor that the compiler has no form of, written with those it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "plain-functions"
_WHERE = 9  # Where, Sinh and the others of its kind are of opset 9
_ALONG_ONE_AXIS = 13


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_FORMS):
        if view.opset() < _WHERE or view.is_quantized(node) or not view.is_float(node.input[0]):
            continue
        what = _FORMS[node.op_type](_Writer(view, node))
        if what is not None:
            changes.append(applied(NAME, node, what))
    return changes


class _Writer:
    """Writes the operators that take one node's place."""

    def __init__(self, view: GraphView, node: NodeProto) -> None:
        self.view, self.node, self.x = view, node, str(node.input[0])
        self._count = 0

    def constant(self, value: float) -> str:
        return self.view.add_scalar_like(f"{self.node.output[0]}_constant", value, self.x)

    def do(self, op_type: str, *inputs: str | float, **attributes: int) -> str:
        """A node; numbers among its inputs become constants of the type of x."""
        self._count += 1
        names = [name if isinstance(name, str) else self.constant(name) for name in inputs]
        return self.view.add_node(op_type, names, f"{self.node.output[0]}_{op_type}_{self._count}", **attributes)

    def end(self, op_type: str, *inputs: str | float, **attributes: int) -> None:
        """The node that makes the result."""
        names = [name if isinstance(name, str) else self.constant(name) for name in inputs]
        self.view.replace(self.node, op_type, names, **attributes)


def _softsign(write: _Writer) -> str:
    write.end("Div", write.x, write.do("Add", write.do("Abs", write.x), 1.0))
    return "x / (1 + |x|)"


def _shrink(write: _Writer) -> str | None:
    limit, bias = (float(attribute(write.node, name, default)) for name, default in (("lambd", 0.5), ("bias", 0.0)))
    if limit < 0:
        return None
    beyond = write.do("Greater", write.do("Abs", write.x), limit)
    kept = write.do("Sub", write.x, write.do("Mul", write.do("Sign", write.x), bias)) if bias else write.x
    write.end("Where", beyond, kept, 0.0)
    return "x beyond the limit, nearer to 0 by the bias; 0 within it"


def _sinh(write: _Writer) -> str:
    """By its series up to 1, where the difference of two exponentials would lose its digits."""
    square = write.do("Mul", write.x, write.x)
    series: str | float = 1.0
    for divisor in (110.0, 72.0, 42.0, 20.0, 6.0):
        series = write.do("Add", write.do("Mul", write.do("Mul", square, 1.0 / divisor), series), 1.0)
    near = write.do("Mul", write.x, series)
    power, inverse = write.do("Exp", write.x), write.do("Exp", write.do("Neg", write.x))
    far = write.do("Mul", write.do("Sub", power, inverse), 0.5)
    write.end("Where", write.do("Less", write.do("Abs", write.x), 1.0), near, far)
    return "(exp(x) - exp(-x)) / 2, and its series near 0"


def _cosh(write: _Writer) -> str:
    power, inverse = write.do("Exp", write.x), write.do("Exp", write.do("Neg", write.x))
    write.end("Mul", write.do("Add", power, inverse), 0.5)
    return "(exp(x) + exp(-x)) / 2"


def _asinh(write: _Writer) -> str:
    """No square of what is above 1, no logarithm of what is above 65504."""
    size = write.do("Abs", write.x)
    large, small = write.do("Max", size, 1.0), write.do("Min", size, 1.0)
    ratio = write.do("Div", small, large)
    root = write.do("Sqrt", write.do("Add", write.do("Mul", ratio, ratio), 1.0))
    half = write.do("Add", write.do("Mul", size, 0.5), write.do("Mul", write.do("Mul", large, root), 0.5))
    value = write.do("Add", write.do("Log", half), math.log(2))
    write.end("Mul", write.do("Sign", write.x), value)
    return "sign(x) · log(|x| + √(x² + 1))"


def _acosh(write: _Writer) -> str:
    below, above = (write.do("Div", write.do("Add", write.x, one), write.x) for one in (-1.0, 1.0))
    root = write.do("Mul", write.x, write.do("Sqrt", write.do("Mul", below, above)))
    half = write.do("Add", write.do("Mul", write.x, 0.5), write.do("Mul", root, 0.5))
    write.end("Add", write.do("Log", half), math.log(2))
    return "log(x + √(x² - 1))"


def _atanh(write: _Writer) -> str:
    ratio = write.do("Div", write.do("Add", write.x, 1.0), write.do("Sub", 1.0, write.x))
    write.end("Mul", write.do("Log", ratio), 0.5)
    return "log((1 + x) / (1 - x)) / 2"


def _half_asin(write: _Writer) -> str:
    """atan(x / (1 + √(1 - x²))), half of asin(x)."""
    inner = write.do("Mul", write.do("Sub", 1.0, write.x), write.do("Add", write.x, 1.0))
    return write.do("Atan", write.do("Div", write.x, write.do("Add", write.do("Sqrt", inner), 1.0)))


def _asin(write: _Writer) -> str:
    write.end("Mul", _half_asin(write), 2.0)
    return "2 · atan(x / (1 + √(1 - x²)))"


def _acos(write: _Writer) -> str:
    write.end("Sub", math.pi / 2, write.do("Mul", _half_asin(write), 2.0))
    return "π/2 - 2 · atan(x / (1 + √(1 - x²)))"


def _hardmax(write: _Writer) -> str | None:
    view, node = write.view, write.node
    shape, dtype = view.shape(write.x), view.dtype(write.x)
    if not shape:
        return None
    axis = int(attribute(node, "axis", -1 if view.opset() >= _ALONG_ONE_AXIS else 1)) % len(shape)
    if view.opset() < _ALONG_ONE_AXIS and axis != len(shape) - 1:
        return None
    best = write.do("Cast", write.do("ArgMax", write.x, axis=axis, keepdims=1), to=TensorProto.INT32)
    sizes = [-1 if index == axis else 1 for index in range(len(shape))]
    places = numpy.arange(shape[axis], dtype=numpy.int32).reshape(sizes)
    chosen = write.do("Equal", best, view.add_constant(f"{node.output[0]}_places", places))
    write.end("Cast", chosen, to=dtype)
    return "1 at the first of the largest, 0 elsewhere"


def _pow(write: _Writer) -> str | None:
    """An integer exponent of a float base: the compiler wants both of one type."""
    view, exponent = write.view, str(write.node.input[1])
    if view.is_float(exponent):
        return None
    array = view.constant(exponent)
    if array is None:
        write.view.set_input(write.node, 1, write.do("Cast", exponent, to=view.dtype(write.x)))
    else:
        dtype = tensor_dtype_to_np_dtype(view.dtype(write.x))
        view.set_input(write.node, 1, view.add_constant(f"{write.node.output[0]}_exponent", array.astype(dtype)))
    return "its exponent has the type of its base"


_FORMS: Mapping[str, Callable[[_Writer], str | None]] = {
    "Acos": _acos,
    "Acosh": _acosh,
    "Asin": _asin,
    "Asinh": _asinh,
    "Atanh": _atanh,
    "Cosh": _cosh,
    "Hardmax": _hardmax,
    "Pow": _pow,
    "Shrink": _shrink,
    "Sinh": _sinh,
    "Softsign": _softsign,
}

REWRITE = Rewrite(
    name=NAME,
    title="Functions that the compiler has not are written out",
    pattern="Softsign, Shrink, Hardmax, Sinh, Cosh, Asin, Acos, Asinh, Acosh, Atanh; Pow of a float by an integer",
    why="The compiler refuses them. Each is written by its definition, in a form that neither squares nor takes a "
    "logarithm of what leaves fp16, and that keeps its digits near 0.",
    default=True,
    apply=_apply,
)
