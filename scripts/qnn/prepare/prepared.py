"""The facts of a prepared graph, and prepared.json, where they lie beside it. Light: imports no onnx."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qnn.errors.graphs import PreparationDamaged
from qnn.faults.found import FoundFault
from qnn.tensors import TensorSpec

PREPARED_JSON = "prepared.json"


@dataclass(frozen=True)
class Change:
    """One thing that preparation did to the graph.

    `kind` is a fixed word (``output-shape``, ``cast-input``, ``inlined`` …), `subject` the tensor, node or operator,
    `detail` a phrase for people.
    """

    kind: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.detail}"


@dataclass(frozen=True)
class PreparedGraph:
    """A prepared graph, without its location.

    `files` are the names in its folder, the ``.onnx`` first; `bucket` the symbols' integers; `inputs` and `outputs`
    are in graph order; `opsets` maps ONNX domains to versions (``""`` is the default domain); `ir` is the IR version.
    Node counts are of the main graph, before and after. `unused_inputs` feed no node and `constant_outputs` depend on
    no input: compilers leave both out of what they make (onnxruntime-qnn keeps them in its wrapper ONNX only).
    `faults` are the nodes that meet a known fault of the compiler which no rewrite mends (see qnn.faults).
    """

    graph: str
    files: tuple[str, ...]
    bucket: Mapping[str, int]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    changes: tuple[Change, ...]
    unused_inputs: tuple[str, ...]
    constant_outputs: tuple[str, ...]
    nodes_before: int
    nodes_after: int
    opsets: Mapping[str, int]
    ir: int
    faults: tuple[FoundFault, ...] = ()


def save_prepared(facts: PreparedGraph, folder: Path) -> None:
    """Write prepared.json (sorted keys, so the same facts are the same bytes)."""
    text = json.dumps(asdict(facts), indent=2, sort_keys=True, ensure_ascii=False)
    (folder / PREPARED_JSON).write_text(f"{text}\n", encoding="utf-8")


def load_prepared(folder: Path) -> PreparedGraph:
    """The facts of the prepared graph in `folder`; raises PreparationDamaged (QF414)."""
    path = folder / PREPARED_JSON
    try:
        return _graph(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PreparationDamaged(
            f"{PREPARED_JSON} cannot be read: {error}",
            remedy="run `qnn-forge store verify` and build again",
        ) from error


def _graph(facts: dict[str, Any]) -> PreparedGraph:
    return PreparedGraph(
        graph=str(facts["graph"]),
        files=tuple(str(name) for name in facts["files"]),
        bucket={str(symbol): int(value) for symbol, value in facts["bucket"].items()},
        inputs=tuple(_tensor(entry) for entry in facts["inputs"]),
        outputs=tuple(_tensor(entry) for entry in facts["outputs"]),
        changes=tuple(Change(str(c["kind"]), str(c["subject"]), str(c["detail"])) for c in facts["changes"]),
        unused_inputs=tuple(str(name) for name in facts["unused_inputs"]),
        constant_outputs=tuple(str(name) for name in facts["constant_outputs"]),
        nodes_before=int(facts["nodes_before"]),
        nodes_after=int(facts["nodes_after"]),
        opsets={str(domain): int(opset) for domain, opset in facts["opsets"].items()},
        ir=int(facts["ir"]),
        faults=tuple(_fault(fault) for fault in facts["faults"]),
    )


def _fault(entry: dict[str, Any]) -> FoundFault:
    outputs = tuple(str(name) for name in entry["outputs"])
    return FoundFault(str(entry["pattern"]), str(entry["node"]), str(entry["op_type"]), str(entry["detail"]), outputs)


def _tensor(entry: dict[str, Any]) -> TensorSpec:
    return TensorSpec(str(entry["name"]), str(entry["dtype"]), tuple(int(dim) for dim in entry["shape"]))
