"""The wire format: what is cut comes back whole, and broken framing is never taken for a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto

from qnn.prepare.weights import is_far, span_of
from qnn.prepare.wire import FAR_BYTES, WireError, cut, fields, frame
from tests.prepare.graphs import model, node, noise, value


def big_model() -> ModelProto:
    side = 160  # 100 KiB of float32
    constants = {
        "big": noise(side, side),
        "small": noise(4),
        "indices": np.arange(FAR_BYTES // 8, dtype=np.int64),
    }
    return model([node("MatMul", ["x", "big"], ["y"])], [value("x", [1, side])], [value("y", [1, side])], constants)


def test_only_large_weights_are_left_in_the_file(tmp_path: Path) -> None:
    data = big_model().SerializeToString()
    rest = ModelProto.FromString(cut(data, tmp_path / "m"))
    assert [is_far(tensor) for tensor in rest.graph.initializer] == [True, False, False]
    assert rest.ByteSize() < len(data) - 100_000
    big = rest.graph.initializer[0]
    span = span_of(big)
    assert (span.file, list(big.dims), big.data_type) == (tmp_path / "m", [160, 160], TensorProto.FLOAT)
    np.testing.assert_array_equal(
        np.frombuffer(data[span.offset : span.offset + span.length], np.float32).reshape(160, 160), noise(160, 160)
    )


def test_a_model_without_large_weights_is_untouched() -> None:
    made = model([node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", [1])], {"c": noise(3)})
    assert ModelProto.FromString(cut(made.SerializeToString(), Path("m"))) == made


def test_weights_in_a_typed_field_are_read() -> None:
    made = big_model()
    tensor = onnx.helper.make_tensor("big", TensorProto.FLOAT, [160, 160], noise(160, 160).ravel())
    made.graph.initializer[0].CopyFrom(tensor)
    rest = ModelProto.FromString(cut(made.SerializeToString(), Path("m")))
    assert rest == made


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2**20), st.binary(max_size=300)), max_size=8))
def test_fields_are_those_that_were_written(written: list[tuple[int, bytes]]) -> None:
    data = b"".join(frame(number, len(payload)) + payload for number, payload in written)
    read = [(number, data[payload:end]) for number, _, payload, end in fields(data, 0, len(data))]
    assert read == written


def fault_of(data: bytes) -> WireError | None:
    try:
        assert len(cut(data, Path("m"))) == len(data)
    except WireError as error:
        return error
    return None


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_shortened_model_is_called_truncated(missing: int) -> None:
    made = model([node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", [1])], {"c": noise(300)})
    data = made.SerializeToString()
    shorter = data[: -1 - missing % (len(data) - 1)]
    fault = fault_of(shorter)
    # without a fault the cut fell between two fields of the message itself
    assert fault.truncated if fault else list(fields(data, 0, len(shorter)))[-1][3] == len(shorter)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_give_a_message_or_a_wire_error(data: bytes) -> None:
    fault = fault_of(data)
    assert fault is None or str(fault)


@pytest.mark.parametrize(
    ("data", "truncated"),
    [(b"\x0b", False), (b"\x00\x01", False), (b"\x0a\xff\x01", True), (b"\x08", True), (b"\x08" + b"\xff" * 11, False)],
    ids=["group", "field 0", "long payload", "no value", "endless number"],
)
def test_broken_framing(data: bytes, truncated: bool) -> None:
    with pytest.raises(WireError) as caught:
        cut(data, Path("m"))
    assert caught.value.truncated is truncated
