"""Reading documents as if an attacker had written them: bytes → JSON → dataclasses, nothing taken on trust."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TypeVar, get_args, get_origin

from qnn.errors.report import UnreadableReport
from qnn.report.document import KIND, SCHEMA_VERSION, Report

if TYPE_CHECKING:
    from cattrs import Converter

# The limit of a report in bytes; `qnn-forge report --format json` keeps to it.
MAX_BYTES = 1 << 20
# Characters of one text, and the greatest whole number that JSON readers agree on.
MAX_TEXT = 4096
MAX_WHOLE = 2**53
_REMEDY = "write it again with this version of qnn-forge, or look at the log of the job that wrote it"
_Kind = TypeVar("_Kind")


def read_file(path: Path, limit: int) -> bytes:
    """The bytes of a plain file that holds at most `limit`. Raises UnreadableReport (QF920).

    Links are not followed and pipes not waited for: the folder may have been filled by someone else.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path.name, error.strerror or "cannot be opened") from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise unreadable(path.name, "not a plain file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return bounded(file, limit, path.name)
    finally:
        os.close(handle)


def bounded(file: BinaryIO, limit: int, name: str) -> bytes:
    """All bytes of an open file when it holds at most `limit`. Raises UnreadableReport (QF920)."""
    raw = file.read(limit + 1)
    if len(raw) > limit:
        raise unreadable(name, f"more than {limit:,} bytes")
    return raw


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def parse(raw: bytes, name: str, *, constant: Callable[[str], object] = _no_constant) -> dict[str, Any]:
    """A JSON object from UTF-8. Raises UnreadableReport (QF920).

    A key twice is refused; so are NaN and infinities, unless `constant` gives something for them.
    """
    try:
        document = json.loads(raw.decode("utf-8"), parse_constant=constant, object_pairs_hook=_no_key_twice)
    except RecursionError:
        raise unreadable(name, "nested too deeply") from None
    except ValueError as error:
        raise unreadable(name, f"not JSON: {_first_line(error)}") from None
    if not isinstance(document, dict):
        raise unreadable(name, "not a JSON object")
    return document


def read_report(raw: bytes, name: str) -> Report:
    """A report from its JSON document. Raises UnreadableReport (QF920) unless it is exactly one."""
    if len(raw) > MAX_BYTES:
        raise unreadable(name, f"more than {MAX_BYTES:,} bytes")
    document = parse(raw, name)
    if document.get("kind") != KIND:
        raise unreadable(name, f"its kind is not {KIND}")
    version = document.get("schema")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise unreadable(name, f"its schema version is not {SCHEMA_VERSION}")
    return structure(document, Report, name)


def structure(document: Any, kind: type[_Kind], name: str, *, extra: bool = False) -> _Kind:
    """A dataclass from parsed JSON; `extra` keys are refused unless allowed. Raises UnreadableReport (QF920)."""
    from cattrs import BaseValidationError, transform_error  # noqa: PLC0415 - start-up

    try:
        return _converter(extra=extra).structure(document, kind)
    except BaseValidationError as error:
        found = transform_error(error)
        raise unreadable(name, "; ".join(found[:_SHOWN])) from None


def unreadable(name: str, reason: str) -> UnreadableReport:
    """The error, with a reason of bounded length."""
    return UnreadableReport(f"{name}: {reason[:_LONGEST_REASON]}", remedy=_REMEDY)


_SHOWN = 5
_LONGEST_REASON = 500


def _first_line(error: ValueError) -> str:
    return (str(error).splitlines() or [""])[0]


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _text(value: Any, _: object) -> str:
    if type(value) is not str or len(value) > MAX_TEXT:
        raise ValueError(f"not a text of at most {MAX_TEXT} characters")
    return value


def _whole(value: Any, _: object) -> int:
    if type(value) is not int or not 0 <= value <= MAX_WHOLE:
        raise ValueError("not a whole number from 0 to 2**53")
    return value


def _number(value: Any, _: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > _GREATEST:
        raise ValueError("not a number")
    return float(value)


def _truth(value: Any, _: object) -> bool:
    if type(value) is not bool:
        raise ValueError("not true or false")
    return value


_GREATEST = 1e300


def _converter(*, extra: bool) -> Converter:
    from cattrs import Converter  # noqa: PLC0415
    from cattrs.gen import make_dict_structure_fn  # noqa: PLC0415

    converter = Converter(forbid_extra_keys=not extra)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(int, _whole)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(bool, _truth)

    def objects(kind: type[Any]) -> Callable[[Any, Any], Any]:
        inner = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=not extra)

        def structure_object(value: Any, of: Any) -> Any:
            if not isinstance(value, dict):
                raise ValueError("not an object")
            return inner(value, of)

        return structure_object

    def lists(value: Any, kind: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError("not a list")
        # cattrs' own hook for list[...] notes the place of every wrong item.
        listed: Any = GenericAlias(list, get_args(kind)[:1])
        return tuple(converter.structure(value, listed))

    converter.register_structure_hook_factory(dataclasses.is_dataclass, objects)
    converter.register_structure_hook_func(_is_tuple, lists)
    return converter


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple
