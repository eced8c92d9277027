"""The attest steps of release.yaml, run on bundles; what they leave, the real gh accepts."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from qnn.provenance.attestation import verify
from tests.provenance.conftest import BUNDLES, write_dist
from tests.workflows.conftest import BIN, Act, document, git

UNTIL = "qnn-forge publish"


def attest_steps() -> list[dict[str, Any]]:
    """What release.yaml does between fetching the bundles and publishing them."""
    steps = document("release")["jobs"]["publish"]["steps"]
    first = next(i for i, step in enumerate(steps) if step.get("run", "").startswith("qnn-forge provenance"))
    last = next(i for i, step in enumerate(steps) if step.get("run", "").startswith(UNTIL))
    return list(steps[first:last])


def test_the_bundles_of_a_release_are_attested_and_gh_accepts_it(
    act: Act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = tmp_path / "dist"
    write_dist(dist)
    bundles = {"name": "Give", "run": 'mkdir -p qnn-forge-work/parts && cp -r "$DIST" qnn-forge-work/parts/dist'}
    where = {"run": 'echo "attested in $BUNDLE"', "env": {"BUNDLE": "${{ steps.attest.outputs.bundle-path }}"}}
    workflow = {
        "on": {"push": {}},
        "jobs": {"attest": {"runs-on": "ubuntu-24.04", "steps": [bundles, *attest_steps(), where]}},
    }
    (act.repository.folder / ".github" / "workflows" / "attest.yaml").write_text(yaml.safe_dump(workflow))
    act.repository.commit("attest")
    act.environment["DIST"] = str(dist)
    done = act.run("attest", "push", {"ref": "refs/heads/main"})
    assert done.code == 0, done.log
    left = act.folder / "attestations"
    assert f"attested in {left / 'attestation.json'}" in done.log
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    commit = git(act.repository.folder, "rev-parse", "HEAD")
    for bundle in BUNDLES:
        attested = verify(
            dist / bundle.file.name,
            left / "attestation.json",
            repository="acme/forge",
            trusted_root=left / "trusted_root.jsonl",
        )
        assert attested.commit == commit
        assert attested.signer == "https://github.com/acme/forge/.github/workflows/attest.yaml@refs/heads/main"
    # What the workflow says of itself in the statement is what the certificate says of it.
    envelope = json.loads((left / "attestation.json").read_text())["dsseEnvelope"]
    said = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    assert said["runDetails"] == {
        "builder": {"id": attested.signer, "version": {"qnn-forge": "0.1.0"}},
        "metadata": {"invocationId": attested.run},
    }
    assert {"uri": "git+https://github.com/acme/forge@refs/heads/main", "digest": {"gitCommit": commit}} in said[
        "buildDefinition"
    ]["resolvedDependencies"]
