"""actions/attest: subjects and predicate become one statement, signed for this run of this workflow.

CHECKSUMS, PREDICATE_TYPE and PREDICATE come from the action's inputs. The root of trust is left beside the attestation,
in FAKE_ATTESTATIONS, for whoever checks it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.provenance.fake_sigstore import FakeSigstore, Identity


def main() -> None:
    lines = Path(os.environ["CHECKSUMS"]).read_text(encoding="utf-8").splitlines()
    pairs = [line.split("  ", 1) for line in lines]
    assert 0 < len(pairs) <= 1024
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest, _ in pairs)
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for digest, name in pairs],
        "predicateType": os.environ["PREDICATE_TYPE"],
        "predicate": json.loads(Path(os.environ["PREDICATE"]).read_text(encoding="utf-8")),
    }
    workflow, _, ref = os.environ["GITHUB_WORKFLOW_REF"].partition("@")
    repository = os.environ["GITHUB_REPOSITORY"]
    identity = Identity(
        repository,
        workflow=workflow.removeprefix(f"{repository}/"),
        ref=ref,
        commit=os.environ["GITHUB_SHA"],
        run=f"{os.environ['GITHUB_RUN_ID']}/attempts/{os.environ['GITHUB_RUN_ATTEMPT']}",
        event=os.environ["GITHUB_EVENT_NAME"],
    )
    folder = Path(os.environ["FAKE_ATTESTATIONS"])
    folder.mkdir(parents=True, exist_ok=True)
    sigstore = FakeSigstore()
    bundle = folder / "attestation.json"
    bundle.write_text(sigstore.sign(json.dumps(statement).encode(), identity), encoding="utf-8")
    (folder / "trusted_root.jsonl").write_text(sigstore.trusted_root(), encoding="utf-8")
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as output:
        output.write(f"bundle-path={bundle}\n")


if __name__ == "__main__":
    main()
