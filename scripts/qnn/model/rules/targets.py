"""Rules of targets: every name and glob means a chip, and the chip can do what the model asks.

The only rules that know the chip table; it is read when they run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from qnn.errors.base import ForgeError
from qnn.errors.model import Problem
from qnn.model.document import KeyPath
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject
from qnn.model.text import short

if TYPE_CHECKING:
    from qnn.chips.soc import Soc


# As the schema allows; what is beyond is reported there and not looked up here.
_MOST_EXPRESSIONS = 100
_MOST_EXCLUSIONS = 20
_LONGEST = 64


def _targets(subject: Subject) -> Iterator[tuple[KeyPath, str]]:
    return _expressions(subject, "targets", "socs")


def _excluded(subject: Subject) -> Iterator[tuple[KeyPath, str]]:
    for index in range(min(subject.length("targets", "exclude"), _MOST_EXCLUSIONS)):
        yield from _expressions(subject, "targets", "exclude", index, "socs")


def _expressions(subject: Subject, *path: str | int) -> Iterator[tuple[KeyPath, str]]:
    for at, words in islice(subject.texts(*path), _MOST_EXPRESSIONS):
        if re.fullmatch(r"[^,!][^,]*", words) and len(words) <= _LONGEST:
            yield at, words


@functools.cache
def _meant(words: str) -> tuple[Soc, ...] | ForgeError:
    """The chips of an expression, or why there are none."""
    from qnn.chips.select import select  # noqa: PLC0415 - start-up
    from qnn.chips.table import load_table  # noqa: PLC0415

    try:
        return select([words], load_table())
    except ForgeError as error:
        return error


def _chips(expressions: Iterable[tuple[KeyPath, str]]) -> dict[int, Soc]:
    """All chips of the expressions that mean any, by soc_id."""
    meant = (_meant(words) for _, words in expressions)
    return {soc.soc_id: soc for chips in meant if not isinstance(chips, ForgeError) for soc in chips}


def _left(subject: Subject) -> frozenset[int]:
    """The soc_ids of the chips that the model is for."""
    return frozenset(_chips(_targets(subject)).keys() - _chips(_excluded(subject)).keys())


class KnownChip(Rule):
    """What: An entry of `socs` is no chip of the chip table, or a glob that matches none, or a chip without an HTP.

    Why: The model would silently not be built for a chip that its author has in mind.

    Mend: `qnn-forge soc list` shows all chips with their names; `qnn-forge soc show NAME` explains one.
    """

    id = "QF140"
    title = "no such chip"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        for at, words in chain(_targets(subject), _excluded(subject)):
            error = _meant(words)
            if isinstance(error, ForgeError):
                remedy = error.remedy + (f" ({'; '.join(error.details[:3])})" if error.details else "")
                yield cls.problem(subject.at_value(*at), error.message, remedy)


class ExclusionWorks(Rule):
    """What: An exclusion takes no chip away: none of its chips is among `targets.socs`.

    Why: It says something about the model that is not so, and hides a misspelt name.

    Mend: Correct it, or delete it.
    """

    id = "QF141"
    title = "an exclusion that excludes nothing"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        targets = _chips(_targets(subject))
        understood = [words for _, words in _targets(subject) if not isinstance(_meant(words), ForgeError)]
        if len(understood) < subject.length("targets", "socs"):
            return  # whether it would exclude something is not known
        for at, words in _excluded(subject):
            chips = _chips([(at, words)])
            if targets and chips and not targets.keys() & chips.keys():
                message = f'"{short(words)}" takes no chip away from the targets'
                yield cls.problem(subject.at_value(*at), message, "correct it, or delete it")


class Fp16IsPossible(Rule):
    """What: A chip that `targets.socs` names outright has no fp16, and the model has no other precision.

    Why: Nothing can be built for this chip. Chips that a glob brought in are left out without a word; one named
    outright is one the author counts on.

    Mend: Delete the chip, or offer a quantized precision too.
    """

    id = "QF142"
    title = "fp16 on a chip without it"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        from qnn.chips.select import is_glob  # noqa: PLC0415 - start-up
        from qnn.chips.table import load_table  # noqa: PLC0415

        table, left = load_table(), _left(subject)
        if {precision for _, precision in subject.texts("precisions")} != {"fp16"}:
            return
        for at, words in _targets(subject):
            outright = not is_glob(words) and words.lower() not in table.words
            for soc in _chips([(at, words)]).values() if outright else ():
                if soc.soc_id in left and not soc.fp16:
                    message = f"{soc.name} has no fp16, and the model has no other precision"
                    yield cls.problem(subject.at_value(*at), message, "delete the chip, or offer a quantized precision")


class ChipIsLeft(Rule):
    """What: After all exclusions the model has no target left.

    Why: Nothing would be built.

    Mend: Widen `targets.socs` or exclude less.
    """

    id = "QF143"
    title = "no target is left"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        if _chips(_targets(subject)) and not _left(subject):
            place = subject.at_key("targets", "socs")
            yield cls.problem(place, "the exclusions leave no chip", "widen socs, or exclude less")
