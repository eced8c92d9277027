"""What a lint rule is: an id, a weight, a page of documentation and, for most, a check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from qnn.errors.base import Place
from qnn.errors.model import Kind, Problem

if TYPE_CHECKING:
    from qnn.model.rules.subject import Subject


class Rule:
    """Base of every lint rule. A rule is its class; none is ever instantiated.

    The docstring of a subclass is its page under docs/lint/ and what `qnn-forge explain` prints, in three parts
    headed ``What:``, ``Why:`` and ``Mend:``. Ids are never reused, `added_in` is the version that brought the rule.
    Rules whose fault is found while the file is read (syntax) or by the schema have no check of their own.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[Kind] = Kind.ERROR
    added_in: ClassVar[str] = "0.1.0"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:  # noqa: ARG003 - most rules do look at it
        """Every breach of this rule in a model, in no particular order."""
        yield from ()

    @classmethod
    def problem(cls, place: Place, message: str, remedy: str) -> Problem:
        """A breach of this rule at a place."""
        return Problem(cls.id, cls.kind, place, message, remedy)
