"""docs/model-yaml.md: every key of model.yaml, written out from the schema.

`python -m qnn.model.reference docs/model-yaml.md` writes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from qnn.model.schema import Schema, model_schema, resolve

_TYPES = {
    "object": "mapping",
    "array": "list",
    "string": "text",
    "boolean": "true or false",
    "number": "number",
    "integer": "whole number",
}
_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("maxItems", "at most {} items"),
    ("maxProperties", "at most {} key"),
    ("maxLength", "at most {} characters"),
)

_HEAD = """\
# model.yaml

{description}
This page is generated from `scripts/qnn/model/model.schema.json` by `make docs`. The first line of a model.yaml may
name that schema, so that editors check and complete while you type:

```yaml
# yaml-language-server: $schema=../../scripts/qnn/model/model.schema.json
```

Names in CAPITALS are the author's choice. A mapping may be written over several lines or in braces, a list over
several lines or in brackets. Tabs, anchors, aliases, tags and unknown keys are errors; `qnn-forge lint` reports every
problem with its line, see [the rules](lint/README.md).
"""


def render() -> str:
    """The whole page."""
    schema = model_schema()
    required = schema["required"]
    parts = [_HEAD.format(description=schema["description"])]
    parts += ["| key | needed | what |", "|---|---|---|"]
    for key, child in schema["properties"].items():
        needed = "yes" if key in required else "no"
        parts.append(
            f"| [`{key}`](#{key}) | {needed} | {resolve(child)['description'].partition('. ')[0].rstrip('.')} |"
        )
    for key, child in schema["properties"].items():
        parts += ["", f"## {key}", "", *_section(key, child)]
    return "\n".join(parts) + "\n"


def _section(key: str, schema: Schema) -> Iterator[str]:
    schema = resolve(schema)
    yield schema["description"]
    yield ""
    yield f"{_form(schema).capitalize()}."
    examples = schema.get("examples", ())
    if examples:
        yield from ("", "```yaml", *(f"{key}: {_yaml(example)}" for example in examples), "```")
    rows = list(_rows(schema, key, set()))
    if rows:
        yield from ("", "| key | form | what | example |", "|---|---|---|---|", *rows)


def _rows(schema: Schema, path: str, needed: set[str]) -> Iterator[str]:
    """A table row for every key below a mapping or a list of mappings."""
    schema = resolve(schema)
    required = set(schema.get("required", ()))
    for key, child in schema.get("properties", {}).items():
        yield from _row(child, f"{path}.{key}", key in required)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _row(schema["additionalProperties"], f"{path}.{schema['x-key']}", False)
    if "items" in schema:
        yield from _rows(schema["items"], f"{path}[]", needed)


def _row(schema: Schema, path: str, needed: bool) -> Iterator[str]:
    schema = resolve(schema)
    what = schema.get("description", "")
    example = " or ".join(f"`{_yaml(example)}`" for example in schema.get("examples", ()))
    form = _form(schema) + (", needed" if needed else "")
    if what:
        yield f"| `{path}` | {form} | {what} | {example} |".replace("  ", " ")
    yield from _rows(schema, path, set())


def _form(schema: Schema) -> str:
    """What a value must look like, in words."""
    kinds = schema["type"]
    words = [" or ".join(_TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))]
    if "enum" in schema:
        words.append(" or ".join(f"`{value}`" for value in schema["enum"]))
    if "items" in schema and "enum" in (items := resolve(schema["items"])):
        words.append("of " + ", ".join(f"`{value}`" for value in items["enum"]))
    if "patternErrorMessage" in schema:
        words[0] += f" ({schema['patternErrorMessage']})"
    if "oneOf" in schema:
        words.append("with one of " + ", ".join(f"`{choice['required'][0]}`" for choice in schema["oneOf"]))
    words += [text.format(schema[bound]) for bound, text in _BOUNDS if bound in schema]
    if "default" in schema:
        words.append(f"default {json.dumps(schema['default'])}")
    return ", ".join(words)


def _yaml(example: object) -> str:
    """An example in YAML's flow style; texts in quotes only where they need them."""
    if isinstance(example, dict):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(value)}" for key, value in example.items()) + "}"
    if isinstance(example, list):
        return "[" + ", ".join(_yaml(item) for item in example) + "]"
    if isinstance(example, str) and _is_plain(example):
        return example
    return json.dumps(example, ensure_ascii=False)


def _is_plain(words: str) -> bool:
    from qnn.model.scalars import resolve as meaning  # noqa: PLC0415 - only examples ask

    special = words.startswith(tuple("*&!%@`'\"#|>-?")) or set(words) & set(",[]{}") or ": " in words or " #" in words
    return meaning(words) == words and not special


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
