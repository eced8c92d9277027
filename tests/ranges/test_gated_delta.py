"""A Gated DeltaNet layer, chunked and token by token: its exponentials are reported, caught, and mended.

The emulator runs the mended forms. docs/ranges.md says when to choose which.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from qnn.chips.table import load_table
from qnn.prepare.pipeline import prepare
from qnn.prepare.request import PrepareRequest
from qnn.ranges.facts import Kind, RangeFacts
from qnn.ranges.verdict import refusal
from tests.prepare.graphs import Array, run, saved, specs
from tests.ranges.gated_delta import HIDDEN, Layer
from tests.ranges.looking import looked_at


def cosine(a: Array, b: Array) -> float:
    a, b = (array.astype(np.float64).reshape(-1) for array in (a, b))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def lowest_argument(facts: RangeFacts) -> float:
    """Of the layer's exponentials."""
    return min(tensor.minimum for tensor in facts.tensors if "Exp" in tensor.feeds)


FORMS = [Layer(64), Layer(64, chunk=16), Layer(256)]


@pytest.mark.parametrize("layer", FORMS, ids=["64", "64 by 16", "256 by 64"])
def test_chunked_form_is_caught_as_it_is_and_passes_clipped(layer: Layer) -> None:
    made = layer.chunked()
    assert cosine(run(made, layer.feeds())[0], layer.truth()) > 0.999999  # the graph is the layer
    facts = looked_at(made, layer.feeds(), clip_exp=False)
    assert lowest_argument(facts) < -400
    assert refusal(facts, {}) is not None
    assert {finding.kind for finding in facts.findings if finding.harmful} == {Kind.EXP_LOW}
    assert {finding.rewrite for finding in facts.findings if finding.harmful} == {"clip-exp"}
    mended = looked_at(made, layer.feeds())
    assert lowest_argument(mended) == -80
    assert refusal(mended, {}) is None


def test_recurrent_form_fits_until_one_step_forgets_all() -> None:
    usual = Layer(32, chunk=8)
    assert cosine(run(usual.recurrent(), usual.feeds())[0], usual.truth()) > 0.999999
    facts = looked_at(usual.recurrent(), usual.feeds(), clip_exp=False)
    assert -88 < lowest_argument(facts) < -20
    assert refusal(facts, {}) is None
    reset = Layer(32, chunk=8, spread=8)
    facts = looked_at(reset.recurrent(), reset.feeds(), clip_exp=False)
    assert lowest_argument(facts) < -88
    assert refusal(facts, {}) is not None
    assert refusal(looked_at(reset.recurrent(), reset.feeds()), {}) is None


def test_clip_of_the_author_is_as_good() -> None:
    layer = Layer(64, clip=True)
    assert refusal(looked_at(layer.chunked(), layer.feeds(), clip_exp=False), {}) is None


def on_the_emulator(made: onnx.ModelProto, layer: Layer, folder: Path) -> Array:
    """HTP's output of the prepared graph, SM8650."""
    from qnn.toolchains.pip.session import compile_options, compiling_session, loading_session  # noqa: PLC0415

    prepare(PrepareRequest(saved(made, folder), "net", specs(x=[layer.tokens, HIDDEN]), {}, folder))
    soc = load_table().lookup("SM8650")
    compiling_session("net.onnx", "net_ctx.onnx", compile_options(soc, float_graph=True), severity=3)
    result: Array = loading_session("net_ctx.onnx", soc.soc_id).run(None, layer.feeds())[0]
    return result


@pytest.mark.parametrize("form", ["chunked", "recurrent"])
def test_clipped_forms_are_right_on_the_emulator(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    layer = Layer(64) if form == "chunked" else Layer(24, chunk=8, spread=8)
    made = layer.chunked() if form == "chunked" else layer.recurrent()
    assert cosine(on_the_emulator(made, layer, tmp_path), layer.truth()) >= 0.9999
