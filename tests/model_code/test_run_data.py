"""data.py gives exactly the graph's inputs, or one error with the line it comes from."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from qnn.child import Limits
from qnn.errors.base import ForgeError
from qnn.errors.model_code import (
    ModelCodeDied,
    ModelCodeMissing,
    ModelCodeRaised,
    ModelCodeTimedOut,
    NotASample,
    SampleDtype,
    SampleNames,
    SampleNotFinite,
    SampleShape,
    TooFewSamples,
)
from qnn.npz import read_npz
from qnn.tensors import TensorSpec
from tests.model_code.conftest import Bench

GOOD = """
    import numpy as np

    def samples(*, graph, inputs, sources, count):
        for k in range(count):
            yield {"n": np.int32(k), "x": np.full(inputs["x"], k, np.float32)}
"""
# One line of a generator: line 5 yields. X stands for the expression.
YIELDS = """
    import numpy as np

    def samples(*, graph, inputs, sources, count):
        x, n = np.zeros((1, 4), np.float32), np.int32(1)
        yield X
        yield {"x": x, "n": n}
"""


def yields(expression: str) -> str:
    return YIELDS.replace("X", expression, 1)


def test_samples_are_files_in_order_with_the_graphs_inputs(bench: Bench) -> None:
    files = bench.data(GOOD, count=3)
    assert [file.name for file in files] == ["000.npz", "001.npz", "002.npz"]
    last = read_npz(files[2])
    assert list(last) == ["x", "n"]  # in the graph's order
    assert (last["x"].tolist(), str(last["x"].dtype)) == ([[2, 2, 2, 2]], "float32")
    assert (last["n"].shape, str(last["n"].dtype), int(last["n"])) == ((), "int32", 2)


def test_the_function_gets_what_the_contract_says(bench: Bench, tmp_path: Path) -> None:
    source = tmp_path / "weights.bin"
    source.write_bytes(b"\7")
    files = bench.data(
        """
        from pathlib import Path
        import numpy as np

        def samples(*, graph, inputs, sources, count):
            assert (graph, count, list(inputs), inputs["x"], inputs["n"]) == ("net", 1, ["x", "n"], (1, 4), ()), inputs
            assert isinstance(sources["weights"], Path)
            return [{"x": np.zeros((1, 4), np.float32), "n": np.array(sources["weights"].read_bytes()[0], np.int32)}]
        """,
        count=1,
        sources={"weights": source},
    )
    assert int(read_npz(files[0])["n"]) == 7


def test_more_samples_than_asked_for_are_left(bench: Bench) -> None:
    endless = GOOD.replace("for k in range(count)", "for k in __import__('itertools').count()")
    assert len(bench.data(endless, count=2)) == 2


def test_two_runs_give_the_same_bytes(bench: Bench) -> None:
    code = """
        import numpy as np

        def samples(*, graph, inputs, sources, count):
            order = list({"alpha", "beta", "gamma", "delta", "epsilon"})
            x = np.asfortranarray(np.array([[hash(word) % 1000 for word in order[:4]]], np.float32))
            for k in range(count):
                yield {"x": x, "n": np.int32(k)}
    """
    first, second = (bench.data(code) for _ in range(2))
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


@pytest.mark.parametrize(
    ("code", "kind", "line", "message"),
    [
        (yields('{"x": x}'), SampleNames, 5, "samples: sample 0: lacks n"),
        (yields('{"x": x, "n": n, "y": n}'), SampleNames, 5, "sample 0: has 'y', which is no input of the graph"),
        (yields('{"x": x[0], "n": n}'), SampleShape, 5, r"x has shape \[4\], the graph takes \[1, 4\]"),
        (yields('{"x": x, "n": n[None]}'), SampleShape, 5, r"n has shape \[1\], the graph takes \[\]"),
        (yields('{"x": x.astype(float), "n": n}'), SampleDtype, 5, "x is float64, the graph takes float32"),
        (yields('{"x": x, "n": np.int64(1)}'), SampleDtype, 5, "n is int64, the graph takes int32"),
        (yields('{"x": x + np.nan, "n": n}'), SampleNotFinite, 5, "x holds 4 of 4 values that are infinite"),
        (yields('{"x": [[0, 0, 0, 0]], "n": n}'), NotASample, 5, "x is a list, not a NumPy array"),
        (yields('{"x": x, "n": 1}'), NotASample, 5, "n is a int, not a NumPy array"),
        (yields("[x, n]"), NotASample, 5, "sample 0 is a list, not a dictionary"),
        (yields("x"), NotASample, 5, "sample 0 is a numpy.ndarray, not a dictionary"),
        (yields('{"x": x, "n": n}; return'), TooFewSamples, 3, "gave 1 samples, checks.count asks for 2"),
        ("def samples(**_):\n        return {}", NotASample, 1, "returned a dict, not one dictionary for each sample"),
        ("def samples(**_):\n        pass", NotASample, 1, "returned a NoneType"),
        ("def samples(**_):\n        return []", TooFewSamples, 1, "gave 0 samples"),
        ("def sample(**_):\n        pass", ModelCodeMissing, None, "has no function samples"),
        ("samples = 3", ModelCodeMissing, None, "has no function samples"),
        ("\n\nraise ValueError('no')", ModelCodeRaised, 1, "samples: ValueError: no"),
        ("import numpy\ndef samples(:\n", ModelCodeRaised, 2, "SyntaxError: "),
        ("import not_there_at_all", ModelCodeRaised, 1, "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("def samples(*, graph):\n    pass", ModelCodeRaised, None, "unexpected keyword argument 'inputs'"),
        (yields("1 / 0"), ModelCodeRaised, 5, "ZeroDivisionError"),
        (yields("__import__('sys').exit(3)"), ModelCodeDied, 5, r"samples: called exit\(3\)"),
    ],
)
def test_each_fault_has_its_error_and_line(
    bench: Bench, code: str, kind: type[ForgeError], line: int | None, message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        bench.data(code)
    place = caught.value.place
    assert place is not None
    assert (place.path, place.line) == (str(bench.folder / "data.py"), line)
    assert caught.value.log == bench.log


def test_later_samples_are_checked_too(bench: Bench) -> None:
    code = GOOD.replace("np.int32(k)", "np.int32(k) if k < 1 else np.int16(k)")
    with pytest.raises(SampleDtype, match="sample 1: n is int16"):
        bench.data(code)


def test_all_arrays_with_the_same_fault_are_listed(bench: Bench) -> None:
    with pytest.raises(SampleShape) as caught:
        bench.data(yields('{"x": x[0], "n": n[None]}'))
    assert caught.value.details == ("n has shape [1], the graph takes []",)


def test_functions_that_are_there_are_named(bench: Bench) -> None:
    with pytest.raises(ModelCodeMissing) as caught:
        bench.data("def sample(**_): pass\ndef _private(): pass")
    assert caught.value.details == ("functions there: sample",)


def test_a_missing_file_is_named(bench: Bench) -> None:
    with pytest.raises(ModelCodeMissing, match=r"there is no file other\.py"):
        bench.data(GOOD, entry="other.py:samples")


def test_only_the_models_own_frames_are_shown(bench: Bench) -> None:
    bench.write("helper.py", "import json\n\ndef parse(text):\n    return json.loads(text)\n")
    with pytest.raises(ModelCodeRaised, match="JSONDecodeError") as caught:
        bench.data("import helper\n\ndef samples(**_):\n    return helper.parse('{')")
    assert caught.value.details == (
        "data.py:4 in samples: return helper.parse('{')",
        "helper.py:4 in parse: return json.loads(text)",
    )
    assert str(caught.value.place) == f"{bench.folder / 'helper.py'}:4"
    assert "decoder.py" in bench.log.read_text()


def test_a_package_that_is_missing_belongs_under_requires(bench: Bench) -> None:
    with pytest.raises(ModelCodeRaised) as caught:
        bench.data("import not_there_at_all")
    assert "requires" in caught.value.remedy


def test_a_link_to_the_folder_is_named_as_it_was_given(bench: Bench, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    bench.folder.symlink_to(real)
    with pytest.raises(ModelCodeRaised) as caught:
        bench.data(yields("1 / 0"))
    assert str(caught.value.place) == f"{bench.folder / 'data.py'}:5"


def test_neighbours_dataclasses_and_prints_work(bench: Bench) -> None:
    bench.write("shapes.py", "SIZE = 4\n")
    files = bench.data(
        """
        from dataclasses import dataclass
        import numpy as np
        from shapes import SIZE
        import data

        @dataclass
        class Pair:
            x: "np.ndarray"

        def samples(*, count, **_):
            print("on stdout, which is not the answer")
            assert data.Pair is Pair
            for k in range(count):
                yield {"x": Pair(np.zeros((1, SIZE), np.float32)).x, "n": np.int32(k)}
        """
    )
    assert len(files) == 2
    assert bench.log.read_text() == "on stdout, which is not the answer\n"
    assert sorted(path.name for path in bench.folder.iterdir()) == ["data.py", "shapes.py"]  # no __pycache__


def test_no_secrets_no_home_no_packages_of_the_caller(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "smuggled.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("DEPLOY_SECRET", "x")
    bench.data(
        """
        import importlib.util, os, sys
        from pathlib import Path
        import numpy as np

        def samples(*, count, **_):
            assert importlib.util.find_spec("smuggled") is None
            assert importlib.util.find_spec("runner") is None
            assert not {"HF_TOKEN", "DEPLOY_SECRET", "PYTHONPATH"} & set(os.environ), os.environ
            assert Path.home() == Path.cwd() and not list(Path.cwd().iterdir())
            assert sys.stdin.read() == ""
            Path("scratch.txt").write_text("free to write here")
            for k in range(count):
                yield {"x": np.zeros((1, 4), np.float32), "n": np.int32(k)}
        """
    )


def test_a_hang_is_stopped_with_everything_it_started(bench: Bench, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(ModelCodeTimedOut, match="samples did not end within 2 s") as caught:
        bench.data(
            f"""
            import os, subprocess, time

            def samples(**_):
                child = subprocess.Popen(["sleep", "1000"])
                open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
                print("waiting", flush=True)
                time.sleep(1000)
            """,
            limits=Limits(seconds=2, memory_bytes=4 << 30),
        )
    assert caught.value.details == ("| waiting",)
    for pid in map(int, pids.read_text().split()):
        assert not _alive(pid)


def test_what_is_left_running_is_stopped(bench: Bench, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    bench.data(
        f"""
        import subprocess, threading, time
        import numpy as np

        def samples(*, count, **_):
            open({str(pids)!r}, "w").write(str(subprocess.Popen(["sleep", "1000"]).pid))
            threading.Thread(target=time.sleep, args=(1000,)).start()
            for k in range(count):
                yield {{"x": np.zeros((1, 4), np.float32), "n": np.int32(k)}}
        """
    )
    assert not _alive(int(pids.read_text()))


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("os._exit(7)", "exit code 7 and no result"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("ctypes.string_at(0)", "killed by SIGSEGV"),
    ],
)
def test_a_process_that_dies_says_how(bench: Bench, body: str, how: str) -> None:
    with pytest.raises(ModelCodeDied, match=how) as caught:
        bench.data(f"import ctypes, os\n\ndef samples(**_):\n    {body}")
    if "SEGV" in how:
        assert any('data.py", line 4 in samples' in line for line in caught.value.details)


def test_too_much_memory_is_an_error_of_the_code(bench: Bench) -> None:
    with pytest.raises(ModelCodeRaised, match="Unable to allocate") as caught:
        bench.data(yields('{"x": np.ones(1 << 30), "n": n}'), limits=Limits(seconds=60, memory_bytes=1 << 30))
    assert caught.value.place is not None
    assert caught.value.place.line == 5


def test_awkward_names_and_no_inputs_to_speak_of(bench: Bench) -> None:
    inputs = (TensorSpec("serving/x:0", "bool", (2,)), TensorSpec("x.npy", "float16", (0,)))
    files = bench.data(
        """
        import numpy as np

        def samples(*, count, inputs, **_):
            for _ in range(count):
                yield {"serving/x:0": np.array([True, False]), "x.npy": np.zeros(inputs["x.npy"], np.float16)}
        """,
        inputs=inputs,
        count=1,
    )
    assert {name: array.tolist() for name, array in read_npz(files[0]).items()} == {
        "serving/x:0": [True, False],
        "x.npy": [],
    }


def _alive(pid: int) -> bool:
    """Whether a process still runs; one that was killed may take a moment to be gone."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        os.sched_yield()
        time.sleep(0.02)
    return True
