"""Why a compile left nodes over: every refused node by its ONNX name, with the compiler's reason and what to do.

Pure: reads the framework op trace (JSON), the log's text and the compiled model; runs nothing.

What the trace of onnxruntime-qnn 2.7.0 (QAIRT 2.51) holds, measured: schema_version 2, `summary`, `subgraph_traces`
with one `op_mappings` entry a QNN op, and `unsupported_nodes` with node_index, node_name, op_type and reason. The
reason is precise where the execution provider itself refuses (Einsum equations, Resize modes); it is "Failed to add
node." where QNN's validation does (error 3110), and nothing says why then: rank and type of the operands are the only
hint. There is no trace at all when no node fits beside quantized ones, or when the session dies; the log then has
"Unsupported nodes in QNN EP: …" (errors) and, when verbose, "Validation FAILED … REASON : …".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qnn.toolchains.pip.op_advice import advice

TRACE_FILE = "qnn_op_trace.json"

# HTP tensors have at most this many dimensions (measured: 6-d operands end with error 3110).
MAX_RANK = 5

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_UNSUPPORTED_LINE = re.compile(r"Unsupported nodes in QNN EP: (?P<nodes>(?:\{ name: .*?, type: \S+ \}(?:, )?)+)")
_UNSUPPORTED_NODE = re.compile(r"\{ name: (?P<name>.*?), type: (?P<op>\S+) \}")
_VERBOSE = re.compile(
    r"Validation FAILED[^\n]*\n(?P<nodes>(?:\s*Operator type: [^\n]*\n)+)\s*REASON : (?P<reason>[^\n]*)"
)
_VERBOSE_NODE = re.compile(r"Operator type: (?P<op>\S+) Node name: (?P<name>.*?) Node index: \d+")
_BACKEND = re.compile(
    r"backendValidateOpConfig\(\) failed for node `(?P<name>[^`]*)` of type `[^`]*` with error code (?P<code>\d+)"
)
_NOT_SELECTED = re.compile(r"Node '(?P<name>[^']*)' OpType:(?P<op>\S+) with domain:\S+ was inserted using the NHWC")
# Suffixes the layout transformation and the QNN op builders put behind a node's name.
_SUFFIXES = re.compile(r"(?:_token_\d+|_\d+)+$")
_NO_OPERATOR = re.compile(r"Operators of type `(?P<op>[^`]*)` are not supported by QNN EP")
_VAGUE = re.compile(r"^(?:Failed to add .*node\.?|)$")
_COMPILED_PART = "QNNExecutionProvider_"
_OPEN_SHAPE = "Cannot get shape"


@dataclass(frozen=True)
class RefusedNode:
    """A node the compiler has no HTP form for: its ONNX name and operator, the reason, and what to do about it."""

    node: str
    op_type: str
    reason: str
    suggestion: str

    def __str__(self) -> str:
        return f"node {self.node!r} ({self.op_type}): {self.reason} → {self.suggestion}"


def diagnose(trace_json: str, log_text: str, model: Any) -> tuple[RefusedNode, ...]:
    """The refused nodes, in the model's order; empty when neither the trace nor the log names any.

    `trace_json` is the text of qnn_op_trace.json (empty or "{}" when there is none), `log_text` what the compiler
    printed and raised, `model` the ModelProto that was compiled (weights are not looked at).
    """
    log = _COLOUR.sub("", log_text)
    names = _Names(model)
    reasons: dict[tuple[str, str], str] = {}
    for name, op_type, reason in (*_from_trace(trace_json), *_from_log(log)):
        if op_type.startswith(_COMPILED_PART):
            continue
        found = names.original(name, op_type)
        if found is not None and _VAGUE.match(reasons.get(found, "")):
            reasons[found] = reason
    codes = {names.original(m["name"], None): m["code"] for m in _BACKEND.finditer(log)}
    refused = [
        _refused(found, reason, names, codes.get(found))
        for found, reason in sorted(reasons.items(), key=lambda item: names.position(item[0]))
    ]
    # A node whose operand has no shape is a consequence, unless it is all there is.
    causes = tuple(node for node in refused if not node.reason.startswith(_OPEN_SHAPE))
    return causes or tuple(refused)


class _Names:
    """Nodes of the compiled model by the names the compiler uses for them."""

    def __init__(self, model: Any) -> None:
        self._nodes = {(str(node.name), str(node.op_type)): node for node in model.graph.node}
        self._positions = {key: index for index, key in enumerate(self._nodes)}
        self._shapes = _shapes(model)

    def original(self, name: str, op_type: str | None) -> tuple[str, str] | None:
        """The (name, operator) of the model behind a name of the log; None for nodes the compiler put in itself."""
        plain = _SUFFIXES.sub("", name)
        fits = [key for key in self._nodes if op_type is None or key[1] == op_type]
        for wanted in (name, plain):
            for key in fits:
                if key[0] == wanted:
                    return key
        if op_type is not None and not name:
            return next((key for key in fits if not key[0]), None)
        return next((key for key in fits if _SUFFIXES.sub("", key[0]) == plain), None)

    def position(self, key: tuple[str, str]) -> int:
        """Where the node stands in the model."""
        return self._positions[key]

    def operands(self, key: tuple[str, str]) -> list[tuple[str, str, tuple[int, ...]]]:
        """(name, dtype, shape) of the node's inputs and outputs, as far as they are known."""
        node = self._nodes[key]
        return [(name, *self._shapes[name]) for name in (*node.input, *node.output) if name in self._shapes]


