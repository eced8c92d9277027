"""Decoding of every version and encoding, from answers built by hand."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import pytest

from qnn.binary import layout
from qnn.binary.decode import Decoder
from qnn.binary.info import GraphMemory, QnnDType, QuantizationInfo, TensorInfo, Version
from qnn.errors.readback import CorruptContextBinary
from tests.binary.fake_answer import FakeAnswer

# An HTP note in the form QAIRT 2.51 writes it: version 1 (8 MB, O3, 6 HVX threads, DLBC, 4096 bytes of spill-fill;
# 40 bytes), then version 2 (72 bytes).
NOTE_V1 = struct.pack("<QQIIB7xQ", 1, 4096, 8 << 20, 3, 1, 6)
NOTE_V2 = struct.pack("<QQQQQQQQQ", 2, 256, 64, 0, 73728, 14, 8192, 512, 1024)


def decoded(answer: layout.BinaryC) -> Any:
    return Decoder("encoder.bin", 4096, "0" * 64).decode(answer)


@pytest.mark.parametrize(
    ("structure", "size"),
    [
        # Sizes of the C structures on a 64-bit machine, from the public headers.
        (layout.QuantizationC, 40),
        (layout.TensorV1C, 112),
        (layout.TensorV2C, 136),
        (layout.TensorC, 144),
        (layout.GraphV3C, 80),
        (layout.GraphC, 88),
        (layout.HtpGraphBlobC, 40),
        (layout.HtpGraphBlobV2C, 72),
        (layout.HtpContextBlobC, 8),
    ],
)
def test_structures_have_the_size_the_c_compiler_gives_them(structure: type[ctypes.Structure], size: int) -> None:
    assert ctypes.sizeof(structure) == size


@pytest.mark.parametrize("version", [1, 2])
def test_versions_1_and_2_have_no_chip_and_lie_elsewhere_in_memory(version: int) -> None:
    fake = FakeAnswer()
    graph = fake.graph("encoder", [fake.tensor("x")], [fake.tensor("y", shape=(1, 80, 3))], version=1)
    binary = decoded(fake.binary(version, [graph], soc_version=b"", hardware_blob_size=16))
    assert (binary.info_version, binary.soc_model, binary.dsp_arch) == (version, None, None)
    assert (binary.build_id, binary.qairt_version) == ("v2.20.1.240223", "2.20.1")
    assert binary.blob_version == Version(3, 0, 2)
    assert binary.graphs[0].name == "encoder"
    assert binary.graphs[0].outputs == (TensorInfo("y", QnnDType.FLOAT32, 0x0232, (1, 80, 3)),)
    assert binary.graphs[0].vtcm_mb is None


def test_version_3_says_chip_and_what_the_backend_noted() -> None:
    fake = FakeAnswer()
    graph = fake.graph("g", [fake.tensor("x")], [fake.tensor("y")], version=3, blob=NOTE_V1 + NOTE_V2)
    binary = decoded(fake.binary(3, [graph], soc_model=57, **fake.context_note(75)))
    assert (binary.soc_model, binary.dsp_arch) == (57, 75)
    (found,) = binary.graphs
    assert (found.vtcm_mb, found.optimization_level, found.hvx_threads, found.dlbc) == (8, 3, 6, True)
    assert found.spill_fill_bytes == 4096
    assert found.memory == GraphMemory(io=73728, constants=8192, ddr_tensors=512, shared_weights=1024)


def test_vtcm_in_megabytes_as_the_header_has_it_reads_the_same() -> None:
    fake = FakeAnswer()
    note = struct.pack("<QQIIB7xQ", 1, 0, 8, 3, 0, 4)
    binary = decoded(fake.binary(3, [fake.graph("g", [], [], version=3, blob=note)]))
    assert binary.graphs[0].vtcm_mb == 8
    assert binary.graphs[0].memory is None


def test_notes_of_an_unknown_version_are_left_out() -> None:
    fake = FakeAnswer()
    graph = fake.graph("g", [], [], version=3, blob=struct.pack("<Q", 9) + NOTE_V1[8:])
    binary = decoded(fake.binary(3, [graph], **fake.context_note(75, version=9)))
    assert (binary.dsp_arch, binary.graphs[0].vtcm_mb, binary.graphs[0].memory) == (None, None, None)


def test_graph_version_2_has_updateable_tensors() -> None:
    fake = FakeAnswer()
    graph = fake.graph("g", [], [], version=2, updateable=[fake.tensor("lora.a"), fake.tensor("lora.b")])
    assert [tensor.name for tensor in decoded(fake.binary(3, [graph])).graphs[0].updateable] == ["lora.a", "lora.b"]


def test_tensor_version_2_says_which_dimensions_are_dynamic() -> None:
    fake = FakeAnswer()
    tensor = fake.tensor("x", shape=(1, 80, 300), version=2, dynamic=(0, 0, 1))
    # Version 1 ends before that field: what lies there must not be read.
    graph = fake.graph("g", [tensor, fake.tensor("old", version=1, dynamic=(1, 1))], [], version=1)
    found = decoded(fake.binary(1, [graph])).graphs[0].inputs
    assert found[0].dynamic == (False, False, True)
    assert found[1].dynamic == ()


def _quantizations(fake: FakeAnswer) -> list[tuple[layout.QuantizationC, QuantizationInfo | None]]:
    return [
        (fake.scale_offset(0.5, -128), QuantizationInfo("scale-offset", (0.5,), (-128,))),
        (
            fake.per_axis(3, [(0.5, 0), (0.25, -3)]),
            QuantizationInfo("axis-scale-offset", (0.5, 0.25), (0, -3), axis=3),
        ),
        (fake.narrow(4, 0.125, -8), QuantizationInfo("bw-scale-offset", (0.125,), (-8,), bitwidth=4)),
        (
            fake.narrow_per_axis(4, 1, [0.5, 2.0], [-8, -7]),
            QuantizationInfo("bw-axis-scale-offset", (0.5, 2.0), (-8, -7), axis=1, bitwidth=4),
        ),
        (
            fake.narrow_per_axis(2, 0, [0.5, 2.0], None),
            QuantizationInfo("bw-axis-scale-offset", (0.5, 2.0), (0, 0), axis=0, bitwidth=2),
        ),
        (fake.encoding(4), QuantizationInfo("block")),
        (fake.encoding(5), QuantizationInfo("blockwise-expansion")),
        (fake.encoding(11), QuantizationInfo("bw-float-block")),
        (fake.encoding(77), QuantizationInfo("unknown-77")),
        (layout.QuantizationC(0x7FFFFFFF, 0), None),
        (layout.QuantizationC(1, 0x7FFFFFFF), None),
    ]


def test_every_quantization_encoding_is_read_or_at_least_named() -> None:
    fake = FakeAnswer()
    cases = _quantizations(fake)
    tensors = [fake.tensor(f"t{index}", code=0x0408, quantization=case) for index, (case, _) in enumerate(cases)]
    found = decoded(fake.binary(3, [fake.graph("g", tensors, [], version=3)])).graphs[0].inputs
    assert [tensor.quantization for tensor in found] == [expected for _, expected in cases]


def test_an_unknown_dtype_is_named_by_its_code() -> None:
    fake = FakeAnswer()
    graph = fake.graph("g", [fake.tensor("x", code=0x0777)], [], version=1)
    (tensor,) = decoded(fake.binary(1, [graph])).graphs[0].inputs
    assert (tensor.dtype, tensor.dtype_code, tensor.dtype_label) == (QnnDType.UNKNOWN, 0x0777, "unknown-0x0777")


def _set_first_tensor(answer: layout.BinaryC, field: str, value: object) -> None:
    setattr(answer.value.v3.graphs[0].v3.inputs[0].value.v1, field, value)


def _set_scales(answer: layout.BinaryC, field: str, value: object) -> None:
    setattr(answer.value.v3.graphs[0].v3.inputs[0].value.v1.quantization.value.axis_scale_offset, field, value)


DAMAGE: dict[str, Callable[[layout.BinaryC], None]] = {
    "info version": lambda answer: setattr(answer, "version", 4),
    "graph version": lambda answer: setattr(answer.value.v3.graphs[0], "version", 0),
    "tensor version": lambda answer: setattr(answer.value.v3.graphs[0].v3.inputs[0], "version", 3),
    "graph count": lambda answer: setattr(answer.value.v3, "graph_count", 1 << 31),
    "graph pointer": lambda answer: setattr(answer.value.v3, "graphs", None),
    "input count": lambda answer: setattr(answer.value.v3.graphs[0].v3, "input_count", 1 << 31),
    "rank": lambda answer: _set_first_tensor(answer, "rank", 1 << 30),
    "dimensions pointer": lambda answer: _set_first_tensor(answer, "dimensions", None),
    "scale count": lambda answer: _set_scales(answer, "count", 1 << 31),
    "scale pointer": lambda answer: _set_scales(answer, "pairs", None),
    "note size": lambda answer: setattr(answer.value.v3.graphs[0].v3, "blob_size", 1 << 31),
    "blob size": lambda answer: setattr(answer.value.v3, "blob_size", 4097),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_values_no_compiler_writes_are_refused_before_memory_is_walked(damage: str) -> None:
    fake = FakeAnswer()
    tensor = fake.tensor("x", code=0x0408, quantization=fake.per_axis(0, [(1.0, 0)]))
    answer = fake.binary(3, [fake.graph("g", [tensor], [], version=3, blob=NOTE_V1)])
    assert decoded(answer).graphs[0].inputs[0].quantization.scales == (1.0,)
    DAMAGE[damage](answer)
    with pytest.raises(CorruptContextBinary, match=r"encoder\.bin is damaged: "):
        decoded(answer)
