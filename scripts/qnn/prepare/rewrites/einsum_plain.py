"""Einsum as Transpose, Reshape and MatMul."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy
from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.steps import reshaped, transposed
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "einsum-plain"
_SUM_AXES_INPUT = 13


@dataclass(frozen=True)
class _Term:
    """A tensor and the letter of each of its axes."""

    name: str
    letters: str


def _apply(model: ModelProto) -> list[Change]:
    view = GraphView(model)
    changes = []
    for node in view.nodes("Einsum"):
        equation = attribute(node, "equation").decode().replace(" ", "")
        shapes = [view.shape(name) for name in node.input]
        if any(shape is None for shape in shapes):
            continue
        if view.is_quantized(node):
            changes.append(refused(NAME, node, "it is quantized"))
            continue
        parsed = letters_of(equation, [len(shape or ()) for shape in shapes])
        if parsed is None:
            changes.append(refused(NAME, node, f"{equation}: a letter twice in one operand takes a diagonal"))
            continue
        operands, result = parsed
        sizes = {letter: 1 for term in operands for letter in term}
        for term, shape in zip(operands, shapes, strict=True):
            for letter, size in zip(term, shape or (), strict=True):
                sizes[letter] = max(sizes[letter], size)
        terms = [_Term(str(name), letters) for name, letters in zip(node.input, operands, strict=True)]
        _Maker(view, node, sizes, result).replace(terms)
        changes.append(applied(NAME, node, f"{equation} written out"))
    return changes


def letters_of(equation: str, ranks: Sequence[int]) -> tuple[list[str], str] | None:
    """The letters of each operand and of the result, an ellipsis replaced by letters of its own.

    None where an operand has a letter twice.
    """
    left, arrow, right = equation.partition("->")
    operands = left.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(operands, ranks, strict=True) if "..." in term]
    dots = "".join(free[: max(widths, default=0)])
    full = []
    for term, rank in zip(operands, ranks, strict=True):
        width = rank - len(term.replace("...", ""))
        full.append(term.replace("...", dots[len(dots) - width :] if width else ""))
    if not arrow:
        plain = sorted({letter for letter in left if letter.isalpha() and left.count(letter) == 1})
        right = ("..." if "..." in left else "") + "".join(plain)
    result = right.replace("...", dots)
    if any(len(set(term)) != len(term) for term in (*full, result)):
        return None
    return full, result


class _Maker:
    """Makes the nodes that stand for one Einsum."""

    def __init__(self, view: GraphView, node: NodeProto, sizes: dict[str, int], result: str) -> None:
        self._view = view
        self._node = node
        self._sizes = sizes
        self._result = result
        self._wanted = str(node.output[0])

    def replace(self, terms: list[_Term]) -> None:
        """Take the operands together from left to right, and put the axes in the result's order."""
        term = self._only_needed(terms[0], [other.letters for other in terms[1:]])
        for index, other in enumerate(terms[1:]):
            later = [rest.letters for rest in terms[index + 2 :]]
            term = self._product(term, self._only_needed(other, [term.letters, *later]), later)
        order = [term.letters.index(letter) for letter in self._result]
        name = transposed(self._view, term.name, order, f"{self._wanted}_ordered")
        self._view.replace(self._node, "Identity", [name])

    def _only_needed(self, term: _Term, others: list[str]) -> _Term:
        """Sum over the axes that neither the result nor another operand has."""
        gone = [i for i, letter in enumerate(term.letters) if letter not in self._result + "".join(others)]
        if not gone:
            return term
        wanted = f"{self._wanted}_sum"
        if self._view.opset() < _SUM_AXES_INPUT:
            name = self._view.add_node("ReduceSum", [term.name], wanted, axes=gone, keepdims=0)
        else:
            axes = self._view.add_constant(f"{wanted}_axes", numpy.array(gone, numpy.int64))
            name = self._view.add_node("ReduceSum", [term.name, axes], wanted, keepdims=0)
        return _Term(name, "".join(letter for i, letter in enumerate(term.letters) if i not in gone))

    def _product(self, first: _Term, second: _Term, later: list[str]) -> _Term:
        needed = self._result + "".join(later)
        common = [letter for letter in first.letters if letter in second.letters]
        batch = [letter for letter in common if letter in needed]
        summed = [letter for letter in common if letter not in needed]
        rows = [letter for letter in first.letters if letter not in second.letters]
        columns = [letter for letter in second.letters if letter not in first.letters]
        left = self._matrix(first, batch, rows, summed, "left")
        right = self._matrix(second, batch, summed, columns, "right")
        multiply = "MatMul" if summed else "Mul"
        product = self._view.add_node(multiply, [left, right], f"{self._wanted}_product")
        letters = [*batch, *rows, *columns]
        shaped = reshaped(self._view, product, [self._sizes[letter] for letter in letters], f"{self._wanted}_shaped")
        return _Term(shaped, "".join(letters))

    def _matrix(self, term: _Term, batch: list[str], rows: list[str], columns: list[str], side: str) -> str:
        """The term as [batch, rows, columns]."""
        wanted = f"{self._wanted}_{side}"
        letters = [*batch, *rows, *columns]
        own = self._view.shape(term.name)
        name = transposed(self._view, term.name, [term.letters.index(letter) for letter in letters], f"{wanted}_turned")
        full = [self._sizes[letter] for letter in letters]
        if own is not None and prod(own) != prod(full):  # an axis of 1 stands for every index
            sizes = self._view.add_constant(f"{wanted}_sizes", numpy.array(full, numpy.int64))
            name = self._view.add_node("Expand", [name, sizes], f"{wanted}_full")
        shape = [prod(self._sizes[letter] for letter in group) for group in (batch, rows, columns)]
        return reshaped(self._view, name, shape, wanted)


REWRITE = Rewrite(
    name=NAME,
    title="Einsum is written out",
    pattern="Einsum, other than one that takes a diagonal",
    why="The compiler knows few equations and refuses the others. Every equation is a Transpose of each "
    "operand, a MatMul over the summed letters (Mul where none is), and a Transpose of the result.",
    default=True,
    apply=_apply,
)
