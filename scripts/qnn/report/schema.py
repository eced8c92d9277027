"""The JSON Schema of a report, made from the dataclasses so that the two cannot disagree.

``python -m qnn.report.schema FILE`` writes it; a test asserts that the shipped file is what this makes.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

from qnn.report.document import KIND, SCHEMA_VERSION, Report
from qnn.report.strict import MAX_TEXT, MAX_WHOLE

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string", "maxLength": MAX_TEXT},
    int: {"type": "integer", "minimum": 0, "maximum": MAX_WHOLE},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}


def report_schema() -> dict[str, Any]:
    """The document (JSON Schema 2020-12)."""
    definitions: dict[str, Any] = {}
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://qnn-forge.github.io/schemas/report-{SCHEMA_VERSION}.json",
        "title": "qnn-forge report",
        **_object(Report, definitions),
    }
    schema["properties"] |= {"schema": {"const": SCHEMA_VERSION}, "kind": {"const": KIND}}
    schema["$defs"] = dict(sorted(definitions.items()))
    return schema


def _object(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    return {
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "properties": {name: _schema(hints[name], definitions) for name in fields},
        "required": fields,
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_schema(argument, definitions) for argument in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    name = hint.__name__.lower()
    if name not in definitions:
        definitions[name] = _object(hint, definitions)
    return {"$ref": f"#/$defs/{name}"}


def main(target: str) -> None:
    """Write the schema file."""
    Path(target).write_text(json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
