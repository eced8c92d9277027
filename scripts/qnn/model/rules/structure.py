"""Rules of the file's structure. The schema finds the faults, qnn.model.validate words them."""

from __future__ import annotations

from qnn.model.rules.base import Rule


class UnknownKey(Rule):
    """What: A mapping has a key that means nothing there.

    Why: A misspelt key would be ignored without a word, and with it a gate, an exclusion or a limit that the author
    relies on.

    Mend: Take the key that the message suggests, move it to where it belongs, or delete it. docs/model-yaml.md lists
    every key.
    """

    id = "QF020"
    title = "unknown key"


class MissingKey(Rule):
    """What: A key that must be there is not.

    Why: Nothing sensible can be assumed in its place.

    Mend: Add it; the message shows an example where there is one.
    """

    id = "QF021"
    title = "a key is missing"


class WrongType(Rule):
    """What: A value is of the wrong kind: a number where a text belongs, a text where a list belongs, nothing at all.

    Why: YAML decides by the look of an unquoted value. `version: 6.10` is the number 6.1, and `socs: all` is a text,
    not a list of one.

    Mend: Quote a text that looks like a number (`"6.10"`), put brackets around a list of one (`[all]`), and delete a
    key that has no value.
    """

    id = "QF022"
    title = "a value of the wrong kind"


class BadValue(Rule):
    """What: A value is of the right kind but not one that is allowed there: out of range, too long, in the wrong
    form, not among the words known, or twice in the same list.

    Why: The value would fail later, where the reason is harder to see.

    Mend: Change it as the message says. docs/model-yaml.md has the form and an example of every value.
    """

    id = "QF023"
    title = "a value that is not allowed"


class OneKeyOf(Rule):
    """What: Of several keys exactly one must be there, and there is none or more than one. A source comes from one
    place, a licence has `spdx` or `reason`, checks have `data` or `samples`.

    Why: With two the toolkit would have to guess which one counts.

    Mend: Keep one of the keys that the message names.
    """

    id = "QF024"
    title = "not exactly one of several keys"


class BadName(Rule):
    """What: A name of the author's choice (of a source, graph, bucket or symbol) has characters that are not allowed.

    Why: These names become file names, graph names inside the context binary and parts of commands. Plain ones work
    everywhere.

    Mend: Rename it, and wherever it is used.
    """

    id = "QF025"
    title = "a name that is not allowed"
