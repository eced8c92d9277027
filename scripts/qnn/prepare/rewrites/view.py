"""Lookups in a prepared graph and edits of it, for rewrites.

A rewrite replaces the node that makes the pattern's result by new nodes that make the same tensor from the pattern's
inputs. What only the old form needed becomes dead and is dropped by the registry, so a tensor of the old form that
something else uses as well stays right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from qnn.prepare import shapes
from qnn.prepare.weights import is_far

Array = NDArray[Any]
_QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear"})


class GraphView:
    """Who makes and who uses every tensor of a model's main graph. Edits through it keep its tables right."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.graph = model.graph
        self._infos = {v.name: v for v in (*self.graph.input, *self.graph.output, *self.graph.value_info)}
        self._initializers = {tensor.name: tensor for tensor in self.graph.initializer}
        self._outputs = {value.name for value in self.graph.output}
        self._makers: dict[str, NodeProto] = {}
        self._users: dict[str, list[NodeProto]] = {}
        for node in self.graph.node:
            self._learn(node)

    def nodes(self, *op_types: str) -> list[NodeProto]:
        """The nodes of the default domain with one of these operators, as they are now; edits do not disturb it."""
        return [node for node in self.graph.node if node.op_type in op_types and _is_standard(node)]

    def maker(self, name: str, *op_types: str) -> NodeProto | None:
        """The node that makes a tensor, if it has one of these operators (any operator when none is given)."""
        node = self._makers.get(name)
        fits = node is not None and (not op_types or (node.op_type in op_types and _is_standard(node)))
        return node if fits else None

    def users(self, name: str) -> list[NodeProto]:
        """The nodes that read a tensor, each once."""
        return list(self._users.get(name, ()))

    def is_output(self, name: str) -> bool:
        """Whether the tensor is an output of the graph."""
        return name in self._outputs

    def is_constant(self, name: str) -> bool:
        """Whether the tensor is an initializer, near or far."""
        return name in self._initializers

    def constant(self, name: str) -> Array | None:
        """The values of an initializer; None for anything else, and for one whose bytes are left in its file."""
        tensor = self._initializers.get(name)
        if tensor is None or is_far(tensor):
            return None
        array: Array = onnx.numpy_helper.to_array(tensor)
        return array

    def scalar(self, name: str) -> float | None:
        """The value of a constant with one element; None for anything else."""
        array = self.constant(name)
        return None if array is None or array.size != 1 or array.dtype.kind not in "fiub" else float(array.reshape(()))

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The fixed shape of a tensor; None when it is not known (a tensor that this rewrite made)."""
        if name in self._initializers:
            return tuple(int(dim) for dim in self._initializers[name].dims)
        dims = shapes.dims_of(self._infos[name]) if name in self._infos else None
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            return None
        return tuple(dim for dim in dims if isinstance(dim, int))

    def dtype(self, name: str) -> int:
        """TensorProto's number of a tensor's type; 0 when it is not known."""
        if name in self._initializers:
            return int(self._initializers[name].data_type)
        return int(self._infos[name].type.tensor_type.elem_type) if name in self._infos else 0

    def is_float(self, name: str) -> bool:
        """Whether the tensor holds float32 or float16."""
        return self.dtype(name) in (TensorProto.FLOAT, TensorProto.FLOAT16)

    def is_quantized(self, node: NodeProto) -> bool:
        """Whether the node stands between DequantizeLinear and QuantizeLinear: its group must stay one node."""
        reads = any(self.maker(name, "DequantizeLinear") is not None for name in node.input)
        return reads or any(user.op_type == "QuantizeLinear" for name in node.output for user in self.users(name))

    def opset(self) -> int:
        """The version of the default domain."""
        return max((int(o.version) for o in self.model.opset_import if o.domain in ("", "ai.onnx")), default=1)

    def other_input(self, node: NodeProto, name: str) -> str | None:
        """Of a node with two inputs, the one that is not `name`; `name` itself when it is given twice."""
        if len(node.input) != 2 or name not in node.input:
            return None
        return str(node.input[1] if node.input[0] == name else node.input[0])

    def fresh(self, wanted: str) -> str:
        """`wanted`, or a name like it that no tensor has."""
        name, number = wanted, 0
        while name in self._makers or name in self._initializers or name in self._infos:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def add_constant(self, wanted: str, array: Array) -> str:
        """A new initializer; returns its name."""
        name = self.fresh(wanted)
        tensor = self.graph.initializer.add()
        tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.asarray(array), name))
        self._initializers[name] = tensor
        return name

    def add_copy(self, tensor: TensorProto, wanted: str) -> str:
        """A copy of an initializer, near or far, under another name; returns its name."""
        name = self.fresh(wanted)
        added = self.graph.initializer.add()
        added.CopyFrom(tensor)
        added.name = name
        self._initializers[name] = added
        return name

    def add_scalar_like(self, wanted: str, value: float, tensor: str) -> str:
        """A new 0-d constant of another tensor's type; returns its name."""
        return self.add_constant(wanted, numpy.asarray(value, tensor_dtype_to_np_dtype(self.dtype(tensor))))

    def add_node(self, op_type: str, inputs: Sequence[str], wanted: str, /, **attributes: Any) -> str:
        """A new node with one new output; returns the output's name."""
        output = self.fresh(wanted)
        self._append(onnx.helper.make_node(op_type, list(inputs), [output], name="", **attributes))
        return output

    def put(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str, /, **attributes: Any) -> None:
        """A new node with these outputs, which no other node makes (any more), and this name."""
        self._append(onnx.helper.make_node(op_type, list(inputs), list(outputs), name=name, **attributes))

    def replace(self, node: NodeProto, op_type: str, inputs: Sequence[str], /, **attributes: Any) -> NodeProto:
        """Put a new node in the place of one with the same single output and name; returns the new one."""
        new = onnx.helper.make_node(op_type, list(inputs), [node.output[0]], name=node.name, **attributes)
        self.remove(node)
        return self._append(new)

    def reroute(self, old: str, new: str, *, only: Sequence[NodeProto] | None = None) -> None:
        """Let every reader of a tensor (or those of `only`) read another one; graph outputs are not touched."""
        for node in self.users(old) if only is None else only:
            for index, name in enumerate(node.input):
                if name == old:
                    self.set_input(node, index, new)

    def set_input(self, node: NodeProto, index: int, name: str) -> None:
        """Let one input of a node be another tensor."""
        old = node.input[index]
        node.input[index] = name
        if old not in node.input:
            self._users[old] = [user for user in self._users.get(old, ()) if user is not node]
        if not any(user is node for user in self._users.setdefault(name, [])):
            self._users[name].append(node)

    def rename_output(self, node: NodeProto, old: str, new: str) -> None:
        """Let a node make a tensor under another name, which no tensor has; readers of the old one are left."""
        node.output[list(node.output).index(old)] = new
        self._makers.pop(old)
        self._makers[new] = node

    def remove(self, node: NodeProto) -> None:
        """Take a node out of the graph."""
        for name in dict.fromkeys(node.input):
            self._users[name] = [user for user in self._users.get(name, ()) if user is not node]
        for name in node.output:
            self._makers.pop(name, None)
        at = next(index for index, other in enumerate(self.graph.node) if other is node)
        del self.graph.node[at]

    def upstream(self, name: str) -> Iterator[NodeProto]:
        """The makers of a tensor, of its maker's first input, and so on."""
        node = self._makers.get(name)
        while node is not None:
            yield node
            node = self._makers.get(node.input[0]) if node.input else None

    def _append(self, node: NodeProto) -> NodeProto:
        added = self.graph.node.add()
        added.CopyFrom(node)
        self._learn(added)
        return added

    def _learn(self, node: NodeProto) -> None:
        for name in node.output:
            if name:
                self._makers[name] = node
        for name in dict.fromkeys(node.input):
            if name:
                self._users.setdefault(name, []).append(node)


def _is_standard(node: NodeProto) -> bool:
    """A node of the default domain; Microsoft's Q/DQ (quantizers write it for 16 bits below opset 21) is the same."""
    return node.domain in ("", "ai.onnx") or (node.domain == "com.microsoft" and node.op_type in _QUANTIZERS)


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """The value of a node's attribute, or `default` when it is not written."""
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
