"""What an output and a task metric must satisfy: defaults, a model's own gates, and the verdict. Pure; no numpy.

docs/verification.md shows the measurements that the defaults were chosen from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from qnn.errors.base import ForgeError
from qnn.errors.numerics import MetricFailed, OutputChanged, SaturatedOutput, VerifyFailed
from qnn.model.spec import Gates, MetricGate
from qnn.verify.comparison import Kind, OutputComparison, RowAgreement
from qnn.verify.wording import (
    describe_agreement,
    describe_error,
    describe_plateau,
    describe_unequal,
    number,
    percent,
    share_of,
)

Scalar = float | int | str | bool

# Outputs this small have no direction worth a name: a probability of 0.03 with an error of 0.003 is right.
TINY_ELEMENTS = 4


@dataclass(frozen=True)
class DefaultGates:
    """What holds where model.yaml says nothing.

    `cosine`: at least, in every sample. `max_rel`: the largest error as a share of the output's full scale;
    `max_rel_share` the same for outputs within 0…1 (probabilities, masks), whose sigmoids and softmaxes have steep
    edges. `argmax`: agreeing share of the decided rows, where a row is undecided within `tie` of the peak (one of
    comparison.TIES). `tiny`: largest error of outputs of up to TINY_ELEMENTS elements or without signal, times the
    output's full scale or 1, whichever is more.
    """

    cosine: float
    max_rel: float
    max_rel_share: float
    argmax: float
    tie: float
    tiny: float


DEFAULTS: Mapping[str, DefaultGates] = {
    "fp16": DefaultGates(cosine=0.999, max_rel=0.1, max_rel_share=0.25, argmax=0.99, tie=0.01, tiny=0.01),
    "w8a16": DefaultGates(cosine=0.99, max_rel=0.2, max_rel_share=0.3, argmax=0.95, tie=0.05, tiny=0.05),
    "w4a16": DefaultGates(cosine=0.98, max_rel=0.3, max_rel_share=0.4, argmax=0.9, tie=0.1, tiny=0.1),
    "w8a8": DefaultGates(cosine=0.97, max_rel=0.3, max_rel_share=0.4, argmax=0.9, tie=0.1, tiny=0.1),
    "mixed": DefaultGates(cosine=0.97, max_rel=0.3, max_rel_share=0.4, argmax=0.9, tie=0.1, tiny=0.1),
}

# Noise of relative size e turns a vector by about e and lengthens it by far less, so a gain error as large as the
# angle that the cosine gate allows is no noise. The floor keeps a cosine gate of nearly 1 from asking for the
# impossible.
_GAIN_FLOOR = 0.005


@dataclass(frozen=True)
class GateFailure:
    """One gate that an output misses, and the sentence to show.

    `gate`: cosine, gain, max_abs, max_rel, argmax, equal, finite, dtype, shape or saturation. `limit` and `value` are
    in the gate's own unit; counts for equal, finite and saturation.
    """

    gate: str
    limit: float
    value: float
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What became of one output, and the gates it was held to: model.yaml's where it names them, else the defaults.

    In `gates` a None is a gate that has no meaning for this output.
    """

    output: str
    passed: bool
    failures: tuple[GateFailure, ...]
    gates: Gates


@dataclass(frozen=True)
class MetricFailure:
    """One value of the task metric that misses its gate, and the sentence to show. None: the value is not there."""

    name: str
    gate: MetricGate
    float_value: Scalar | None
    htp_value: Scalar | None
    sentence: str


def merge_gates(model: Gates, output: Gates) -> Gates:
    """The gates of one output: its own where it names them, else the model's.

    `max_abs` and `max_rel` bound the same error in two units, so an output that names one of them replaces both.
    """
    sized = output if output.max_abs is not None or output.max_rel is not None else model
    return Gates(
        cosine=output.cosine if output.cosine is not None else model.cosine,
        max_abs=sized.max_abs,
        max_rel=sized.max_rel,
        argmax=output.argmax if output.argmax is not None else model.argmax,
    )


