"""Checks plain data against model.schema.json, the one description of the format.

The jsonschema package takes longer to import (70 ms) than a build with nothing to do may spend on a model, so the few
keywords that the schema uses are interpreted here. Tests hold this module to jsonschema: on generated documents both
must find the same faults at the same places, and the schema may use no keyword that is not known here.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from qnn.model.document import KeyPath, Unreadable, Value

# Any: JSON as json.loads gives it; the metaschema test vouches for its form.
Schema: TypeAlias = Mapping[str, Any]

SCHEMA_FILE = Path(__file__).with_name("model.schema.json")

# Keywords that say something to readers and editors and nothing to this module.
ANNOTATIONS = frozenset(
    {
        "$schema",
        "$id",
        "$defs",
        "title",
        "description",
        "examples",
        "default",
        "patternErrorMessage",
        "x-rule",  # the lint rule that a failing `pattern` breaks, if not the general one
        "x-key",  # what the reference calls the keys of a mapping with names of the author's choice
    }
)


@dataclass(frozen=True)
class Fault:
    """One keyword of the schema that a value fails.

    `path` leads to the value; for a fault of a key (`additionalProperties`, `propertyNames`) it ends with that key.
    `schema` is the (sub)schema with the keyword. `names` are the keys it is about: the missing one (`required`), the
    missing and the one that asks for it (`dependentRequired`), those of the alternatives (`oneOf`).
    """

    path: KeyPath
    keyword: str
    schema: Schema
    value: Value
    names: tuple[str, ...] = ()


@functools.cache
def model_schema() -> Schema:
    """The schema of model.yaml."""
    schema: Schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return schema


def faults(value: Value) -> Iterator[Fault]:
    """Every fault of a model's data, in the order of the document. Nothing is said of what was UNREADABLE."""
    return _check(value, (), model_schema())


def resolve(schema: Schema) -> Schema:
    """The schema with its `$ref` followed; keywords beside the `$ref` win, as annotations do."""
    while "$ref" in schema:
        target: Schema = model_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _check(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    if isinstance(value, Unreadable):
        return
    schema = resolve(schema)
    if "type" in schema and not _has_type(value, schema["type"]):
        yield Fault(path, "type", schema, value)
        return
    for keyword, wanted in schema.items():
        if keyword in _SIMPLE:
            if not _SIMPLE[keyword](value, wanted):
                yield Fault(path, keyword, schema, value)
        elif keyword in _NESTED:
            yield from _NESTED[keyword](value, path, schema)


def _has_type(value: Value, wanted: str | list[str]) -> bool:
    return any(_TYPES[name](value) for name in ([wanted] if isinstance(wanted, str) else wanted))


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Value], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": _is_number,
    # 8.0 is an integer to JSON Schema.
    "integer": lambda value: _is_number(value) and float(value).is_integer(),  # type: ignore[arg-type]
}


def identity(item: Value) -> object:
    """Equal for two items that JSON Schema takes for the same: 1 and 1.0 are, 1 and true are not."""
    if isinstance(item, (list, dict)):
        return json.dumps(item, sort_keys=True, default=repr)
    return (isinstance(item, bool), item)


def _unique(items: list[Value]) -> bool:
    return len({identity(item) for item in items}) == len(items)


# keyword → (value, what the schema asks) → whether the value satisfies it. A value of another type always does.
_SIMPLE: Mapping[str, Callable[[Any, Any], bool]] = {
    "enum": lambda value, wanted: value in wanted,
    "minimum": lambda value, wanted: not _is_number(value) or value >= wanted,
    "exclusiveMinimum": lambda value, wanted: not _is_number(value) or value > wanted,
    "maximum": lambda value, wanted: not _is_number(value) or value <= wanted,
    "pattern": lambda value, wanted: not isinstance(value, str) or re.search(wanted, value) is not None,
    "minLength": lambda value, wanted: not isinstance(value, str) or len(value) >= wanted,
    "maxLength": lambda value, wanted: not isinstance(value, str) or len(value) <= wanted,
    "minItems": lambda value, wanted: not isinstance(value, list) or len(value) >= wanted,
    "maxItems": lambda value, wanted: not isinstance(value, list) or len(value) <= wanted,
    "uniqueItems": lambda value, wanted: not (wanted and isinstance(value, list)) or _unique(value),
    "minProperties": lambda value, wanted: not isinstance(value, dict) or len(value) >= wanted,
    "maxProperties": lambda value, wanted: not isinstance(value, dict) or len(value) <= wanted,
}


def _items(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check(item, (*path, index), schema["items"])


def _properties(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in schema["properties"]:
                yield from _check(item, (*path, key), schema["properties"][key])


def _additional_properties(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in schema.get("properties", ()):
                continue
            if schema["additionalProperties"] is False:
                yield Fault((*path, key), "additionalProperties", schema, item, (key,))
            else:
                yield from _check(item, (*path, key), schema["additionalProperties"])


def _property_names(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        for key in value:
            for fault in _check(key, (*path, key), schema["propertyNames"]):
                yield Fault(fault.path, "propertyNames", fault.schema, key, (fault.keyword,))


def _required(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        for key in schema["required"]:
            if key not in value:
                yield Fault(path, "required", schema, value, (key,))


def _dependent_required(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        for present, wanted in schema["dependentRequired"].items():
            for key in wanted:
                if present in value and key not in value:
                    yield Fault(path, "dependentRequired", schema, value, (key, present))


def _one_of(value: Value, path: KeyPath, schema: Schema) -> Iterator[Fault]:
    """Alternatives are told apart by their required keys and by nothing else."""
    if isinstance(value, dict):
        names = tuple(key for alternative in schema["oneOf"] for key in alternative["required"])
        if sum(all(key in value for key in alternative["required"]) for alternative in schema["oneOf"]) != 1:
            yield Fault(path, "oneOf", schema, value, names)


_NESTED: Mapping[str, Callable[[Value, KeyPath, Schema], Iterator[Fault]]] = {
    "items": _items,
    "properties": _properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent_required,
    "oneOf": _one_of,
}

KEYWORDS = frozenset({"type", "$ref", *_SIMPLE, *_NESTED})
