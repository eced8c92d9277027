"""A model's environment: made once from its pins, shared, rebuilt when half-built, and one error when it cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest

from qnn.errors.model_code import EnvironmentFailed
from qnn.errors.system import InputOutputFault
from qnn.model_code import environment, environment_python
from qnn.model_code.environment import environment_name
from tests.model_code.conftest import Bench
from tests.wheels import write_wheel

PIN = "qnn-forge-test-package==1.5"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The interpreter of an environment with PIN, and the folder of environments."""
    root = tmp_path_factory.mktemp("environments")
    (root / "wheels").mkdir()
    write_wheel(root / "wheels", "qnn_forge_test_package", "1.5", {"forge_test_package.py": b"VALUE = 41\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_FIND_LINKS", str(root / "wheels"))
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(environment_python, [PIN], root / "envs", log=root / f"log{n}") for n in range(2)]
            first, second = (future.result() for future in asked)
    assert first == second
    assert sorted((root / f"log{n}").exists() for n in range(2)) == [False, True]  # one of the two made it
    return first, root / "envs"


def test_without_requires_it_is_our_own_interpreter(tmp_path: Path) -> None:
    assert environment_python([], tmp_path / "envs", log=tmp_path / "log") == Path(sys.executable)
    assert not (tmp_path / "envs").exists()


def test_it_holds_the_pins_and_our_numpy_and_not_this_package(made: tuple[Path, Path]) -> None:
    python, _ = made
    code = (
        "import importlib.util, json, numpy, forge_test_package as p; "
        "print(json.dumps([numpy.__version__, p.VALUE, importlib.util.find_spec('qnn') is None]))"
    )
    found = json.loads(subprocess.run([python, "-c", code], capture_output=True, check=True).stdout)
    assert found == [version("numpy"), 41, True]


def test_a_complete_environment_is_used_as_it_is(made: tuple[Path, Path], tmp_path: Path) -> None:
    python, envs = made
    before = (python.parent.parent / "complete.json").stat().st_mtime_ns
    assert environment_python([PIN], envs, log=tmp_path / "log") == python
    assert not (tmp_path / "log").exists()
    assert (python.parent.parent / "complete.json").stat().st_mtime_ns == before


def test_model_code_runs_in_it(made: tuple[Path, Path], tmp_path: Path) -> None:
    files = Bench(tmp_path, made[0]).data(
        """
        import forge_test_package
        import numpy as np

        def samples(*, count, **_):
            for _ in range(count):
                yield {"x": np.zeros((1, 4), np.float32), "n": np.int32(forge_test_package.VALUE)}
        """
    )
    assert len(files) == 2


@pytest.mark.parametrize("own_pip", [True, False])
def test_a_failure_shows_pips_last_lines_and_leaves_nothing(
    own_pip: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not own_pip:
        monkeypatch.setattr(environment, "find_spec", lambda _: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    envs = tmp_path / "envs"
    half_built = envs / environment_name([f"numpy=={version('numpy')}", PIN])
    half_built.mkdir(parents=True)
    (half_built / "rest").write_text("of a build that was killed")
    with pytest.raises(EnvironmentFailed, match=r"pip install failed with code 1") as caught:
        environment_python([PIN], envs, log=tmp_path / "log")
    assert any("No matching distribution found" in line for line in caught.value.details)
    assert not half_built.exists()


def test_a_pin_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailed, match="no valid pin"):
        environment_python(["a b c"], tmp_path / "envs", log=tmp_path / "log")


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "envs").write_text("a file where a folder should be")
    with pytest.raises(InputOutputFault, match="envs: File exists"):
        environment_python([PIN], tmp_path / "envs", log=tmp_path / "log")


def test_the_name_depends_on_the_pins_and_not_on_their_order() -> None:
    assert environment_name(["a==1", "b==2"]) == environment_name(["b==2", "a==1"])
    assert environment_name(["a==1"]) != environment_name(["a==2"])
