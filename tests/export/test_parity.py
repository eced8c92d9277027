"""When a file that misses the gate is let through, and what is said of where a difference begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qnn.errors.export import ParityFailed
from qnn.export.parity import Miss, ParityRequest, parity
from qnn.export.run import _where
from qnn.export.search import Found
from qnn.npz import write_npz
from tests.export.conftest import Bench, row

# The exporter makes of relu a LeakyRelu; in double precision the module does so itself, or something else.
DOUBTFUL = """
class Doubtful(torch.nn.Module):
    planted, wide = "relu", False

    def double(self):
        self.wide = True

    def forward(self, x):
        if not self.wide:
            return torch.relu(x)
        return torch.Tensor(np.where(x.array > 0, x.array, SLOPE * x.array))


def net(*, bucket, sources):
    return {"module": Doubtful(), "inputs": {"x": torch.zeros(1, 4)}, "exporter": "legacy"}
"""


def doubtful(slope: str) -> str:
    return "import numpy as np\n" + DOUBTFUL.replace("SLOPE", slope)


def test_a_module_that_is_as_far_from_double_precision_excuses_the_file(bench: Bench) -> None:
    bench.export(doubtful("0.01"))
    facts = bench.hold(row(1, -2, 3, -4))
    assert facts.double
    assert facts.max_abs == pytest.approx(0.04)


@pytest.mark.parametrize("slope", ["0.0", "-0.001", "no_such_name"])
def test_one_that_is_not_or_cannot_does_not(bench: Bench, slope: str) -> None:
    bench.export(doubtful(slope))
    with pytest.raises(ParityFailed, match="output of the exported file is not the module's on sample 0"):
        bench.hold(row(1, -2, 3, -4))


def test_every_output_and_sample_that_misses_is_listed(tmp_path: Path) -> None:
    def files(name: str, *values: float) -> tuple[Path, ...]:
        paths = tuple(tmp_path / f"{name}{number}.npz" for number in range(2))
        for path in paths:
            write_npz(path, {f"y{place}": np.array([value], np.float32) for place, value in enumerate(values)})
        return paths

    found = parity(ParityRequest(files("a", 1, 2), files("b", 1, 2.5)))
    assert [(miss.output, miss.sample) for miss in found.misses] == [("y1", 0), ("y1", 1)]
    assert (found.facts.cosine, found.facts.max_abs, found.facts.double) == (1.0, 0.5, False)
    assert parity(ParityRequest(files("c", 1), files("d", 1, 2))).misses[0] == Miss(
        "", 0, "the file has the outputs y0, y1, the module y0"
    )


def test_words_for_where_a_difference_begins() -> None:
    assert _where(Found(7, "gelu", "Gelu", "off"), ["aten.gelu", "export.py:3", "linear.py:9"]) == (
        "first tensor that differs: gelu, made by Gelu from aten.gelu, export.py:3 in linear.py:9",
        "there: off",
    )
    assert _where(Found(7), []) == (
        "none of the 7 tensors that can be compared differs from what PyTorch computes: "
        "the difference arose when the module was traced, before ONNX",
    )
    assert "PyTorch computes no tensor as the file does" in _where(Found(0), [])[0]
