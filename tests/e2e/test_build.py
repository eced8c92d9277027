"""qnn-forge build, as a user runs it, on the real compiler and emulator."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.e2e.conftest import YAML, Workshop, conv_net, environment, save

NAME = "toy-1.0-s16-fp16-SM8650-qairt2.51.0"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_one_command_gives_a_checked_bundle(workshop: Workshop) -> None:
    run = workshop.build("--soc", "SM8650")
    assert run.code == 0, run.err
    (target,) = run.document["targets"]
    assert (target["verdict"], target["reused"], target["soc"]) == ("ok", False, "SM8650")
    assert target["graphs"][0]["cosine"] > 0.999
    folder, archive = workshop.dist / NAME, workshop.dist / f"{NAME}.tar.gz"
    assert target["sha256"] == digest(archive)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        "README.txt",
        "manifest.json",
        "net.bin",
        "net_ctx.onnx",
        "golden/net/input_list.txt",
        "golden/net/sample_000/x.raw",
        "golden/net/sample_000/y.raw",
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["chip"] == {
        "name": "SM8650", "soc_id": 57, "arch": "v75", "vtcm_mb": 8, "hvx_threads": 4, "fp16": True,
    }  # fmt: skip
    assert manifest["graphs"][0]["vtcm_mb"] == 8
    assert manifest["sources"][0]["sha256"] == digest(workshop.model / "model.onnx")
    for file in manifest["files"]:
        assert digest(folder / file["path"]) == file["sha256"]
    golden = np.fromfile(folder / "golden/net/sample_000/x.raw", np.float32)
    assert np.array_equal(golden, np.load(workshop.model / "samples/000.npz")["x"].ravel())
    with tarfile.open(archive) as packed:
        assert f"{NAME}/net.bin" in packed.getnames()


def test_second_build_reuses_and_repairs_what_was_changed(workshop: Workshop) -> None:
    assert workshop.build("--soc", "SM8650").code == 0
    before = digest(workshop.dist / f"{NAME}.tar.gz")
    (workshop.dist / NAME / "net.bin").write_bytes(b"damaged")
    (workshop.dist / f"{NAME}.tar.gz").unlink()
    run = workshop.build("--soc", "SM8650")
    assert [target["reused"] for target in run.document["targets"]] == [True]
    assert digest(workshop.dist / f"{NAME}.tar.gz") == before
    assert (workshop.dist / NAME / "net.bin").stat().st_size > 10_000


def test_two_folders_two_stores_any_order_same_bytes(workshop: Workshop, tmp_path: Path) -> None:
    other = Workshop(tmp_path / "elsewhere" / "deep")
    shutil.copytree(workshop.model, other.model)
    assert workshop.build("--soc", "SM8650,SM8750,SA8295", "--jobs", "2").code == 0
    for chips in ("SA8295", "SM8750", "SM8650"):
        assert other.build("--soc", chips, "--jobs", "1").code == 0
    ours = {path.name: digest(path) for path in workshop.dist.glob("*.tar.gz")}
    assert len(ours) == 3
    assert {path.name: digest(path) for path in other.dist.glob("*.tar.gz")} == ours


def test_damaged_store_entry_is_made_again(workshop: Workshop) -> None:
    assert workshop.build("--soc", "SM8650").code == 0
    before = digest(workshop.dist / f"{NAME}.tar.gz")
    for binary in workshop.store.rglob("net.bin"):
        binary.write_bytes(binary.read_bytes()[::-1])  # every copy in the store, same size
    shutil.rmtree(workshop.dist)
    run = workshop.build("--soc", "SM8650")
    assert run.code == 0, run.err
    assert run.document["targets"][0]["reused"] is False
    assert digest(workshop.dist / f"{NAME}.tar.gz") == before


def test_two_builds_at_once_share_the_work(workshop: Workshop) -> None:
    command = [sys.executable, "-m", "qnn.cli", "build", "toy", "--soc", "SM8650,SM8750", "--json"]
    builds = [
        subprocess.Popen(
            command, cwd=workshop.root, env=environment(workshop.store), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    outputs = [build.communicate(timeout=300) for build in builds]
    assert [build.returncode for build in builds] == [0, 0], outputs
    first, second = (json.loads(out)["targets"] for out, _ in outputs)
    assert [target["sha256"] for target in first] == [target["sha256"] for target in second]
    compiled = [
        path for path in workshop.store.rglob("entry.json") if json.loads(path.read_text())["stage"] == "compile"
    ]
    assert len(compiled) == 2


def test_dry_run_builds_nothing_and_says_what_would_be(workshop: Workshop) -> None:
    run = workshop.build("--soc", "SM8650,SM8635*", "--dry-run")
    assert run.code == 0, run.err
    assert run.document["targets"] == [
        {"name": "toy-1.0-s16-fp16-SM8650", "soc": "SM8650", "cached": False, "verify": True}
    ]
    assert run.document["skipped"][0]["reason"] == "SM8635 has no fp16"
    assert not workshop.dist.exists()


def test_verify_per_arch_checks_one_chip_of_each(workshop: Workshop) -> None:
    run = workshop.build("--soc", "SM8550,QCS8550,SM8650", "--verify", "per-arch")
    assert {target["soc"]: target["verdict"] for target in run.document["targets"]} == {
        "QCS8550": "ok",
        "SM8550": "unverified",
        "SM8650": "ok",
    }
    manifest = json.loads((workshop.dist / NAME.replace("SM8650", "SM8550") / "manifest.json").read_text())
    assert (manifest["verified"], manifest["samples"], manifest["graphs"][0]["numerics"]) == (False, 0, [])


def test_verify_none_compiles_and_says_that_nothing_was_run(workshop: Workshop) -> None:
    run = workshop.build("--soc", "SM8650", "--verify", "none")
    assert [target["verdict"] for target in run.document["targets"]] == ["unverified"]
    assert json.loads((workshop.dist / NAME / "manifest.json").read_text())["verified"] is False
    assert not list(workshop.store.glob("logs/measure-*"))


def test_gate_that_fails_names_the_tensor_and_keeps_the_bundle_back(workshop: Workshop) -> None:
    yaml = workshop.model / "model.yaml"
    yaml.write_text(yaml.read_text() + "  gates: {cosine: 1.0, max_abs: 1.0e-12}\n")
    run = workshop.build("--soc", "SM8650")
    assert run.code == 8
    assert "QF620" in run.err
    assert "output y differs from the float model" in run.err
    (target,) = run.document["targets"]
    assert (target["verdict"], target["folder"]) == ("failed", None)
    assert 0.9 < target["graphs"][0]["cosine"] <= 1  # how far off it is, is said all the same
    assert not list(workshop.dist.glob("toy*"))
    # The gates are judged anew, the emulator is not asked again.
    yaml.write_text(yaml.read_text().replace("gates: {cosine: 1.0, max_abs: 1.0e-12}", "gates: {cosine: 0.99}"))
    marks = {path: path.stat().st_mtime_ns for path in workshop.store.glob("logs/measure-*")}
    assert workshop.build("--soc", "SM8650").code == 0
    assert {path: path.stat().st_mtime_ns for path in workshop.store.glob("logs/measure-*")} == marks


def test_keep_going_builds_the_rest(workshop: Workshop) -> None:
    broken = workshop.root / "models" / "broken"
    shutil.copytree(workshop.model, broken)
    (broken / "model.onnx").write_bytes(b"this is not ONNX, whatever its name says")
    yaml = broken / "model.yaml"
    yaml.write_text(YAML.format(extra="").replace("name: toy", "name: broken"))
    assert workshop.forge("pin", "broken").code == 0
    run = workshop.forge("build", "broken", "toy", "--soc", "SM8650", "--json", "--keep-going")
    assert run.code == 6
    assert [target["verdict"] for target in run.document["targets"]] == ["failed", "ok"]
    assert run.err.count("error:") == 1
    run = workshop.forge("build", "broken", "toy", "--soc", "SM8650,SM8750", "--json")
    assert (run.code, len(run.document["targets"])) == (6, 1)


def test_unsupported_operator_is_named(workshop: Workshop) -> None:
    nodes = [helper.make_node("Det", ["m"], ["d"], name="the_det"), helper.make_node("Relu", ["d"], ["y"])]
    save(workshop.model / "model.onnx", nodes, {"m": [2, 3, 3]}, {"y": [2]}, [])
    yaml = workshop.model / "model.yaml"
    yaml.write_text(
        YAML.format(extra="")
        .replace("x: [1, 3, size, size]", "m: [2, 3, 3]")
        .replace("buckets:\n  s16: {size: 16}\n", "")
    )
    for number in range(2):
        np.savez(workshop.model / "samples" / f"{number:03d}.npz", m=np.eye(3, dtype=np.float32)[None].repeat(2, 0))
    assert workshop.forge("pin", "toy").code == 0
    run = workshop.build("--soc", "SM8650")
    assert run.code == 6, run.err
    assert "the_det" in run.err
    assert "Det" in run.err


@pytest.mark.parametrize(("job", "id_", "code"), [("segfault", "QF501", 7), ("hang", "QF502", 7), ("eat", "QF503", 7)])
def test_compiler_faults_are_one_error_each(workshop: Workshop, job: str, id_: str, code: int) -> None:
    yaml = workshop.model / "model.yaml"
    yaml.write_text(yaml.read_text() + "limits: {memory_gb: 0.5, minutes: 0.05}\n")
    run = workshop.build_with(job, "--soc", "SM8650")
    assert run.code == code, run.err
    assert id_ in run.err
    assert "Traceback" not in run.err
    assert not list(workshop.dist.glob("toy*"))
    assert workshop.build("--soc", "SM8650", "--dry-run").document["targets"][0]["cached"] is False
    log = next(line.split("log: ")[1] for line in run.err.splitlines() if "log: " in line)
    assert os.path.exists(log)
    yaml.write_text(yaml.read_text().replace("limits: {memory_gb: 0.5, minutes: 0.05}\n", ""))
    assert workshop.build("--soc", "SM8650").code == 0  # nothing is left that stands in the way


def test_a_binary_for_another_chip_fails_the_read_back_gate(workshop: Workshop) -> None:
    run = workshop.build_with("for_another_chip", "--soc", "SM8650")
    assert run.code == 8, run.err
    assert "QF603" in run.err
    assert "soc_model: planned 57 (SM8650), found 69" in run.err


def test_full_disk(workshop: Workshop, small_disk: Path) -> None:
    run = workshop.forge("build", "toy", "--soc", "SM8650", "--store", str(small_disk / "store"))
    assert run.code == 11, run.err
    assert "QF901" in run.err
    assert not list(workshop.dist.glob("toy*"))


def test_output_folder_that_cannot_be_written(workshop: Workshop, read_only_disk: Path) -> None:
    run = workshop.forge("build", "toy", "--soc", "SM8650", "--out", str(read_only_disk / "dist"))
    assert run.code == 11, run.err
    assert "QF902" in run.err


def test_changed_source_is_refused(workshop: Workshop) -> None:
    conv_net(workshop.model / "model.onnx", seed=5)
    run = workshop.build("--soc", "SM8650")
    assert run.code == 5, run.err
    assert "sha256" in run.err
    assert "model.yaml" in run.err


def test_external_data_comes_as_a_source_of_its_own(workshop: Workshop) -> None:
    model = onnx.load(workshop.model / "model.onnx")
    onnx.save(model, workshop.model / "model.onnx", save_as_external_data=True, location="model.data", size_threshold=0)
    yaml = workshop.model / "model.yaml"
    yaml.write_text(YAML.format(extra=""))
    assert workshop.forge("pin", "toy").code == 0
    run = workshop.build("--soc", "SM8650")
    assert (run.code, "QF402" in run.err, "model.data" in run.err) == (6, True, True), run.err
    text = "  weights: {local: model.onnx, beside: [data]}\n  data: {local: model.data}\n"
    yaml.write_text(YAML.format(extra="").replace("  weights: {local: model.onnx}\n", text))
    assert workshop.forge("pin", "toy").code == 0
    run = workshop.build("--soc", "SM8650")
    assert run.code == 0, run.err
    assert run.document["targets"][0]["graphs"][0]["cosine"] > 0.999
    yaml.write_text(yaml.read_text().replace("beside: [data]", "beside: [dato]"))
    run = workshop.build("--soc", "SM8650")
    assert (run.code, "QF104" in run.err) == (3, True), run.err


def test_unused_inputs_and_constant_outputs_keep_their_place(workshop: Workshop) -> None:
    """The compiler leaves both out of its binary; the wrapper and the checks still know them."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Identity", ["c"], ["k"])]
    constant = numpy_helper.from_array(np.full((2,), 3, np.float32), "c")
    save(workshop.model / "model.onnx", nodes, {"x": [1, 4], "idle": [1, 2]}, {"y": [1, 4], "k": [2]}, [constant])
    yaml = workshop.model / "model.yaml"
    yaml.write_text(
        YAML.format(extra="")
        .replace("x: [1, 3, size, size]", "x: [1, 4]\n      idle: [1, 2]")
        .replace("buckets:\n  s16: {size: 16}\n", "")
    )
    for number in range(2):
        x, idle = np.ones((1, 4), np.float32) * number, np.zeros((1, 2), np.float32)
        np.savez(workshop.model / "samples" / f"{number:03d}.npz", x=x, idle=idle)
    assert workshop.forge("pin", "toy").code == 0
    run = workshop.build("--soc", "SM8650")
    assert run.code == 0, run.err
    folder = next(path for path in workshop.dist.iterdir() if path.is_dir())
    graph = json.loads((folder / "manifest.json").read_text())["graphs"][0]
    assert [tensor["name"] for tensor in graph["inputs"]] == ["x"]
    assert [tensor["name"] for tensor in graph["interface_inputs"]] == ["x", "idle"]
    assert workshop.forge("verify", str(folder)).code == 0


