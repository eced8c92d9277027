"""docs/model-yaml.md is what the schema says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from qnn.model.reference import render
from qnn.model.schema import faults, model_schema
from tests.model.mutate import VALID

DOCS = Path(__file__).parents[2] / "docs" / "model-yaml.md"


def test_docs_are_what_the_schema_says() -> None:
    assert DOCS.read_text(encoding="utf-8") == render(), "run: python -m qnn.model.reference docs/model-yaml.md"


def test_every_key_has_a_section() -> None:
    assert re.findall(r"^## (.+)$", render(), re.MULTILINE) == list(model_schema()["properties"])


def test_every_example_is_yaml_that_the_schema_takes() -> None:
    blocks = re.findall(r"```yaml\n(\w.*?)```", render(), re.DOTALL)
    assert len(blocks) == len(model_schema()["properties"])
    for line in (line for block in blocks for line in block.splitlines()):
        example: dict[str, Any] = yaml.safe_load(line)
        assert not list(faults({**VALID, **example})), line


def test_rows_name_form_and_need() -> None:
    rows = render().splitlines()
    assert "| `sources.SOURCE.size` | whole number, at least 1, at most 1099511627776 |" in " ".join(rows)
    assert any(row.startswith("| `graphs.GRAPH.inputs` | mapping, needed |") for row in rows)
    assert any(row.startswith("| `targets.exclude[].reason` | text, at most 200 characters, needed |") for row in rows)
