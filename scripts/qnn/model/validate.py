"""Faults of the schema as problems: the lint rule, the place and plain words for each."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping

from qnn.errors.model import Problem
from qnn.model.document import Document, KeyPath, Value
from qnn.model.nearest import nearest, suggest
from qnn.model.rules import addresses, structure
from qnn.model.schema import Fault, Schema, faults, identity, model_schema, resolve
from qnn.model.text import short

_LONGEST_EXAMPLE = 70


def validate(document: Document) -> Iterator[Problem]:
    """Every breach of model.schema.json."""
    found = list(faults(document.data))
    misspelt = {(fault.path[:-1], near) for fault in found if (near := _meant(fault, document)) is not None}
    for fault in found:
        if not _explained(fault, misspelt):
            yield _WORDS[fault.keyword](fault, document)


def _explained(fault: Fault, misspelt: set[tuple[KeyPath, str]]) -> bool:
    """Whether a key only seems missing because it is misspelt, which is reported already."""
    if fault.keyword not in ("required", "dependentRequired", "oneOf") or not isinstance(fault.value, dict):
        return False
    wanted = fault.names[:1] if fault.keyword != "oneOf" else fault.names
    return any((fault.path, name) in misspelt for name in wanted if name not in fault.value)


def name_of(path: KeyPath) -> str:
    """How messages call a value: ``graphs.det.inputs.x[2]``; the root is ``the model``."""
    words = ""
    for step in path:
        words += f"[{step}]" if isinstance(step, int) else f".{short(step)}" if words else short(step)
    return words or "the model"


def _meant(fault: Fault, document: Document) -> str | None:
    """The known key that an unknown one is nearest to, of those that are not there already."""
    if fault.keyword != "additionalProperties":
        return None
    there = _at(document.data, fault.path[:-1])
    known = [key for key in fault.schema.get("properties", ()) if not isinstance(there, dict) or key not in there]
    return nearest(fault.names[0], known)


def _at(data: Value, path: KeyPath) -> Value:
    for step in path:
        data = data[step]  # type: ignore[index] # the path comes from this very data
    return data


def _unknown(fault: Fault, document: Document) -> Problem:
    key = fault.names[0]
    if near := _meant(fault, document):
        remedy = f'did you mean "{near}"?'
    elif home := _homes().get(key):
        remedy = f"it belongs under {home}"
    else:
        remedy = f"delete it; the keys here are {', '.join(fault.schema.get('properties', ()))}"
    message = f'unknown key "{short(key)}" in {name_of(fault.path[:-1])}'
    return structure.UnknownKey.problem(document.at_key(fault.path), message, remedy)


@functools.cache
def _homes() -> Mapping[str, str]:
    """Every key of the format below the top, and where it belongs; the shortest way, if to several places."""
    homes = sorted(_keys(model_schema(), ()), key=lambda home: (len(home[1]), home))
    return {key: ".".join(path) for key, path in reversed(homes) if path}


def _keys(schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    schema = resolve(schema)
    for key, child in schema.get("properties", {}).items():
        yield key, path
        yield from _keys(child, (*path, key))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _keys(schema["additionalProperties"], (*path, schema.get("x-key", "NAME")))
    if "items" in schema:
        yield from _keys(schema["items"], path)


def _missing(fault: Fault, document: Document) -> Problem:
    key = fault.names[0]
    message = f'{name_of(fault.path)} has no key "{key}"'
    if fault.keyword == "dependentRequired":
        message = f'{name_of(fault.path)} has "{fault.names[1]}" but no "{key}"'
    examples = resolve(fault.schema["properties"][key]).get("examples", ())
    example = f"{key}: {json.dumps(examples[0], ensure_ascii=False)}" if examples else ""
    remedy = f"add it, as in {example}" if 0 < len(example) <= _LONGEST_EXAMPLE else "add it"
    return structure.MissingKey.problem(document.at_key(fault.path), message, remedy)


_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "number": "a number",
    "integer": "a whole number",
}


def _wrong_type(fault: Fault, document: Document) -> Problem:
    wanted = fault.schema["type"]
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    written = document.written.get(fault.path, "")
    message = f"{name_of(fault.path)} must be {' or '.join(_KINDS[kind] for kind in kinds)}, not {_is(fault, written)}"
    empty = fault.value is None and not written
    place = document.at_key(fault.path) if empty else document.at_value(fault.path)
    return structure.WrongType.problem(place, message, _as_wanted(fault.value, written, kinds, fault.schema))


def _is(fault: Fault, written: str) -> str:
    value = fault.value
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the word {short(written)}"
    if isinstance(value, str):
        return f'the text "{short(value)}"'
    if isinstance(value, list):
        return "a list"
    return "a mapping" if isinstance(value, dict) else f"the number {short(written)}"


def _as_wanted(value: Value, written: str, kinds: list[str], schema: Schema) -> str:
    """What to do about a value of the wrong kind."""
    if value is None and not written:
        return "give it a value"
    if "string" in kinds and not isinstance(value, (list, dict)):
        return f'quote it: "{short(written)}"'
    if "array" in kinds and isinstance(value, (str, int, float)):
        return f"put it in brackets: [{short(written or str(value))}]"
    if isinstance(value, str) and {"number", "integer"} & set(kinds) and _is_number(value):
        return f"take the quotes away: {short(value)}"
    example = json.dumps(schema.get("examples", [""])[0], ensure_ascii=False)
    fits = len('""') < len(example) <= _LONGEST_EXAMPLE
    return f"write it as in {example}" if fits else f"write {' or '.join(_KINDS[kind] for kind in kinds)}"


def _is_number(words: str) -> bool:
    try:
        float(words)
    except ValueError:
        return False
    return True


def _bad(fault: Fault, document: Document) -> Problem:
    message, remedy = _bad_words(fault)
    return structure.BadValue.problem(document.at_value(fault.path), message, remedy)


_BOUNDS = {
    "minimum": ("is {shown}, which is too small", "write at least {wanted}"),
    "exclusiveMinimum": ("is {shown}, which is too small", "write more than {wanted}"),
    "maximum": ("is {shown}, which is too large", "write at most {wanted}"),
    "minLength": ("is empty", "give it a value"),
    "minItems": ("is empty", "give it an item"),
    "minProperties": ("is empty", "give it a key"),
    "maxLength": ("is {size} characters long", "write at most {wanted}"),
    "maxItems": ("has {size} items", "leave at most {wanted}"),
    "maxProperties": ("has {size} keys", "leave at most {wanted}"),
}


def _bad_words(fault: Fault) -> tuple[str, str]:
    name, wanted, value = name_of(fault.path), fault.schema[fault.keyword], fault.value
    shown = f'"{short(value)}"' if isinstance(value, str) else f"{value}"
    if fault.keyword == "enum":
        remedy = suggest(str(value), wanted, f"write one of {', '.join(wanted)}")
        return f"{name} is {shown}, which is not known", remedy
    if fault.keyword == "pattern":
        return f"{name} is {shown}, which is not in the right form", f"write {fault.schema['patternErrorMessage']}"
    message, remedy = _BOUNDS[fault.keyword]
    size = len(value) if isinstance(value, (str, list, dict)) else 0
    return f"{name} {message.format(shown=shown, size=size)}", remedy.format(wanted=wanted)


def _pattern(fault: Fault, document: Document) -> Problem:
    rule = addresses.BY_ID.get(fault.schema.get("x-rule", ""))
    if rule is None:
        return _bad(fault, document)
    message, remedy = rule.explain(str(fault.value))
    return rule.problem(document.at_value(fault.path), message, remedy)


def _twice(fault: Fault, document: Document) -> Problem:
    seen = set()
    items = fault.value if isinstance(fault.value, list) else []
    for index, item in enumerate(items):
        if identity(item) in seen:
            message = f"{name_of(fault.path)} has {short(json.dumps(item, ensure_ascii=False))} twice"
            return structure.BadValue.problem(document.at_value((*fault.path, index)), message, "delete one of the two")
        seen.add(identity(item))
    raise AssertionError("uniqueItems failed on a list without duplicates")


def _bad_name(fault: Fault, document: Document) -> Problem:
    key = str(fault.value)
    parent = name_of(fault.path[:-1])
    if fault.names[0] == "maxLength":
        limit = fault.schema["maxLength"]
        message, remedy = f"a name in {parent} is {len(key)} characters long", f"write at most {limit}"
    else:
        message = f'the name "{short(key)}" in {parent} is not in the right form'
        remedy = f"write {fault.schema['patternErrorMessage']}"
    return structure.BadName.problem(document.at_key(fault.path), message, remedy)


def _one_of(fault: Fault, document: Document) -> Problem:
    name, there = name_of(fault.path), fault.value if isinstance(fault.value, dict) else {}
    present = sorted((key for key in fault.names if key in there), key=list(there).index)
    if not present:
        message = f"{name} has none of the keys {', '.join(fault.names)}"
        return structure.OneKeyOf.problem(document.at_key(fault.path), message, "add one of them")
    return structure.OneKeyOf.problem(
        document.at_key((*fault.path, present[1])), f"{name} has both {' and '.join(present)}", "keep one of them"
    )


_WORDS: Mapping[str, Callable[[Fault, Document], Problem]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "dependentRequired": _missing,
    "type": _wrong_type,
    "pattern": _pattern,
    "uniqueItems": _twice,
    "propertyNames": _bad_name,
    "oneOf": _one_of,
    "enum": _bad,
    "minimum": _bad,
    "exclusiveMinimum": _bad,
    "maximum": _bad,
    "minLength": _bad,
    "maxLength": _bad,
    "minItems": _bad,
    "maxItems": _bad,
    "minProperties": _bad,
    "maxProperties": _bad,
}
