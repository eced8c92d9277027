"""Which licences let everybody pass a model on: a table, and reading SPDX expressions by it. Pure.

Accepted are licences that allow redistribution of changed versions to everybody for any purpose; what they ask in
return (attribution, the licence's text, the same licence again) a bundle carries: manifest, LICENSE.txt, README.txt.
"""

from __future__ import annotations

from qnn.errors.publish import LicenceForbids

# SPDX identifiers, https://spdx.org/licenses/. Whatever is not here is refused; a person adds it after reading it.
PERMISSIVE = frozenset({
    "0BSD", "AFL-3.0", "Apache-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-2-Clause-Patent", "BSD-3-Clause",
    "BSD-3-Clause-Clear", "BSL-1.0", "CC-BY-3.0", "CC-BY-4.0", "CC0-1.0", "CDLA-Permissive-1.0", "CDLA-Permissive-2.0",
    "ECL-2.0", "ISC", "MIT", "MIT-0", "MS-PL", "NCSA", "PDDL-1.0", "PostgreSQL", "Python-2.0", "UPL-1.0", "Unlicense",
    "WTFPL", "Zlib",
})  # fmt: skip
# Passing on asks for the same licence, or for the source: the manifest names every source with its digest.
COPYLEFT = frozenset({
    "AGPL-3.0-only", "AGPL-3.0-or-later", "CC-BY-SA-3.0", "CC-BY-SA-4.0", "CDLA-Sharing-1.0", "EPL-2.0", "EUPL-1.2",
    "GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-only", "GPL-3.0-or-later", "LGPL-2.1-only", "LGPL-2.1-or-later",
    "LGPL-3.0-only", "LGPL-3.0-or-later", "MPL-2.0", "MS-RL", "ODbL-1.0",
})  # fmt: skip
_ACCEPTED = PERMISSIVE | COPYLEFT


def refusal(licence: str | None, reason: str | None) -> str | None:
    """Why a model under this SPDX expression may not be published, as the end of a sentence; None when it may.

    With OR, one side that allows it is enough; with AND, all must. Exceptions (WITH) only ever add rights.
    """
    if licence is None:
        return f"it has no licence: {reason or 'no reason is given'}"
    tokens = _tokens(licence)
    if tokens is None:
        return f"{licence!r} is not an SPDX expression"
    missing = _Reader(tokens).either()
    return None if not missing else f"{' and '.join(sorted(missing))} {_why(missing)}"


def require_redistribution(model: str, licence: str | None, reason: str | None) -> None:
    """Raises LicenceForbids (QF752)."""
    why = refusal(licence, reason)
    if why is not None:
        raise LicenceForbids(
            f"{model}: {why}",
            remedy="correct licence.spdx in model.yaml if it is wrong; the accepted ones are in docs/publish.md",
        )


def _why(missing: frozenset[str]) -> str:
    if any("-NC" in name for name in missing):
        return "forbids commercial use, which nobody can promise for everybody who downloads it"
    if any("-ND" in name for name in missing):
        return "forbids changed versions, and a context binary is one"
    if any(name.startswith(("LicenseRef-", "DocumentRef-")) for name in missing):
        return "has terms of its own, which a person must judge"
    return "is not among the licences known to allow redistribution"


def _tokens(licence: str) -> list[str] | None:
    """The expression's tokens in SPDX's own spelling, or None when it is no expression."""
    from packaging.licenses import (  # noqa: PLC0415 - start-up
        InvalidLicenseExpression,
        canonicalize_license_expression,
    )

    try:
        official = canonicalize_license_expression(licence)
    except InvalidLicenseExpression:
        return None
    return official.replace("(", " ( ").replace(")", " ) ").split()


class _Reader:
    """Reads a valid expression; each method gives the identifiers that stand in the way, empty when none does."""

    def __init__(self, tokens: list[str]) -> None:
        self._left = tokens[::-1]

    def either(self) -> frozenset[str]:
        found = self._all()
        while self._left and self._left[-1] == "OR":
            self._left.pop()
            other = self._all()
            found = found | other if found and other else frozenset()
        return found

    def _all(self) -> frozenset[str]:
        found = self._one()
        while self._left and self._left[-1] == "AND":
            self._left.pop()
            found |= self._one()
        return found

    def _one(self) -> frozenset[str]:
        word = self._left.pop()
        if word == "(":
            found = self.either()
            self._left.pop()
            return found
        if self._left and self._left[-1] == "WITH":
            del self._left[-2:]
        return frozenset() if word.removesuffix("+") in _ACCEPTED else frozenset({word})
