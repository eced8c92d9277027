"""ConvTranspose without output_padding and without dilation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import Array, GraphView, attribute
from qnn.prepare.rewrites.weights_by import changed_weights
from qnn.prepare.runtime import RuntimeRefusedError, load_cpu, run_cpu

NAME = "conv-transpose-plain"


@dataclass(frozen=True)
class _Form:
    """A ConvTranspose's attributes, one number a spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    beyond: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        return not any(self.beyond) and all(dilation == 1 for dilation in self.dilations)


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("ConvTranspose"):
        form = _form(view, node)
        if form is None or form.is_plain:
            continue
        if min((*form.begins, *form.ends), default=0) < 0:
            changes.append(refused(NAME, node, "its padding is negative"))
            continue
        reach = [(size - 1) * dilation + 1 for size, dilation in zip(form.kernel, form.dilations, strict=True)]
        longer = [max(0, beyond - end) for beyond, end in zip(form.beyond, form.ends, strict=True)]
        ends = [e + more - b for e, more, b in zip(form.ends, longer, form.beyond, strict=True)]
        inputs = list(node.input)
        if any(longer) or any(dilation != 1 for dilation in form.dilations):

            def spread(
                weights: Array, form: _Form = form, reach: list[int] = reach, longer: list[int] = longer
            ) -> Array:
                sizes = [size + more for size, more in zip(reach, longer, strict=True)]
                out = numpy.zeros((*weights.shape[:2], *sizes), weights.dtype)
                steps = zip(reach, form.dilations, strict=True)
                out[(slice(None), slice(None), *(slice(0, size, step) for size, step in steps))] = weights
                return out

            weights = changed_weights(view, node.input[1], f"{node.output[0]}_weights", spread)
            if weights is None:
                changes.append(refused(NAME, node, "its weights are no constant in the model's file"))
                continue
            inputs[1] = weights
        view.replace(
            node,
            "ConvTranspose",
            inputs,
            group=int(attribute(node, "group", 1)),
            kernel_shape=[size + more for size, more in zip(reach, longer, strict=True)],
            pads=[*form.begins, *ends],
            strides=list(form.strides),
        )
        changes.append(applied(NAME, node, f"pads {[*form.begins, *ends]} in place of {_told(form)}"))
    return changes


def _told(form: _Form) -> str:
    words = [f"output_padding {list(form.beyond)}"] if any(form.beyond) else []
    words += [f"dilations {list(form.dilations)}"] if set(form.dilations) != {1} else []
    return " and ".join(words)


def _form(view: GraphView, node: NodeProto) -> _Form | None:
    before, after, weights = (view.shape(name) for name in (node.input[0], node.output[0], node.input[1]))
    if before is None or after is None or weights is None:
        return None
    rank = len(before) - 2
    strides = tuple(attribute(node, "strides", [1] * rank))
    dilations = tuple(attribute(node, "dilations", [1] * rank))
    beyond = tuple(attribute(node, "output_padding", [0] * rank))
    automatic = attribute(node, "auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID") or attribute(node, "output_shape")
    pads = tuple(attribute(node, "pads", [0] * (2 * rank)))
    form = _Form(weights[2:], strides, dilations, pads[:rank], pads[rank:], beyond)
    if not automatic or form.is_plain:
        return form
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(weights[2:], dilations, strict=True)]
    totals = [
        (n - 1) * stride + extra + size - out
        for n, stride, extra, size, out in zip(before[2:], strides, beyond, reach, after[2:], strict=True)
    ]
    for larger_first in (False, True):
        begins = tuple(total - total // 2 if larger_first else total // 2 for total in totals)
        ends = tuple(total - begin for total, begin in zip(totals, begins, strict=True))
        tried = _Form(weights[2:], strides, dilations, begins, ends, beyond)
        if min((*begins, *ends)) >= 0 and _same(node, tried, before[2:], view.opset()):
            return tried
    return None


def _same(node: NodeProto, form: _Form, sizes: tuple[int, ...], opset: int) -> bool:
    """Whether explicit pads give what the node's automatic ones give, by one run of ONNX Runtime on one channel."""
    automatic = helper.make_node("ConvTranspose", ["x", "w"], ["a"])
    automatic.attribute.extend(a for a in node.attribute if a.name not in ("group", "kernel_shape"))
    explicit = helper.make_node(
        "ConvTranspose",
        ["x", "w"],
        ["b"],
        dilations=list(form.dilations),
        output_padding=list(form.beyond),
        pads=[*form.begins, *form.ends],
        strides=list(form.strides),
    )
    weights = numpy.ones((1, 1, *form.kernel), numpy.float32)
    for at in product(*(range(size) for size in form.kernel)):
        weights[(0, 0, *at)] += sum(index * 3**place for place, index in enumerate(at))
    graph = helper.make_graph(
        [automatic, explicit],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, *sizes])],
        [helper.make_empty_tensor_value_info("a"), helper.make_empty_tensor_value_info("b")],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    probe = numpy.arange(numpy.prod(sizes), dtype=numpy.float32).reshape(1, 1, *sizes)
    try:
        first, second = run_cpu(load_cpu(model.SerializeToString()), ["a", "b"], {"x": probe})
    except RuntimeRefusedError:
        return False
    return bool(first.shape == second.shape and numpy.array_equal(first, second))


REWRITE = Rewrite(
    name=NAME,
    title="ConvTranspose loses output_padding and dilations",
    pattern="ConvTranspose with output_padding above 0 or dilations above 1",
    why="With output_padding the compiler shifts every depthwise result by one, leaves out the bias of "
    "elements that the kernel does not reach, or crashes; dilations it refuses. A smaller end padding "
    "makes the same elements; where the padding is too small for that, zeros behind the kernel make room,"
    " and zeros between its elements are its dilation.",
    default=True,
    apply=_apply,
)
