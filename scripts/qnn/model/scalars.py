"""What an unquoted YAML scalar means: the core schema of YAML 1.2, minus whatever YAML 1.1 reads differently.

PyYAML implements YAML 1.1, editors (yaml-language-server) YAML 1.2. A value is taken only when both agree, or when
1.1 sees a text where 1.2 sees a number that cannot be meant otherwise (``1e-3``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from qnn.model.text import short

Scalar = str | int | float | bool | None

# More digits than any size or count here needs, and few enough that a float holds them exactly.
_MOST_DIGITS = 15

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = r"[-+]?(?:0|[1-9][0-9]*)"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_OTHER_BASE = r"[-+]?0(?:x[0-9a-fA-F_]+|o[0-7]+|b[01_]+|[0-9][0-9_]*)"
_NOT_FINITE = r"[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)"

# What YAML 1.1 makes of texts that are texts to YAML 1.2.
_READ_BY_1_1 = (
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt\s].*)?", "a date"),
    (r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", "a number in base 60"),
    (r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?", "a number"),
)
_WORDS_OF_1_1 = {
    **dict.fromkeys(("yes", "Yes", "YES", "on", "On", "ON"), "true"),
    **dict.fromkeys(("no", "No", "NO", "off", "Off", "OFF"), "false"),
    **dict.fromkeys(("=", "<<"), "an operator"),
}


@dataclass(frozen=True)
class Doubt:
    """Why an unquoted text is refused, and what to write instead."""

    why: str
    remedy: str


def resolve(text: str) -> Scalar | Doubt:
    """The value of an unquoted scalar, or why it is refused."""
    if text in _WORDS:
        return _WORDS[text]
    if text in _WORDS_OF_1_1:
        return _doubt(text, _WORDS_OF_1_1[text])
    # Patterns are compiled when a text that may be a number asks for them, which many files never do.
    return _number(text) if text[0] in "+-.0123456789" else text


def _number(text: str) -> Scalar | Doubt:
    if re.fullmatch(_INTEGER, text):
        return _integer(text)
    if re.fullmatch(_OTHER_BASE, text):
        return Doubt("a number that readers take in different bases", _either(text, "a plain decimal number"))
    if re.fullmatch(_FLOAT, text):
        return _real(text)
    if re.fullmatch(_NOT_FINITE, text):
        return Doubt("not a finite number", "write a number, or leave the key out")
    reading = next((reading for form, reading in _READ_BY_1_1 if re.fullmatch(form, text)), None)
    return text if reading is None else _doubt(text, reading)


def _integer(text: str) -> int | Doubt:
    if len(text) > _MOST_DIGITS:
        return Doubt("a number with more digits than can be kept exactly", _either(text, "a smaller number"))
    return int(text)


def _real(text: str) -> float | Doubt:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return Doubt("a number beyond what can be kept", _either(text, "a smaller number"))
    return value


def _doubt(text: str, reading: str) -> Doubt:
    return Doubt(f"{reading} to YAML 1.1 and text to YAML 1.2", _instead(text, reading))


def _instead(text: str, reading: str) -> str:
    if reading == "a number":
        return _either(text, short(text.replace("_", "")))
    return f"write {reading}, or {_quote(text)}" if reading in ("true", "false") else f"write {_quote(text)}"


def _quote(text: str) -> str:
    return f'"{short(text)}" in quotes'


def _either(text: str, number: str) -> str:
    return f"write {number}, or {_quote(text)} if a text is meant"
