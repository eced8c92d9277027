"""Read an ONNX file that may come from anywhere: is it one, is it whole, do the installed tools understand it."""

from __future__ import annotations

import mmap
import re
from pathlib import Path, PurePosixPath

import onnx
import onnxruntime
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from qnn.errors.graphs import ExternalDataMissing, ExternalDataOutside, InvalidGraph, NotOnnx, TooNew
from qnn.prepare.runtime import RuntimeRefusedError, load_cpu
from qnn.prepare.weights import Span, bring_near, byte_size, graphs_of, is_far, make_raw, put_far, span_of, tensors_of
from qnn.prepare.wire import FAR_BYTES, WireError, cut

# What ONNX Runtime says of a model that is newer than it, with its own limit as the group.
_RUNTIME_IR = re.compile(r"max supported IR version: (\d+)")
_RUNTIME_OPSET = re.compile(r"support for domain \S+ is till opset (\d+)")

_FORMATS = (  # offset of the mark, the mark, what the file is
    (0, b"version https://git-lfs", "a Git LFS pointer, not the file it points to"),
    (0, b"PK\x03\x04", "a zip archive (a PyTorch checkpoint, or a package whose member is wanted)"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"\x89HDF", "an HDF5 file (Keras)"),
    (0, b"GGUF", "a GGUF file"),
    (0, b"\x80\x02", "a Python pickle (an old PyTorch checkpoint)"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (4, b"ORTM", "an ONNX Runtime .ort file"),
    (8, b'{"', "a safetensors file"),
)


def load(path: Path) -> ModelProto:
    """The model in `path`, with large weights left in their files (see qnn.prepare.weights).

    Raises NotOnnx (QF401), ExternalDataMissing (QF402), ExternalDataOutside (QF403), TooNew (QF404), InvalidGraph
    (QF413) for weights whose size is not what their shape says.
    """
    model = _parse(path)
    refuse_too_new(model)
    folder = path.parent.resolve()
    for tensor in tensors_of(model):
        if is_far(tensor):
            _resolve(tensor, path.absolute(), folder)
            if span_of(tensor).length < FAR_BYTES or tensor.data_type in (TensorProto.INT64, TensorProto.INT32):
                bring_near(tensor)
        _check_size(tensor)
        try:
            make_raw(tensor)
        except (ValueError, TypeError, KeyError) as error:
            raise _wrong_size(tensor, str(error)) from error
    return model


def refuse_too_new(model: ModelProto) -> None:
    """Raise TooNew (QF404) when onnx or onnxruntime would have to guess what the model means."""
    opset = _default_opset(model)
    limits = {"IR": onnx.IR_VERSION, "opset": onnx.defs.onnx_opset_version()}
    said = _runtime_refusal(model.ir_version, opset)
    for word, pattern in (("IR", _RUNTIME_IR), ("opset", _RUNTIME_OPSET)):
        found = pattern.search(said)
        if found is not None:
            limits[word] = min(limits[word], int(found[1]))
    for word, version in (("IR", model.ir_version), ("opset", opset)):
        if version > limits[word]:
            raise TooNew(
                f"{word} {version} is newer than this runtime understands; the newest it knows is "
                f"{word} {limits[word]} (onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__})",
                remedy=_how_to_lower(word, limits[word]),
            )


def _parse(path: Path) -> ModelProto:
    if path.stat().st_size == 0:
        raise _not_onnx(path, "it is empty")
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        head = data[:64]
        try:
            model = ModelProto.FromString(cut(data, path.absolute()))
        except WireError as error:
            raise _not_onnx(path, _why_unreadable(head, error)) from error
        except DecodeError as error:
            raise _not_onnx(path, _looks_like(head) or "its contents are damaged") from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise _not_onnx(path, _looks_like(head) or "it holds no graph")
    if not all(isinstance(name, str) for name in _names(model)):
        raise _not_onnx(path, "its names are no text, so its contents are damaged")
    return model


def _not_onnx(path: Path, why: str) -> NotOnnx:
    return NotOnnx(
        f"{path.name} is not a whole ONNX model: {why}",
        remedy="check `file` and the locator of this source in model.yaml, and run `qnn-forge pin` again",
    )


def _why_unreadable(head: bytes, error: WireError) -> str:
    known = _looks_like(head)
    if known is not None:
        return known
    starts_like_onnx = len(head) > 1 and head[0] == 0x08 and 0 < head[1] < 0x80
    return f"it is cut short ({error})" if error.truncated and starts_like_onnx else f"it is no protobuf ({error})"


def _looks_like(head: bytes) -> str | None:
    for offset, mark, what in _FORMATS:
        if head[offset : offset + len(mark)] == mark:
            return f"it looks like {what}"
    if head.lstrip()[:1] == b"<":
        return "it looks like an HTML or XML page"
    return None


def _names(model: ModelProto) -> list[object]:
    """Every name of the model that protobuf did not vouch for: it hands out bytes for what is not UTF-8."""
    graphs = [model.graph, *graphs_of(model.graph.node)]
    nodes = [node for graph in graphs for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    found: list[object] = [
        value.name for graph in graphs for value in (*graph.input, *graph.output, *graph.initializer)
    ]
    for node in nodes:
        found += (node.name, node.op_type, node.domain, *node.input, *node.output)
        found += (attribute.name for attribute in node.attribute)
    found += (opset.domain for opset in model.opset_import)
    return found


def _default_opset(model: ModelProto) -> int:
    """The version of the default domain; raises InvalidGraph when the model imports no opset at all."""
    if not model.opset_import:
        raise InvalidGraph(
            "the model imports no opset, so what its operators mean is not defined",
            remedy="export the model again with a current exporter",
        )
    return max((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def _runtime_refusal(ir: int, opset: int) -> str:
    """What ONNX Runtime says of a one-node model with these versions; empty when it takes it."""
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["x"], ["y"])],
        "probe",
        [tensor("x", TensorProto.FLOAT, [1])],
        [tensor("y", TensorProto.FLOAT, [1])],
    )
    try:
        probe = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=ir)
        load_cpu(probe.SerializeToString())
    except (ValueError, RuntimeRefusedError) as error:  # ValueError: a version that does not fit its field
        return str(error)
    return ""


