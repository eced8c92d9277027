"""Reading: every fault of the text has its rule, line and column; nothing else ever comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qnn.model import document
from qnn.model.document import MAX_BYTES, MAX_DEPTH, UNREADABLE, read

GREEK = "αβγ"


def _lines(raw: bytes | str) -> list[str]:
    problems = read(raw.encode() if isinstance(raw, str) else raw, "m.yaml").problems
    return [f"{problem.place.line}:{problem.place.column} {problem.id}" for problem in problems]


FAULTS: list[tuple[str, bytes | str, list[str]]] = [
    ("latin-1", "a: 1\nb: caf\xe9\n".encode("latin-1"), ["2:7 QF002"]),
    ("utf-16", "a: 1\n".encode("utf-16"), ["1:1 QF002"]),
    ("nul", "a: 1\nbc: x\0y\n", ["2:6 QF002"]),
    ("escape character", "a: \x1b[31mred\n", ["1:4 QF002"]),
    ("right-to-left override", f"# {GREEK}\u202e\n", ["1:6 QF002"]),
    ("lone carriage return", "a: 1\rb: 2\n", ["1:5 QF002"]),
    ("line separator", "a: 1\u2028b: 2\n", ["1:5 QF002"]),
    ("too big", b"#" * (MAX_BYTES + 1), ["1:1 QF003"]),
    ("empty", "", ["1:1 QF004"]),
    ("only comments", "# nothing\n\n---\n", ["1:1 QF004"]),
    ("null", "~\n", ["1:1 QF004"]),
    ("tab", "a:\n\tb: 1\n", ["2:1 QF005"]),
    ("tab after spaces", "a:\n  \tb: 1\n  c: 2\n\t\td: 3\n", ["2:3 QF005", "4:1 QF005"]),
    ("tab in brackets", "a: [\n\tb]\n", ["2:1 QF005"]),
    ("indentation", "a:\n  b: 1\n c: 2\n", ["3:2 QF006"]),
    ("colon in a text", "a: b: c\n", ["1:5 QF006"]),
    ("no colon", "a: 1\nb\nc: 2\n", ["2:1 QF006"]),
    ("list not closed", "a: [1, 2\nb: 3\n", ["1:4 QF006"]),
    ("mapping not closed", "a: {b: 1\n", ["1:4 QF006"]),
    ("quote not closed", "a: 'x\nb: 1\n", ["1:4 QF006"]),
    ("at sign", "a: @x\n", ["1:4 QF006"]),
    ("list on the key's line", "a: - b\n", ["1:4 QF006"]),
    ("list in a mapping", "a: 1\n- b\n", ["2:1 QF006"]),
    ("directive", "%YAML 3.0\n---\na: 1\n", ["1:1 QF006"]),
    ("unknown escape", 'a: "x\\q"\n', ["1:6 QF006"]),
    ("duplicate key", "a: 1\nb: 2\na: 3\n", ["3:1 QF007"]),
    (
        "duplicate keys deep down",
        "a: {b: 1, b: 2}\nc:\n  d: 1\n  d: 2\n  d: 3\n",
        ["1:11 QF007", "4:3 QF007", "5:3 QF007"],
    ),
    ("nothing said of a dropped value", "a: 1\na: {b: 1, b: 2}\n", ["2:1 QF007"]),
    ("anchor and alias", "a: &x 1\nb: *x\n", ["1:4 QF008", "2:4 QF008"]),
    ("alias without anchor", "a: *x\n", ["1:4 QF008"]),
    ("glob", "a: [*]\n", ["1:5 QF008"]),
    ("merge key", "a:\n  <<: {b: 1}\n", ["2:3 QF008"]),
    ("two documents", "a: 1\n---\nb: 2\n", ["2:1 QF009"]),
    ("number for a key", "a: {320: 1}\n", ["1:5 QF010"]),
    ("nothing for a key", "? \n: 1\n", ["1:2 QF010"]),
    ("list for a key", "? [a, b]\n: {c: 1}\nd: 2\n", ["1:3 QF010"]),
    ("word for a key", "on: 1\n", ["1:1 QF013"]),
    ("tag", "a: !!python/object:os.system x\nb: !x {c: 1}\n", ["1:4 QF011", "2:4 QF011"]),
    ("undefined tag handle", "a: !x!y 1\n", ["1:4 QF011"]),
    ("nesting", "a: " + "[" * MAX_DEPTH, [f"1:{3 + MAX_DEPTH} QF012"]),
    ("ambiguous words and numbers", "a: no\nb: [1_000, 12:30]\n", ["1:4 QF013", "2:5 QF013", "2:12 QF013"]),
    ("line break in a text", 'a: "x\\ny"\nb: |\n  c\n', ["1:4 QF014", "2:4 QF014"]),
    ("control character by escape", 'a: "\\e[31m"\n', ["1:4 QF014"]),
]


@pytest.mark.parametrize(("raw", "expected"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_fault_has_rule_line_and_column(raw: bytes | str, expected: list[str]) -> None:
    assert _lines(raw) == expected


@pytest.mark.parametrize(("raw", "expected"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_without_libyaml_the_rules_and_lines_are_the_same(
    raw: bytes | str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The Python parser puts some faults at another column of the same line, and blames a bad directive on line 3.
    monkeypatch.setattr(document, "_Loader", yaml.SafeLoader)
    assert [line.partition(":")[::2][0] + line[-6:] for line in _lines(raw)] == [
        line.partition(":")[::2][0] + line[-6:] for line in expected
    ]


def test_messages_say_what_to_do() -> None:
    [problem] = read(b"a: 1\nb: 2\na: 3\n", "models/x/model.yaml").problems
    assert problem.line() == (
        'models/x/model.yaml:3:1 QF007 the key "a" stands on line 1 already; delete one of the two, or rename it'
    )
    [problem] = read(b"a: 12:30\n", "m.yaml").problems
    assert problem.line() == (
        'm.yaml:1:4 QF013 12:30 is a number in base 60 to YAML 1.1 and text to YAML 1.2; write "12:30" in quotes'
    )


def test_data_and_positions() -> None:
    raw = f"\ufeff# {GREEK}\r\nname: x\r\nshape: [1, {GREEK}, true]\r\ndeep:\r\n  - {{a: 1e-3, b: }}\r\n"
    found = read(raw.encode(), "m.yaml")
    assert found.problems == ()
    assert found.document is not None
    assert found.document.data == {"name": "x", "shape": [1, GREEK, True], "deep": [{"a": 0.001, "b": None}]}
    assert found.document.keys == {
        ("name",): (2, 1),
        ("shape",): (3, 1),
        ("deep",): (4, 1),
        ("deep", 0, "a"): (5, 6),
        ("deep", 0, "b"): (5, 15),
    }
    assert found.document.values[("shape", 2)] == (3, 17)
    assert found.document.values[("deep", 0)] == (5, 5)
    assert found.document.values[("deep", 0, "a")] == (5, 9)
    assert found.document.written[("deep", 0, "a")] == "1e-3"


def test_what_is_refused_does_not_hide_the_rest() -> None:
    found = read(b"a: *x\nb: {c: no, d: 1}\n? [1]\n: 2\ne: [1, !t 2, 3]\n", "m.yaml")
    assert found.document is not None
    assert found.document.data == {"a": UNREADABLE, "b": {"c": UNREADABLE, "d": 1}, "e": [1, UNREADABLE, 3]}


def test_the_first_of_two_documents_is_read() -> None:
    found = read(b"a: 1\n---\nb: 2\n", "m.yaml")
    assert found.document is not None
    assert found.document.data == {"a": 1}


def test_an_alias_bomb_stays_small() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + k)}: &{chr(98 + k)} [*{chr(97 + k)}, *{chr(97 + k)}]\n" for k in range(20)
    )
    found = read(bomb.encode(), "m.yaml")
    assert {problem.id for problem in found.problems} == {"QF008"}
    assert found.document is not None
    assert len(json.dumps(found.document.data, default=repr)) < 2000


@settings(max_examples=200)
@example(b"0E0")
@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
def test_any_bytes_are_read_or_reported(raw: bytes) -> None:
    _check(raw)


_PIECES = [
    "a",
    "b: ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\n",
    "\n  ",
    "\n\t",
    " ",
    "'",
    '"',
    "&x ",
    "*x",
    "!t ",
    "<<",
    "? ",
]
_PIECES += ["|", ">", "---", "...", "#", "%", "\\", "1", "no", "~", "\r\n", "é", "\u2028", "@"]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
def test_any_mix_of_yaml_is_read_or_reported(text: str) -> None:
    _check(text.encode())


def _check(raw: bytes) -> None:
    found = read(raw, "m.yaml")
    lines = raw.count(b"\n") + 1
    for problem in found.problems:
        assert 1 <= (problem.place.line or 0) <= lines + 1
        assert (problem.place.column or 0) >= 1
        assert "\n" not in problem.line()
    if found.document is None:
        assert found.problems
    elif not found.problems:
        # What is taken without a word means the same to PyYAML.
        assert _as_text(yaml.load(raw.decode("utf-8-sig"), document._Loader)) == _as_text(found.document.data)


def _as_text(value: object) -> object:
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    # A number with an exponent and no point (1e3) is a text to YAML 1.1, which PyYAML reads.
    return str(float(value)) if isinstance(value, str) and _EXPONENT.fullmatch(value) else str(value)


_EXPONENT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+")


def _paths(value: document.Value, path: document.KeyPath = ()) -> Iterator[document.KeyPath]:
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield from _paths(item, (*path, step))


_DATA = st.recursive(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=5)
    | st.integers(-99, 99)
    | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcé: #", max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(_DATA.filter(lambda data: data is not None), st.booleans())
def test_every_value_has_its_position(data: object, flow: bool) -> None:
    text = yaml.safe_dump(data, allow_unicode=True, default_flow_style=flow, width=10_000)
    found = read(text.encode(), "m.yaml").document
    if found is None:
        return
    assert set(_paths(found.data)) == set(found.values)
    lines = text.splitlines()
    for path, (line, column) in found.keys.items():
        written = lines[line - 1][column - 1 :]
        assert written.startswith((str(path[-1]), "'", '"')), (path, written)
