"""What was found, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qnn.localize.facts import Cause, Culprit, Located, Measured, Spread
from qnn.localize.search import FP16_MAX

_SHOWN = 6


def lines(found: Located) -> Iterator[str]:
    """The report, a line each; markup-free."""
    yield f"{found.target} {found.graph}, sample {found.sample}, {found.nodes} nodes"
    for output in found.outputs:
        yield f"  output {_state(output)}"
    for output in found.preparation:
        if output.wrong:
            yield (
                f"  the prepared graph on the CPU is off already: output {output.tensor}: {output.wrong}, "
                "which is not the NPU's doing"
            )
    if not any(output.wrong for output in found.outputs):
        yield f"every output agrees with the same graph on the CPU (cosine {found.threshold} and more)"
        return
    yield from _searched(found)
    for number, culprit in enumerate(found.culprits, 1):
        yield from _culprit(number, culprit)
    if found.spread_out:
        yield (
            "no part of the graph alone is wrong: the error is a sum of small ones over many nodes, so no single "
            "rewrite mends it; look for a form with less rounding (see docs/localize.md)"
        )
    elif not found.culprits:
        yield "the outputs are wrong, but no tensor that can be looked at is: the fault is in a fusion of the compiler"
    for left in found.unprobed[:_SHOWN]:
        yield f"not looked at: {left.tensor}: {left.reason}"
    if len(found.unprobed) > _SHOWN:
        yield f"not looked at: {len(found.unprobed) - _SHOWN} more"


def _searched(found: Located) -> Iterator[str]:
    for step in found.steps:
        word = "wrong" if step.wrong else "right"
        yield f"  nodes {step.start} to {step.stop - 1} alone: {word}, worst cosine {step.cosine:.5f}"
    yield f"  {found.probed} tensors looked at in {found.compiles} compiles"


def _culprit(number: int, culprit: Culprit) -> Iterator[str]:
    yield f"{number}. tensor {culprit.tensor} {list(culprit.seen.shape)}: {culprit.seen.wrong}"
    became = f", on the NPU {' + '.join(culprit.qnn)}" if culprit.qnn else ""
    yield f"   made by {_nodes(culprit)}{became}"
    yield f"   largest error {culprit.seen.max_abs:.4g}, largest value {culprit.seen.peak:.4g}"
    for spread in culprit.seen.spread:
        yield f"   {_spread(spread)}"
    yield f"   {_cause(culprit)}"
    if culprit.seen.peak > FP16_MAX:
        yield "   fp16 ends at 65504: no node can give or take the true value"
    if culprit.rest:
        wrong = [output for output in culprit.rest if output.wrong]
        if wrong:
            told = "; ".join(f"{output.tensor}: {output.wrong}" for output in wrong)
            yield f"   with its true value the outputs are still wrong ({told}), so there is more behind it"
        else:
            yield "   with its true value every output is right: nothing else is wrong"


def _nodes(culprit: Culprit) -> str:
    shown: Sequence[str] = [f"{node.name} ({node.op})" for node in culprit.nodes]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    word = "node" if len(shown) == 1 else "nodes"
    return f"{word} {', '.join(shown[:_SHOWN])}{more}"


def _spread(spread: Spread) -> str:
    named = ", ".join(str(index) for index in spread.indices)
    hold = f"index {named} holds" if len(spread.indices) == 1 else f"indices {named} hold"
    return f"along axis {spread.axis} (of {spread.size}): {hold} {spread.share:.0%} of the error"


def _cause(culprit: Culprit) -> str:
    if culprit.cause is Cause.UNKNOWN:
        return f"alone it cannot be looked at: {culprit.reason}"
    assert culprit.alone is not None
    word, verb = ("the node", "is") if len(culprit.nodes) == 1 else ("these nodes", "are")
    if culprit.cause is Cause.NODE:
        return f"{word} alone, with true inputs, {verb} wrong as well ({culprit.alone.wrong}): the fault is here"
    return (
        f"{word} alone, with true inputs, {verb} right (cosine {culprit.alone.cosine:.5f}): the error comes in with "
        "the inputs, where it is smaller than the threshold"
    )


def _state(output: Measured) -> str:
    said = output.wrong or f"right, cosine {output.cosine:.5f}"
    return f"{output.tensor}: {said}"
