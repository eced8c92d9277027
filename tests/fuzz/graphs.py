"""ONNX files: the job behind `qnn-forge prepare`, in one host that stays warm, and what it made is loaded again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from qnn.child import Host, Limits
from qnn.errors.base import ForgeError
from qnn.model.spec import InputSpec
from qnn.prepare.request import PrepareRequest
from tests.cases.folders import DATA
from tests.fuzz.mutate import ODD_TEXT, bytes_of
from tests.fuzz.outcome import BadOutcome

_LIMITS = Limits(seconds=60, memory_bytes=2 << 30)
_DIMS = (0, 1, 2, 3, -1, 7, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
_INTS = (0, 1, -1, 2, 3, -2, 7, 1 << 31, 1 << 62, -(1 << 63))
_FLOATS = (0.0, -1.0, 1e38, -1e38, float("nan"), float("inf"), 1e-45)


@dataclass(frozen=True)
class Prepared:
    """What became of one damaged file: the id of the refusal, or none."""

    case: str
    id: str | None


@cache
def originals() -> tuple[str, ...]:
    """The graphs of tests/cases that are small enough to be drawn from thousands of times."""
    return tuple(sorted(path.stem for path in DATA.glob("*.onnx") if path.stat().st_size < 40_000))


def attempt(random: Random, scratch: Path, host: Host) -> Prepared:
    """One damaged graph through preparation: refused by name or prepared; raises BadOutcome for anything else."""
    name = random.choice(originals())
    original = onnx.load(DATA / f"{name}.onnx")
    data = damaged(random, original)
    return Prepared(name, outcome_of(data, inputs_of(original.graph), scratch, host))


def outcome_of(data: bytes, inputs: tuple[InputSpec, ...], scratch: Path, host: Host) -> str | None:
    """The id with which preparation refuses these bytes, or None when it prepares them."""
    source, folder, log = scratch / "model.onnx", scratch / "prepared", scratch / "log"
    source.write_bytes(data)
    folder.mkdir(exist_ok=True)
    for path in (*folder.iterdir(), log):
        path.unlink(missing_ok=True)
    try:
        host.call(
            "tests.fuzz.jobs:prepare_and_load",
            PrepareRequest(source, "net", inputs, {}, folder),
            log=log,
            limits=_LIMITS,
        )
    except ForgeError as error:
        # Native code may crash or run out of memory on such input, and then its process alone is gone. An exception
        # in the child, other than these errors, is a fault of ours.
        native = error.id in ("QF502", "QF503") or "killed by" in error.message
        if not (native or error.id.startswith("QF4")) or not error.remedy:
            raise BadOutcome("\n".join([*error.lines(), log.read_text(errors="replace")[-4000:]])) from None
        if (folder / "prepared.json").exists() and not native:
            raise BadOutcome(f"prepared.json was written before {error.id}") from None
        return error.id
    return None


def inputs_of(graph: GraphProto) -> tuple[InputSpec, ...]:
    """The inputs as model.yaml would declare them; an open dimension is 2."""
    constants = {tensor.name for tensor in graph.initializer}
    return tuple(
        InputSpec(
            value.name,
            tuple(dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim),
            "int64" if value.type.tensor_type.elem_type == TensorProto.INT64 else None,
        )
        for value in graph.input
        if value.name not in constants
    )


def damaged(random: Random, original: ModelProto) -> bytes:
    """The file with its bytes changed, or, more often, with one to three fields of its messages changed."""
    if random.randrange(4) == 0:
        return bytes_of(random, original.SerializeToString())
    made = ModelProto()
    made.CopyFrom(original)
    for _ in range(random.randint(1, 3)):
        random.choice(_CHANGES)(random, made)
    return bytes(made.SerializeToString())


def _node(random: Random, model: ModelProto) -> NodeProto:
    return random.choice(model.graph.node) if model.graph.node else model.graph.node.add()


def _names(model: ModelProto) -> list[str]:
    graph = model.graph
    names = [value.name for value in (*graph.input, *graph.output, *graph.initializer)]
    return names + [name for node in graph.node for name in (*node.input, *node.output)] + [*ODD_TEXT[:-1], "nowhere"]


def _swap_input(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    if node.input:
        node.input[random.randrange(len(node.input))] = random.choice(_names(model))


def _more_or_fewer_inputs(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    if node.input and random.randrange(2):
        node.input.pop(random.randrange(len(node.input)))
    else:
        node.input.append(random.choice(_names(model)))


def _rename_output(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    if node.output:
        node.output[random.randrange(len(node.output))] = random.choice(_names(model))


def _fewer_outputs(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    if node.output:
        node.output.pop()


def _another_operator(random: Random, model: ModelProto) -> None:
    others = [schema.name for schema in _schemas()]
    _node(random, model).op_type = random.choice((*others, *(node.op_type for node in model.graph.node), "", "No"))


@cache
def _schemas() -> list[Any]:
    return sorted(
        (schema for schema in onnx.defs.get_all_schemas() if not schema.domain), key=lambda schema: str(schema.name)
    )


def _another_domain(random: Random, model: ModelProto) -> None:
    _node(random, model).domain = random.choice(("ai.onnx", "com.microsoft", "x", "ai.onnx.ml"))


def _drop_node(random: Random, model: ModelProto) -> None:
    if model.graph.node:
        model.graph.node.pop(random.randrange(len(model.graph.node)))


def _repeat_node(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    copied = model.graph.node.add()
    copied.CopyFrom(node)
    if copied.output and random.randrange(4):
        model.graph.output.add().name = copied.output[0] = f"{copied.output[0]}_again"


def _attribute(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    if not node.attribute or random.randrange(6) == 0:
        name = random.choice(("axis", "axes", "to", "value", "perm", "pads", "x"))
        node.attribute.append(onnx.helper.make_attribute(name, random.choice((1, 2.0, "s", [1, 2], [1.5]))))
        return
    attribute = random.choice(node.attribute)
    match random.randrange(8):
        case 0:
            node.attribute.remove(attribute)
        case 1:
            attribute.type = random.choice(list(AttributeProto.AttributeType.values()))
        case 2:
            attribute.name = random.choice((*(other.name for other in node.attribute), "", "x"))
        case _:
            _attribute_value(random, attribute)


def _attribute_value(random: Random, attribute: AttributeProto) -> None:
    if attribute.ints:
        match random.randrange(6):
            case 0:
                attribute.ints.pop()
            case 1:
                attribute.ints.append(random.choice(_INTS))
            case _:
                attribute.ints[random.randrange(len(attribute.ints))] = random.choice(_INTS)
    match attribute.type:
        case AttributeProto.INT:
            attribute.i = random.choice(_INTS)
        case AttributeProto.FLOAT:
            attribute.f = random.choice(_FLOATS)
        case AttributeProto.STRING:
            attribute.s = random.choice((b"", b"\xff", b"linear", b"SAME_UPPER", b"x" * 300))
        case AttributeProto.TENSOR:
            attribute.ref_attr_name = "x"


def _weights(random: Random, model: ModelProto) -> None:
    tensors = [*model.graph.initializer, *(a.t for node in model.graph.node for a in node.attribute if a.HasField("t"))]
    if not tensors:
        return
    tensor = random.choice(tensors)
    match random.randrange(8):
        case 0 if tensor.dims:
            tensor.dims[random.randrange(len(tensor.dims))] = random.choice(_DIMS)
        case 1:
            tensor.dims.append(random.choice(_DIMS))
        case 2:
            del tensor.dims[:]
        case 3:
            tensor.data_type = random.choice([*TensorProto.DataType.values()])
        case 4:
            tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]
        case 5:
            tensor.name = random.choice(_names(model))
        case 6:
            tensor.data_location = TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", random.choice(("model.onnx", "nowhere", "../x", "", "/dev/zero"))
            if random.randrange(2):
                entry = tensor.external_data.add()
                entry.key, entry.value = random.choice(("offset", "length")), random.choice(("x", "-1", "9" * 30, "8"))
        case _:
            data = bytearray(tensor.raw_data or b"\0")
            start = random.randrange(len(data)) // 4 * 4
            data[start : start + 4] = random.choice((b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\xff\x7f", b"\0" * 4))
            tensor.raw_data = bytes(data)


def _border(random: Random, model: ModelProto) -> None:
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    if not values:
        return
    value = random.choice(values)
    match random.randrange(7):
        case 0:
            value.type.Clear()
        case 1:
            value.type.tensor_type.elem_type = random.choice([*TensorProto.DataType.values()])
        case 2 if value.type.tensor_type.shape.dim:
            random.choice(value.type.tensor_type.shape.dim).dim_value = random.choice(_DIMS)
        case 3:
            value.type.tensor_type.shape.dim.add().dim_value = random.choice(_DIMS)
        case 4:
            value.name = random.choice(_names(model))
        case 5:
            value.type.sequence_type.elem_type.tensor_type.elem_type = TensorProto.FLOAT
        case _:
            model.graph.output.add().name = random.choice(_names(model))


def _versions(random: Random, model: ModelProto) -> None:
    match random.randrange(4):
        case 0:
            model.ir_version = random.choice((0, 1, 3, 4, 8, 13, 14, 99, -1, 1 << 62))
        case 1 if model.opset_import:
            model.opset_import[0].version = random.choice((0, 1, 6, 9, 11, 13, 21, 24, 99, -1, 1 << 62))
        case 2:
            del model.opset_import[:]
        case _:
            entry = model.opset_import.add()
            entry.domain, entry.version = (
                random.choice(("", "x", "ai.onnx", "com.microsoft")),
                random.choice((1, 9, 99)),
            )


_CHANGES = (
    *(_swap_input, _more_or_fewer_inputs, _rename_output, _fewer_outputs, _drop_node, _repeat_node, _another_domain),
    *(_another_operator, _another_operator, _border, _border, _versions),
    *(_attribute, _attribute, _attribute, _attribute, _weights, _weights, _weights, _weights),
)
