"""Licences of weights that not everybody may use as they like. Pure; what may be published is judged elsewhere."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"[()]|[^\s()]+")


def restriction(spdx: str | None) -> str:
    """What is special about a licence expression, as the end of "its licence …"; empty for all others.

    With OR, one side without a restriction is enough; with AND, every side counts. What is no expression restricts
    nothing here: rule QF103 speaks of it.
    """
    tokens = _TOKEN.findall(spdx or "")[::-1]
    return _either(tokens) if tokens else ""


def _either(tokens: list[str]) -> str:
    found = _both(tokens)
    while tokens and tokens[-1] == "OR":
        tokens.pop()
        other = _both(tokens)
        found = found and other
    return found


def _both(tokens: list[str]) -> str:
    found = _one(tokens)
    while tokens and tokens[-1] == "AND":
        tokens.pop()
        other = _one(tokens)
        found = found or other
    return found


def _one(tokens: list[str]) -> str:
    if not tokens:
        return ""
    word = tokens.pop()
    if word == "(":
        found = _either(tokens)
        if tokens and tokens[-1] == ")":
            tokens.pop()
        return found
    if tokens and tokens[-1] == "WITH":
        del tokens[-2:]  # an exception only ever adds rights, and lifts none of these
    return _of(word)


def _of(identifier: str) -> str:
    """The restriction of one SPDX identifier."""
    parts = identifier.upper().split("-")
    if parts[0] in ("LICENSEREF", "DOCUMENTREF"):
        return ""  # terms of its own, of which a name says nothing
    if "NC" in parts or "NONCOMMERCIAL" in parts:
        return f"{identifier} forbids commercial use"
    if "ND" in parts:
        return f"{identifier} forbids changed versions, and a context binary is one"
    if parts[0] in ("AGPL", "SSPL"):
        return f"{identifier} asks whoever offers a service with it to publish the service's source"
    return ""
