"""Samples that a model ships as files instead of code: held to the same rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qnn.errors.base import Place
from qnn.errors.model_code import NotASample
from qnn.model_code.faults import FAULTS
from qnn.tensors import TensorSpec


def take_samples(files: Sequence[Path], inputs: Sequence[TensorSpec], output: Path) -> tuple[Path, ...]:
    """Check .npz files and write them again as ``000.npz`` …, in the order given; the same arrays give the same bytes.

    Each must hold exactly the graph's `inputs`, in their shapes and dtypes, all values finite. Raises the errors that
    data.py would get (QF806 to QF810), with the file they are in.
    """
    from qnn.model_code.runner import problems  # noqa: PLC0415 - NumPy
    from qnn.npz import read_npz, write_npz  # noqa: PLC0415

    wanted = {tensor.name: (tensor.dtype, tensor.shape) for tensor in inputs}
    taken = []
    for number, file in enumerate(files):
        place = Place(str(file))
        try:
            sample = read_npz(file)
        except ValueError as error:
            raise NotASample(
                str(error), remedy="write it again with numpy.savez(file, **arrays)", place=place
            ) from None
        for kind, found in problems(sample, wanted):
            if found:
                error_kind, remedy = FAULTS[kind]
                raise error_kind(found[0], remedy=remedy, place=place, details=found[1:])
        taken.append(output / f"{number:03d}.npz")
        write_npz(taken[-1], {name: sample[name] for name in wanted})
    return tuple(taken)