def _from_trace(text: str) -> Iterator[tuple[str, str, str]]:
    try:
        trace = json.loads(text) if text.strip() else {}
    except ValueError:
        return  # a trace cut off by a crash; the log has to do
    entries = trace.get("unsupported_nodes") if isinstance(trace, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            yield str(entry.get("node_name", "")), str(entry.get("op_type", "")), _plain(str(entry.get("reason", "")))


def _from_log(log: str) -> Iterator[tuple[str, str, str]]:
    for failure in _VERBOSE.finditer(log):
        for node in _VERBOSE_NODE.finditer(failure["nodes"]):
            yield node["name"], node["op"], _plain(failure["reason"])
    for line in _UNSUPPORTED_LINE.finditer(log):
        for node in _UNSUPPORTED_NODE.finditer(line["nodes"]):
            yield node["name"], node["op"], ""
    for node in _NOT_SELECTED.finditer(log):
        yield node["name"], node["op"], ""


def _plain(reason: str) -> str:
    """The compiler's reason without its prefix and repetition."""
    no_operator = _NO_OPERATOR.match(reason)
    if no_operator is not None:
        return f"the compiler has no HTP form of {no_operator['op']}"
    return reason.removeprefix("QNN EP: ").strip()


def _refused(key: tuple[str, str], reason: str, names: _Names, code: str | None) -> RefusedNode:
    name, op_type = key
    operands = names.operands(key)
    if _VAGUE.match(reason):
        reason = _why_from_operands(operands) or _why_from_code(operands, code)
    return RefusedNode(name, op_type, reason, advice(op_type, reason))


def _why_from_operands(operands: list[tuple[str, str, tuple[int, ...]]]) -> str | None:
    for name, dtype, shape in operands:
        if len(shape) > MAX_RANK:
            return f"tensor {name!r} has {len(shape)} dimensions {list(shape)}; HTP has at most {MAX_RANK}"
        if dtype in ("double", "uint64", "bfloat16", "string", "complex64", "complex128"):
            return f"tensor {name!r} is {dtype}, which HTP does not have"
    return None


def _why_from_code(operands: list[tuple[str, str, tuple[int, ...]]], code: str | None) -> str:
    seen = ", ".join(f"{name} {dtype}{list(shape)}" for name, dtype, shape in operands)
    told = f" (error {code})" if code is not None else ""
    return f"QNN's validation refuses this form{told}; operands: {seen}"


def _shapes(model: Any) -> Mapping[str, tuple[str, tuple[int, ...]]]:
    graph = model.graph
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        tensor = value.type.tensor_type
        found[value.name] = (_dtype(tensor.elem_type), tuple(int(dim.dim_value) for dim in tensor.shape.dim))
    for tensor in graph.initializer:
        found[tensor.name] = (_dtype(tensor.data_type), tuple(int(dim) for dim in tensor.dims))
    return found


def _dtype(number: int) -> str:
    import onnx  # noqa: PLC0415  # this module is imported by the parent too

    return str(onnx.TensorProto.DataType.Name(number)).lower()
