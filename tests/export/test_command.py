"""A bad export.py through the command: one error with its id and line, the exit code of model code, no traceback."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Workshop
from tests.export.conftest import FAKE_TORCH
from tests.export.test_torch import DATA, YAML
from tests.wheels import write_wheel

HEAD = "import torch\n\n\ndef net(*, bucket, sources):\n"
VERSION = "2.13.0+stand.in"  # newer than 2.13.0 of anywhere else, and still 2.13.0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    shop = Workshop(tmp_path_factory.mktemp("command"))
    shop.model.mkdir(parents=True)
    (shop.root / "wheels").mkdir()
    write_wheel(shop.root / "wheels", "torch", VERSION, {"torch.py": FAKE_TORCH.read_bytes()})
    (shop.model / "data.py").write_text(DATA)
    (shop.model / "weights.npy").write_bytes(b"weights")
    write(shop, HEAD + "    ...\n")
    assert shop.forge("pin", "toy").code == 0
    return shop


def write(shop: Workshop, code: str, requires: str = "torch==2.13.0", minutes: float = 5) -> None:
    text = YAML.replace("requires: [", f"requires: [{requires}]\n#")
    known = shop.model / "model.yaml"
    pins = [line for line in (known.read_text().splitlines() if known.exists() else []) if line.startswith("    s")]
    pinned = [line for line in pins if line.startswith(("    sha256", "    size"))]
    text = text.replace("  weights: {local: weights.npy}", "\n".join(["  weights:", "    local: weights.npy", *pinned]))
    known.write_text(f"{text}limits: {{minutes: {minutes}}}\n")
    (shop.model / "export.py").write_text(code)


FAULTS = {
    "raises": (HEAD + "    raise ValueError('no\\nsuch')\n", "models/toy/export.py:5 QF802 net: ValueError: no"),
    "exits": (HEAD + "    raise SystemExit(3)\n", "models/toy/export.py:5 QF804 net: called exit(3)"),
    "returns nothing": (HEAD + "    print('x' * 100)\n", "models/toy/export.py:4 QF821 net: returned a NoneType"),
    "other shapes": (
        HEAD + "    return {'module': torch.nn.Module(), 'inputs': {'x': torch.zeros(1, 3, 8, 8)}}\n",
        "models/toy/export.py:4 QF822 net: of the example inputs, x has shape [1, 3, 8, 8], model.yaml gives [1, 3, 16",
    ),
    "cannot be exported here": (
        HEAD
        + "    class Net(torch.nn.Module):\n        def forward(self, x):\n            return torch.relu(x)\n\n"
        + "    return {'module': Net(), 'inputs': {'x': torch.zeros(1, 3, 16, 16)}}\n",
        "models/toy/export.py QF824 net: there is no onnxscript in the model's environment",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_error(shop: Workshop, fault: str) -> None:
    code, words = FAULTS[fault]
    write(shop, code)
    run = shop.forge("build", "toy", env={"PIP_FIND_LINKS": str(shop.root / "wheels")})
    assert run.code == 10
    assert words in run.err
    assert "remedy: " in run.err
    assert "Traceback" not in run.err + run.out
    assert "x" * 100 not in run.err + run.out


def test_a_hang_ends_at_the_limit(shop: Workshop) -> None:
    write(shop, HEAD + "    while True:\n        pass\n", minutes=0.05)
    run = shop.forge("prepare", "toy", env={"PIP_FIND_LINKS": str(shop.root / "wheels")})
    assert run.code == 10
    assert "models/toy/export.py QF803 net did not end within 3 s" in run.err


def test_packages_that_do_not_exist_are_named_with_pip_s_words(shop: Workshop) -> None:
    write(shop, HEAD + "    ...\n", requires="torch==999.0")
    run = shop.forge("build", "toy", env={"PIP_FIND_LINKS": str(shop.root / "wheels")})
    assert run.code == 10
    assert "QF820 the environment for " in run.err
    assert "torch==999.0" in run.err
    assert "Traceback" not in run.err
