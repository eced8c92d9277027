"""What unquoted scalars mean, held against PyYAML (YAML 1.1) and the core schema of YAML 1.2."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qnn.model.scalars import Doubt, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("FALSE", False),
        ("0", 0),
        ("-7", -7),
        ("320", 320),
        ("999999999999999", 999999999999999),
        ("6.20", 6.2),
        ("1e-3", 0.001),  # text to PyYAML, but a number can be all that is meant
        ("1.", 1.0),
        (".5", 0.5),
        ("1.0.0", "1.0.0"),
        ("v1", "v1"),
        ("y", "y"),  # the name of an input as likely as not; PyYAML takes it for text too
        ("x", "x"),
        ("-", "-"),
        ("e3", "e3"),
        ("1e", "1e"),
    ],
)
def test_taken(text: str, value: object) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("no", 'write false, or "no" in quotes'),
        ("On", 'write true, or "On" in quotes'),
        ("1_000", 'write 1000, or "1_000" in quotes if a text is meant'),
        ("12:30", 'write "12:30" in quotes'),
        ("2026-01-31", 'write "2026-01-31" in quotes'),
        ("012", 'write a plain decimal number, or "012" in quotes if a text is meant'),
        ("08", 'write a plain decimal number, or "08" in quotes if a text is meant'),
        ("0x1F", 'write a plain decimal number, or "0x1F" in quotes if a text is meant'),
        ("0o17", 'write a plain decimal number, or "0o17" in quotes if a text is meant'),
        (".inf", "write a number, or leave the key out"),
        ("-.NaN", "write a number, or leave the key out"),
        ("1e400", 'write a smaller number, or "1e400" in quotes if a text is meant'),
        ("1000000000000000", 'write a smaller number, or "1000000000000000" in quotes if a text is meant'),
        ("<<", 'write "<<" in quotes'),
    ],
)
def test_refused(text: str, remedy: str) -> None:
    found = resolve(text)
    assert isinstance(found, Doubt)
    assert found.remedy == remedy


# What PyYAML takes for something other than text, and texts of the same letters that come near it.
_FORMS = sorted({form.pattern for forms in yaml.SafeLoader.yaml_implicit_resolvers.values() for _, form in forms})
_NEARLY = st.one_of(
    st.text("0123456789+-._:eExobTZ aflnrsuyNO~=<", max_size=12),
    *(st.from_regex(re.compile(form, re.VERBOSE), fullmatch=True) for form in _FORMS),
)


def _is_plain(text: str) -> bool:
    """Whether YAML takes the text for one unquoted scalar."""
    try:
        events = [event for event in yaml.parse(f"- {text}\n") if isinstance(event, yaml.NodeEvent)]
    except yaml.YAMLError:
        return False
    scalars = [event for event in events if isinstance(event, yaml.ScalarEvent)]
    return len(events) == 2 and [scalar.value for scalar in scalars] == [text]


@settings(max_examples=200)
@given(_NEARLY)
def test_whatever_is_taken_means_the_same_to_pyyaml(text: str) -> None:
    assume(_is_plain(text))
    found = resolve(text)
    assume(not isinstance(found, Doubt))
    theirs = yaml.safe_load(f"- {text}\n")[0]
    if isinstance(found, float) and isinstance(theirs, str):
        assert "e" in text.lower()  # 1e-3: the one exception
        return
    assert theirs == found
    assert type(theirs) is type(found)
