"""Named arrays in .npz files whose bytes depend on the arrays alone. Needs only NumPy: model code runs with it too.

`numpy.savez` stamps members with the time of day and keeps an array's memory order, so equal arrays give other bytes;
and `numpy.load` takes the tensor name "x.npy" for the tensor "x". Files written here are ordinary .npz files.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

_SUFFIX = ".npy"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold
_ZIP64_FROM = 1 << 30


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays, uncompressed, in the mapping's order; little-endian, C order, no pickles.

    Raises ValueError for an object array and OSError where the file cannot be written.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(name + _SUFFIX, _EPOCH)
            info.create_system = 3  # the default is the writing system's number
            info.external_attr = 0o644 << 16
            plain = np.asarray(array, order="C")
            plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
            with archive.open(info, "w", force_zip64=plain.nbytes >= _ZIP64_FROM) as member:
                npy.write_array(member, plain, allow_pickle=False)


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file in file order, by whoever written; writable and in memory.

    Raises ValueError for what is not a .npz file, holds pickles, or is damaged, and OSError where it cannot be read.
    """
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                with archive.open(info) as member:
                    arrays[info.filename.removesuffix(_SUFFIX)] = npy.read_array(member, allow_pickle=False)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path.name} is not a readable .npz file: {error}") from None
    return arrays
