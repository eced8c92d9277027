"""The JSON Schema of the index's documents, made from the dataclasses so that the two cannot disagree.

``python -m qnn.index.schema FILE`` writes it; a test asserts that the shipped file is what this makes. Unlike the
schemas of a manifest or a report it allows keys it does not know: the index grows by new fields.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qnn.index.document import SCHEMA_VERSION, ChipsIndex, ModelIndex, RootIndex, VersionIndex

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_DOCUMENTS = (RootIndex, ChipsIndex, ModelIndex, VersionIndex)


def index_schema() -> dict[str, Any]:
    """The document (JSON Schema 2020-12): any of the four kinds, each also by itself under ``$defs``."""
    definitions: dict[str, Any] = {}
    kinds = [_schema(kind, definitions) for kind in _DOCUMENTS]
    for kind in _DOCUMENTS:
        definitions[kind.__name__]["properties"]["schema"] = {"const": SCHEMA_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://qnn-forge.github.io/schemas/index-{SCHEMA_VERSION}.json",
        "title": "qnn-forge index",
        "anyOf": kinds,
        "$defs": dict(sorted(definitions.items())),
    }


def _object(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    return {
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "properties": {
            field.name: dict(_SHA256) if field.name == "sha256" else _schema(hints[field.name], definitions)
            for field in fields
        },
        "required": [field.name for field in fields if not _has_default(field)],
    }


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin in (types.UnionType, typing.Union):
        return {"type": [_PLAIN[argument] for argument in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    name = hint.__name__
    if name not in definitions:
        definitions[name] = _object(hint, definitions)
    return {"$ref": f"#/$defs/{name}"}


def main(target: str) -> None:
    """Write the schema file."""
    Path(target).write_text(json.dumps(index_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
