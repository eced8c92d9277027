"""qnn-forge device doctor, errors and clean."""

from __future__ import annotations

import json

import pytest

from qnn.chips.table import load_table
from qnn.device.doctor import judge
from qnn.device.facts import DeviceFacts, FoundLibrary, parse, probe
from qnn.errors.base import ExitCode
from tests.device.conftest import Desk

OWN = "v2.31.0.250130151446"


def test_a_device_that_can(desk: Desk) -> None:
    phone = desk.phone()
    for name in ("vendor/lib64/libQnnHtp.so", "vendor/lib/rfsa/adsp/libQnnHtpV75Skel.so"):
        phone.path(name).parent.mkdir(parents=True, exist_ok=True)
        phone.path(name).write_bytes(b"\0\xff binary " + OWN.encode() + b"\0 v2.31.0.250130151447 more")
    phone.path("/data/local/tmp/qnn-net-run").write_text("program")
    done = desk.forge("doctor", "--json")
    assert done.code == 0, done.err
    found = done.document
    assert found["ready"] is True
    assert (found["chip"]["name"], found["chip"]["soc_id"]) == ("SM8650", 57)
    assert found["device"]["android"] == "14"
    assert found["device"]["fastrpc"] == ["/vendor/lib64/libcdsprpc.so", "/dev/fastrpc-cdsp"]
    assert found["device"]["libraries"] == [
        {"path": "/vendor/lib64/libQnnHtp.so", "build": OWN},
        {"path": "/vendor/lib/rfsa/adsp/libQnnHtpV75Skel.so", "build": OWN},
    ]
    assert found["net_run"] == "/data/local/tmp/qnn-net-run"
    (note,) = found["findings"]
    assert note["stops"] is False
    assert OWN in note["message"]
    text = desk.forge("doctor").out
    assert "SM8650 (soc_id 57), v75, 8 MB VTCM" in text
    assert "qnn-forge libs --soc SM8650 --os android" in text
    assert f"/vendor/lib64/libQnnHtp.so {OWN}" in text


def test_a_device_that_cannot(desk: Desk) -> None:
    phone = desk.phone(props={"ro.soc.model": "Exynos 2400", "ro.product.cpu.abi": "x86_64"})
    phone.path("/vendor/lib64/libcdsprpc.so").unlink()
    phone.path("/dev/fastrpc-cdsp").unlink()
    done = desk.forge("doctor", "--json")
    assert done.code == ExitCode.DEVICE
    stops = [finding["message"] for finding in done.document["findings"] if finding["stops"]]
    assert len(stops) == 3
    assert "no chip is called 'Exynos 2400'" in stops[0]
    assert "x86_64" in stops[1]
    assert done.document["chip"] is None


def test_before_android_12_the_kernel_tells_the_chip(desk: Desk) -> None:
    chip = next(soc for soc in load_table().socs if soc.linux_soc0)
    phone = desk.phone(props={"ro.soc.model": ""})
    soc0 = phone.path("/sys/devices/soc0/soc_id")
    soc0.parent.mkdir(parents=True)
    soc0.write_text(f"{chip.linux_soc0[0]}\n")
    assert desk.forge("doctor", "--json").document["chip"]["name"] == chip.name


def test_the_doctor_needs_a_device(desk: Desk) -> None:
    done = desk.forge("doctor")
    assert done.code == ExitCode.DEVICE
    assert "QF781" in done.err


def test_facts_are_parsed_and_what_is_strange_is_made_harmless() -> None:
    text = (
        "soc_model=SM8650\nsoc0=\nlibrary=/vendor/lib64/libQnnHtp.so \nnoise\nmodel=\x1b[2Jx\nfastrpc=/dev/f\nkey=v\n"
    )
    assert parse(text) == DeviceFacts(
        soc_model="SM8650",
        model="\\x1b[2Jx",
        libraries=(FoundLibrary("/vendor/lib64/libQnnHtp.so"),),
        fastrpc=("/dev/f",),
    )
    assert "getprop ro.soc.model" in probe()


def test_a_chip_without_fp16_is_told() -> None:
    chip = next(soc for soc in load_table().socs if not soc.fp16)
    facts = DeviceFacts(abi="arm64-v8a", fastrpc=("/dev/fastrpc-cdsp",))
    (finding,) = judge(facts, chip, None, "/x")
    assert (finding.stops, finding.message) == (False, f"{chip.name} has no fp16")


@pytest.mark.parametrize("name", ["1008", "0x3f0", "qnn_common_error_incompatible_binaries"])
def test_an_error_is_explained_by_number_and_name(desk: Desk, name: str) -> None:
    done = desk.forge("errors", name)
    assert done.code == 0
    assert done.out.startswith("1008 QNN_COMMON_ERROR_INCOMPATIBLE_BINARIES: libraries of different QAIRT versions")
    assert "check ADSP_LIBRARY_PATH is set" in done.out


def test_all_errors_are_listed(desk: Desk) -> None:
    listed = json.loads(desk.forge("errors", "--json").out)["errors"]
    assert len(listed) >= 30
    assert "14001" in desk.forge("errors").out
    assert desk.forge("errors", "77777").code == ExitCode.USAGE