def _how_to_lower(word: str, limit: int) -> str:
    if word == "opset":
        return (
            f"export with opset {limit} or older, or lower it: onnx.version_converter.convert_version(model, {limit})"
        )
    return (
        f"export with an older onnx; or set model.ir_version = {limit} and save, provided the model uses nothing that "
        "came later"
    )


def _resolve(tensor: TensorProto, model: Path, folder: Path) -> None:
    """Turn the file's own external reference into an absolute one inside `folder`; those that qnn.prepare.wire left
    name the absolute path of the `model` file already.
    """
    facts = {entry.key: entry.value for entry in tensor.external_data}
    location = PurePosixPath(
        facts.get("location", "").replace("\0", "\\0")
    )  # no path holds a NUL; as text it is refused
    file = (folder / location).resolve()
    outside = location.is_absolute() or "\\" in str(location) or not file.is_relative_to(folder) or file == folder
    if outside and str(location) != str(model):
        raise ExternalDataOutside(
            f"the weights of {tensor.name!r} are said to be in {str(location)!r}, outside the model's folder",
            remedy="save the model with its data beside it: onnx.save(…, location='model.onnx.data')",
        )
    if not _is_file(file):
        raise ExternalDataMissing(
            f"the weights of {tensor.name!r} are in {str(location)!r}, which is not beside the model",
            remedy="add that file to the sources of model.yaml, or save the model as one file",
        )
    try:
        offset, length = int(facts.get("offset", 0)), int(facts.get("length", 0)) or byte_size(tensor)
    except (ValueError, KeyError):
        raise _wrong_size(tensor, "its external data has no readable offset and length") from None
    if offset < 0 or length < 0 or offset + length > file.stat().st_size:
        raise ExternalDataMissing(
            f"{location} has {file.stat().st_size} bytes, but the weights of {tensor.name!r} are said to be "
            f"{length} bytes from byte {offset} on",
            remedy="fetch the file again, whole; then run `qnn-forge pin`",
        )
    put_far(tensor, Span(file, offset, length))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is longer than any file's
        return False


def _check_size(tensor: TensorProto) -> None:
    """Raise InvalidGraph when the bytes of a tensor are not as many as its shape and type ask for."""
    has = span_of(tensor).length if is_far(tensor) else len(tensor.raw_data) if tensor.HasField("raw_data") else None
    if has is None:
        return
    if min(tensor.dims, default=0) < 0:
        raise _wrong_size(tensor, f"its shape is {list(tensor.dims)}")
    try:
        wanted = byte_size(tensor)
    except KeyError:
        raise _wrong_size(tensor, f"its type is {tensor.data_type}, which ONNX does not define") from None
    if has != wanted:
        raise _wrong_size(tensor, f"shape {list(tensor.dims)} takes {wanted} bytes, the file holds {has}")


def _wrong_size(tensor: TensorProto, why: str) -> InvalidGraph:
    return InvalidGraph(f"the weights of {tensor.name!r} are damaged: {why}", remedy="fetch or export the model again")
