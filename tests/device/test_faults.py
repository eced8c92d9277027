"""Everything that can be wrong with adb, the device, the runtime and the bundle: one clear error each."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.bundle.manifest import from_json, to_json
from qnn.errors.base import ExitCode
from qnn.index.update import add_release
from tests.device.conftest import Desk, make_bundle
from tests.device.fake_adbd import FakeDevice
from tests.index.examples import manifest, published, release


def test_no_device(desk: Desk, bundle: Path) -> None:
    done = desk.run(bundle)
    assert (done.code, done.out) == (ExitCode.DEVICE, "")
    assert "QF781 adb sees no device" in done.err
    assert "QF781 adb sees no device 'R5CT'" in desk.run(bundle, "--serial", "R5CT").err


@pytest.mark.parametrize("state", ["unauthorized", "offline"])
def test_a_device_that_takes_no_commands(desk: Desk, bundle: Path, state: str) -> None:
    desk.phone(state=state)
    done = desk.run(bundle)
    assert done.code == ExitCode.DEVICE
    assert f"QF782 the device {desk.serials[0]} is in the state '{state}'" in done.err


def test_several_devices_need_a_name(desk: Desk, bundle: Path) -> None:
    first, second = desk.phone(), desk.phone()
    done = desk.run(bundle)
    assert done.code == ExitCode.DEVICE
    assert "QF783 adb sees 2 devices" in done.err
    assert all(f"{serial} (device, Fake_Phone)" in done.err for serial in desk.serials)
    assert first.commands == second.commands == []
    assert desk.run(bundle, "--serial", desk.serials[1]).code == 0
    assert first.commands == []


def test_unplugged_while_qnn_net_run_runs(desk: Desk, bundle: Path) -> None:
    phone = desk.phone(unplug_on="--retrieve_context")
    done = desk.run(bundle)
    assert (done.code, done.out) == (ExitCode.DEVICE, "")
    assert f"QF784 the device {desk.serials[0]} went away" in done.err
    # Plugged in again, the same command goes on with the files that are there.
    phone.unplug_on = None
    assert len(_runs(phone)) == 1
    phone.received.clear()
    desk.plug(phone)
    assert desk.run(bundle, "--serial", desk.serials[1]).code == 0
    assert phone.received == []
    assert _runs(phone) == []


def test_unplugged_while_a_file_is_sent(desk: Desk, bundle: Path) -> None:
    phone = desk.phone(unplug_after=5000)
    done = desk.run(bundle)
    assert done.code == ExitCode.DEVICE
    assert "QF784" in done.err
    phone.unplug_after = None
    whole = list(phone.received)
    assert 0 < len(whole) < 11
    phone.received.clear()
    desk.plug(phone)
    assert desk.run(bundle, "--serial", desk.serials[1]).code == 0
    assert len(whole) + len(phone.received) == 11


def test_a_full_device(desk: Desk, bundle: Path) -> None:
    desk.phone(room=5000)
    done = desk.run(bundle)
    assert done.code == ExitCode.DEVICE
    assert "QF786 the device has no room to take" in done.err
    assert "No space left on device" in done.err


def test_a_device_that_takes_no_file(desk: Desk, bundle: Path) -> None:
    desk.phone(read_only=True)
    done = desk.run(bundle)
    assert done.code == ExitCode.DEVICE
    assert "QF785 the device did not take libQnnHtp.so" in done.err
    assert "Read-only file system" in done.err


def test_a_qnn_net_run_that_hangs(desk: Desk, bundle: Path) -> None:
    phone = desk.phone()
    desk.behave(phone, hang=5)
    done = desk.run(bundle, "--timeout", "1")
    assert done.code == ExitCode.DEVICE
    assert "QF794 a command on the device did not end in 1 s" in done.err
    assert _runs(phone) == []


def test_a_bundle_for_another_chip_is_refused_before_anything_is_sent(desk: Desk, tmp_path: Path) -> None:
    phone = desk.phone("SM8650")
    done = desk.run(make_bundle(tmp_path / "b", soc="SM8750"))
    assert (done.code, done.out) == (ExitCode.CHIP, "")
    assert "QF788 toy-1.0-s16-w8a16-SM8750-qairt2.50.0 is for SM8750 (soc_id 69, v79, 8 MB VTCM)" in done.err
    assert "the device has SM8650 (soc_id 57" in done.err
    assert "qnn-forge pull toy==1.0 --soc SM8650" in done.err
    assert "float model of toy net for the CPU: pypi toy==1.0, file toy/model.onnx, sha256 abab" in done.err
    assert phone.received == []


def test_the_index_says_what_there_is_for_the_chip(desk: Desk, tmp_path: Path) -> None:
    index = tmp_path / "index"
    add_release(index, release(published(manifest("SM8650"))))
    desk.phone("SM8650")
    done = desk.run(make_bundle(tmp_path / "b", soc="SM8750"), "--from", str(index))
    assert done.code == ExitCode.CHIP
    assert "in the index for SM8650: toy-1.0-s16-w8a16-SM8650-qairt2.51.0.tar.gz" in done.err
    assert "float model of toy" in done.err
    # An index that cannot be read does not hide what is wrong with the device; one that is not needed is not read.
    (index / "v1" / "models" / "toy.json").write_text("{")
    done = desk.run(make_bundle(tmp_path / "c", soc="SM8750"), "--from", str(index))
    assert done.code == ExitCode.CHIP
    assert "QF788" in done.err
    assert "the index was not read" in done.err
    assert desk.run(make_bundle(tmp_path / "d"), "--from", str(index)).code == 0


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("Tensor G4", "no chip is called 'Tensor G4'"),
        ("SDM845", "SDM845"),
        ("", "the device does not say which chip it has"),
    ],
)
def test_a_chip_without_an_npu_that_is_known(desk: Desk, bundle: Path, model: str, says: str) -> None:
    desk.phone(props={"ro.soc.model": model})
    done = desk.run(bundle)
    assert done.code == ExitCode.CHIP
    assert "QF787" in done.err
    assert says in done.err
    assert "float model of toy net for the CPU" in done.err


def test_adb_missing_strange_or_too_old(desk: Desk, bundle: Path, tmp_path: Path) -> None:
    def shim(name: str, text: str) -> str:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    cases = {
        str(tmp_path / "nowhere"): "cannot be started: No such file or directory",
        shim("old", "echo 'Android Debug Bridge version 1.0.32'"): "adb 1.0.32 is too old; it must be 1.0.36 or newer",
        shim("strange", "echo hello"): "does not say which adb it is",
        shim("broken", "[ $1 = version ] && echo 'Android Debug Bridge version 1.0.41' || exit 1"): "cannot list",
    }
    for program, says in cases.items():
        done = desk.run(bundle, "--adb", program)
        assert done.code == ExitCode.DEVICE
        assert "QF780" in done.err
        assert says in done.err


def test_adb_missing_on_path(desk: Desk, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "QF780 adb cannot be started" in desk.run(bundle).err


@pytest.mark.parametrize(
    "root", ["/data/local/tmp/a;b", "/data/local/tmp/a:b", "/data/local/tmp/it's", "/data", "tmp/x"]
)
def test_paths_that_the_device_would_misread(desk: Desk, bundle: Path, root: str) -> None:
    phone = desk.phone()
    for done in (desk.run(bundle, "--root", root), desk.forge("clean", "--root", root)):
        assert done.code == ExitCode.DEVICE
        assert "QF792" in done.err
    assert phone.commands == []


def test_another_root_may_be_given(desk: Desk, bundle: Path) -> None:
    phone = desk.phone()
    assert desk.run(bundle, "--root", "/data/local/tmp/mine/").code == 0
    assert phone.path("/data/local/tmp/mine").is_dir()
    assert not phone.path("/data/local/tmp/qnn-forge").exists()
    assert desk.forge("clean", "--root", "/data/local/tmp/mine").code == 0
    assert not phone.path("/data/local/tmp/mine").exists()


def test_a_name_in_the_bundle_that_the_device_would_misread(desk: Desk, bundle: Path) -> None:
    _change(bundle, "net.bin", "net;rm.bin")
    desk.phone()
    assert "QF792 'net;rm.bin'" in desk.run(bundle).err


def test_a_bundle_without_golden_samples(desk: Desk, bundle: Path) -> None:
    text = (bundle / "manifest.json").read_text()
    (bundle / "manifest.json").write_text(text.replace('"golden": 2', '"golden": 0'))
    desk.phone()
    done = desk.run(bundle)
    assert done.code == ExitCode.GATE
    assert "QF625" in done.err


def test_a_damaged_bundle(desk: Desk, bundle: Path) -> None:
    (bundle / "net.bin").write_text("{}")
    desk.phone()
    done = desk.run(bundle)
    assert done.code == ExitCode.BUNDLE
    assert "QF702" in done.err


def test_output_files_of_another_size(desk: Desk, bundle: Path) -> None:
    # The binary gives four bytes an element, the manifest says one.
    text = (bundle / "manifest.json").read_text()
    whole = from_json(text, bundle)
    graph = whole.graphs[0]
    outputs = tuple(replace(tensor, dtype="ufixed8", scale=(0.1,), offset=(0,)) for tensor in graph.outputs)
    (bundle / "manifest.json").write_text(to_json(replace(whole, graphs=(replace(graph, outputs=outputs),))))
    desk.phone()
    done = desk.run(bundle)
    assert done.code == ExitCode.DEVICE
    assert "QF795 net: y of sample 0 came as 48 bytes" in done.err


@pytest.mark.parametrize(
    ("said", "first", "all_pages"),
    [
        (["Could not create context from binary for context index = 0 : err 5000"], "5000 QNN_CONTEXT_ERROR", ["5000"]),
        (
            ["<E> Failed to load skel, error: 4000", "<E> Transport layer setup failed: 14001"],
            "4000 QNN_BACKEND_ERROR_CANNOT_INITIALIZE: the HTP backend cannot reach the NPU",
            ["4000", "14001"],
        ),
        (
            ['dlopen failed: library "libcdsprpc.so" not found', "Failed to load skel, error: 4000"],
            "libcdsprpc.so is not found",
            ["stub-without-fastrpc", "4000"],
        ),
        (["validateNativeOps Conv2d failed 3110"], "3110 QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE", ["3110"]),
        (["pdId 0 for context 1, err 1002"], "1002 QNN_COMMON_ERROR_MEM_ALLOC", ["1002"]),
    ],
)
def test_what_qnn_net_run_says_is_recognised(
    desk: Desk, bundle: Path, tmp_path: Path, said: list[str], first: str, all_pages: list[str]
) -> None:
    phone = desk.phone()
    desk.behave(phone, says=said, code=6)
    done = desk.run(bundle, "--log", str(tmp_path / "log"))
    assert done.code == ExitCode.DEVICE
    assert f"QF793 net: {first}" in done.err
    for page in all_pages:
        assert f"docs/device-errors/{page}.md" in done.err
    assert _runs(phone) == []
    log = (tmp_path / "log").read_text()
    assert all(line in log for line in said)
    assert "--retrieve_context net.bin" in log


def test_a_failure_that_is_not_known(desk: Desk, bundle: Path) -> None:
    phone = desk.phone()
    desk.behave(phone, says=["\x1b[31mboom"], code=134)
    done = desk.run(bundle)
    assert "QF793 net: qnn-net-run ended with 134" in done.err
    assert "\\x1b[31mboom" in done.err


def test_the_stand_in_refuses_as_the_real_one_does(desk: Desk, tmp_path: Path) -> None:
    """A binary that lies about itself: the device finds out, and its number is recognised."""
    phone = desk.phone()
    other = make_bundle(tmp_path / "b")
    _rewrite(other, "net.bin", lambda text: text.replace('"soc_model": 57', '"soc_model": 69'))
    assert "5005 QNN_CONTEXT_ERROR_CREATE_FROM_BINARY" in desk.run(other).err
    newer = make_bundle(tmp_path / "c")
    _rewrite(newer, "net.bin", lambda text: text.replace('"qairt": "2.50.0"', '"qairt": "2.51.0"'))
    assert "5000 QNN_CONTEXT_ERROR_INVALID_ARGUMENT" in desk.run(newer).err
    # A chip whose Stub is not in the set, as after an update of the runtime.
    desk.behave(phone, arch="81")
    assert "QF793 net: a Stub is not found" in desk.run(make_bundle(tmp_path / "d")).err


def _runs(phone: FakeDevice) -> list[str]:
    """Folders that runs have left on the device."""
    return [path.name for path in phone.path("/data/local/tmp/qnn-forge").iterdir() if path.name.startswith("run-")]


def _rewrite(bundle: Path, name: str, change: Callable[[str], str]) -> None:
    (bundle / name).write_text(change((bundle / name).read_text()))
    whole = from_json((bundle / "manifest.json").read_text(), bundle)
    data = (bundle / name).read_bytes()
    files = tuple(
        replace(file, sha256=hashlib.sha256(data).hexdigest(), size=len(data)) if file.path == name else file
        for file in whole.files
    )
    (bundle / "manifest.json").write_text(to_json(replace(whole, files=files)))


def _change(bundle: Path, name: str, to: str) -> None:
    os.rename(bundle / name, bundle / to)
    text = (bundle / "manifest.json").read_text()
    document = json.loads(text.replace(json.dumps(name), json.dumps(to)))
    (bundle / "manifest.json").write_text(json.dumps(document))
