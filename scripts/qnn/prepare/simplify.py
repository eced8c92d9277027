"""Simplify a graph with onnxsim: fold what is constant, remove what does nothing. Results stay the same bits or nearly.

Only passes of PASSES run, so that a new onnxsim cannot change what is built without a decision here. Left out are
passes that the NPU compiler does itself or that hurt it: fusing weights into others (BatchNormalization, biases, QKV)
changes rounding, MatMul+Add to Gemm wraps every node of a transformer in Reshapes, Transpose into Gemm and Pad into a
pool make forms HTP refuses or answers wrongly, and ArgMax(Softmax(x)) to ArgMax(x) settles ties differently.

Large weights that nothing can fold stay out of onnxsim's sight: they are shown to it as graph inputs. On a 435 MB BERT
this turns 2.0 s and 2.2 GB into 0.07 s and 0.1 GB.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto

from qnn.prepare import shapes
from qnn.prepare.branches import choose_branches, resolve_branches
from qnn.prepare.canonical import sort_graph
from qnn.prepare.constants import lift_constants
from qnn.prepare.onnxsim_core import Simplifier, load_simplifier
from qnn.prepare.prepared import Change
from qnn.prepare.resize_shapes import settle_resizes
from qnn.prepare.unroll import unroll
from qnn.prepare.weights import bring_near, is_far, subgraphs

PASSES = frozenset(
    {
        "eliminate_common_subexpression",
        "eliminate_consecutive_idempotent_ops",
        "eliminate_deadend",
        "eliminate_duplicate_initializer",
        "eliminate_identity",
        "eliminate_nop_cast",
        "eliminate_nop_concat",
        "eliminate_nop_dropout",
        "eliminate_nop_expand",
        "eliminate_nop_flatten",
        "eliminate_nop_pad",
        "eliminate_nop_reduce",
        "eliminate_nop_reshape",
        "eliminate_nop_softmax",
        "eliminate_nop_split",
        "eliminate_nop_transpose",
        "eliminate_nop_with_unit",
        "eliminate_optional_get_element",
        "eliminate_optional_has_element",
        "eliminate_reshape_family_on_constant",
        "eliminate_sequence_at_construct",
        "eliminate_sequence_length_construct",
        "eliminate_shape_op",
        "eliminate_slice_after_shape",
        "eliminate_unused_initializer",
        "fuse_concat_into_reshape",
        "fuse_consecutive_concats",
        "fuse_consecutive_reduce_unsqueeze",
        "fuse_consecutive_reshapes",
        "fuse_consecutive_slices",
        "fuse_consecutive_squeeze_unsqueeze",
        "fuse_consecutive_squeezes",
        "fuse_consecutive_transposes",
        "fuse_consecutive_unsqueezes",
        "fuse_pad_into_conv",
        "fuse_reshape_family",
        "nop",
        "rewrite_arg_reduce_select_last_index",
        "rewrite_bool_where",
        "rewrite_where",
    }
)
# Tile, Expand and ConstantOfShape are not folded into constants larger than this.
FOLDED_BYTES = 256 << 20

# Nodes that are never folded, though all their inputs may be constants.
_NOT_FOLDED = frozenset({"QuantizeLinear", "DequantizeLinear", "If", "Loop", "Scan"})
_BORDERS = ("input", "output")


def simplify(model: ModelProto) -> tuple[ModelProto, list[Change]]:
    """A simpler model with the same inputs and outputs, its branches resolved where their conditions are constant.

    Expects canonical order, constants as initializers and fixed input shapes; leaves them so. Weights that get folded
    are read into memory. Where onnxsim cannot do it, the model stays as it is, with a note.
    """
    before = len(model.graph.node)
    changes: list[Change] = []
    while True:
        model, sized = settle_resizes(shapes.infer(model))
        if sized:  # sorting costs a second copy of the weights
            sort_graph(model)
        model, note = _simplify_once(model)
        lift_constants(model)
        sort_graph(model)
        resolved = resolve_branches(model) + unroll(model)
        if not resolved:
            model, resolved = choose_branches(model)
        changes += sized + note + resolved
        if not resolved:
            break
        lift_constants(model)
        sort_graph(model)
    after = len(model.graph.node)
    if before != after:
        changes.insert(0, Change("simplified", "graph", f"{before} nodes became {after}"))
    return model, changes


def _simplify_once(model: ModelProto) -> tuple[ModelProto, list[Change]]:
    simplifier = _simplifier()
    shown = _as_shown(model)
    skipped = [name for name in simplifier.passes if name not in PASSES]
    try:
        simplified = simplifier.run(shown, skipped, FOLDED_BYTES)
    except (RuntimeError, ValueError) as error:
        return model, [Change("not-simplified", "graph", " ".join(str(error).split())[:200])]
    _put_weights_back({tensor.name: tensor for tensor in model.graph.initializer if is_far(tensor)}, simplified)
    if any(_border(getattr(model.graph, part)) != _border(getattr(simplified.graph, part)) for part in _BORDERS):
        return model, [Change("not-simplified", "graph", "onnxsim changed the inputs or outputs of the graph")]
    return simplified, []


def foldable_tensors(model: ModelProto) -> set[str]:
    """Initializers that a node reads whose result is a constant, so that folding needs their values."""
    constants = {tensor.name for tensor in model.graph.initializer}
    read: set[str] = set()
    for node in model.graph.node:  # in topological order
        if node.op_type in _NOT_FOLDED or not _takes_only(node, constants):
            continue
        constants.update(name for name in node.output if name)
        read.update(name for name in node.input if name)
    return read


@cache
def _simplifier() -> Simplifier:
    return load_simplifier()


def _takes_only(node: NodeProto, constants: set[str]) -> bool:
    return all(name in constants for name in node.input if name) and not subgraphs(node)


def _as_shown(model: ModelProto) -> ModelProto:
    """A copy in which far weights are near when they can be folded, and graph inputs (behind the real ones) if not.

    Weights brought near are near in the model too, so that they are read once. onnxsim refuses outputs without a
    rank; such an output gets one open dimension, which inference overwrites. Where a node reads that output too, it
    is left without, because a wrong rank could be folded into a Shape.
    """
    folded = foldable_tensors(model)
    for tensor in model.graph.initializer:
        if is_far(tensor) and tensor.name in folded:
            bring_near(tensor)
    shown = ModelProto()
    shown.CopyFrom(model)
    near = [tensor for tensor in shown.graph.initializer if not is_far(tensor)]
    far = [tensor for tensor in shown.graph.initializer if is_far(tensor)]
    for tensor in far:
        value = shown.graph.input.add()
        value.name = tensor.name
        value.type.tensor_type.elem_type = tensor.data_type
        for size in tensor.dims:
            value.type.tensor_type.shape.dim.add().dim_value = size
    del shown.graph.initializer[:]
    shown.graph.initializer.extend(near)
    read = {name for node in shown.graph.node for name in node.input}
    for value in shown.graph.output:
        if not value.type.tensor_type.HasField("shape") and value.name not in read:
            value.type.tensor_type.shape.dim.add()
    return shown


def _border(values: Any) -> list[tuple[str, int]]:
    return [(value.name, value.type.tensor_type.elem_type) for value in values]


def _put_weights_back(far: dict[str, TensorProto], simplified: ModelProto) -> None:
    real = [value for value in simplified.graph.input if value.name not in far]
    del simplified.graph.input[:]
    simplified.graph.input.extend(real)
    simplified.graph.initializer.extend(far.values())
