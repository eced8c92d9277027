"""What a range run found, and ranges.json, where it is kept. Light: imports neither onnx nor NumPy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

RANGES_JSON = "ranges.json"


class Kind(StrEnum):
    """How a tensor leaves fp16."""

    OVERFLOW = "overflow"  # beyond ±65,504
    UNDERFLOW = "underflow"  # below 6e-8, where fp16 has only 0
    EXP_LOW = "exp-low"  # Exp or Softplus below -88, which HTP answers with garbage
    LOG_LOW = "log-low"  # Log of what is 0 in fp16
    LOG_HIGH = "log-high"  # Log beyond 65,504
    NAN = "not-a-number"  # inf - inf, 0/0 in the float run itself
    COARSE = "coarse-sum"  # a running sum so large that fp16 cannot add its terms


@dataclass(frozen=True)
class TensorRange:
    """One float tensor over all samples.

    `minimum` and `maximum` are of the finite elements, `smallest` the least magnitude that is not 0 (all three 0.0
    when there is none); `tiny` counts elements that fp16 rounds to 0, `not_finite` infinities and NaNs. The last four
    say what follows from it: the largest square, exp of the largest element, and the largest magnitude of a sum and of
    a running sum along the last axis. `op` and `node` make the tensor (``constant`` and ``input`` without a node);
    `feeds` are the functions that read it: Exp, Log, ``square``, CumSum and their like.
    """

    name: str
    op: str
    node: str
    shape: tuple[int, ...]
    minimum: float
    maximum: float
    smallest: float
    tiny: int
    not_finite: int
    square: float
    exp: float
    sum: float
    cumsum: float
    feeds: tuple[str, ...]

    @property
    def peak(self) -> float:
        """The largest magnitude."""
        return max(abs(self.minimum), abs(self.maximum))


@dataclass(frozen=True)
class Finding:
    """One tensor that leaves fp16: `value` is how far, `remedy` what mends it, `rewrite` the rewrite that does.

    `harmful` says that the graph's outputs come out wrong with what HTP makes of it.
    """

    kind: Kind
    tensor: str
    op: str
    node: str
    value: float
    detail: str
    remedy: str
    rewrite: str | None
    harmful: bool


@dataclass(frozen=True)
class OutputEffect:
    """One output with all findings at work, against the float run: worst cosine, largest error per full scale."""

    name: str
    cosine: float
    max_rel: float


@dataclass(frozen=True)
class RangeFacts:
    """A whole range run. `outputs` is empty when nothing was found, so that nothing had to be simulated.

    `unmeasured` says why there is nothing: the prepared graph does not run on ONNX Runtime's CPU provider.
    """

    graph: str
    samples: int
    tensors: tuple[TensorRange, ...]
    findings: tuple[Finding, ...]
    outputs: tuple[OutputEffect, ...]
    unmeasured: str = ""


def save_ranges(facts: RangeFacts, folder: Path) -> None:
    """Write ranges.json: same facts, same bytes."""
    from cattrs import unstructure  # noqa: PLC0415 - 50 ms that others need not pay

    text = json.dumps(unstructure(facts), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / RANGES_JSON).write_text(f"{text}\n", encoding="utf-8")


def load_ranges(folder: Path) -> RangeFacts:
    """Read ranges.json, which the store has checked."""
    from cattrs import structure  # noqa: PLC0415

    return structure(json.loads((folder / RANGES_JSON).read_text(encoding="utf-8")), RangeFacts)
