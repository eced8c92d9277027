"""The pip toolchain's jobs on the real compiler: what it leaves undone without a word is a failure all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qnn.binary.gate import ExpectedBinary, ExpectedGraph
from qnn.chips.table import load_table
from qnn.errors.toolchain import CompilerRefused, ContextDoesNotLoad, NoContext
from qnn.npz import write_npz
from qnn.onnxruntime_errors import ORT_ERRORS
from qnn.tensors import TensorSpec
from qnn.toolchains.pip import jobs
from qnn.toolchains.pip.request import CompileJob
from qnn.toolchains.protocol import RunRequest
from tests.e2e.conftest import conv_net

SOC = load_table().lookup("SM8650")
X, Y = TensorSpec("x", "float32", (1, 3, 16, 16)), TensorSpec("y", "float32", (1, 8, 1, 1))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompileJob:
    """A small graph, staged as the toolchain stages it."""
    stage, output = tmp_path / "stage", tmp_path / "out"
    stage.mkdir()
    output.mkdir()
    conv_net(stage / "net.onnx", size=16)
    (tmp_path / "log").touch()
    monkeypatch.chdir(stage)
    plan = ExpectedBinary(SOC.soc_id, SOC.name, SOC.arch, SOC.vtcm_mb, (ExpectedGraph((X,), (Y,), frozenset()),))
    return CompileJob("net", SOC, True, plan, str(output), str(tmp_path / "log"))


def request(job: CompileJob, tmp_path: Path) -> RunRequest:
    results = tmp_path / "results"
    results.mkdir()
    write_npz(tmp_path / "in.npz", {"x": np.ones(X.shape, np.float32)})
    write_npz(tmp_path / "ref.npz", {"y": np.zeros(Y.shape, np.float32)})
    return RunRequest(
        "net", ("y",), Path(job.output), SOC.soc_id, (tmp_path / "in.npz",), (tmp_path / "ref.npz",), results
    )


def test_binary_and_wrapper_have_fixed_names_and_the_wrapper_finds_its_binary(job: CompileJob, tmp_path: Path) -> None:
    read_back = jobs.compile_graph(job)
    assert read_back.soc_model == 57
    assert sorted(path.name for path in Path(job.output).iterdir()) == ["net.bin", "net_ctx.onnx"]
    Path(job.output).rename(tmp_path / "moved")
    (outputs,) = jobs.run_graph(RunRequest(**{**vars(request(job, tmp_path)), "folder": tmp_path / "moved"}))
    assert outputs.name == "y"
    assert outputs.max_abs > 0


def test_a_compile_that_leaves_nothing_is_a_failure(job: CompileJob, monkeypatch: pytest.MonkeyPatch) -> None:
    # As with a dynamic batch: no context file, no error, exit code 0.
    monkeypatch.setattr(jobs, "compiling_session", lambda *_, **__: None)
    with pytest.raises(NoContext, match="no error from the compiler, and 0 context binaries"):
        jobs.compile_graph(job)


def test_two_parts_are_a_failure(job: CompileJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def two(*_: object, **__: object) -> None:
        for name in ("net_ctx.onnx", "net_ctx_1.bin", "net_ctx_2.bin"):
            Path(name).touch()

    monkeypatch.setattr(jobs, "compiling_session", two)
    with pytest.raises(NoContext, match="2 context binaries"):
        jobs.compile_graph(job)


def test_what_is_no_operator_s_fault_says_what_the_compiler_said(
    job: CompileJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ORT_ERRORS[0]("finalize failed, error 1002")

    monkeypatch.setattr(jobs, "compiling_session", refuse)
    with pytest.raises(CompilerRefused, match=r"net for SM8650: finalize failed, error 1002"):
        jobs.compile_graph(job)


def test_a_context_that_does_not_load_is_a_failure(job: CompileJob, tmp_path: Path) -> None:
    jobs.compile_graph(job)
    binary = Path(job.output) / "net.bin"
    binary.write_bytes(binary.read_bytes()[:5000])
    with pytest.raises(ContextDoesNotLoad, match="net: the context binary does not load"):
        jobs.run_graph(request(job, tmp_path))
