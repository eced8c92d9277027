"""Rules of graphs: every symbol has a value, every precision a source, every result a float model to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from qnn.errors.model import Kind, Problem
from qnn.model.document import KeyPath
from qnn.model.nearest import nearest, suggest
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject
from qnn.model.text import short

QUANTIZED = frozenset({"w8a16", "w8a8", "w4a16", "mixed"})
_MOST_UNBOUND = 5  # symbols reported for one bucket
_BATCH_NAMES = frozenset({"batch", "batch_size", "bs", "n"})


def _shapes(subject: Subject, graph: str) -> Iterator[KeyPath]:
    for name in subject.keys("graphs", graph, "inputs"):
        path = ("graphs", graph, "inputs", name)
        yield (*path, "shape") if isinstance(subject.value(*path), dict) else path


def _symbols(subject: Subject) -> dict[str, KeyPath]:
    """Every symbol of a shape, with the first place that uses it."""
    first: dict[str, KeyPath] = {}
    for graph in subject.keys("graphs"):
        for shape in _shapes(subject, graph):
            for path, symbol in subject.texts(*shape):
                first.setdefault(symbol, path)
    return first


class BoundSymbol(Rule):
    """What: The shape of an input has a symbol that a bucket gives no value, or there are symbols and no buckets.

    Why: HTP compiles fixed shapes. A dimension without a value cannot be compiled.

    Mend: Give the symbol a value in every bucket, or write the number into the shape.
    """

    id = "QF120"
    title = "a symbol without a value"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        symbols, buckets = _symbols(subject), subject.keys("buckets")
        if not buckets and not subject.has("buckets"):
            for symbol, path in symbols.items():
                message = f'the symbol "{short(symbol)}" has no value, since there are no buckets'
                yield cls.problem(subject.at_value(*path), message, "add buckets, or write a number here")
        for bucket in buckets:
            bound = subject.value("buckets", bucket)
            if not isinstance(bound, dict):
                continue
            for symbol in islice((symbol for symbol in symbols if symbol not in bound), _MOST_UNBOUND):
                near = nearest(symbol, (name for name in bound if name not in symbols))
                remedy = f'is "{near}" meant to be it?' if near else "add it, or write a number into the shape"
                message = f'the bucket "{short(bucket)}" gives the symbol "{short(symbol)}" no value'
                yield cls.problem(subject.at_key("buckets", bucket), message, remedy)


class UsedSymbol(Rule):
    """What: A bucket gives a value to a symbol that no input's shape has.

    Why: The value changes nothing, though the author thinks it does; usually the name is misspelt.

    Mend: Correct the name, use the symbol in a shape, or delete it.
    """

    id = "QF121"
    title = "a symbol that no shape has"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        symbols = _symbols(subject)
        for bucket in subject.keys("buckets"):
            for symbol in subject.keys("buckets", bucket):
                if symbol not in symbols:
                    place = subject.at_key("buckets", bucket, symbol)
                    remedy = suggest(symbol, symbols, "delete it, or use it in a shape")
                    yield cls.problem(place, f'no input has a dimension "{short(symbol)}"', remedy)


class BatchOfOne(Rule):
    """What: A graph works on a batch of more than one: a symbol such as `batch` is above 1, or all inputs of a graph
    have the same first dimension above 1.

    Why: An application on a phone mostly has one image or one frame at hand. A batch makes it wait or pad, and takes
    as many times the memory.

    Mend: Set the batch to 1. Where the first dimension is something else (time, windows, states), skip the hint.
    """

    id = "QF122"
    title = "a batch of more than one"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for bucket in subject.keys("buckets"):
            for symbol in subject.keys("buckets", bucket):
                value = subject.number("buckets", bucket, symbol)
                if symbol.lower() in _BATCH_NAMES and value is not None and value > 1:
                    place = subject.at_value("buckets", bucket, symbol)
                    yield cls.problem(place, f"{symbol} is {value:g} in {short(bucket)}", "set it to 1")
        for graph in subject.keys("graphs"):
            shapes = list(_shapes(subject, graph))
            first = {subject.number(*path, 0) for path in shapes}
            batch = next(iter(first), None) if len(first) == 1 else None
            if batch is not None and batch > 1 and all(subject.length(*path) > 1 for path in shapes):
                message = f"all inputs of {short(graph)} have {batch:g} as their first dimension"
                yield cls.problem(subject.at_value(*shapes[0], 0), message, "set it to 1 if it is a batch")


class DifferentBuckets(Rule):
    """What: Two buckets give all symbols the same values.

    Why: The same graphs would be compiled, checked and shipped twice.

    Mend: Delete one of them, or correct its values.
    """

    id = "QF123"
    title = "two buckets that are the same"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        seen: dict[frozenset[tuple[str, float | None]], str] = {}
        for bucket in subject.keys("buckets"):
            symbols = subject.keys("buckets", bucket)
            values = frozenset((symbol, subject.number("buckets", bucket, symbol)) for symbol in symbols)
            if values in seen:
                message = f'the buckets "{short(bucket)}" and "{short(seen[values])}" are the same'
                yield cls.problem(subject.at_key("buckets", bucket), message, "delete one, or correct its values")
            seen.setdefault(values, bucket)


def _precisions(subject: Subject) -> list[str]:
    """The precisions of the model that are known, each once."""
    known = (name for _, name in subject.texts("precisions") if name in QUANTIZED | {"fp16"})
    return list(dict.fromkeys(known))


class PrecisionHasSource(Rule):
    """What: A precision of the model has no source in a graph's `source` mapping, which has no `*` either.

    Why: There is no graph to compile for it.

    Mend: Add the precision to the mapping, add `"*"` for all others, or take the precision out of `precisions`.
    """

    id = "QF130"
    title = "a precision without a source"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        precisions = _precisions(subject)
        for graph in subject.keys("graphs"):
            served = subject.keys("graphs", graph, "source")
            for precision in precisions:
                # Of quantized precisions QuantizedSource speaks.
                if served and precision not in served and "*" not in served and precision not in QUANTIZED:
                    message = f"{short(graph)} has no source for {short(precision)}"
                    place = subject.at_key("graphs", graph, "source")
                    yield cls.problem(place, message, f"add {short(precision)}: SOURCE here")


class QuantizedSource(Rule):
    """What: A quantized precision has no source of its own in a graph's `source` mapping, or shares it with another
    precision.

    Why: This version does not quantize. It compiles graphs that hold QuantizeLinear and DequantizeLinear nodes
    already, and such a graph is quantized one way only.

    Mend: Quantize the model yourself (for instance with onnxruntime.quantization), add the file as a source, and name
    it for the precision: `source: {fp16: det, w8a8: det-w8a8}`.
    """

    id = "QF131"
    title = "a quantized precision without a source of its own"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        quantized = [precision for precision in _precisions(subject) if precision in QUANTIZED]
        for graph in subject.keys("graphs"):
            source = ("graphs", graph, "source")
            if not isinstance(subject.value(*source), (str, dict)):
                continue
            for precision in quantized:
                own = subject.text(*source, precision)
                remedy = f"add a source with Q/DQ nodes and name it: {short(precision)}: SOURCE"
                if precision not in subject.keys(*source):
                    message = (
                        f"{short(graph)} has no source of its own for {precision}, and this version does not quantize"
                    )
                    yield cls.problem(subject.at_key(*source), message, remedy)
                elif own is not None and (other := _shares(subject, source, precision, own)):
                    message = f"{precision} and {short(other)} of {short(graph)} have the same source"
                    yield cls.problem(subject.at_value(*source, precision), message, remedy)


def _shares(subject: Subject, source: KeyPath, precision: str, name: str) -> str | None:
    others = [other for other in subject.keys(*source) if other != precision]
    return next((other for other in others if subject.text(*source, other) == name), None)


class UsedPrecision(Rule):
    """What: A graph's `source` mapping names a precision that is not in `precisions`, and its source is not what
    results are compared with.

    Why: Nothing is built from it; perhaps the precision was forgotten.

    Mend: Add it to `precisions`, or delete the entry.
    """

    id = "QF132"
    title = "a source for a precision that is not offered"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        offered = {*_precisions(subject), "*", "fp16"}
        for graph in subject.keys("graphs"):
            reference = subject.text("graphs", graph, "reference")
            for precision in subject.keys("graphs", graph, "source"):
                path = ("graphs", graph, "source", precision)
                if precision not in offered and subject.text(*path) not in (None, reference):
                    message = f"{short(graph)} has a source for {short(precision)}, which precisions does not have"
                    yield cls.problem(subject.at_key(*path), message, "add it to precisions, or delete this")


class HasReference(Rule):
    """What: A graph has several sources, none of them for fp16, and no `reference`.

    Why: Every result is compared with a float model, and which of the sources that is cannot be known.

    Mend: Add `reference` with the name of the source that holds the float model.
    """

    id = "QF133"
    title = "no reference to compare with"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for graph in subject.keys("graphs"):
            source = ("graphs", graph, "source")
            served = subject.keys(*source)
            names = {subject.text(*source, precision) for precision in served}
            if len(names) > 1 and not {"fp16", "*"} & set(served) and not subject.has("graphs", graph, "reference"):
                message = f"{short(graph)} has several sources and none for fp16, so the float model is not known"
                yield cls.problem(subject.at_key("graphs", graph), message, "add reference: SOURCE")


class FloatReference(Rule):
    """What: The only source of a graph is a quantized one, so its own results are what it is compared with.

    Why: The comparison shows what the chip adds to the error, not what the quantization did.

    Mend: Add the float model as a source and name it in `reference`.
    """

    id = "QF134"
    title = "compared with a quantized model"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for graph in subject.keys("graphs"):
            served = subject.keys("graphs", graph, "source")
            names = {subject.text("graphs", graph, "source", precision) for precision in served}
            quantized = bool(served) and set(served) <= QUANTIZED and len(names) == 1
            if quantized and not subject.has("graphs", graph, "reference"):
                message = f"{short(graph)} is compared with its own quantized source"
                yield cls.problem(subject.at_key("graphs", graph, "source"), message, "add reference: SOURCE")
