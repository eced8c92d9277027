"""The provenance statement: what it says, and what is refused when it is read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from qnn.errors.provenance import OfAnotherFile, UnreadableStatement
from qnn.provenance import statement as module
from qnn.provenance.run import LOCAL, run_from_environment
from qnn.provenance.statement import check_statement, predicate, read_statement, statement
from qnn.provenance.subject import Subject, subject_of
from tests.provenance.conftest import BUNDLES, COMMIT, GITHUB, RUN

GOLDEN = Path(__file__).with_name("statement.golden.json")
SUBJECTS = [one.file for one in BUNDLES]
MANIFESTS = [one.manifest for one in BUNDLES]
RAW = statement(SUBJECTS, MANIFESTS, RUN)


def test_the_statement_is_the_golden_one() -> None:
    """Written once and read by a person; a change of it is a change of the format."""
    assert RAW.decode() == GOLDEN.read_text(encoding="utf-8")


def test_the_same_bundles_in_another_order_give_the_same_bytes() -> None:
    assert statement(SUBJECTS[::-1], MANIFESTS[::-1], RUN) == RAW


def test_the_predicate_is_the_statement_s() -> None:
    assert json.loads(predicate(MANIFESTS, RUN)) == json.loads(RAW)["predicate"]


def test_it_says_who_built_from_which_commit() -> None:
    found = read_statement(RAW)
    assert found.builder == "https://github.com/acme/forge/.github/workflows/release.yaml@refs/tags/v1.0.0"
    assert found.commit == COMMIT
    assert found.invocation == "https://github.com/acme/forge/actions/runs/1234/attempts/2"
    assert found.subjects == tuple(sorted(SUBJECTS))
    assert found.stages[MANIFESTS[0].name] == {"package": "11" * 32, "prepare net": "cd" * 32}


def test_a_local_build_says_so_and_names_no_workflow() -> None:
    found = read_statement(statement(SUBJECTS, MANIFESTS, LOCAL))
    assert found.builder.endswith("docs/provenance.md#local")
    assert (found.commit, found.invocation) == (None, None)


@pytest.mark.parametrize(
    "missing", sorted(set(GITHUB) - {"GITHUB_RUN_ATTEMPT", "GITHUB_EVENT_NAME", "RUNNER_ENVIRONMENT"})
)
def test_a_run_that_cannot_name_itself_is_local(missing: str) -> None:
    assert run_from_environment({name: value for name, value in GITHUB.items() if name != missing}) == LOCAL


def test_a_run_is_read_from_github_s_variables() -> None:
    assert RUN.workflow is not None
    assert RUN.workflow.path == ".github/workflows/release.yaml"
    assert RUN.workflow.ref == "refs/tags/v1.0.0"
    assert (RUN.workflow.event, RUN.workflow.runner) == ("push", "github-hosted")
    enterprise = run_from_environment(GITHUB | {"GITHUB_SERVER_URL": "https://github.example.com"})
    assert enterprise.builder.startswith("https://github.example.com/acme/forge/.github/")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One of the two files a statement is about."""
    path = tmp_path / "toy.tar.gz"
    path.write_bytes(b"a bundle")
    return path


@pytest.fixture
def raw(file: Path) -> bytes:
    return statement([subject_of(file), Subject("other.tar.gz", "22" * 32)], MANIFESTS, RUN)


def test_the_file_it_is_about_is_accepted(raw: bytes, file: Path) -> None:
    assert subject_of(file) in check_statement(raw, file).subjects


def test_a_changed_file_is_refused(raw: bytes, file: Path) -> None:
    stated = subject_of(file).sha256
    file.write_bytes(b"a bundle!")
    with pytest.raises(OfAnotherFile, match=r"toy\.tar\.gz is not the file") as caught:
        check_statement(raw, file)
    assert caught.value.details == (f"stated sha256 {stated}", f"actual sha256 {subject_of(file).sha256}")


def test_a_file_it_does_not_name_is_refused(raw: bytes, file: Path) -> None:
    other = file.rename(file.with_name("toy2.tar.gz"))
    with pytest.raises(OfAnotherFile, match=r"does not name toy2\.tar\.gz"):
        check_statement(raw, other)


def definition(said: Any) -> Any:
    return said["predicate"]["buildDefinition"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda said: said.update(_type="https://in-toto.io/Statement/v0.1"), "$['_type']"),
        (lambda said: said.update(predicateType="https://slsa.dev/provenance/v0.2"), "$.predicateType"),
        (lambda said: said.update(extra=1), "$"),
        (lambda said: said.update(subject=[]), "$.subject"),
        (lambda said: said["subject"][0].update(name="../toy.tar.gz"), "$.subject[0].name"),
        (lambda said: said["subject"][0]["digest"].update(sha256="AB" * 32), "$.subject[0].digest.sha256"),
        (lambda said: said["subject"][0].update(digest={"sha1": "ab" * 20}), "$.subject[0].digest"),
        (lambda said: definition(said).update(buildType="x"), "$.predicate.buildDefinition.buildType"),
        (lambda said: definition(said).pop("resolvedDependencies"), "$.predicate.buildDefinition"),
        (lambda said: said["predicate"].pop("runDetails"), "$.predicate"),
        (lambda said: said["predicate"]["runDetails"]["builder"].pop("id"), "$.predicate.runDetails.builder"),
    ],
)
def test_a_changed_statement_is_refused_where_it_was_changed(
    raw: bytes, file: Path, change: Callable[[Any], object], place: str
) -> None:
    said = json.loads(raw)
    change(said)
    edited = (json.dumps(said, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()
    with pytest.raises(UnreadableStatement) as caught:
        check_statement(edited, file)
    assert f"not valid at {place}:" in caught.value.message


@pytest.mark.parametrize(
    "edit",
    [
        lambda raw: raw[:500],
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw + b" ",
        lambda raw: raw.replace(b'"_type"', b'"subject": [],\n  "_type"', 1),
        lambda _: b"",
        lambda _: b"null",
        lambda raw: b"\xff" + raw,
        lambda _: b"[" * 100_000,
        lambda raw: raw.replace(b"toy.tar.gz", b"\\ud800.tar.gz"),
    ],
    ids=["cut off", "line ends", "white space", "a key twice", "empty", "null", "no text", "brackets", "surrogate"],
)
def test_bytes_that_qnn_forge_did_not_write_are_refused(raw: bytes, file: Path, edit: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UnreadableStatement):
        check_statement(edit(raw), file)


def test_the_schema_is_a_schema_and_knows_the_constants() -> None:
    schema = json.loads(Path(module.__file__).with_name("statement.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["_type"]["const"] == module.STATEMENT_TYPE
    assert schema["properties"]["predicateType"]["const"] == module.PREDICATE_TYPE
    constants = schema["properties"]["predicate"]["properties"]["buildDefinition"]["properties"]["buildType"]
    assert constants["const"] == module.BUILD_TYPE


def test_two_versions_of_the_toolkit_are_both_named() -> None:
    manifests = [MANIFESTS[0], replace(MANIFESTS[1], forge="0.2.0")]
    said = json.loads(predicate(manifests, RUN))
    assert said["runDetails"]["builder"]["version"] == {"qnn-forge": "0.1.0, 0.2.0"}