def quantize(source: Path, target: Path, sample: Path) -> None:
    """A w8a8 QDQ file of a float one, as ONNX Runtime's own quantizer makes it."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static  # noqa: PLC0415

    class OneSample(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [{"x": np.load(sample)["x"]}]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self.left.pop() if self.left else None

    quantize_static(
        source, target, OneSample(), activation_type=QuantType.QUInt8, weight_type=QuantType.QUInt8, per_channel=False
    )


def test_a_quantized_source_runs_on_a_chip_without_fp16(workshop: Workshop) -> None:
    conv_net(workshop.model / "model.onnx", size=16)
    quantize(workshop.model / "model.onnx", workshop.model / "w8a8.onnx", workshop.model / "samples" / "000.npz")
    (workshop.model / "model.yaml").write_text(
        YAML.format(extra="")
        .replace("weights: {local: model.onnx}", "weights: {local: model.onnx}\n  small: {local: w8a8.onnx}")
        .replace("source: weights", "source: {fp16: weights, w8a8: small}")
        .replace("x: [1, 3, size, size]", "x: [1, 3, 16, 16]")
        .replace("buckets:\n  s16: {size: 16}\n", "")
        .replace("precisions: [fp16]", "precisions: [fp16, w8a8]")
    )
    assert workshop.forge("pin", "toy").code == 0
    run = workshop.build("--soc", "SM7325,SM8650")
    assert run.code == 0, run.err
    made = {(t["precision"], t["soc"]): t["graphs"][0]["cosine"] for t in run.document["targets"]}
    assert set(made) == {("fp16", "SM8650"), ("w8a8", "SM8650"), ("w8a8", "SM7325")}
    assert all(cosine > 0.97 for cosine in made.values())
    assert [(skip["soc"], skip["reason"]) for skip in run.document["skipped"]] == [("SM7325", "SM7325 has no fp16")]
    folder = next(path for path in workshop.dist.glob("*w8a8-SM7325-*") if path.is_dir())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["chip"]["fp16"], manifest["graphs"][0]["vtcm_mb"]) == (False, 2)
    assert workshop.forge("verify", str(folder)).code == 0


def test_interrupt_ends_everything_and_the_next_build_goes_on(workshop: Workshop) -> None:
    script = (
        # As at a terminal: a test run in the background hands down a SIGINT that is ignored.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys; from qnn.toolchains.pip.toolchain import PipToolchain\n"
        "PipToolchain.compile_job = 'tests.e2e.fake_compiler:hang'\n"
        "from qnn.cli import run; sys.exit(run(sys.argv[1:]))\n"
    )
    build = subprocess.Popen(
        [sys.executable, "-c", script, "build", "toy", "--soc", "SM8650,SM8750", "--jobs", "2"],
        cwd=workshop.root,
        env=environment(workshop.store),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(list(workshop.store.glob("logs/compile-*"))) < 2:  # both compiles hang
        assert time.monotonic() < deadline
        time.sleep(0.05)
    build.send_signal(signal.SIGINT)
    _, errors = build.communicate(timeout=60)
    assert build.returncode == 130, errors
    assert errors.strip() == "interrupted; what was finished is kept, the same command goes on from there"
    assert workshop.forge("store", "prune", "--max-age", "1000").code == 0  # nobody holds the store any more
    assert workshop.build("--soc", "SM8650").code == 0
