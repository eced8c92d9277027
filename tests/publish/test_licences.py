"""Which licences let a model be passed on."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression

from qnn.errors.publish import LicenceForbids
from qnn.publish.card import _HUB_LICENCES
from qnn.publish.licences import COPYLEFT, PERMISSIVE, refusal, require_redistribution


@pytest.mark.parametrize(
    "licence",
    [
        "MIT",
        "Apache-2.0",
        "CC-BY-SA-4.0",
        "AGPL-3.0-only",
        "MIT OR CC-BY-NC-4.0",
        "CC-BY-NC-4.0 OR MIT",
        "MIT AND Apache-2.0",
        "(MIT AND CC-BY-NC-4.0) OR Apache-2.0",
        "MIT AND (CC-BY-NC-4.0 OR ISC)",
        "GPL-2.0-or-later WITH Classpath-exception-2.0",
    ],
)
def test_these_allow_it(licence: str) -> None:
    assert refusal(licence, None) is None


@pytest.mark.parametrize(
    ("licence", "words"),
    [
        ("CC-BY-NC-4.0", "commercial"),
        ("CC-BY-NC-SA-4.0", "commercial"),
        ("CC-BY-NC-ND-4.0", "commercial"),
        ("CC-BY-ND-4.0", "changed versions"),
        ("LicenseRef-Llama", "terms of its own"),
        ("MIT AND CC-BY-NC-4.0", "commercial"),
        ("MIT AND (CC-BY-NC-4.0 OR LicenseRef-X)", "commercial"),
        ("CC-BY-NC-4.0 OR CC-BY-ND-4.0", "CC-BY-NC-4.0 and CC-BY-ND-4.0"),
        ("OSL-3.0", "not among"),
        ("MIT-ish", "not an SPDX expression"),
        ("MIT AND", "not an SPDX expression"),
        ("", "not an SPDX expression"),
    ],
)
def test_these_do_not(licence: str, words: str) -> None:
    assert words in (refusal(licence, None) or "")


def test_no_licence_is_refused_with_its_reason() -> None:
    with pytest.raises(LicenceForbids, match="toy: it has no licence: the author states none"):
        require_redistribution("toy", None, "the author states none")


def test_every_licence_in_the_tables_is_one_of_spdx_in_its_own_spelling() -> None:
    for licence in [*PERMISSIVE, *COPYLEFT, *_HUB_LICENCES]:
        assert canonicalize_license_expression(licence) == licence
    assert not PERMISSIVE & COPYLEFT
    assert _HUB_LICENCES.keys() <= PERMISSIVE | COPYLEFT


def test_the_documented_tables_are_these() -> None:
    page = (Path(__file__).parents[2] / "docs" / "publish.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0]: line.split(" | ")[1] for line in page.splitlines() if line.count(" | ") == 1}
    assert set(rows["| permissive"].removesuffix(" |").split(", ")) == PERMISSIVE
    [copyleft] = [row for name, row in rows.items() if name.startswith("| the same licence again")]
    assert set(copyleft.removesuffix(" |").split(", ")) == COPYLEFT
