"""The SARIF document has the shape that SARIF 2.1.0 and GitHub code scanning ask for."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from qnn import __version__
from qnn.errors.base import Place
from qnn.errors.model import Kind, Problem
from qnn.report.lint_sarif import sarif

PROBLEMS = [
    Problem("QF104", Kind.ERROR, Place("models/a b/model.yaml", 7, 9), 'no source "x"', "add it"),
    Problem("QF105", Kind.HINT, Place("models/a b/model.yaml", 29, 3), "nothing uses it", "delete it"),
    Problem("QF104", Kind.ERROR, Place("models/c/model.yaml", 8, 9), 'no source "y"', "add it"),
    Problem("QF001", Kind.ERROR, Place("models/d/model.yaml"), "there is none", "add one"),
]

_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
# The part of the standard's schema (OASIS, sarif-schema-2.1.0.json) that the document uses, written strictly.
SHAPE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["$schema", "version", "runs"],
    "properties": {
        "$schema": {"type": "string", "pattern": "sarif-schema-2.1.0.json$"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "additionalProperties": False,
                                "required": ["name", "version", "informationUri", "rules"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "informationUri": {"type": "string", "pattern": "^https://"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "additionalProperties": False,
                                            "required": ["id", "shortDescription", "helpUri", "help"],
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": _TEXT,
                                                "fullDescription": _TEXT,
                                                "help": {
                                                    **_TEXT,
                                                    "properties": {"text": {}, "markdown": {"type": "string"}},
                                                },
                                                "helpUri": {"type": "string", "pattern": "^https://"},
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {"level": {"enum": ["error", "note"]}},
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["error", "note"]},
                                "message": _TEXT,
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {
                                        "type": "object",
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "additionalProperties": False,
                                                "required": ["artifactLocation", "region"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "type": "object",
                                                        "properties": {"uri": {"pattern": r"^[A-Za-z0-9._~%/-]+$"}},
                                                    },
                                                    "region": {
                                                        "type": "object",
                                                        "additionalProperties": False,
                                                        "properties": {
                                                            "startLine": {"type": "integer", "minimum": 1},
                                                            "startColumn": {"type": "integer", "minimum": 1},
                                                        },
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def _run(problems: list[Problem]) -> Any:
    document: Any = sarif(problems)
    Draft202012Validator(SHAPE).validate(document)
    return document["runs"][0]


def test_shape() -> None:
    assert _run([])["results"] == []
    assert _run(PROBLEMS)["tool"]["driver"]["version"] == __version__


def test_rules_that_spoke_are_described_once() -> None:
    run = _run(PROBLEMS)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["QF001", "QF104", "QF105"]
    assert [rule["defaultConfiguration"]["level"] for rule in rules] == ["error", "error", "note"]
    assert rules[1]["helpUri"] == "https://github.com/qnn-forge/qnn-forge/blob/main/docs/lint/QF104.md"
    assert rules[1]["shortDescription"]["text"] == "a source that does not exist"
    assert rules[1]["name"] == "KnownSource"
    assert rules[1]["help"]["text"].endswith("Correct the name, or add the source.")


def test_results_point_to_rule_and_place() -> None:
    results = _run(PROBLEMS)["results"]
    assert [(result["ruleId"], result["ruleIndex"], result["level"]) for result in results] == [
        ("QF104", 1, "error"),
        ("QF105", 2, "note"),
        ("QF104", 1, "error"),
        ("QF001", 0, "error"),
    ]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert places[0] == {
        "artifactLocation": {"uri": "models/a%20b/model.yaml"},
        "region": {"startLine": 7, "startColumn": 9},
    }
    assert places[3]["region"] == {"startLine": 1, "startColumn": 1}
    assert results[0]["message"]["text"] == 'no source "x"; add it'
