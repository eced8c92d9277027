"""The resolution of docs/index.md: test vectors, our resolver, and one written from the prose alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from qnn import index
from qnn.errors.base import ForgeError
from qnn.index.chips import chip_table, find_chip
from qnn.index.document import ChipsIndex, ModelIndex, VersionIndex, from_json
from qnn.index.schema import index_schema
from qnn.pull.resolve import resolve
from qnn.pull.wish import Wish, parse_runtime
from tests.index.prose_resolver import answer

VECTORS = json.loads((Path(index.__file__).with_name("vectors.json")).read_text(encoding="utf-8"))
DOCUMENTS: dict[str, Any] = VECTORS["documents"]
CASES = [pytest.param(case, id=case["why"]) for case in VECTORS["cases"]]


def ours(ask: dict[str, Any]) -> tuple[str, str | None]:
    """What pull's own resolver answers."""
    table = chip_table(from_json(json.dumps(DOCUMENTS["v1/chips.json"]), ChipsIndex, "chips"))
    try:
        chip = find_chip(table, ask["soc"])
    except ForgeError:
        return "no", None
    path = f"v1/models/{ask['model']}.json"
    if path not in DOCUMENTS:
        return "no", None
    model = from_json(json.dumps(DOCUMENTS[path]), ModelIndex, path)
    version = f"v1/models/{ask['model']}/{ask['version'] or model.latest}.json"
    if version not in DOCUMENTS:
        return "no", None
    wish = Wish(
        ask["model"],
        chip,
        ask["version"],
        ask.get("bucket"),
        ask.get("precision"),
        parse_runtime(ask["runtime"]) if "runtime" in ask else None,
        ask.get("revision"),
        ask.get("allow_yanked", False),
    )
    choice = resolve(from_json(json.dumps(DOCUMENTS[version]), VersionIndex, version), wish)
    return choice.verdict.value, None if choice.file is None else choice.file.name


@pytest.mark.parametrize("case", CASES)
def test_our_resolver_answers_as_the_vectors_say(case: dict[str, Any]) -> None:
    assert ours(case["ask"]) == (case["verdict"], case["file"])


@pytest.mark.parametrize("case", CASES)
def test_so_does_one_written_from_the_prose(case: dict[str, Any]) -> None:
    assert answer(DOCUMENTS, case["ask"]) == (case["verdict"], case["file"])


def test_the_vectors_are_documents_of_the_schema_and_cover_every_verdict() -> None:
    schema = index_schema()
    for path, kind in (("chips", "ChipsIndex"), ("models/toy", "ModelIndex"), ("models/toy/1.0", "VersionIndex")):
        jsonschema.validate(DOCUMENTS[f"v1/{path}.json"], {"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})
    assert {case["verdict"] for case in VECTORS["cases"]} == {"use", "use with a warning", "build it", "no"}
    assert len(VECTORS["cases"]) == len({case["why"] for case in VECTORS["cases"]}) == 42
