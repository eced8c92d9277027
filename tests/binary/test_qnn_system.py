"""Real context binaries read through the real library."""

from __future__ import annotations

import ctypes.util
import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnn.binary import ContextBinary, inspect_file
from qnn.binary.info import GraphMemory, QnnDType, QuantizationInfo, Version
from qnn.binary.qnn_system import ReadRequest, installed_library
from qnn.child import Host
from qnn.errors.child import ChildCrashed
from qnn.errors.readback import (
    CorruptContextBinary,
    FlexibleContextBinary,
    NoQnnSystemLibrary,
    NotAContextBinary,
    UnreadableBinary,
)
from tests.binary.conftest import DATA
from tests.binary.make_data import quantized_graph

Inspect = Callable[[Path | str], ContextBinary]


def test_reads_what_the_compiler_was_asked_for(inspected: Inspect) -> None:
    binary = inspected("float-sm8650.bin")
    content = (DATA / "float-sm8650.bin").read_bytes()
    assert binary.name == "float-sm8650.bin"
    assert (binary.size, binary.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert (binary.soc_model, binary.dsp_arch, binary.backend_id, binary.info_version) == (57, 75, 6, 3)
    assert binary.build_id == "v2.51.0.260929181845"
    assert binary.qairt_version == "2.51.0"
    assert binary.core_api_version == Version(2, 40, 0)
    assert binary.backend_api_version == Version(5, 51, 0)
    assert str(binary.blob_version) == "4.0.6"
    assert binary.blob_size == len(content) - 4096
    (graph,) = binary.graphs
    assert graph.name.startswith("QNNExecutionProvider_")
    assert (graph.vtcm_mb, graph.optimization_level, graph.hvx_threads, graph.dlbc) == (8, 3, 0, False)
    assert graph.spill_fill_bytes == 0
    assert graph.memory == GraphMemory(io=73728, constants=8192, ddr_tensors=0, shared_weights=0)


def test_reads_every_input_and_output(inspected: Inspect) -> None:
    (graph,) = inspected("float-sm8650.bin").graphs
    assert [(tensor.name, tensor.dtype, tensor.shape) for tensor in graph.inputs] == [
        ("x/in:0", QnnDType.FLOAT32, (2, 4)),
        ("mask", QnnDType.BOOL8, (2, 4)),
        ("bias", QnnDType.FLOAT32, (2, 4)),
        ("count", QnnDType.INT32, (3,)),
    ]
    assert [(tensor.name, tensor.dtype, tensor.shape) for tensor in graph.outputs] == [
        ("y out", QnnDType.FLOAT32, (2, 3)),
        ("above", QnnDType.BOOL8, (2, 4)),
        ("total", QnnDType.FLOAT32, (1,)),
        ("best", QnnDType.INT64, (2,)),
        ("twice", QnnDType.INT32, (3,)),
    ]
    assert all(tensor.quantization is None for tensor in (*graph.inputs, *graph.outputs))


def test_reads_scale_and_offset_of_fixed_point_tensors(inspected: Inspect) -> None:
    (graph,) = inspected("quantized-sm8650.bin").graphs
    zero_points = {node.name: node for node in quantized_graph().graph.initializer}
    assert "xz" in zero_points  # 1000 there, minus 1000 here
    assert graph.inputs[0].dtype is QnnDType.UFIXED16
    assert graph.inputs[0].quantization == QuantizationInfo("scale-offset", (0.25,), (-1000,))
    assert graph.outputs[0].quantization == QuantizationInfo("scale-offset", (0.125,), (-32768,))


def test_a_chip_the_compiler_did_not_know_reads_as_zero(inspected: Inspect) -> None:
    binary = inspected("quantized-unknown-chip.bin")
    assert (binary.soc_model, binary.dsp_arch, binary.graphs[0].vtcm_mb) == (0, 68, 4)


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("encoder.bin"))
    return buffer.getvalue()