def effective_gates(comparison: OutputComparison, gates: Gates, own: Gates | None, precision: str) -> Gates:
    """What an output is held to: `own` gates, else the model-wide `gates`, else the precision's defaults.

    None is a gate that has no meaning for the output. Integers and booleans must be equal, unless their own gates
    allow a difference (`max_abs`) or a share of unequal elements (`argmax`, for class indices); model-wide gates do
    not touch them. Tiny outputs, and outputs without signal, have no cosine and are held to `max_abs`. Raises
    KeyError for an unknown precision.
    """
    default = DEFAULTS[precision]
    own = own if own is not None else Gates()
    if comparison.kind is not Kind.FLOAT:
        return Gates(max_abs=own.max_abs, argmax=own.argmax)
    merged = merge_gates(gates, own)
    sized = merged.max_abs is not None or merged.max_rel is not None
    max_rel = default.max_rel_share if _is_share(comparison) else default.max_rel
    has_rows = comparison.rows is not None and not comparison.negligible
    argmax = (merged.argmax if merged.argmax is not None else default.argmax) if has_rows else None
    if not _has_direction(comparison):
        tiny = default.tiny * max(1.0, comparison.peak)
        return replace(merged, cosine=None, max_abs=merged.max_abs if sized else tiny, argmax=argmax)
    return Gates(
        cosine=merged.cosine if merged.cosine is not None else default.cosine,
        max_abs=merged.max_abs,
        max_rel=merged.max_rel if sized else max_rel,
        argmax=argmax,
    )


def judge(comparison: OutputComparison, gates: Gates, own: Gates | None, precision: str) -> Verdict:
    """Hold one output against its gates (as `effective_gates`).

    Another dtype or shape, HTP values that are not finite, and saturation fail whatever the gates say.
    """
    held_to = effective_gates(comparison, gates, own, precision)
    failures = tuple(_failures(comparison, held_to, DEFAULTS[precision].tie))
    return Verdict(comparison.name, not failures, failures, held_to)


def judge_metric(
    float_values: Mapping[str, Scalar], htp_values: Mapping[str, Scalar], gates: Mapping[str, MetricGate]
) -> tuple[MetricFailure, ...]:
    """Hold what metric.py returned for float and for HTP outputs against its gates, in the gates' order.

    Values without a gate are for information. A value that is missing, or is no number where the gate needs one,
    fails.
    """
    failures = []
    for name, gate in gates.items():
        float_value, htp_value = float_values.get(name), htp_values.get(name)
        fault = _metric_fault(name, gate, float_value, htp_value)
        if fault is not None:
            failures.append(MetricFailure(name, gate, float_value, htp_value, fault))
    return tuple(failures)


def describe_metric_gate(gate: MetricGate) -> str:
    """A gate in the words of model.yaml: equal, min 0.98, max 0.02, max_drop 0.01."""
    bounds = (("min", gate.minimum), ("max", gate.maximum), ("max_drop", gate.max_drop))
    stated = [f"{word} {number(bound)}" for word, bound in bounds if bound is not None]
    return " and ".join(["equal"] * gate.equal + stated)


def verify_error(where: str, verdicts: Sequence[Verdict]) -> ForgeError | None:
    """The error for a graph (`where`, such as "det on SM8650"), or None when every output passed.

    Saturation comes first because it is the cause of what else is wrong, then another dtype, shape or NaN, then the
    output that misses its gates by most.
    """
    failed = sorted((verdict for verdict in verdicts if not verdict.passed), key=_severity, reverse=True)
    if not failed:
        return None
    worst = failed[0]
    rest = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    lines = [f"{verdict.output}: {failure.sentence}" for verdict in failed for failure in verdict.failures]
    kinds = {failure.gate for failure in worst.failures}
    if "saturation" in kinds:
        return SaturatedOutput(
            f"{where}: output {worst.output} is saturated{rest}",
            remedy="keep the values within ±65504: `qnn-forge explain QF622` lists the usual causes and their mending",
            details=lines,
        )
    if kinds & _UNUSABLE:
        return OutputChanged(
            f"{where}: output {worst.output} cannot be compared{rest}",
            remedy="see that model.yaml's shapes and dtypes are the model's own",
            details=lines,
        )
    return VerifyFailed(
        f"{where}: output {worst.output} differs from the float model{rest}",
        remedy="docs/verification.md lists the kinds of silent faults and their mending; if the error does no harm, "
        "give this output a gate of its own under checks.outputs in model.yaml",
        details=lines,
    )


