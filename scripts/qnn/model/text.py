"""The text of a model.yaml before it is YAML: encoding, characters, tabs; and what the parser's complaints mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from qnn.errors.base import Place
from qnn.errors.model import Problem
from qnn.model.rules import syntax
from qnn.model.rules.base import Rule

_LONGEST_SHOWN = 60
_MOST_CHARACTERS = 10  # reported; more of them make a binary file, which is one fault and not thousands

# C0 and C1 controls, DEL, separators that some programs take for line ends, characters that reorder text, the byte
# order mark inside a text, noncharacters, halves of a surrogate pair.
_CONTROL = (
    "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u2028\\u2029"
    "\\u200e\\u200f\\u061c\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\ufffe\\uffff\\ud800-\\udfff"
)
_BAD_IN_FILE = re.compile(f"[{_CONTROL}]|\\r(?!\\n)")
_BAD_IN_TEXT = re.compile(f"[{_CONTROL}\\t\\n\\r]")
_TAB_INDENT = re.compile(r"( *)\t\s*\S")


def short(words: str) -> str:
    """A piece of the file fit to stand in a message: one line, no control characters, not long."""
    plain = _BAD_IN_TEXT.sub("�", words)
    return plain if len(plain) <= _LONGEST_SHOWN else plain[: _LONGEST_SHOWN - 1] + "…"


def not_one_line(words: str) -> bool:
    """Whether a text holds a line break, a tab or another control character."""
    return _BAD_IN_TEXT.search(words) is not None


def decode(raw: bytes, shown: str) -> tuple[str | None, tuple[Problem, ...]]:
    """UTF-8 bytes (a byte order mark is allowed) as text; None with the reasons when they are none."""
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig", errors="replace")
        utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        message = "the file is UTF-16" if utf16 else f"the byte 0x{raw[error.start]:02x} is not UTF-8"
        return None, (syntax.NotText.problem(_place(before, len(before), shown), message, "save the file as UTF-8"),)
    problems = tuple(
        syntax.NotText.problem(
            _place(decoded, match.start(), shown),
            f"the character U+{ord(match.group()):04X} has no place in a text file",
            "delete it, or save the file as UTF-8 with LF line ends",
        )
        for match in islice(_BAD_IN_FILE.finditer(decoded), _MOST_CHARACTERS)
    )
    return (None if problems else decoded), problems


def tabs(decoded: str, shown: str) -> list[Problem]:
    """Every line that is indented with a tab."""
    return list(_tabs(decoded, shown))


def _tabs(decoded: str, shown: str) -> Iterator[Problem]:
    for number, line in enumerate(decoded.split("\n"), start=1):
        if match := _TAB_INDENT.match(line):
            place = Place(shown, number, match.end(1) + 1)
            yield syntax.Tab.problem(place, "the line is indented with a tab", "indent with spaces")


def _place(decoded: str, index: int, shown: str) -> Place:
    """The line and column of a character. Line ends are LF and CRLF; nothing else gets past `decode`."""
    return Place(shown, decoded.count("\n", 0, index) + 1, index - (decoded.rfind("\n", 0, index) + 1) + 1)


@dataclass(frozen=True)
class SyntaxFault:
    """What a complaint of the YAML parser means. `at_context`: the place to mend is where the construct begins."""

    rule: type[Rule]
    message: str
    remedy: str
    at_context: bool = False


# By a piece of the parser's words; libyaml's and the Python parser's differ. The first that matches counts.
_COMPLAINTS = (
    (
        ("unexpected end of stream",),
        SyntaxFault(syntax.BadSyntax, "a quote is opened here and never closed", "close it", at_context=True),
    ),
    (
        ("',' or ']'",),
        SyntaxFault(syntax.BadSyntax, "a list opened with [ is not closed", "add a ] or comma", at_context=True),
    ),
    (
        ("',' or '}'",),
        SyntaxFault(syntax.BadSyntax, "a mapping opened with { is not closed", "add a } or comma", at_context=True),
    ),
    (
        ("undefined tag handle", "expected '>'", "the expected '>'", "expected URI", "tag"),
        SyntaxFault(syntax.Tag, "a tag", "delete it, or quote the text if it starts with !"),
    ),
    (
        ("alphabetic or numeric",),
        SyntaxFault(
            syntax.Anchor,
            "an anchor or alias without a name",
            "quote a text that starts so",
            at_context=True,
        ),
    ),
    (
        ("mapping values are not allowed",),
        SyntaxFault(syntax.BadSyntax, 'a ": " where none can be', "quote a text that holds one, or start a new line"),
    ),
    (
        ("sequence entries are not allowed",),
        SyntaxFault(syntax.BadSyntax, "a list cannot start here", "put its first - on a line of its own"),
    ),
    (
        ("cannot start any token",),
        SyntaxFault(syntax.BadSyntax, "a text cannot start with this character", "put the text into quotes"),
    ),
    (
        ("could not find expected ':'",),
        SyntaxFault(syntax.BadSyntax, "a key without a colon", 'write "key: value"', at_context=True),
    ),
    (
        ("escape",),
        SyntaxFault(syntax.BadSyntax, "an escape that YAML does not know", "write \\\\ for a backslash"),
    ),
    (
        ("expected key", "<block end>", "'-' indicator", "<document start>"),
        SyntaxFault(syntax.BadSyntax, "this does not fit what stands above it", "check the indentation and the quotes"),
    ),
    (
        ("directive", "incompatible YAML", "version number"),
        SyntaxFault(syntax.BadSyntax, "a % directive that is not understood", "delete the line"),
    ),
)
_OTHER = SyntaxFault(syntax.BadSyntax, "the text is not YAML from here on", "check brackets, quotes and indentation")


def explain_syntax(error: Exception) -> SyntaxFault:
    """What a parser's complaint means in plain words."""
    words = f"{getattr(error, 'context', '') or ''} {getattr(error, 'problem', '') or error}"
    for pieces, fault in _COMPLAINTS:
        if any(piece in words for piece in pieces):
            return fault
    return _OTHER
