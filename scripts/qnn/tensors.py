"""What a tensor is at the seams between stages: a name, a dtype, a shape."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorSpec:
    """One graph input or output. `dtype` is NumPy's name (float32, int32, bool); `shape` is fixed, () for a scalar."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{','.join(str(dim) for dim in self.shape)}]"
