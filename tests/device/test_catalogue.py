"""The known errors: the table is whole, every line that was seen in public is recognised, the pages are its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.device.catalogue import find, known_errors, recognise
from qnn.device.pages import main, pages

DOCS = Path(__file__).parents[2] / "docs" / "device-errors"
# Lines as public reports have them.
SEEN = {
    "     0.0ms [ ERROR ]  <E> Failed to create transport for device, error: 4000": ["4000"],
    "QnnDsp <E> Transport layer setup failed: 14001": ["14001"],
    "QnnDsp <E> Failed to parse default platform info: 1008": ["1008"],
    '[ERROR] "Failed to create device: 1008"': ["1008"],
    "Failed to create device_handle for Backend ID 6, error=1008": ["1008"],
    '[ERROR] "Could not create context from binary for context index = 0 : err 5000"': ["5000"],
    "Failed to create context from binary with err 0x138d": ["5005"],
    "<E> Failed to initialize graph with id 258 context 7 deviceId 0 coreId 0 pdId 0 with err 1002": ["1002"],
    "<E> fastrpc memory map for fd: 58 with length: 440401920 failed with error: 0x1": ["dsp-memory"],
    "QnnDsp <E> Failed to retrieve skel build id: err: 1003": ["skel-not-found", "1003"],
    'W/QnnDsp: Failed in loading stub: dlopen failed: library "libcdsprpc.so" not found': ["stub-without-fastrpc"],
    'Failed in loading stub: dlopen failed: library "libQnnHtpV81Stub.so" not found': ["stub-missing"],
    'Unable to load backend. dlerror(): dlopen failed: library "libQnnHtp.so" not found': ["library-missing"],
    "QNN graph execute error. Error code: 6001": ["6001"],
    "Failed to interpret QNN context binary. Error code 30010. Try verifying binary": ["30010"],
    "QNN_DEVICE_ERROR_INVALID_CONFIG: Invalid config values": ["14001"],
    "sh: ./qnn-net-run: Permission denied": ["no-permission"],
    "sh: ./qnn-net-run: not executable: 64-bit ELF file": ["wrong-machine"],
    "open_dev (-1) failed for domain 3 (errno Success)": ["no-permission"],
    "Failed to open input file: inputs/x.raw": ["no-file"],
}


@pytest.mark.parametrize("line", sorted(SEEN))
def test_a_line_that_was_seen(line: str) -> None:
    assert [one.id for one in recognise(f"before\n{line}\nafter")] == SEEN[line]


@pytest.mark.parametrize(
    "line",
    [
        "qnn-net-run pid:1008",
        "Allocated total size = 5000 across 8 buffers",
        "remote_mmap64 for fd 0xffffffff of size 1002",
        "Initialize Backend Returned Status = 0",
        "build version: v2.48.40.260702151143",
        "DspTransport failed,cannot open session, error 0xffffffff",
        "error 50001",
        "took 1004 us",
    ],
)
def test_other_numbers_are_no_errors(line: str) -> None:
    assert recognise(line) == ()


def test_causes_come_first_then_numbers_as_they_were_said() -> None:
    text = 'Failed to load skel, error: 4000\nsetup failed: 14001\nlibrary "libcdsprpc.so" not found\nerr 4000'
    assert [one.id for one in recognise(text)] == ["stub-without-fastrpc", "4000", "14001"]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert set(recognise(text)) <= set(known_errors())


def test_the_table_is_whole() -> None:
    errors = known_errors()
    assert len({one.id for one in errors}) == len(errors)
    codes = [one.code for one in errors if one.code is not None]
    assert len(set(codes)) == len(codes) >= 15
    assert {1000, 1002, 1008, 3110, 4000, 5000, 5005, 14001} <= set(codes)
    for one in errors:
        assert one.cause
        assert one.check
        assert one.fix
        assert re.fullmatch(r"[a-z0-9-]+", one.id)
        if one.code is None:
            assert one.name is None
        else:
            assert one.id == str(one.code)
            assert (one.name or "").startswith("QNN_")
            assert find(hex(one.code)) is one
            # Each number is recognised in the usual words.
            assert recognise(f"[ ERROR ] <E> Something failed, error: {one.code}") == (one,)
    # What has neither number nor words is only ever seen in the numbers of a run.
    assert [one.id for one in errors if one.code is None and not one.says] == ["zeros"]


def test_the_pages_are_the_tables(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("an error that is no more")
    main(tmp_path)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert written == pages()
    assert {path.name: path.read_text(encoding="utf-8") for path in DOCS.iterdir()} == written
    assert len(written) == len(known_errors()) + 1
    assert "[1008](1008.md)" in written["README.md"]
