"""Recurrent layers with constant sequence lengths: the same numbers from layers of so many steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.prepare.graphs import INT32, model, node, noise, operators, value
from tests.prepare.rewrites.checks import assert_left, assert_rewritten


def layer(
    op: str, lengths: list[int] | None, *, direction: str = "forward", states: bool = False
) -> tuple[ModelProto, dict[str, Any]]:
    gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if direction == "bidirectional" else 1
    batch = 2 if lengths is None else len(lengths)
    feeds: dict[str, Any] = {"x": noise(6, batch, 5)}
    constants: dict[str, Any] = {"w": noise(ways, gates * 3, 5), "r": noise(ways, gates * 3, 3, seed=1)}
    inputs = ["x", "w", "r", "", "n"]
    if lengths is None:
        feeds["n"] = np.array([6, 6], np.int32)
    else:
        constants["n"] = np.array(lengths, np.int32)
    if states:
        feeds["h0"] = noise(ways, batch, 3, seed=2)
        inputs.append("h0")
    results = ["y", "h", "c"] if op == "LSTM" else ["y", "h"]
    made = node(op, inputs, results, hidden_size=3, direction=direction)
    given = [value(name, array.shape, INT32 if name == "n" else 1) for name, array in feeds.items()]
    return model([made], given, [value(name, None) for name in results], constants), feeds


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [[6, 6], [4, 4], [2, 6, 5]])
def test_lengths(op: str, direction: str, lengths: list[int]) -> None:
    made, feeds = layer(op, lengths, direction=direction, states=len(lengths) > 2)
    after = assert_rewritten(made, feeds, "recurrent-lengths")
    layers = 0 if op == "RNN" else 3 if len(lengths) > 2 else 1  # RNN is written out behind it
    assert operators(after).count(op) == layers
    assert "n" not in {name for entry in after.graph.node for name in entry.input}


def test_lengths_known_at_run_time_are_left_and_said() -> None:
    made, feeds = layer("LSTM", None)
    (said,) = assert_left(made, feeds, "recurrent-lengths")
    assert "its sequence lengths are not known" in said
