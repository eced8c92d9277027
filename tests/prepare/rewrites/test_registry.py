"""The registry: names, order, switches, and the page made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qnn.prepare.rewrites import MODULES, names
from qnn.prepare.rewrites.page import render
from qnn.prepare.rewrites.registry import rewrites
from tests.prepare.graphs import model, node, noise, operators, value
from tests.prepare.rewrites.checks import prepared_with

ROOT = Path(__file__).resolve().parents[3]


def test_names_are_those_of_the_modules() -> None:
    assert tuple(rewrite.name for rewrite in rewrites()) == names()
    assert len(set(MODULES)) == len(MODULES)


def test_names_are_known_without_onnx() -> None:
    script = "import sys, qnn.prepare.rewrites; sys.exit('onnx' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_page_is_what_the_registry_says() -> None:
    assert (ROOT / "docs" / "rewrites.md").read_text(encoding="utf-8") == render()


@pytest.mark.parametrize("rewrite", rewrites(), ids=lambda rewrite: rewrite.name)
def test_texts_make_sentences(rewrite: object) -> None:
    texts = {name: str(getattr(rewrite, name)) for name in ("title", "pattern", "why")}
    assert all(text and text == " ".join(text.split()) for text in texts.values())
    assert not texts["title"].endswith(".")
    assert texts["why"].endswith((".", ")"))


def test_rewrites_see_what_those_before_them_made() -> None:
    """A sum of squares by 1/N is a mean, and the mean makes it an RMS norm."""
    made = model(
        [
            node("Mul", ["x", "x"], ["sq"]),
            node("ReduceSum", ["sq", "last"], ["total"]),
            node("Mul", ["total", "share"], ["mean"]),
            node("Add", ["mean", "eps"], ["var"]),
            node("Sqrt", ["var"], ["s"]),
            node("Div", ["x", "s"], ["y"]),
        ],
        [value("x", [2, 64])],
        [value("y", [2, 64])],
        {"last": np.array([-1]), "share": np.float32(1 / 64), "eps": np.float32(1e-6)},
    )
    changes, after = prepared_with(made, {"x": noise(2, 64)})
    assert operators(after) == ["RMSNormalization"]
    assert [change.split(": ")[2] for change in changes] == ["sum-to-mean", "rms-norm"]
    _, after = prepared_with(made, {"x": noise(2, 64)}, sum_to_mean=False)
    assert "ReduceSum" in operators(after)


def test_identities_of_rewrites_are_gone_also_before_outputs() -> None:
    """Two guards behind one softmax, both outputs: one Identity has to stay."""
    made = model(
        [
            node("Softmax", ["x"], ["p"]),
            node("IsNaN", ["p"], ["n"]),
            node("Where", ["n", "zero", "p"], ["a"]),
            node("Where", ["n", "one", "p"], ["b"]),
            node("Neg", ["a"], ["c"]),
        ],
        [value("x", [2, 8])],
        [value("a", [2, 8]), value("b", [2, 8]), value("c", [2, 8])],
        {"zero": np.float32(0), "one": np.float32(1)},
    )
    changes, after = prepared_with(made, {"x": noise(2, 8)})
    assert len(changes) == 2
    assert sorted(operators(after)) == ["Identity", "Neg", "Softmax"]
    assert [output.name for output in after.graph.output] == ["a", "b", "c"]
