from __future__ import annotations

import textwrap
from dataclasses import dataclass

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qnn.errors.base import ForgeError
from qnn.sources.pins import Pin, with_pins

A = Pin("a1" * 32, 4745517)
B = Pin("b2" * 32, 11)


def text(yaml_text: str) -> str:
    return textwrap.dedent(yaml_text).lstrip("\n")


def test_missing_pins_go_after_file_and_address() -> None:
    before = text(
        """
        # the head stays
        name:   ppocr-v4     # odd spacing stays
        sources:
          det:
            pypi: rapidocr-onnxruntime==1.4.4   # why this one
            file: models/det.onnx  # the detector

          # a comment between
          rec: {local: rec.onnx, file: "x"}
          licence: { "local":"LICENSE" , }
          far:
              url: "https://example.org/x"
        buckets: {p320: {height: 320}}
        """
    )
    assert with_pins(before, {"det": A, "rec": B, "licence": B, "far": A}) == text(
        f"""
        # the head stays
        name:   ppocr-v4     # odd spacing stays
        sources:
          det:
            pypi: rapidocr-onnxruntime==1.4.4   # why this one
            file: models/det.onnx  # the detector
            sha256: {A.sha256}
            size: 4745517

          # a comment between
          rec: {{local: rec.onnx, file: "x", sha256: {B.sha256}, size: 11}}
          licence: {{ "local":"LICENSE", "sha256": {B.sha256}, "size": 11 , }}
          far:
              url: "https://example.org/x"
              sha256: {A.sha256}
              size: 4745517
        buckets: {{p320: {{height: 320}}}}
        """
    )


def test_values_that_are_there_are_replaced_in_their_style() -> None:
    before = text(
        f"""
        sources:
          a:
            sha256: "{"0" * 63}f"   # quoted
            url: https://example.org/x
            size: 7 # seven
          b: {{sha256: 'old', size: 1_000, local: x}}
          c:
            local: x
            sha256:   # to be filled
            size:
          d:
            local: x
            sha256: TODO
          e:
            size: 3
            local: x   # after this
          f:
            local: x
            sha256: |
              folded
            size: ~
          g: {{local: x, sha256, size: }}
        """
    )
    names = "abcdefg"
    assert with_pins(before, dict.fromkeys(names, A)) == text(
        f"""
        sources:
          a:
            sha256: "{A.sha256}"   # quoted
            url: https://example.org/x
            size: {A.size} # seven
          b: {{sha256: '{A.sha256}', size: {A.size}, local: x}}
          c:
            local: x
            sha256: {A.sha256}   # to be filled
            size: {A.size}
          d:
            local: x
            sha256: {A.sha256}
            size: {A.size}
          e:
            size: {A.size}
            local: x   # after this
            sha256: {A.sha256}
          f:
            local: x
            sha256: {A.sha256}
            size: {A.size}
          g: {{local: x, sha256: {A.sha256}, size: {A.size} }}
        """
    )


def test_nothing_changes_where_nothing_has_to() -> None:
    before = f"sources:\n  a: {{local: x, sha256: {A.sha256}, size: {A.size}}}\n"
    assert with_pins(before, {"a": A}) == before


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_stay(newline: str, end: str, mark: str) -> None:
    before = mark + f"sources:\n  é😀:\n    local: ü😀  # ö{end}".replace("\n", newline)
    after = mark + (
        f"sources:\n  é😀:\n    local: ü😀  # ö\n    sha256: {A.sha256}\n    size: {A.size}{end}".replace("\n", newline)
    )
    assert with_pins(before, {"é😀": A}) == after


def test_one_line_of_json_works_too() -> None:
    before = '{"sources":{"a":{"local":"x"},"b":{"url":"https://example.org/x","sha256":"","size":0}}}'
    after = with_pins(before, {"a": A, "b": B})
    assert yaml.safe_load(after)["sources"] == {
        "a": {"local": "x", "sha256": A.sha256, "size": A.size},
        "b": {"url": "https://example.org/x", "sha256": B.sha256, "size": B.size},
    }


@pytest.mark.parametrize("value", ["1" * 64, "0" * 64, "12" * 30 + "1e22"])
def test_a_sha256_that_looks_like_a_number_stays_text(value: str) -> None:
    pin = Pin(value, 5)
    for before in ("sources:\n  a:\n    local: x\n", "sources:\n  a: {local: x, sha256: old}\n"):
        after = yaml.safe_load(with_pins(before, {"a": pin}))
        assert after["sources"]["a"]["sha256"] == value


