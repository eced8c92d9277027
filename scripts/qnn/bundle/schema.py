"""The JSON Schema of manifest.json, made from the dataclasses so that the two cannot disagree.

``python -m qnn.bundle.schema FILE`` writes it; a test asserts that the shipped file is what this makes.
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

from qnn.bundle.manifest import SCHEMA_VERSION, Manifest

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LATER = ("chain", "export", "remarks")  # manifests older than these are read as well
_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def manifest_schema() -> dict[str, Any]:
    """The document (JSON Schema 2020-12)."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://qnn-forge.github.io/schemas/manifest-{SCHEMA_VERSION}.json",
        "title": "qnn-forge bundle manifest",
    }
    definitions: dict[str, Any] = {}
    schema.update(_object(Manifest, definitions))
    schema["properties"]["schema"] = {"const": SCHEMA_VERSION}
    schema["$defs"] = dict(sorted(definitions.items()))
    return schema


def _object(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    return {
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "properties": {
            name: dict(_SHA256) if name == "sha256" else _schema(hints[name], definitions) for name in fields
        },
        "required": [name for name in fields if name not in _LATER],
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin in (types.UnionType, typing.Union):
        return _union([_schema(argument, definitions) for argument in arguments])
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    name = hint.__name__.removeprefix("Manifest").lower()
    if name not in definitions:
        definitions[name] = {}  # keeps a type that holds itself from going round for ever
        definitions[name] = _object(hint, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    if all(set(part) == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}


def main(target: str) -> None:
    """Write the schema file."""
    Path(target).write_text(json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