def metric_error(where: str, failures: Sequence[MetricFailure]) -> ForgeError | None:
    """The error for a graph's task metric, or None when nothing failed."""
    if not failures:
        return None
    names = ", ".join(sorted({failure.name for failure in failures}))
    return MetricFailed(
        f"{where}: the task metric misses its gate: {names}",
        remedy="see which output is off by its numbers; loosen the gate under checks.metrics only if the task bears it",
        details=[failure.sentence for failure in failures],
    )


_UNUSABLE = frozenset({"dtype", "shape", "finite"})


def _has_direction(comparison: OutputComparison) -> bool:
    return comparison.size > TINY_ELEMENTS and not comparison.negligible


def _is_share(comparison: OutputComparison) -> bool:
    return comparison.reference_min >= 0.0 and comparison.reference_max <= 1.0


def _failures(comparison: OutputComparison, gates: Gates, tie: float) -> Iterator[GateFailure]:
    yield from _interface(comparison)
    if not comparison.comparable:
        return
    yield from _saturation(comparison)
    if comparison.kind is Kind.FLOAT:
        yield from _direction(comparison, gates)
        yield from _size(comparison, gates)
        yield from _argmax(comparison, gates, tie)
    elif gates.max_abs is not None:
        yield from _size(comparison, gates)
    else:
        yield from _equality(comparison, gates)


def _interface(comparison: OutputComparison) -> Iterator[GateFailure]:
    if comparison.dtype != comparison.htp_dtype:
        yield GateFailure("dtype", 0, 1, f"dtype is {comparison.htp_dtype}, the float model's is {comparison.dtype}")
    if comparison.shape != comparison.htp_shape:
        sentence = f"shape is {list(comparison.htp_shape)}, the float model's is {list(comparison.shape)}"
        yield GateFailure("shape", 0, 1, sentence)
    for who, count in (("HTP", comparison.htp_nonfinite), ("the float model", comparison.reference_nonfinite)):
        if count:
            sentence = f"{who} gives {count} of {comparison.elements} elements that are infinite or not a number"
            yield GateFailure("finite", 0, count, sentence)


def _saturation(comparison: OutputComparison) -> Iterator[GateFailure]:
    for plateau in comparison.plateaus:
        sentence = describe_plateau(plateau, comparison.elements)
        yield GateFailure("saturation", 0, plateau.elements, sentence)


def _direction(comparison: OutputComparison, gates: Gates) -> Iterator[GateFailure]:
    if gates.cosine is None:
        return
    if comparison.cosine < gates.cosine:
        sentence = f"cosine {number(comparison.cosine)} is below {number(gates.cosine)}"
        if comparison.peak < _SMALL_PEAK:
            sentence += f"; the float result never exceeds {number(comparison.peak)}, a stronger sample may tell more"
        yield GateFailure("cosine", gates.cosine, comparison.cosine, sentence)
    limit = max(_GAIN_FLOOR, math.sqrt(max(0.0, 2.0 * (1.0 - gates.cosine))))
    if comparison.gain_error > limit:
        sentence = (
            f"the output's norm is off by {percent(comparison.gain_error)}, over {percent(limit)}: "
            "a factor, which a cosine does not see"
        )
        yield GateFailure("gain", limit, comparison.gain_error, sentence)


_SMALL_PEAK = 0.01