@pytest.mark.parametrize(
    "before",
    [
        "",
        "sources: [",
        "sources: 5",
        "sources:\n  a: 5\n",
        "sources:\n  b: {local: x}\n",
        "sources:\n  a: {local: x}\nsources:\n  a: {local: x}\n",
        "sources:\n  a: &x {local: x, size: 3}\n  b: *x\n",
        "sources:\n  a:\n    local: x\n    sha256: *nothing\n",
        "sources:\n  a:\n    ? local\n    : x\n",
        "a: &h old\nsources:\n  a: {local: x, sha256: *h, size: 4}\n",
        "sources:\n  a: {other: x}\n",
        "\t- x",
        'a: "\\UFFFFFFFF"',
    ],
)
def test_what_cannot_be_edited_safely_is_refused(before: str) -> None:
    wanted = {"a": A, "b": A} if "b: *x" in before else {"a": A}
    with pytest.raises(ForgeError) as caught:
        with_pins(before, wanted)
    assert caught.value.id == "QF323"
    assert any(A.sha256 in line and str(A.size) in line for line in caught.value.details)


def test_an_anchor_elsewhere_is_not_touched() -> None:
    before = "sources:\n  a: {local: x, sha256: &h old, size: 4}\nother: *h\n"
    with pytest.raises(ForgeError) as caught:
        with_pins(before, {"a": A})
    assert caught.value.id == "QF323"


@dataclass(frozen=True)
class Layout:
    """A model.yaml in some layout, and the names of its sources."""

    text: str
    names: tuple[str, ...]


WORDS = st.from_regex(r"x[a-z0-9-]{0,6}", fullmatch=True)  # none that YAML takes for true or false
COMMENTS = st.sampled_from(["", "  # note: {x}", " # 'é \U0001f600", "\t# tab"])
OLD_VALUES = st.sampled_from(["", " old", " 'old'", ' "old"', " ~", " 12", f" {'c3' * 32}", " [1, 2]", " {x: y}"])
ADDRESSES = st.sampled_from(["x", "'it''s'", '"a\\tb"', "a b", "x:y", "é", "x#y"])
KINDS = st.sampled_from(["pypi", "huggingface", "url", "github", "local"])
QUOTED = st.sampled_from(["{}", '"{}"', "'{}'"])


@st.composite
def entries(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Keys and values of one source in any order, some pins missing."""
    made = [(draw(QUOTED).format(draw(KINDS)), " " + draw(ADDRESSES))]
    if draw(st.booleans()):
        made.append(("file", " " + draw(ADDRESSES)))
    made += [(name, draw(OLD_VALUES)) for name in ("sha256", "size") if draw(st.booleans())]
    return draw(st.permutations(made))


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    names = draw(st.lists(WORDS, min_size=1, max_size=3, unique=True))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    indent = " " * draw(st.integers(1, 4))
    lines = ["# head", "name: x" + draw(COMMENTS), "sources:" + draw(COMMENTS)]
    for name in names:
        items = draw(entries())
        if draw(st.booleans()):
            lines.append(f"{indent}{name}:" + draw(COMMENTS))
            for key, value in items:
                lines.append(f"{indent}{indent} {key}:{value}" + draw(COMMENTS))
                lines += draw(st.sampled_from([[], [""], ["    # between"], ["# far left"]]))
        else:
            comma = draw(st.sampled_from([", ", " , ", f",{newline}{indent}  "]))
            inside = comma.join(f"{key}:{value}" for key, value in items)
            lines.append(f"{indent}{name}: {{{inside}}}" + draw(COMMENTS))
    lines += draw(st.sampled_from([[], ["graphs: {a: [1, 2.50, yes]}"], ["", "other: |", "  text", "", "  more"]]))
    return Layout(newline.join(lines) + draw(st.sampled_from(["", newline])), tuple(names))


SHA256 = st.one_of(
    st.text("0123456789abcdef", min_size=64, max_size=64), st.text("0123456789", min_size=64, max_size=64)
)
PINS = st.builds(Pin, SHA256, st.integers(1, 1 << 40))


@settings(max_examples=100, deadline=None)
@given(layout=layouts(), data=st.data())
def test_an_edit_changes_the_pins_and_nothing_else(layout: Layout, data: st.DataObject) -> None:
    try:
        before = yaml.safe_load(layout.text)
    except yaml.YAMLError:
        assume(False)
    chosen = data.draw(st.lists(st.sampled_from(layout.names), min_size=1, unique=True))
    pins = {name: data.draw(PINS) for name in chosen}
    edited = with_pins(layout.text, pins)
    after = yaml.safe_load(edited)
    for name, pin in pins.items():
        assert (after["sources"][name]["sha256"], after["sources"][name]["size"]) == (pin.sha256, pin.size)
    assert without(after, chosen) == without(before, chosen)
    for comment in ("# head", "# note: {x}", "# 'é \U0001f600", "# tab", "# between", "# far left"):
        assert edited.count(comment) == layout.text.count(comment)
    assert with_pins(edited, pins) == edited


def without(document: dict[str, dict[str, dict[str, object]]], names: list[str]) -> dict[str, object]:
    """A parsed model.yaml without the pins of some sources."""
    sources = {
        name: {key: value for key, value in source.items() if not (name in names and key in ("sha256", "size"))}
        for name, source in document["sources"].items()
    }
    return {**document, "sources": sources}
