"""Between golden tensors and the binary's own: which goes with which, quantizing inputs, dequantizing outputs.

Golden files have the dtypes of the ONNX wrapper; a context binary may have its inputs and outputs quantized, or int32
where the wrapper has int64. With --use_native_input_files qnn-net-run takes the binary's own bytes, without it float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qnn.binary.info import QnnDType
from qnn.bundle.manifest import ManifestTensor
from qnn.errors.device import OutputsMissing
from qnn.tensors import TensorSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Pair:
    """A tensor of the wrapper and the binary's own that stands for it."""

    golden: TensorSpec
    binary: ManifestTensor


def pairs(golden: Sequence[TensorSpec], binary: Sequence[ManifestTensor], where: str) -> tuple[Pair, ...]:
    """Each of the binary's tensors, in its order, with the golden one of its name; one left on each side is a pair.

    Raises OutputsMissing (QF795) where names or shapes leave a doubt.
    """
    named = {tensor.name: tensor for tensor in golden}
    rest = [tensor for tensor in golden if tensor.name not in {one.name for one in binary}]
    strangers = [one for one in binary if one.name not in named]
    if len(rest) != len(strangers) or len(rest) > 1:
        raise _no_match(f"{where}: golden files are for {_names(golden)}, the binary has {_names(binary)}")
    found = tuple(Pair(named.get(one.name) or rest[0], one) for one in binary)
    for pair in found:
        if pair.golden.shape != pair.binary.shape:
            shapes = f"{list(pair.golden.shape)} and {list(pair.binary.shape)}"
            raise _no_match(f"{where}: {pair.golden.name} and {pair.binary.name} differ in shape: {shapes}")
    return found


def to_binary(pair: Pair, array: NDArray[Any]) -> NDArray[Any]:
    """A golden input as the binary takes it: quantized (half to even, saturating, as ONNX's QuantizeLinear), or cast.

    Raises OutputsMissing (QF795) for integers that do not fit.
    """
    import numpy as np  # noqa: PLC0415

    stored = _stored(pair.binary)
    if not pair.binary.scale:
        cast = array.astype(stored)
        if stored.kind in "iub" and not np.array_equal(cast.astype(array.dtype), array):
            raise _no_match(f"golden input {pair.golden.name} holds values that do not fit {pair.binary.dtype}")
        return cast
    limits = np.iinfo(stored)
    scale, offset = _axes(pair.binary, "scale"), _axes(pair.binary, "offset")
    steps = np.rint(array.astype(np.float64) / scale) - offset
    quantized: NDArray[Any] = np.clip(steps, limits.min, limits.max).astype(stored)
    return quantized


def to_golden(pair: Pair, array: NDArray[Any]) -> NDArray[Any]:
    """What the binary gave as the wrapper gives it: (stored + offset) * scale, or cast."""
    import numpy as np  # noqa: PLC0415

    wanted = np.dtype(pair.golden.dtype)
    if not pair.binary.scale:
        return array.astype(wanted)
    scale, offset = _axes(pair.binary, "scale"), _axes(pair.binary, "offset")
    values: NDArray[Any] = ((array.astype(np.float64) + offset) * scale).astype(wanted)
    return values


def read_binary(pair: Pair, data: bytes) -> NDArray[Any]:
    """The binary's tensor from a file of its own bytes; ValueError for another size."""
    import numpy as np  # noqa: PLC0415

    return np.frombuffer(data, _stored(pair.binary)).reshape(pair.binary.shape)


def _stored(tensor: ManifestTensor) -> np.dtype[Any]:
    import numpy as np  # noqa: PLC0415

    kind = next((one for one in QnnDType if one.label == tensor.dtype), QnnDType.UNKNOWN)
    name = None if kind is QnnDType.BFLOAT16 else kind.numpy  # NumPy only has its bytes
    if name is None:
        raise _no_match(f"{tensor.name} is {tensor.dtype}, which no file can hold")
    return np.dtype("u1") if name == "bool" else np.dtype(name).newbyteorder("<")


def _axes(tensor: ManifestTensor, kind: str) -> Any:
    """Scales or offsets in a shape that broadcasts over the tensor."""
    import numpy as np  # noqa: PLC0415

    values = np.asarray(tensor.scale if kind == "scale" else tensor.offset, np.float64)
    if tensor.axis is None:
        return values[0]
    shape = [1] * len(tensor.shape)
    shape[tensor.axis] = -1
    return values.reshape(shape)


def _names(tensors: Sequence[TensorSpec] | Sequence[ManifestTensor]) -> str:
    return ", ".join(tensor.name for tensor in tensors)


def _no_match(message: str) -> OutputsMissing:
    return OutputsMissing(message, remedy="run `qnn-forge verify` on the bundle; build it again if it fails")
