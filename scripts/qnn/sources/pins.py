"""Putting sha256 and size into the text of a model.yaml, and nothing else: comments, order and layout stay.

A pure function of texts. Where things stand comes from YAML's own parser; the result is read back and compared, so an
edit that would change anything else is refused instead of made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from qnn.errors.sources import PinNotWritten
from qnn.model.spec import SourceKind

_ADDRESSES = tuple(kind.value for kind in SourceKind)
_SHA256_DIGITS = 64
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
# Digits alone, or with one e, are numbers to YAML: a sha256 of that form needs quotes.
_NUMBER = re.compile(r"[0-9]+(?:e[0-9]+)?")
_Shape: TypeAlias = "tuple[str, object]"


@dataclass(frozen=True)
class Pin:
    """What a source's file is: sha256 (64 lower-case hex digits) and size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class _Edit:
    """Replace text[begin:end] by `text`. Of two edits at one place, a replacement comes before an addition."""

    begin: int
    end: int
    text: str
    adds: bool = False


def with_pins(text: str, pins: Mapping[str, Pin]) -> str:
    """The text of a model.yaml with these sources pinned; `pins` is by source name.

    Values that are there are replaced, missing ones are added after `file` or the address. Raises PinNotWritten
    (QF323) when the text cannot be edited without changing something else.
    """
    before = _compose(text)
    if before is None:
        raise _refused(pins, "it cannot be read as YAML")
    edits: list[_Edit] = []
    for name, pin in sorted(pins.items()):
        source = _mapping(before, "sources", name)
        if source is None:
            raise _refused(pins, f'it has no mapping for source "{name}"')
        edits += _edits(text, source, pin)
    edited = text
    end = len(text) + 1
    for edit in sorted(edits, key=lambda edit: (edit.begin, edit.adds), reverse=True):
        if edit.end > end:
            raise _refused(pins, "two sources share the same text")
        edited = edited[: edit.begin] + edit.text + edited[edit.end :]
        end = edit.begin
    _check(before, edited, pins)
    return edited


def _edits(text: str, source: yaml.MappingNode, pin: Pin) -> list[_Edit]:
    entries = {key.value: (key, value) for key, value in source.value if isinstance(key, yaml.ScalarNode)}
    wanted = {"sha256": pin.sha256, "size": str(pin.size)}
    edits = [_replacement(text, entries[name][1], value) for name, value in wanted.items() if name in entries]
    missing = {name: value for name, value in wanted.items() if name not in entries}
    after = next((name for name in _anchors(missing) if name in entries), None)
    if missing and after is not None:
        edits.append(_addition(text, source, entries[after], missing))
    return [edit for edit in edits if text[edit.begin : edit.end] != edit.text]


def _anchors(missing: Mapping[str, str]) -> tuple[str, ...]:
    """Keys after which the missing ones go, the best first."""
    usual = ("file", *_ADDRESSES)
    return usual if "sha256" in missing else ("sha256", *usual)


def _replacement(text: str, value: yaml.Node, new: str) -> _Edit:
    begin, end = value.start_mark.index, value.end_mark.index
    if begin == end:  # nothing after the colon, or in {…, size} not even that
        colon = "" if text[begin - 1 : begin] == ":" else ":"
        return _Edit(begin, end, f"{colon} {_scalar(new)}")
    style = value.style if isinstance(value, yaml.ScalarNode) else None
    quote = style if style in ("'", '"') and len(new) == _SHA256_DIGITS else ""
    return _Edit(begin, _last_ink(text, begin, end), f"{quote}{new}{quote}" if quote else _scalar(new))


def _addition(
    text: str, source: yaml.MappingNode, after: tuple[yaml.Node, yaml.Node], missing: Mapping[str, str]
) -> _Edit:
    key, value = after
    quote = key.style if isinstance(key, yaml.ScalarNode) and key.style in ("'", '"') else ""
    entries = [f"{quote}{name}{quote}: {_scalar(new)}" for name, new in missing.items()]
    end = _last_ink(text, key.start_mark.index, value.end_mark.index)
    if source.flow_style:
        return _Edit(end, end, "".join(f", {entry}" for entry in entries), adds=True)
    line_break = _BREAK.search(text, end)
    here = line_break.start() if line_break else len(text)
    any_break = line_break or _BREAK.search(text)
    newline = any_break[0] if any_break else "\n"
    indent = " " * key.start_mark.column
    return _Edit(here, here, "".join(f"{newline}{indent}{entry}" for entry in entries), adds=True)


def _last_ink(text: str, begin: int, end: int) -> int:
    """The end of a value without the white space after it, which the marks of block scalars include."""
    return begin + len(text[begin:end].rstrip())


def _scalar(value: str) -> str:
    return f'"{value}"' if len(value) == _SHA256_DIGITS and _NUMBER.fullmatch(value) else value


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)  # the C loader counts positions in bytes
    except (yaml.YAMLError, ValueError, OverflowError):  # the last two: escapes beyond Unicode
        return None


def _mapping(node: yaml.Node | None, *path: str) -> yaml.MappingNode | None:
    for step in path:
        if not isinstance(node, yaml.MappingNode):
            return None
        found = [value for key, value in node.value if isinstance(key, yaml.ScalarNode) and key.value == step]
        node = found[0] if len(found) == 1 else None
    return node if isinstance(node, yaml.MappingNode) else None


def _check(before: yaml.Node, edited: str, pins: Mapping[str, Pin]) -> None:
    """The edited text must read as before, apart from the pins, which must read as meant."""
    after = _compose(edited)
    if after is None or _shape(after, pins, ()) != _shape(before, pins, ()):
        raise _refused(pins, "the edit would change something else")
    for name, pin in pins.items():
        source = _mapping(after, "sources", name)
        entries = [] if source is None else [(key.value, value.tag, value.value) for key, value in source.value]
        meant = [("sha256", "tag:yaml.org,2002:str", pin.sha256), ("size", "tag:yaml.org,2002:int", str(pin.size))]
        if sorted(entry for entry in entries if entry[0] in ("sha256", "size")) != meant:
            raise _refused(pins, "the new values would not be read as meant")


def _shape(node: yaml.Node, pins: Mapping[str, Pin], path: tuple[str, ...]) -> _Shape:
    """A node as plain nested values, without the pins of the sources that are being pinned."""
    if isinstance(node, yaml.SequenceNode):
        return node.tag, [_shape(item, pins, (*path, "-")) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return node.tag, node.value
    pinned = len(path) == 2 and path[0] == "sources" and path[1] in pins
    return node.tag, [
        (_shape(key, pins, (*path, "?")), _shape(value, pins, (*path, str(key.value))))
        for key, value in node.value
        if not (pinned and key.value in ("sha256", "size"))
    ]


def _refused(pins: Mapping[str, Pin], reason: str) -> PinNotWritten:
    return PinNotWritten(
        f"the pins cannot be written into this file: {reason}",
        remedy="write them in by hand",
        details=[f"{name}: sha256: {pin.sha256}, size: {pin.size}" for name, pin in sorted(pins.items())],
    )
