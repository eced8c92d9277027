"""Rules of `lint.skip`: only hints can be skipped, and only those that would speak."""

from __future__ import annotations

from qnn.errors.model import Kind
from qnn.model.rules.base import Rule


class KnownSkip(Rule):
    """What: `lint.skip` names an id that no lint rule has.

    Why: It skips nothing.

    Mend: Correct the id; `qnn-forge explain` lists all.
    """

    id = "QF170"
    title = "a skip of an unknown rule"


class SkipIsHint(Rule):
    """What: `lint.skip` names a rule whose breach is an error.

    Why: Errors stop the build; silencing one would not make the model build.

    Mend: Mend what the error says, and delete the entry.
    """

    id = "QF171"
    title = "a skip of an error"


class SkipIsNeeded(Rule):
    """What: `lint.skip` names a hint that would not appear anyway.

    Why: The next time the hint has something to say, nobody would hear it.

    Mend: Delete the entry.
    """

    id = "QF172"
    title = "a skip that is not needed"
    kind = Kind.HINT
