"""Which licences restrict what may be done with a model."""

import pytest

from qnn.model.licences import restriction


@pytest.mark.parametrize(
    ("spdx", "words"),
    [
        ("CC-BY-NC-SA-4.0", "CC-BY-NC-SA-4.0 forbids commercial use"),
        ("cc-by-nc-4.0", "cc-by-nc-4.0 forbids commercial use"),
        ("PolyForm-Noncommercial-1.0.0", "PolyForm-Noncommercial-1.0.0 forbids commercial use"),
        ("CC-BY-ND-4.0", "CC-BY-ND-4.0 forbids changed versions, and a context binary is one"),
        (
            "AGPL-3.0-or-later",
            "AGPL-3.0-or-later asks whoever offers a service with it to publish the service's source",
        ),
        ("MIT AND CC-BY-NC-4.0", "CC-BY-NC-4.0 forbids commercial use"),
        ("MIT OR Apache-2.0 AND CC-BY-NC-4.0", ""),
        ("(MIT OR Apache-2.0) AND CC-BY-NC-4.0", "CC-BY-NC-4.0 forbids commercial use"),
        ("CC-BY-NC-4.0 OR MIT", ""),
        ("CC-BY-NC-4.0 OR CC-BY-ND-4.0", "CC-BY-ND-4.0 forbids changed versions, and a context binary is one"),
        ("GPL-3.0-only WITH Classpath-exception-2.0 AND CC-BY-NC-4.0", "CC-BY-NC-4.0 forbids commercial use"),
        ("CC-BY-SA-4.0", ""),
        ("GPL-3.0-only", ""),
        ("LGPL-3.0-only", ""),
        ("LicenseRef-NC", ""),
        ("MIT", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_restrictions(spdx: str | None, words: str) -> None:
    assert restriction(spdx) == words


@pytest.mark.parametrize("nonsense", ["(", ")", "((MIT", "OR", "AND AND", "MIT WITH", "MIT OR", "AGPL-3.0-only AND ("])
def test_what_is_no_expression_is_read_without_an_error(nonsense: str) -> None:
    assert restriction(nonsense) in ("", restriction("AGPL-3.0-only"))