def _size(comparison: OutputComparison, gates: Gates) -> Iterator[GateFailure]:
    where = describe_error(comparison)
    if gates.max_abs is not None and comparison.max_abs > gates.max_abs:
        sentence = f"largest error {where} is over {number(gates.max_abs)}"
        yield GateFailure("max_abs", gates.max_abs, comparison.max_abs, sentence)
    if gates.max_rel is not None and comparison.max_rel > gates.max_rel:
        sentence = (
            f"largest error {where} is {share_of(comparison.max_rel)} the full scale {number(comparison.peak)}, "
            f"over {percent(gates.max_rel)}"
        )
        yield GateFailure("max_rel", gates.max_rel, comparison.max_rel, sentence)


def _argmax(comparison: OutputComparison, gates: Gates, tie: float) -> Iterator[GateFailure]:
    agreement = _agreement(comparison, tie)
    if gates.argmax is None or agreement is None or agreement.share >= gates.argmax:
        return
    sentence = f"{describe_agreement(agreement, comparison)}; {percent(gates.argmax)} must agree"
    yield GateFailure("argmax", gates.argmax, agreement.share, sentence)


def _agreement(comparison: OutputComparison, tie: float) -> RowAgreement | None:
    if comparison.rows is None:
        return None
    return next(agreement for agreement in comparison.rows.agreements if agreement.tie == tie)


def _equality(comparison: OutputComparison, gates: Gates) -> Iterator[GateFailure]:
    unequal = comparison.elements - comparison.equal
    if gates.argmax is not None and comparison.exact < gates.argmax:
        sentence = f"{describe_unequal(comparison)}; {percent(gates.argmax)} must be equal"
        yield GateFailure("argmax", gates.argmax, comparison.exact, sentence)
    elif gates.argmax is None and unequal:
        yield GateFailure("equal", 0, unequal, describe_unequal(comparison))


def _severity(verdict: Verdict) -> tuple[int, float]:
    kinds = {failure.gate for failure in verdict.failures}
    if "saturation" in kinds:
        return 3, max(failure.value for failure in verdict.failures if failure.gate == "saturation")
    if kinds & _UNUSABLE:
        return 2, 0.0
    return 1, max(_times_over(failure) for failure in verdict.failures)


def _times_over(failure: GateFailure) -> float:
    """How many times what is allowed was used up."""
    if failure.gate in ("cosine", "argmax"):
        return (1.0 - failure.value) / max(1.0 - failure.limit, 1e-9)
    if failure.gate == "equal":
        return math.inf
    return failure.value / max(failure.limit, 1e-9)


def _metric_fault(name: str, gate: MetricGate, float_value: Scalar | None, htp_value: Scalar | None) -> str | None:
    if float_value is None or htp_value is None:
        return f"{name}: metric.py returned no such value"
    if gate.equal:
        same = type(float_value) is type(htp_value) and float_value == htp_value
        return None if same else f"{name} is {_shown(htp_value)} on HTP and {_shown(float_value)} on float: not equal"
    if not (_is_number(float_value) and _is_number(htp_value)):
        return f"{name} is {_shown(htp_value)}, and its gate needs a number"
    return _bound_fault(name, gate, float(float_value), float(htp_value))


def _bound_fault(name: str, gate: MetricGate, on_float: float, on_htp: float) -> str | None:
    """Comparisons are written so that NaN, which metric.py may not return, would fail too."""
    if gate.minimum is not None and not on_htp >= gate.minimum:
        return f"{name} is {number(on_htp)} on HTP, below {number(gate.minimum)} (float: {number(on_float)})"
    if gate.maximum is not None and not on_htp <= gate.maximum:
        return f"{name} is {number(on_htp)} on HTP, above {number(gate.maximum)} (float: {number(on_float)})"
    if gate.max_drop is not None and not on_float - on_htp <= gate.max_drop:
        drop = f"{number(on_float - on_htp)} from float's {number(on_float)}"
        return f"{name} is {number(on_htp)} on HTP: it drops by {drop}, more than {number(gate.max_drop)}"
    return None


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Scalar) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
