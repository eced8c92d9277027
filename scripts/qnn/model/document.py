"""A YAML file as plain data, with the line and column of every key and value.

Reads the parser's events and never composes nodes, so no alias is followed, no tag is applied, no object is built and
no nesting recurses. One rule does for anchors and aliases: they are refused, and with them every way to make a small
file large. A value that cannot be used is reported once and stands in the data as `UNREADABLE`, so that everything
around it is still checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import yaml

from qnn.errors.base import Place
from qnn.errors.model import Problem
from qnn.model import text
from qnn.model.rules import syntax
from qnn.model.rules.base import Rule
from qnn.model.scalars import Doubt, Scalar, resolve

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20

_Loader: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable:
    """Stands where a value was refused; no check says anything more about it."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE = Unreadable()

Value: TypeAlias = "Scalar | Unreadable | list[Value] | dict[str, Value]"
KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """The data of one file. Positions are (line, column), 1-based, columns in characters.

    `keys` has the positions of mapping keys, `values` those of all values, both by the path from the root.
    `written` has the text of unquoted scalars that are no text (``6.20`` for 6.2).
    """

    shown: str
    data: Value
    keys: Mapping[KeyPath, tuple[int, int]]
    values: Mapping[KeyPath, tuple[int, int]]
    written: Mapping[KeyPath, str]

    def at_value(self, path: KeyPath) -> Place:
        """Where the value stands; where its nearest known container stands if there is none."""
        while path and path not in self.values:
            path = path[:-1]
        return Place(self.shown, *self.values.get(path, (1, 1)))

    def at_key(self, path: KeyPath) -> Place:
        """Where the key of this value stands; a list item, having none, is where its value is."""
        return Place(self.shown, *self.keys[path]) if path in self.keys else self.at_value(path)


@dataclass(frozen=True)
class Reading:
    """What came of a file: the document, unless there is none to speak of, and every fault of its syntax."""

    document: Document | None
    problems: tuple[Problem, ...]


def read(raw: bytes, shown: str) -> Reading:
    """Read the bytes of a model.yaml. `shown` is how its path appears in messages. Raises nothing."""
    if len(raw) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 1024} KiB"
        return Reading(None, (syntax.TooBig.problem(Place(shown, 1, 1), message, "check that it is the right file"),))
    decoded, problems = text.decode(raw, shown)
    if decoded is None:
        return Reading(None, problems)
    reader = _Reader(shown, text.tabs(decoded, shown))
    document = reader.read(decoded)
    return Reading(document, tuple(reader.problems))


class _Mark(Protocol):
    """A position as both parsers give it, counted from 0."""

    line: int
    column: int


@dataclass
class _Open:
    """A list or mapping whose end has not been read yet. `dropped`: it is read, but nothing keeps it."""

    path: KeyPath
    into: list[Value] | dict[str, Value]
    dropped: bool
    is_key: bool = False
    key: str | None = None  # in a mapping: the key that waits for its value
    key_dropped: bool = False


