"""qnn-forge device run, through the real adb, on the fake device."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from qnn.bundle.archive import write_archive
from qnn.device import net_run, run
from qnn.errors.base import ExitCode
from tests.device.conftest import Desk, make_bundle
from tests.libs import fake_maven


@pytest.mark.parametrize("quantized", [False, True], ids=["float", "quantized"])
def test_a_bundle_that_is_right(desk: Desk, tmp_path: Path, quantized: bool) -> None:
    bundle, phone = make_bundle(tmp_path / "b", quantized=quantized), desk.phone()
    done = desk.run(bundle, "--report", str(tmp_path / "report.json"))
    assert done.code == 0, done.err
    report = done.document
    outputs = {output["name"]: output for output in report["graphs"][0]["outputs"]}
    assert set(outputs) == {"y", "/head/z:0"}
    # A uint8 output in steps of 0.1 is up to 0.05 off (and its input in steps of 0.001); float is exact.
    assert 0.02 < outputs["y"]["max_abs"] < 0.06 if quantized else outputs["y"]["max_abs"] < 1e-6
    assert outputs["y"]["elements"] == 24
    assert outputs["y"]["gates"] == {"cosine": 0.999, "max_abs": 0.2, "argmax": 0.95}
    assert report["passed"] is True
    assert report["device"]["chip"] == {"name": "SM8650", "soc_id": 57, "arch": "v75", "vtcm_mb": 8}
    assert report["device"]["model"] == "Fake Phone"
    assert report["runtime"]["build_id"] == "v2.50.0.260828221209"
    assert sorted(report["runtime"]["libraries"]) == [
        *("libQnnHtp.so", "libQnnHtpV75Skel.so", "libQnnHtpV75Stub.so", "libQnnSystem.so"),
    ]
    assert report["runtime"]["net_run_sha256"] == hashlib.sha256(desk.net_run.read_bytes()).hexdigest()
    assert report["bundle"]["files"]["net.bin"] == hashlib.sha256((bundle / "net.bin").read_bytes()).hexdigest()
    (call,) = desk.calls(phone)
    assert (call["use_native_input_files"], call["use_native_output_files"]) == (True, True)
    assert call["adsp"].split(";")[1].endswith("/vendor/dsp/cdsp")
    written = (tmp_path / "report.json").read_bytes()
    assert json.loads(written) == report
    assert written == json.dumps(report, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    for secret in (desk.serials[0], str(tmp_path)):
        assert secret.encode() not in written


def test_what_is_there_is_not_sent_again_and_nothing_else_stays(desk: Desk, bundle: Path) -> None:
    phone = desk.phone()
    first = desk.run(bundle)
    assert first.code == 0, first.err
    assert len(phone.received) == 5 + 6  # libraries and program; binary, four inputs and their list
    left = desk.left(phone)
    assert len(left) == 11
    assert not any(part in name for name in left for part in ("run-", "Result"))
    victim = next(name for name in left if name.endswith("net.bin"))
    phone.path(f"/data/local/tmp/qnn-forge/{victim}").write_text("cut short")
    stray = phone.path(f"/data/local/tmp/qnn-forge/{victim.partition('/')[0]}/inputs/stray.raw")
    stray.write_text("what a transfer left")
    phone.received.clear()
    second = desk.run(bundle)
    assert second.out == first.out
    assert [name.rpartition("/")[2] for name in phone.received] == ["net.bin"]
    assert not stray.exists()
    assert desk.forge("clean").code == 0
    assert desk.left(phone) == []


def test_the_archive_of_a_bundle_runs_as_its_folder_does(desk: Desk, bundle: Path, tmp_path: Path) -> None:
    desk.phone()
    write_archive(bundle, "toy", tmp_path / "toy.tar.gz")
    assert desk.run(tmp_path / "toy.tar.gz").out == desk.run(bundle).out


def test_a_numeric_miss_is_a_gate_that_fails(desk: Desk, bundle: Path, tmp_path: Path) -> None:
    phone = desk.phone()
    desk.behave(phone, noise=0.3)
    done = desk.run(bundle, "--report", str(tmp_path / "report.json"))
    assert done.code == ExitCode.GATE
    assert "QF796 SM8650: net y, net /head/z:0 is not what the bundle's golden outputs say" in done.err
    assert "max_abs" in done.err or "largest error" in done.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] is False
    assert report["graphs"][0]["outputs"][0]["max_abs"] == pytest.approx(0.3, abs=1e-5)
    assert report["graphs"][0]["outputs"][0]["failures"]
    desk.behave(phone, noise=0.05)
    assert desk.run(bundle).code == 0


def test_an_output_of_zeros_is_named_as_such(desk: Desk, bundle: Path) -> None:
    phone = desk.phone()
    desk.behave(phone, factor=0)
    assert "net y: it is zero everywhere, see docs/device-errors/zeros.md" in desk.run(bundle).err
    desk.behave(phone, factor=2)
    done = desk.run(bundle)
    assert done.code == ExitCode.GATE
    assert "zero everywhere" not in done.err


def test_without_the_flag_integers_would_be_read_as_zeros(
    desk: Desk, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.phone()
    flag = " --use_native_input_files"
    monkeypatch.setattr(run, "check_line", lambda *arguments: net_run.check_line(*arguments).replace(flag, ""))
    done = desk.run(bundle)
    assert done.code == ExitCode.GATE
    outputs = {output["name"]: output for output in done.document["graphs"][0]["outputs"]}
    # y = 2 x + n, where n is 3 and 4.
    assert outputs["y"]["max_abs"] == pytest.approx(4)
    assert outputs["/head/z:0"]["passed"] is True


def test_latency_is_what_an_inference_takes_after_warm_ups(desk: Desk, bundle: Path) -> None:
    phone = desk.phone()
    desk.behave(phone, us=3000)
    done = desk.run(bundle, "--runs", "200")
    assert done.code == 0, done.err
    took = done.document["graphs"][0]["latency"]
    assert (took["warm_ups"], took["runs"], took["mean_us"]) == (10, 200, 3000.0)
    assert [call["num_inferences"] for call in desk.calls(phone)] == [None, 10, 210]
    assert desk.calls(phone)[2]["perf_profile"] == "burst"
    assert desk.calls(phone)[2]["keep_num_outputs"] == 1


def test_with_an_sdk_nothing_else_is_needed_and_its_viewer_tells_more(
    desk: Desk, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = tmp_path / "sdk"
    libraries = {Path(name).name: data for name, data in fake_maven.libraries().items()}
    places = {
        **{f"lib/aarch64-android/{name}": data for name, data in libraries.items() if not name.endswith("Skel.so")},
        "lib/hexagon-v75/unsigned/libQnnHtpV75Skel.so": libraries["libQnnHtpV75Skel.so"],
        "bin/aarch64-android/qnn-net-run": desk.net_run.read_bytes(),
        "bin/x86_64-linux-clang/qnn-profile-viewer": (
            b"#!/bin/sh\necho 'Execute Stats (Average):\nGraph 0 (g):\n    NetRun:  2952 us\n"
            b"    Backend (QNN accelerator (execute) time): 2600 us\n\nExecute Stats (Min):\n    NetRun:  2900 us\n"
            b"\nExecute Stats (Max):\n    NetRun:  3100 us'\n"
        ),
    }
    for name, data in places.items():
        (sdk / name).parent.mkdir(parents=True, exist_ok=True)
        (sdk / name).write_bytes(data)
    (sdk / "bin/x86_64-linux-clang/qnn-profile-viewer").chmod(0o755)
    monkeypatch.setenv("QNN_SDK_ROOT", str(sdk))
    desk.phone()
    done = desk.forge("run", str(bundle), "--runs", "5", "--json")
    assert done.code == 0, done.err
    took = done.document["graphs"][0]["latency"]
    numbers = ("net_run_average_us", "net_run_min_us", "net_run_max_us", "accelerator_average_us")
    assert [took[name] for name in numbers] == [2952, 2900, 3100, 2600]
    assert done.document["runtime"]["qairt"] == "2.50.0"


def test_for_people(desk: Desk, bundle: Path) -> None:
    desk.phone()
    given = ["--libs", str(desk.libs), "--net-run", str(desk.net_run), "--runs", "0"]
    done = desk.forge("run", str(bundle), *given)
    assert done.code == 0
    assert "Fake Phone: SM8650 (v75, 8 MB VTCM, 4 HVX threads, fp16), Android 14" in done.out
    assert "ok      net y: cosine 1.000000" in done.out
    assert "11 of 11 files sent" in done.err
    assert "0 of 11 files sent" in desk.forge("run", str(bundle), *given).err
