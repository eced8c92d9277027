"""Rules of the file itself, before anything in it is understood. qnn.model.document finds the faults."""

from __future__ import annotations

from qnn.model.rules.base import Rule


class NoModelFile(Rule):
    """What: The folder has no `model.yaml`, or it cannot be read.

    Why: A folder under `models/` is a model, and `model.yaml` is what says so. A folder without one is usually a
    misspelt file name (`model.yml`) or a forgotten `git add`.

    Mend: Add `model.yaml`, rename the file, or move the folder out of `models/`.
    """

    id = "QF001"
    title = "model.yaml is missing"


class NotText(Rule):
    """What: The file is not UTF-8 text, or it holds a character that has no place in text: NUL, another control
    character, a line separator other than LF or CRLF, or one that reorders the text shown around it.

    Why: Such characters come from binary files, from other encodings (UTF-16, Latin-1) and from copying out of
    documents. Some are invisible, so that what a reviewer sees is not what the toolkit reads.

    Mend: Save the file as UTF-8. Delete the character at the line and column named, or type it again.
    """

    id = "QF002"
    title = "the file is not plain UTF-8 text"


class TooBig(Rule):
    """What: The file is larger than 256 KiB.

    Why: A model.yaml is a page or two. A huge one is a wrong file, or an attempt to exhaust the machine that reads
    pull requests.

    Mend: Check that it is the right file. Put data into files beside it and name them as local sources.
    """

    id = "QF003"
    title = "the file is too big"


class Empty(Rule):
    """What: The file is empty, or holds nothing but comments.

    Why: There is no model in it.

    Mend: Start from a model that exists, such as `models/silero-vad/model.yaml`; docs/model-yaml.md lists every key.
    """

    id = "QF004"
    title = "the file is empty"


class Tab(Rule):
    """What: A line is indented with a tab.

    Why: YAML allows only spaces there. How wide a tab is differs from editor to editor, so a file that looks right
    in one means something else in another.

    Mend: Replace the tab by spaces, and tell your editor to insert spaces in YAML files.
    """

    id = "QF005"
    title = "a tab in the indentation"


class BadSyntax(Rule):
    """What: The text is not YAML from the line named on.

    Why: Most often the indentation of one line does not match its neighbours, a quote or a bracket is not closed,
    or a text holds `: ` or starts with a character that means something in YAML (`@`, `%`, a backquote, `*`, `&`).

    Mend: Look at the line named and the one above it. Put texts with special characters into quotes. Nothing after
    this line was checked, so run `qnn-forge lint` again afterwards.
    """

    id = "QF006"
    title = "the text is not YAML"


class DuplicateKey(Rule):
    """What: A mapping has the same key twice.

    Why: YAML readers disagree on which one counts, and a reviewer may look at the other.

    Mend: Delete one of the two, or rename it.
    """

    id = "QF007"
    title = "a key stands there twice"


class Anchor(Rule):
    """What: The file uses an anchor (`&name`), an alias (`*name`) or a merge key (`<<`).

    Why: They let a value come from elsewhere in the file, where a reviewer does not look, and let a page of text
    grow to gigabytes. A model.yaml is short enough to do without.

    Mend: Write the value out where it is used. Quote a text that starts with `&` or `*`, as chip globs may do.
    """

    id = "QF008"
    title = "anchors, aliases and merge keys are not allowed"


class SeveralDocuments(Rule):
    """What: The file holds more than one YAML document: a second `---` line.

    Why: One file is one model.

    Mend: Delete the line, or move what follows to a folder of its own.
    """

    id = "QF009"
    title = "more than one document in the file"


class KeyNotText(Rule):
    """What: A key is not a text but a number, `true`, nothing, a list or a mapping.

    Why: All keys of a model.yaml are names. An unquoted 320 is a number to YAML, and names such as `007` would
    change when read.

    Mend: Quote the key: `"320": …`.
    """

    id = "QF010"
    title = "a key is not text"


class Tag(Rule):
    """What: A value carries a YAML tag (`!name` or `!!name`).

    Why: Tags ask the reader to build special objects. In other programs they have been a way to run code; here they
    have no meaning.

    Mend: Delete the tag. Quote a text that starts with `!`.
    """

    id = "QF011"
    title = "tags are not allowed"


class TooDeep(Rule):
    """What: Lists and mappings are nested more than 20 levels deep.

    Why: Nothing in a model.yaml is deeper than six. Deep nesting is a wrong file, or an attempt to exhaust the
    machine that reads pull requests.

    Mend: Check that it is the right file, and the brackets in the line named.
    """

    id = "QF012"
    title = "nested too deeply"


class Ambiguous(Rule):
    """What: An unquoted value means one thing to readers of YAML 1.1 and another to readers of YAML 1.2, or is no
    ordinary number: `no` and `on` (false and true, or texts), `012` (ten or twelve), `12:30` (750 or a text),
    `1_000`, `0x10`, `2026-01-31` (a date or a text), `.inf`, `.nan`.

    Why: Editors, GitHub and Python libraries do not read the same version of YAML. What the author wrote, what the
    editor checked and what is built must be the same.

    Mend: Quote it where a text is meant; write `true`, `false` or a plain decimal number where one is meant.
    """

    id = "QF013"
    title = "a value that YAML readers understand differently"


class NotOneLine(Rule):
    """What: A text holds a line break, a tab or another control character.

    Why: Texts of a model.yaml go into tables, file names, messages and manifests. A line break or an escape sequence
    there breaks them, or hides something from the reader.

    Mend: Write the text on one line without escapes such as `\\n`. Long texts may be folded with `>-`.
    """

    id = "QF014"
    title = "a text is not one plain line"
