"""chain.py makes what the next graph takes, or one error that names what does not fit."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from qnn.errors.base import ForgeError
from qnn.errors.chains import ChainEmpty, ChainInterface
from qnn.errors.model_code import MetricNotFlat, ModelCodeRaised, NotASample, SampleNotFinite
from qnn.model_code import ChainMetricRequest, FeedRequest, MetricPair, ModelCode, Ran, run_chain_metric, run_feed
from qnn.npz import read_npz, write_npz
from qnn.tensors import TensorSpec

IMAGE = (TensorSpec("x", "float32", (1, 3, 4, 6)),)

FEED = """
    import numpy as np

    def feed(*, graph, turn, inputs, runs, sources):
        before, after = runs["find"][-1]
        FEEDS
"""


class Bench:
    """A model folder with a chain.py, and two runs of the graph `find`: 1 → 2 and 3 → 4."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = tuple(Ran("find", self.save("in", n), self.save("out", n + 1)) for n in (1.0, 3.0))

    def save(self, name: str, value: float) -> Path:
        path = self.root / f"{name}{value:g}.npz"
        write_npz(path, {"x": np.full((1, 2), value, np.float32)})
        return path

    def code(self, text: str, function: str) -> ModelCode:
        folder = self.root / "model"
        folder.mkdir(exist_ok=True)
        (folder / "chain.py").write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
        return ModelCode(folder, f"chain.py:{function}", Path(sys.executable), self.root / "code.log")

    def feed(self, statement: str, inputs: tuple[TensorSpec, ...] = IMAGE) -> tuple[Path, ...]:
        output = self.root / "made"
        output.mkdir(exist_ok=True)
        code = self.code(FEED.replace("FEEDS", statement), "feed")
        return run_feed(FeedRequest(code, "read", 2, inputs, self.runs, {"weights": self.root / "w"}, output))

    def metric(self, statement: str) -> MetricPair:
        code = self.code(f"def evaluate(*, runs, reference, sources):\n    {statement}\n", "evaluate")
        return run_chain_metric(ChainMetricRequest(code, self.runs[:1], self.runs, {}))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_function_gets_all_runs_and_makes_as_many_inputs_as_it_likes(bench: Bench) -> None:
    files = bench.feed(
        'assert (graph, turn, inputs, list(sources)) == ("read", 2, {"x": (1, 3, 4, 6)}, ["weights"])\n'
        "        for _, out in runs['find']:\n"
        "            yield {'x': np.full(inputs['x'], out['x'].sum(), np.float32)}"
    )
    assert [float(read_npz(file)["x"].max()) for file in files] == [4.0, 8.0]
    assert [file.name for file in files] == ["000.npz", "001.npz"]


@pytest.mark.parametrize(
    ("made", "message", "details"),
    [
        (
            "{'x': np.zeros((1, 4, 6, 3), np.float32)}",
            "read, run 0: x has shape [1, 4, 6, 3], the graph takes [1, 3, 4, 6]",
            ("x has channels last where they belong first",),
        ),
        ("{'x': np.zeros((1, 3, 4, 7), np.float32)}", "x has shape [1, 3, 4, 7]", ()),
        ("{'x': np.zeros((1, 3, 4, 6))}", "read, run 0: x is float64, the graph takes float32", ()),
        ("{'image': np.zeros((1, 3, 4, 6), np.float32)}", "read, run 0: lacks x", ("has 'image',",)),
    ],
)
def test_what_does_not_fit_is_named_with_the_graph(
    bench: Bench, made: str, message: str, details: tuple[str, ...]
) -> None:
    with pytest.raises(ChainInterface) as raised:
        bench.feed(f"yield {made}")
    assert message in raised.value.message
    assert len(raised.value.details) == len(details)
    assert all(want in have for want, have in zip(details, raised.value.details, strict=True))
    assert raised.value.place is not None
    assert raised.value.place.path.endswith("chain.py")


def test_channels_first_in_place_of_last_and_swapped_sequences_are_told_apart(bench: Bench) -> None:
    for shape, given, words in (
        ((1, 4, 6, 3), (1, 3, 4, 6), "x has channels first where they belong last"),
        ((1, 5, 7), (1, 7, 5), "x has the last two dimensions exchanged"),
    ):
        with pytest.raises(ChainInterface) as raised:
            bench.feed(f"yield {{'x': np.zeros({given}, np.float32)}}", (TensorSpec("x", "float32", shape),))
        assert raised.value.details == (words,)


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("return []", ChainEmpty, "gave no inputs for read in round 2"),
        ("while True: yield {'x': np.zeros((1, 3, 4, 6), np.float32)}", ChainEmpty, "more than 256 inputs for read"),
        ("return {'x': np.zeros((1, 3, 4, 6), np.float32)}", NotASample, "returned a dict"),
        ("yield [1]", NotASample, "read, run 0 is a list"),
        ("yield {'x': np.full((1, 3, 4, 6), np.inf, np.float32)}", SampleNotFinite, "72 of 72 values"),
        ("yield {'x': after['y']}", ModelCodeRaised, "KeyError: 'y'"),
    ],
)
def test_each_fault_has_its_error(bench: Bench, statement: str, kind: type[ForgeError], message: str) -> None:
    with pytest.raises(kind) as raised:
        bench.feed(statement)
    assert message in raised.value.message


def test_the_metric_is_called_for_float_and_for_htp_with_the_float_runs_at_hand(bench: Bench) -> None:
    pair = bench.metric('return {"runs": len(runs["find"]), "last": float(reference["find"][-1][1]["x"][0, 0])}')
    assert (pair.float_values, pair.htp_values) == ({"runs": 1, "last": 2.0}, {"runs": 2, "last": 2.0})


def test_a_metric_of_arrays_is_refused(bench: Bench) -> None:
    with pytest.raises(MetricNotFlat, match="the float chain"):
        bench.metric('return {"all": runs["find"][0][1]["x"]}')
