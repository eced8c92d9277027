"""Every way in which export.py can be wrong is one error with a place, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.child import Limits
from qnn.errors.base import ForgeError
from qnn.errors.export import ExporterMissing, ExportInputs, ParityFailed, UnsafeWeights
from qnn.errors.model_code import ModelCodeTimedOut
from tests.export.conftest import GOOD, HEAD, Bench, interpreter, row


def returning(what: str) -> str:
    return f"def net(*, bucket, sources):\n    x = torch.zeros(1, 4)\n    return {what}\n"


FORWARD = "class Other(torch.nn.Module):\n    def forward(self, x):\n        return {}\n\n\n"

FAULTS: dict[str, tuple[str, str, int | None, str]] = {
    "raises": ("def net(*, bucket, sources):\n    return bucket['m']\n", "QF802", 10, "net: KeyError: 'm'"),
    "exits": ("import sys\ndef net(**_):\n    sys.exit(0)\n", "QF804", 11, "net: called exit(0)"),
    "aborts": ("import os\ndef net(**_):\n    os.abort()\n", "QF804", None, "net ended too soon: killed by SIGABRT"),
    "is not there": ("def other(**_): ...\n", "QF801", None, "has no function net"),
    "is no Python": ("def net(:\n", "QF802", 9, "net: SyntaxError: invalid syntax"),
    "lacks a package": ("import no_such_package\n", "QF802", 9, "net: ModuleNotFoundError"),
    "gives nothing": (returning("None"), "QF821", 9, "net: returned a NoneType, not a dictionary"),
    "gives a tuple": (returning("Net(), x"), "QF821", 9, "net: returned a tuple, not a dictionary"),
    "gives no inputs": (returning('{"module": Net()}'), "QF821", 9, "the dictionary it returned lacks inputs"),
    "gives a key more": (
        returning('{"module": Net(), "inputs": {"x": x}, "name": 1}'), "QF821", 9, "has 'name', which means nothing",
    ),
    "gives a class": (returning('{"module": 3, "inputs": {"x": x}}'), "QF821", 9, "module is a int"),
    "gives an array": (returning('{"module": Net(), "inputs": {"x": x.array}}'), "QF821", 9, "'x' is a numpy.ndarray"),
    "gives a list": (returning('{"module": Net(), "inputs": [x]}'), "QF821", 9, "inputs is a list"),
    "gives an empty": (returning('{"module": Net(), "inputs": {}}'), "QF821", 9, "inputs is empty"),
    "names a text": (returning('{"module": Net(), "inputs": {"x": x}, "outputs": "y"}'), "QF821", 9, "no list of"),
    "names twice": (
        returning('{"module": Net(), "inputs": {"x": x}, "outputs": ["x"]}'), "QF821", 9, "names something twice",
    ),
    "opset in words": (
        returning('{"module": Net(), "inputs": {"x": x}, "opset": "17"}'), "QF821", 9, "opset is a str",
    ),
    "other exporter": (
        returning('{"module": Net(), "inputs": {"x": x}, "exporter": "new"}'), "QF821", 9, "exporter is 'new'",
    ),
    "other shape": (
        returning('{"module": Net(), "inputs": {"x": torch.zeros(1, 5)}}'), "QF822", 9,
        "x has shape [1, 5], model.yaml gives [1, 4]",
    ),
    "other name": (returning('{"module": Net(), "inputs": {"y": x}}'), "QF822", 9, "lacks x [1, 4]"),
    "forward raises": (
        FORWARD.format("x.nothing") + returning('{"module": Other(), "inputs": {"x": x}}'), "QF828", 11,
        "on the example inputs: AttributeError",
    ),
    "forward gives numbers": (
        FORWARD.format("3") + returning('{"module": Other(), "inputs": {"x": x}}'), "QF823", None, "output is a int",
    ),
    "forward gives nothing": (
        FORWARD.format("None") + returning('{"module": Other(), "inputs": {"x": x}}'), "QF823", None,
        "forward returns no tensor",
    ),
    "too many names": (
        returning('{"module": Net(), "inputs": {"x": x}, "outputs": ["a", "b"]}'), "QF823", None,
        "forward returns 1 tensors, outputs has 2 names",
    ),
    "the exporter fails": (
        GOOD.replace("Net()", "Net(), 'opset': 99999"), "QF825", None, "the exporter knows no opset 99999",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_error_and_line(bench: Bench, fault: str) -> None:
    body, error, line, words = FAULTS[fault]
    with pytest.raises(ForgeError) as caught:
        bench.export(body)
    assert caught.value.id == error
    assert words in caught.value.message
    assert caught.value.place is not None
    assert (caught.value.place.path, caught.value.place.line) == (str(bench.folder / "export.py"), line)


def test_what_it_prints_goes_to_the_log_and_disturbs_nothing(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.export('import os\nprint("{\\"kind\\": \\"no\\"}")\nos.write(1, b"raw\\n")\n' + GOOD)
    assert bench.onnx.exists()
    assert capfd.readouterr().out == ""
    assert '{"kind": "no"}' in bench.log.read_text()
    assert "raw" in bench.log.read_text()


def test_a_fork_that_comes_back_too_gives_one_export(bench: Bench) -> None:
    class_ = "class Loud(Net):\n    def forward(self, x):\n        print('forward')\n        return torch.relu(x)\n\n\n"
    bench.export(class_ + GOOD.replace("Net()", "Loud()").replace("    return", "    import os; os.fork()\n    return"))
    assert bench.log.read_text().count("forward") == 2  # once to look at the outputs, once to export
    assert sorted(path.name for path in bench.onnx.parent.iterdir()) == ["export.json", "net.onnx"]


def test_what_it_leaves_running_is_ended_even_in_a_session_of_its_own(bench: Bench) -> None:
    pid = bench.root / "pid"
    bench.write(
        "daemon.py",
        f"import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
        f"open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n",
    )
    start = """    import os, subprocess, sys, time
    subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "daemon.py")], check=True)
    while not os.path.exists(PID) or not open(PID).read(): time.sleep(0.05)
    return""".replace("PID", repr(str(pid)))
    bench.export(GOOD.replace("    return", start))
    assert ended(int(pid.read_text()))


def test_a_hang_is_stopped_with_all_it_started(bench: Bench) -> None:
    pid = bench.root / "pid"
    bench.limits = replace(bench.limits, seconds=3)
    start = f"""    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    open({str(pid)!r}, "w").write(str(child.pid))
    time.sleep(600)
    return"""
    with pytest.raises(ModelCodeTimedOut, match="did not end within 3 s"):
        bench.export(GOOD.replace("    return", start))
    assert ended(int(pid.read_text()))


def ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be counted; it gets 10 s, and is ended if that is not enough."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    return False


def test_without_torch_or_its_exporter_the_remedy_names_the_pins(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    bench.python = interpreter(tmp_path, tmp_path / "packages")
    with pytest.raises(ExporterMissing, match="there is no torch") as caught:
        bench.export()
    assert "torch==2.13.0, onnxscript==0.7.1" in caught.value.remedy
    (tmp_path / "packages" / "torch.py").write_bytes(Path(__file__).with_name("fake_torch.py").read_bytes())
    with pytest.raises(ExporterMissing, match="there is no onnxscript"):
        bench.export()
    assert bench.export(GOOD[:-2] + ', "exporter": "legacy"}\n').exporter == "legacy"  # which does without


def test_weights_that_would_run_code_are_an_error_of_their_own(bench: Bench) -> None:
    reason = "Weights only load failed. Do as follows. Unsupported GLOBAL posix.system whose module is blocked."
    load = f"from pickle import UnpicklingError\nraise UnpicklingError({reason!r})\n"
    with pytest.raises(
        UnsafeWeights, match=r"^net: a file of weights holds posix\.system, and was not loaded$"
    ) as caught:
        bench.export(load + GOOD)
    assert caught.value.place is not None
    assert caught.value.place.line == 10


def test_an_input_that_forward_does_not_use_is_said(bench: Bench) -> None:
    class_ = FORWARD.format("torch.relu(x)").replace("self, x", "self, x, y")
    bench.inputs = {"x": (1, 4), "y": (1, 4)}
    both = returning('{"module": Other(), "inputs": {"x": x, "y": torch.ones(1, 4)}}')
    with pytest.raises(ExportInputs, match=r"of the exported file's inputs, lacks y, which forward does not use"):
        bench.export("torch.DROP = True\n" + class_ + both)


def test_a_file_that_computes_something_else_is_refused(bench: Bench) -> None:
    bench.export(
        GOOD.replace("    return", '    Net.planted = "relu"\n    return').replace("}}", '}, "exporter": "legacy"}')
    )
    assert bench.hold(row(1, 2, 3, 4)).max_abs == 0  # the leak shows on negative numbers only
    with pytest.raises(ParityFailed) as caught:
        bench.hold(row(1, 2, 3, 4), row(1, -2, 3, 4))
    assert "output output of the exported file is not the module's on sample 1" in caught.value.message
    assert "off by 0.02 at [0, 1]" in caught.value.message
    assert caught.value.details[0].startswith(
        "first tensor that differs: relu_0, made by LeakyRelu from relu, export.py:6"
    )
    assert caught.value.details[1].endswith("off by 0.02 at [0, 1] (largest element 4)")
    assert 'leave out "exporter": "legacy"' in caught.value.remedy


def test_the_head_of_these_tests_has_the_lines_they_count_on() -> None:
    assert HEAD.count("\n") == 8
    assert sys.executable


def test_limits_hold_for_export_too(bench: Bench) -> None:
    bench.limits = Limits(seconds=60, memory_bytes=1 << 30)
    with pytest.raises(ForgeError, match="MemoryError") as caught:
        bench.export(GOOD.replace("    return", "    keep = bytearray(3 << 30)\n    return"))
    assert caught.value.id == "QF802"
