"""The schema is sound and complete, and our reading of it is jsonschema's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from qnn.model.construct import construct
from qnn.model.schema import ANNOTATIONS, KEYWORDS, Fault, faults, model_schema, resolve
from qnn.model.spec import Model
from tests.model.mutate import ODD_VALUES, VALID, mutated

THEIRS = Draft202012Validator(model_schema())


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    yield schema
    for group in ("properties", "$defs"):
        for child in schema.get(group, {}).values():
            yield from _subschemas(child)
    for key in ("additionalProperties", "propertyNames", "items"):
        if isinstance(schema.get(key), dict):
            yield from _subschemas(schema[key])


def test_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(model_schema())


def test_uses_no_keyword_that_is_not_interpreted() -> None:
    used = {keyword for schema in _subschemas(model_schema()) for keyword in schema}
    assert used - KEYWORDS <= ANNOTATIONS
    assert used >= KEYWORDS - {"minLength"}, "a keyword that is interpreted and used nowhere"


def test_beside_a_reference_stand_annotations_only() -> None:
    for schema in _subschemas(model_schema()):
        assert "$ref" not in schema or schema.keys() - {"$ref"} <= ANNOTATIONS, schema


def test_no_mapping_takes_unknown_keys() -> None:
    for schema in _subschemas(model_schema()):
        if "properties" in schema and "type" in schema:
            assert schema["additionalProperties"] is False, schema


def test_every_key_is_described_with_an_example_that_is_valid() -> None:
    defs = model_schema()["$defs"]
    for schema in _subschemas(model_schema()):
        for key, child in schema.get("properties", {}).items():
            whole = resolve(child)
            if schema.get("properties", {}).keys() >= {"fp16", "w8a8"}:
                continue  # the precisions explain themselves
            assert whole.get("description"), key
            assert whole.get("examples"), key
            for example in whole["examples"]:
                Draft202012Validator({**child, "$defs": defs}).validate(example)


def test_pattern_has_its_words() -> None:
    for schema in _subschemas(model_schema()):
        assert ("pattern" in schema) == ("patternErrorMessage" in schema), schema


def _ours(data: Any) -> set[tuple[Any, ...]]:
    return {_place(fault) for fault in faults(data)}


def _place(fault: Fault) -> tuple[Any, ...]:
    match fault.keyword:
        case "additionalProperties":
            return (fault.path[:-1], "additionalProperties")
        case "propertyNames":
            return (fault.path[:-1], fault.names[0])  # jsonschema names the keyword inside
    return (fault.path, fault.keyword)


def _theirs(data: Any) -> set[tuple[Any, ...]]:
    """Their errors; at a value of the wrong type ours says only that."""
    errors: list[ValidationError] = list(THEIRS.iter_errors(data))
    wrong_type = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    return {
        (tuple(error.absolute_path), error.validator)
        for error in errors
        if error.validator == "type" or tuple(error.absolute_path) not in wrong_type
    }


def test_the_sample_is_valid() -> None:
    assert _ours(VALID) == _theirs(VALID) == set()


def test_finds_what_jsonschema_finds_in_every_place() -> None:
    for path in _paths(VALID):
        for value in ODD_VALUES:
            data = _replaced(VALID, path, value)
            assert _ours(data) == _theirs(data), (path, value)


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    steps = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, item in steps:
        yield from _paths(item, (*path, step))


def _replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The data with the value at a path changed; what is not on the way is shared."""
    if not path:
        return value
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[path[0]] = _replaced(data[path[0]], path[1:], value)
    return changed


@settings(max_examples=200)
@given(mutated())
def test_finds_what_jsonschema_finds(data: Any) -> None:
    assert _ours(data) == _theirs(data)


_ANY = st.recursive(
    st.sampled_from(ODD_VALUES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*VALID, "x", "local", "file", "shape"]), inner, max_size=5)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from([*VALID, "x"]), _ANY) | _ANY)
def test_finds_what_jsonschema_finds_in_anything(data: Any) -> None:
    assert _ours(data) == _theirs(data)


@settings(max_examples=200)
@given(mutated())
def test_what_the_schema_passes_can_be_constructed(data: Any) -> None:
    if not _ours(data):
        assert isinstance(construct(data, folder=_NOWHERE), Model)


_NOWHERE = Path("nowhere")