def _zip(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (b"hello\n", "a text file"),
        ("Grüße\n".encode() * 200, "a text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "a Git LFS pointer"),
        (quantized_graph().SerializeToString(), "an ONNX model"),
        (Path(installed_library()).read_bytes()[:4096], "a shared library or program (ELF)"),
        (_tar(), "a tar archive"),
        (_zip("encoder.bin"), "a zip archive"),
        (_zip("model", "model.params", "dlc.metadata"), "a DLC without compiled contexts"),
        (b"PK\x03\x04 and no more", "a zip archive"),
        (b"\x1f\x8b\x08\x00", "a gzip-compressed file"),
        (b"\x28\xb5\x2f\xfd\x00", "a zstd-compressed file"),
        (bytes(range(128, 256)) * 8, "a file of an unknown kind"),
    ],
)
def test_a_wrong_file_is_named_as_what_it_is(inspected: Inspect, tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(NotAContextBinary) as caught:
        inspected(path)
    assert caught.value.message.startswith(f"model.bin is {what}")
    assert caught.value.id == "QF600"


def test_a_flexible_binary_is_named_with_its_chips(inspected: Inspect) -> None:
    with pytest.raises(FlexibleContextBinary) as caught:
        inspected("universal.bin")
    assert caught.value.message.endswith("several chips: SM8350, SM8450")
    assert "htp.cache.sm8350.0  36864 bytes" in caught.value.details


@pytest.mark.parametrize("length", [4, 8, 16, 39, 40, 1000, 4096, 53247])
def test_a_file_cut_short_is_damaged_at_every_length(inspected: Inspect, tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.bin"
    path.write_bytes((DATA / "float-sm8650.bin").read_bytes()[:length])
    with pytest.raises(CorruptContextBinary, match=f"the file has {length} bytes"):
        inspected(path)


def test_a_file_with_bytes_behind_its_end_is_damaged(inspected: Inspect, tmp_path: Path) -> None:
    path = tmp_path / "long.bin"
    path.write_bytes((DATA / "float-sm8650.bin").read_bytes() + b"\0" * 100)
    with pytest.raises(CorruptContextBinary, match="libQnnSystem refuses it with error 30010"):
        inspected(path)


def test_garbage_behind_a_right_header_is_damaged(inspected: Inspect, tmp_path: Path) -> None:
    path = tmp_path / "garbage.bin"
    path.write_bytes(struct.pack(">4I", 2, 3, 0, 1) + struct.pack("<3Q", 64, 128, 128) + b"\xa5" * 300)
    with pytest.raises((CorruptContextBinary, ChildCrashed)):
        inspected(path)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    flips=st.lists(st.tuples(st.integers(0, 1100), st.integers(1, 255)), min_size=1, max_size=4),
    truncate=st.booleans(),
)
def test_damaged_metadata_never_reaches_the_caller_as_anything_but_one_error(
    host: Host, tmp_path: Path, flips: list[tuple[int, int]], truncate: bool
) -> None:
    """Whatever vendor code makes of it (an answer, an error, a crash), the parent hears one thing and goes on."""
    content = bytearray((DATA / "float-sm8650.bin").read_bytes())
    for position, mask in flips:
        content[position] ^= mask
    path = tmp_path / "flipped.bin"
    path.write_bytes(bytes(content[:-1] if truncate else content))
    with suppress(CorruptContextBinary, NotAContextBinary, ChildCrashed):
        binary = inspect_file(path, host, log=tmp_path / "log")
        assert binary.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert inspect_file(DATA / "float-sm8650.bin", host, log=tmp_path / "log").soc_model == 57


def test_a_missing_file_and_a_folder_are_unreadable(inspected: Inspect, tmp_path: Path) -> None:
    with pytest.raises(UnreadableBinary, match=r"none\.bin: No such file"):
        inspected(tmp_path / "none.bin")
    with pytest.raises(UnreadableBinary, match="Is a directory"):
        inspected(tmp_path)


@pytest.mark.parametrize("library", ["/nowhere/libQnnSystem.so", ctypes.util.find_library("m")])
def test_a_library_that_cannot_be_used_is_named(host: Host, tmp_path: Path, library: str) -> None:
    request = ReadRequest(DATA / "float-sm8650.bin", Path(library))
    with pytest.raises(NoQnnSystemLibrary) as caught:
        inspect_file(request.path, host, log=tmp_path / "log", library=request.library)
    assert caught.value.message.startswith(f"{Path(library).name} cannot be used: ")