@dataclass
class _Reader:
    shown: str
    problems: list[Problem]
    keys: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)
    values: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)
    written: dict[KeyPath, str] = field(default_factory=dict)
    root: Value | None = None
    documents: int = 0
    stack: list[_Open] = field(default_factory=list)
    last: _Mark | None = None
    stopped: bool = False  # nothing after this can be relied on, and the reason is reported

    def read(self, decoded: str) -> Document | None:
        whole = self._events(decoded)
        if self.root is None:
            if whole and not self.problems:
                self._report(syntax.Empty, (1, 1), "the file holds no model", "start from a model that exists")
            return None
        if not whole:
            # What stands after the fault is unknown: a check of the rest would call it missing.
            return None
        return Document(self.shown, self.root, self.keys, self.values, self.written)

    def _events(self, decoded: str) -> bool:
        """Take every event; False when the end of the text was not reached."""
        try:
            for event in yaml.parse(decoded, Loader=_Loader):
                self.last = event.end_mark
                self._event(event)
                if self.stopped:
                    return self.documents > 1  # the first document is whole
        except (yaml.YAMLError, ValueError) as error:
            # ValueError: the Python scanner's own, for escapes beyond Unicode.
            self._syntax_error(error)
            return False
        return True

    def _syntax_error(self, error: yaml.YAMLError | ValueError) -> None:
        mark = getattr(error, "problem_mark", None) or self.last
        at = _position(mark) if mark else (1, 1)
        tabs = [problem.place.line or 0 for problem in self.problems if problem.id == syntax.Tab.id]
        if tabs and min(tabs) <= at[0]:
            return  # the tab is the cause, and is reported
        fault = text.explain_syntax(error)
        context = getattr(error, "context_mark", None)
        if fault.at_context and context is not None:
            at = _position(context)
        self._report(fault.rule, at, fault.message, fault.remedy)

    def _event(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                remedy = "delete the line, or move what follows to a folder of its own"
                self._report(syntax.SeveralDocuments, _start(event), "a second document starts here", remedy)
                self.stopped = True
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self.stack.pop()
            if closed.is_key:
                self.stack[-1].key, self.stack[-1].key_dropped = "", True
        elif isinstance(event, yaml.NodeEvent):
            self._node(event)

    def _node(self, event: yaml.NodeEvent) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.into, dict) and top.key is None:
            self._key(event, top, top.into)
            return
        path, dropped = self._slot(top)
        if not dropped:
            self.values[path] = _start(event)
        value = self._value(event, path, dropped)
        if top is None:
            self.root = value
        elif isinstance(top.into, list):
            top.into.append(value)
        else:
            if not top.key_dropped:
                top.into[str(top.key)] = value
            top.key, top.key_dropped = None, False

    @staticmethod
    def _slot(top: _Open | None) -> tuple[KeyPath, bool]:
        if top is None:
            return (), False
        if isinstance(top.into, list):
            return (*top.path, len(top.into)), top.dropped
        return (*top.path, str(top.key)), top.dropped or top.key_dropped

    def _value(self, event: yaml.NodeEvent, path: KeyPath, dropped: bool) -> Value:
        usable = self._no_anchor_or_tag(event)
        if isinstance(event, yaml.CollectionStartEvent):
            into: list[Value] | dict[str, Value] = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._open(event, _Open(path, into, dropped))
            return into
        if not isinstance(event, yaml.ScalarEvent) or not usable:
            return UNREADABLE
        value = self._scalar(event)
        if not isinstance(value, (str, Unreadable)) and not dropped:
            self.written[path] = event.value
        return value

    def _key(self, event: yaml.NodeEvent, top: _Open, into: dict[str, Value]) -> None:
        usable = self._no_anchor_or_tag(event)
        if isinstance(event, yaml.CollectionStartEvent):
            self._key_not_text(event, "a list or mapping")
            self._open(event, _Open(top.path, {} if isinstance(event, yaml.MappingStartEvent) else [], True, True))
            return
        top.key, top.key_dropped = "", True
        if not isinstance(event, yaml.ScalarEvent) or not usable:
            return
        if event.implicit[0] and event.value == "<<":
            self._report(
                syntax.Anchor,
                _start(event),
                "a merge key",
                "write the keys out where they are used",
            )
            return
        key = self._scalar(event)
        if isinstance(key, Unreadable):
            return
        if not isinstance(key, str):
            self._key_not_text(event, "nothing" if key is None else f"{event.value}, which is no text")
            return
        path, at = (*top.path, key), _start(event)
        if key in into:
            if not top.dropped:
                self._duplicate(path, key, at)
            return
        top.key, top.key_dropped = key, False
        if not top.dropped:
            self.keys[path] = at

    def _duplicate(self, path: KeyPath, key: str, at: tuple[int, int]) -> None:
        message = f'the key "{text.short(key)}" stands on line {self.keys[path][0]} already'
        self._report(syntax.DuplicateKey, at, message, "delete one of the two, or rename it")

    def _key_not_text(self, event: yaml.NodeEvent, what: str) -> None:
        remedy = "quote the key" if isinstance(event, yaml.ScalarEvent) else "write a name"
        self._report(syntax.KeyNotText, _start(event), f"a key is {text.short(what)}", remedy)

    def _open(self, event: yaml.NodeEvent, opened: _Open) -> None:
        if len(self.stack) >= MAX_DEPTH:
            message = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"
            self._report(syntax.TooDeep, _start(event), message, "check the brackets and indentation")
            self.stopped = True
        self.stack.append(opened)

    def _no_anchor_or_tag(self, event: yaml.NodeEvent) -> bool:
        """Report an anchor, alias or tag. False when the scalar's value is not to be used."""
        at = _start(event)
        anchor, tag = event.anchor or "", getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent):
            remedy = "write the value out here, or quote the text"
            self._report(syntax.Anchor, at, f"an alias, *{text.short(anchor)}", remedy)
            return False
        if anchor:
            self._report(syntax.Anchor, at, f"an anchor, &{text.short(anchor)}", "delete it, or quote the text")
        if tag is not None:
            self._report(syntax.Tag, at, f"a tag, {text.short(tag)}", "delete it, or quote the text")
        return not anchor and tag is None

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar | Unreadable:
        at = _start(event)
        if text.not_one_line(event.value):
            self._report(
                syntax.NotOneLine,
                at,
                "a text with a line break or a control character",
                "write it on one line, folded with >- if it is long",
            )
            return UNREADABLE
        if not event.implicit[0]:
            return str(event.value)
        value = resolve(event.value)
        if isinstance(value, Doubt):
            self._report(syntax.Ambiguous, at, f"{text.short(event.value)} is {value.why}", value.remedy)
            return UNREADABLE
        return value

    def _report(self, rule: type[Rule], at: tuple[int, int], message: str, remedy: str) -> None:
        self.problems.append(rule.problem(Place(self.shown, *at), message, remedy))


def _start(event: yaml.Event) -> tuple[int, int]:
    assert event.start_mark is not None
    return _position(event.start_mark)


def _position(mark: _Mark) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1
