"""Golden inputs and outputs of a bundle: raw little-endian files that devices, phones and other languages can read.

Layout inside a bundle::

    golden/<graph>/input_list.txt              one line a sample, for qnn-net-run
    golden/<graph>/sample_000/<tensor>.raw     C order, no header; booleans one byte each, 0 or 1

A line of input_list.txt is ``name:=path name:=path``, paths relative to the bundle's folder (run qnn-net-run there).
The format splits at blanks, so where an input's name holds a blank, the line is the bare paths in the graph's order.
qnn-net-run reads files as float32 unless told `--use_native_input_files`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from qnn.errors.numerics import GoldenUnusable
from qnn.tensors import TensorSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER = "golden"
INPUT_LIST = "input_list.txt"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST = 100  # with a folder and ".raw" well below the 255 bytes a file name may have
# Names that Windows keeps for devices, whatever follows the first dot.
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})


@dataclass(frozen=True)
class GoldenTensor:
    """One tensor of a graph and the name of its file in every sample's folder."""

    tensor: TensorSpec
    file: str


@dataclass(frozen=True)
class Golden:
    """The golden files of one graph; `samples` is how many there are."""

    graph: str
    inputs: tuple[GoldenTensor, ...]
    outputs: tuple[GoldenTensor, ...]
    samples: int


def golden_layout(graph: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], samples: int) -> Golden:
    """Which file holds which tensor; depends on the tensors' names and order alone. Pure."""
    files = file_names([tensor.name for tensor in (*inputs, *outputs)])
    named = [GoldenTensor(tensor, file) for tensor, file in zip((*inputs, *outputs), files, strict=True)]
    return Golden(graph, tuple(named[: len(inputs)]), tuple(named[len(inputs) :]), samples)


def file_names(names: Sequence[str]) -> list[str]:
    """A file name for each tensor name, in order, distinct even where upper and lower case are one.

    A name that is fit for every file system stays as it is. Another has its unfit characters replaced and a digest of
    the name appended; so has one that is taken already, and from its second appearance on also a count.
    """
    taken: set[str] = set()
    files = []
    for name in names:
        stem, count = name if _is_fit(name) else _digested(name), 1
        while stem.lower() in taken:
            stem = _digested(name) if count == 1 else f"{_digested(name)}-{count}"
            count += 1
        taken.add(stem.lower())
        files.append(f"{stem}.raw")
    return files


def input_list(golden: Golden) -> str:
    """The text of input_list.txt. Pure."""
    bare = any(re.search(r"\s|:=", entry.tensor.name) for entry in golden.inputs)
    lines = []
    for sample in range(golden.samples):
        folder = _sample_folder(golden.graph, sample)
        entries = ((entry.tensor.name, folder / entry.file) for entry in golden.inputs)
        lines.append(" ".join(str(path) if bare else f"{name}:={path}" for name, path in entries))
    return "".join(f"{line}\n" for line in lines)


def write_golden(
    bundle: Path,
    graph: str,
    *,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    samples: Sequence[Path],
    references: Sequence[Path],
) -> Golden:
    """Write the golden files of one graph into a bundle's folder.

    `samples` and `references` are .npz files in the same order: inputs and outputs by tensor name. One is in memory
    at a time. Raises KeyError for a tensor that a file lacks, ValueError for an array of another shape or dtype than
    its spec or a file that is no .npz.
    """
    from qnn.npz import read_npz  # noqa: PLC0415 - NumPy: 0.1 s that a build with nothing to do need not pay

    golden = golden_layout(graph, inputs, outputs, len(samples))
    for number, files in enumerate(zip(samples, references, strict=True)):
        folder = bundle / _sample_folder(graph, number)
        folder.mkdir(parents=True, exist_ok=True)
        for entries, file in zip((golden.inputs, golden.outputs), files, strict=True):
            arrays = read_npz(file)
            for entry in entries:
                (folder / entry.file).write_bytes(_raw(entry.tensor, arrays[entry.tensor.name]))
    listing = bundle / FOLDER / graph / INPUT_LIST
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text(input_list(golden), encoding="utf-8", newline="\n")
    return golden


def read_golden(bundle: Path, golden: Golden) -> Iterator[tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]]:
    """Inputs and outputs of each sample, by tensor name, exactly as they were written.

    Raises GoldenUnusable (QF625) for a file that is missing, has another size than its tensor, or holds bytes that
    its dtype cannot have.
    """
    for sample in range(golden.samples):
        folder = bundle / _sample_folder(golden.graph, sample)
        inputs, outputs = (
            {entry.tensor.name: _array(folder / entry.file, entry.tensor) for entry in entries}
            for entries in (golden.inputs, golden.outputs)
        )
        yield inputs, outputs


def _is_fit(name: str) -> bool:
    plain = bool(name) and not _UNSAFE.search(name) and len(name) <= _LONGEST
    return plain and name[0] not in ".-" and name.partition(".")[0].lower() not in _RESERVED


def _digested(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = _UNSAFE.sub("_", name)[:_LONGEST].lstrip(".-")
    return f"{stem}-{digest}" if stem and _is_fit(stem) else f"tensor_{stem}-{digest}"


def _sample_folder(graph: str, sample: int) -> PurePosixPath:
    return PurePosixPath(FOLDER, graph, f"sample_{sample:03d}")


def _raw(tensor: TensorSpec, array: NDArray[Any]) -> bytes:
    if array.shape != tensor.shape or str(array.dtype) != tensor.dtype:
        raise ValueError(f"{tensor} was given as {array.dtype}{list(array.shape)}")
    return array.astype(_stored(tensor), order="C", copy=False).tobytes()


def _array(path: Path, tensor: TensorSpec) -> NDArray[Any]:
    import numpy as np  # noqa: PLC0415

    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _unusable(f"{path} is missing") from None
    stored = _stored(tensor)
    expected = math.prod(tensor.shape) * stored.itemsize
    if len(data) != expected:
        raise _unusable(f"{path} has {len(data)} bytes; {tensor} needs {expected}")
    array = np.frombuffer(data, stored).reshape(tensor.shape)
    if tensor.dtype == "bool" and (array > 1).any():
        raise _unusable(f"{path} holds bytes other than 0 and 1; {tensor} is boolean")
    return array.astype(tensor.dtype)


def _stored(tensor: TensorSpec) -> np.dtype[Any]:
    import numpy as np  # noqa: PLC0415

    return np.dtype("u1") if tensor.dtype == "bool" else np.dtype(tensor.dtype).newbyteorder("<")


def _unusable(message: str) -> GoldenUnusable:
    return GoldenUnusable(message, remedy="fetch or build the bundle again")
