"""ONNX types and shapes as the binary has them (measured; the real compiler is asked again in test_gate)."""

from __future__ import annotations

import numpy as np
import pytest

from qnn.binary.info import QnnDType
from qnn.binary.mapping import fixed_dtype, plain_dtype, possible_dtypes, qnn_shape


@pytest.mark.parametrize(
    ("dtype", "plain", "fixed"),
    [
        ("float32", QnnDType.FLOAT32, QnnDType.UNKNOWN),
        ("float16", QnnDType.FLOAT16, QnnDType.UNKNOWN),
        ("int64", QnnDType.INT64, QnnDType.UNKNOWN),
        ("int32", QnnDType.INT32, QnnDType.SFIXED32),
        ("uint32", QnnDType.UINT32, QnnDType.UFIXED32),
        ("uint8", QnnDType.UINT8, QnnDType.UFIXED8),
        ("int8", QnnDType.INT8, QnnDType.SFIXED8),
        ("uint16", QnnDType.UINT16, QnnDType.UFIXED16),
        ("int16", QnnDType.INT16, QnnDType.SFIXED16),
        ("bool", QnnDType.BOOL8, QnnDType.UNKNOWN),
        ("complex64", QnnDType.UNKNOWN, QnnDType.UNKNOWN),
    ],
)
def test_numpy_types_have_a_plain_and_a_fixed_point_form(dtype: str, plain: QnnDType, fixed: QnnDType) -> None:
    assert (plain_dtype(dtype), fixed_dtype(dtype)) == (plain, fixed)
    assert possible_dtypes(dtype, quantized=False) == (plain,)
    assert possible_dtypes(dtype, quantized=True) == (fixed,)


def test_only_narrow_integers_may_be_either() -> None:
    assert possible_dtypes("uint8", None) == (QnnDType.UINT8, QnnDType.UFIXED8)
    assert possible_dtypes("int32", None) == (QnnDType.INT32,)
    assert possible_dtypes("float32", None) == (QnnDType.FLOAT32,)


@pytest.mark.parametrize("dtype", [dtype for dtype in QnnDType if dtype.numpy])
def test_the_numpy_equivalent_has_the_size_of_the_stored_element(dtype: QnnDType) -> None:
    assert dtype.numpy is not None
    # The last two digits of QNN's code are the bits, in decimal digits (0x0232: float, 32 bits); 0x0226 is bfloat16.
    bits = 16 if dtype is QnnDType.BFLOAT16 else int(f"{dtype.code & 0xFF:x}")
    assert np.dtype(dtype.numpy).itemsize * 8 == bits
    assert QnnDType.of_code(dtype.code) is dtype


def test_scalars_have_one_element() -> None:
    assert qnn_shape(()) == (1,)
    assert qnn_shape((3, 1)) == (3, 1)
