"""Index documents: written and read back, strict about what a client needs, open to what it does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.errors.index import InvalidIndex, NewerIndex
from qnn.index import schema as schema_module
from qnn.index.document import (
    ROOT,
    RootIndex,
    VersionIndex,
    from_json,
    model_path,
    to_json,
    version_path,
)
from qnn.index.schema import index_schema
from qnn.index.update import add_release
from tests.index.examples import manifest, published, release

SHIPPED = Path(schema_module.__file__).with_name("index.schema.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    add_release(tmp_path, release(published(manifest()), published(manifest("SM8750"), "cd")))
    return tmp_path


@pytest.fixture
def version(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / version_path("toy", "1.0")).read_text())
    return document


def read(document: object) -> VersionIndex:
    return from_json(json.dumps(document), VersionIndex, "1.0.json")


def test_documents_are_written_and_read_back(folder: Path) -> None:
    root, version = ((folder / path).read_text() for path in (ROOT, version_path("toy", "1.0")))
    assert to_json(from_json(root, RootIndex, "root")) == root
    assert to_json(from_json(version, VersionIndex, "version")) == version
    found = from_json(version, VersionIndex, "version").variants[0].files[0]
    assert (found.soc, found.soc_id, found.size, found.graphs[0].numerics[0].gates.cosine) == ("SM8650", 57, 1234, 0.99)


def test_a_file_is_a_line_so_that_grep_finds_it(folder: Path) -> None:
    lines = (folder / version_path("toy", "1.0")).read_text().splitlines()
    found = [line for line in lines if '"soc":"SM8750"' in line]
    assert len(found) == 1
    assert json.loads(found[0].removesuffix(","))["sha256"] == "cd" * 32


def test_the_shipped_schema_is_the_dataclasses_and_accepts_what_is_written(folder: Path) -> None:
    assert json.loads(SHIPPED.read_text()) == index_schema(), "run: make docs"
    jsonschema.Draft202012Validator.check_schema(index_schema())
    for path in sorted((folder / "v1").rglob("*.json")):
        jsonschema.validate(json.loads(path.read_text()), index_schema())


def test_what_is_not_known_is_ignored(version: dict[str, Any]) -> None:
    plain = read(version)
    version["later"] = {"anything": 1}
    version["variants"][0]["files"][0]["signature"] = "x"
    assert read(version) == plain
    jsonschema.validate(version, index_schema())


def test_a_newer_schema_is_refused_by_its_number(version: dict[str, Any]) -> None:
    version["schema"] = 2
    with pytest.raises(NewerIndex, match="schema version 2; this qnn-forge reads version 1"):
        read(version)


@pytest.mark.parametrize("number", [None, "1", True, 0, 1.0, -1])
def test_a_schema_version_is_a_number(version: dict[str, Any], number: object) -> None:
    version["schema"] = number
    with pytest.raises(InvalidIndex, match="names no schema version"):
        read(version)


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("size", "1234", "expected int @ $.variants[0].files[0].size"),
        ("size", True, "expected int @ $.variants[0].files[0].size"),
        ("size", -1, "cannot be the size"),
        ("size", 1 << 60, "cannot be the size"),
        ("fp16", "false", "expected bool @ $.variants[0].files[0].fp16"),
        ("sha256", "AB" * 32, "cannot be the sha256"),
        ("sha256", 5, "expected str @ $.variants[0].files[0].sha256"),
        ("name", "../../etc/passwd", "cannot be a file"),
        ("name", ".hidden", "cannot be a file"),
        ("qairt", "latest", "cannot be the QAIRT version"),
        ("minimum_runtime", "2.٤٨", "cannot be the QAIRT version"),
        ("revision", 0, "cannot be the revision"),
        ("urls", [], "has no address"),
        ("urls", "https://x", "@ $.variants[0].files[0].urls"),
        ("graphs", None, "@ $.variants[0].files[0].graphs"),
    ],
)
def test_what_a_client_needs_must_be_right(version: dict[str, Any], key: str, value: object, complaint: str) -> None:
    version["variants"][0]["files"][0][key] = value
    with pytest.raises(InvalidIndex) as caught:
        read(version)
    assert complaint in " ".join(caught.value.lines())


def test_what_a_client_needs_must_be_there(version: dict[str, Any]) -> None:
    del version["variants"][0]["files"][0]["sha256"]
    with pytest.raises(InvalidIndex) as caught:
        read(version)
    assert "sha256" in " ".join(caught.value.details)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["schema", "model", "version", "variants", "files"]), inner, max_size=5)
        ),
        max_leaves=12,
    )
)
def test_anything_else_is_one_clear_error(document: object) -> None:
    with pytest.raises((InvalidIndex, NewerIndex)):
        read(document)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"schema": 1} x', "null"])
def test_so_is_what_is_no_json(text: str) -> None:
    with pytest.raises(InvalidIndex):
        from_json(text, RootIndex, "index.json")


@pytest.mark.parametrize("name", ["..", "a/b", "", "A", "x" * 65, "a\n"])
def test_a_path_is_made_of_names_only(name: str) -> None:
    with pytest.raises(InvalidIndex):
        model_path(name)
    with pytest.raises(InvalidIndex):
        version_path("toy", f"/{name}")
