"""Runtime libraries and qnn-net-run for the device: where they come from, and every way they do not fit."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from qnn.errors.base import ExitCode
from tests.device.conftest import Archive, Desk
from tests.libs import fake_maven


def test_no_qnn_net_run(desk: Desk, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phone = desk.phone()
    only_libs = ["run", str(bundle), "--libs", str(desk.libs), "--runs", "0", "--json"]
    done = desk.forge(*only_libs)
    assert done.code == ExitCode.DEVICE
    assert "QF790 qnn-net-run is not given, QNN_SDK_ROOT is not set, and the device has none" in done.err
    assert "float model of toy net for the CPU" in done.err
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    assert "lacks bin/aarch64-android/qnn-net-run" in desk.forge(*only_libs).err
    there = phone.path("/data/local/tmp/qnn-net-run")
    shutil.copy(desk.net_run, there)
    there.chmod(0o755)
    done = desk.forge(*only_libs)
    assert done.code == 0, done.err
    assert len(done.document["runtime"]["net_run_sha256"]) == 64


def test_no_libraries(desk: Desk, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.phone()
    without = ["run", str(bundle), "--net-run", str(desk.net_run), "--runs", "0"]
    done = desk.forge(*without)
    assert done.code == ExitCode.DEVICE
    assert "QF789 no runtime libraries were given" in done.err
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    assert "lacks lib/aarch64-android/libQnnSystem.so" in desk.forge(*without).err


def _libraries(numbers: tuple[int, ...]) -> dict[str, bytes]:
    wanted = tuple(f"V{number}" for number in numbers)
    return {
        f"lib/{Path(name).name}": data
        for name, data in fake_maven.libraries().items()
        if "libQnnHtpV" not in name or any(part in name for part in wanted)
    }


def _manifest(contents: dict[str, bytes], **changes: object) -> dict[str, object]:
    listed = [{"path": name, "sha256": hashlib.sha256(data).hexdigest()} for name, data in contents.items()]
    return {
        "kind": "qnn-libs",
        "os": "android",
        "arch": "aarch64",
        "qairt": "2.50.0",
        "build_id": "v2.50.0.260828221209",
        "files": listed,
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "numbers", "says"),
    [
        ({"os": "linux"}, (75,), "QF789 qnn-libs-made.tar.gz is for linux on aarch64"),
        ({"kind": "other"}, (75,), "is no set of libraries but 'other'"),
        ({"qairt": "new"}, (75,), "not one of qnn-forge libs"),
        ({"files": 3}, (75,), "not one of qnn-forge libs"),
        ({}, (73,), "lacks libQnnHtpV75Skel.so, libQnnHtpV75Stub.so, which SM8650 (v75) needs"),
        ({"qairt": "2.49.0"}, (75,), "QF791 qnn-libs-made.tar.gz has QAIRT 2.49.0; the bundle was made by 2.50.0"),
    ],
)
def test_libraries_that_do_not_fit(
    desk: Desk, bundle: Path, archive: Archive, changes: dict[str, object], numbers: tuple[int, ...], says: str
) -> None:
    phone, files = desk.phone(), _libraries(numbers)
    done = desk.run(bundle, "--libs", str(archive(_manifest(files, **changes), files)))
    assert done.code == ExitCode.DEVICE
    assert says in done.err
    assert phone.received == []


def test_a_device_of_another_machine(desk: Desk, bundle: Path) -> None:
    phone = desk.phone(props={"ro.product.cpu.abi": "x86_64"})
    done = desk.run(bundle)
    assert done.code == ExitCode.DEVICE
    assert "QF789 the device's programs are for x86_64" in done.err
    assert "float model of toy net for the CPU" in done.err
    assert phone.received == []


def test_libraries_that_are_changed_or_cut_short(desk: Desk, bundle: Path, archive: Archive, tmp_path: Path) -> None:
    desk.phone()
    files = _libraries((75,))
    listed = _manifest(files)
    files["lib/libQnnHtp.so"] += b"!"
    changed = archive(listed, files)
    assert "libQnnHtp.so in qnn-libs-made.tar.gz is changed" in desk.run(bundle, "--libs", str(changed)).err
    short = tmp_path / "short.tar.gz"
    short.write_bytes(changed.read_bytes()[:200])
    assert "QF789 short.tar.gz is truncated or no archive" in desk.run(bundle, "--libs", str(short)).err
    (tmp_path / "text.tar.gz").write_text("hello")
    assert "QF789" in desk.run(bundle, "--libs", str(tmp_path / "text.tar.gz")).err
