"""What search and info list. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from qnn.chips.soc import Soc
from qnn.index.document import IndexFile, IndexGraph, IndexModel, RootIndex


def matching(root: RootIndex, words: Sequence[str], task: str | None, chip: Soc | None) -> tuple[IndexModel, ...]:
    """The models whose name, task or summary has every word, for the task, with files made for the chip."""

    def fits(model: IndexModel) -> bool:
        text = f"{model.name} {model.task} {model.summary}".casefold()
        return (
            all(word.casefold() in text for word in words)
            and task in (None, model.task)
            and (chip is None or chip.soc_id in model.soc_ids)
        )

    return tuple(model for model in root.models if fits(model))


def graph_line(graph: IndexGraph) -> str:
    """``encoder: x float32[1,80] → y float32[1,10]``"""
    inputs, outputs = (", ".join(str(tensor) for tensor in tensors) for tensors in (graph.inputs, graph.outputs))
    return f"{graph.name}: {inputs} → {outputs}"


def worst_numbers(file: IndexFile) -> str:
    """The lowest cosine over all outputs and the task's metrics, as ``cosine 0.9991, text equal``."""
    numerics = [numeric for graph in file.graphs for numeric in graph.numerics]
    cosines = [numeric.cosine for numeric in numerics if numeric.cosine is not None]
    lines = [f"cosine {min(cosines):.6f}"] if cosines else []
    for graph in file.graphs:
        for metric in graph.metrics:
            same = metric.float_value == metric.htp_value
            lines.append(f"{metric.name} " + ("equal" if same else f"{metric.htp_value} for {metric.float_value}"))
    return ", ".join(lines)
