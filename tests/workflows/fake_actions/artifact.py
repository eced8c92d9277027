"""The client half of upload-artifact and download-artifact (version 4 of the protocol), for act's artifact server.

NAME, PATTERN (a glob over names) and FILES (a folder, or a file for uploads) come from the action's inputs.
"""

from __future__ import annotations

import base64
import fnmatch
import io
import json
import os
import sys
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

SERVICE = "twirp/github.actions.results.api.v1.ArtifactService"


def ids() -> dict[str, str]:
    """Run and job as the token's scope names them."""
    payload = os.environ["ACTIONS_RUNTIME_TOKEN"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    scope = next(part for part in claims["scp"].split() if part.startswith("Actions.Results:"))
    _, run, job = scope.split(":")
    return {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job}


def call(method: str, **fields: object) -> dict[str, Any]:
    """One request of the artifact service."""
    request = urllib.request.Request(
        f"{os.environ['ACTIONS_RESULTS_URL'].rstrip('/')}/{SERVICE}/{method}",
        data=json.dumps({**ids(), **fields}).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ['ACTIONS_RUNTIME_TOKEN']}",
        },
    )
    with urllib.request.urlopen(request) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer


def put(url: str, body: bytes) -> None:
    """PUT to a signed address."""
    urllib.request.urlopen(urllib.request.Request(url, data=body, method="PUT")).close()


def upload() -> None:
    """A folder's files become one artifact; hidden files stay out, as in the real action."""
    root = Path(os.environ["FILES"])
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    shown = [path for path in files if not any(part.startswith(".") for part in path.relative_to(root).parts)]
    if not shown:
        print(f"No files were found with the provided path: {root}. No artifacts will be uploaded.")
        return
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in shown:
            archive.write(path, path.relative_to(root))
    body = packed.getvalue()
    url = call("CreateArtifact", name=os.environ["NAME"], version=4)["signedUploadUrl"]
    put(f"{url}&comp=block&blockid=AAAA", body)
    put(f"{url}&comp=blocklist", b"<BlockList><Latest>AAAA</Latest></BlockList>")
    call("FinalizeArtifact", name=os.environ["NAME"], size=str(len(body)))


def download() -> None:
    """One artifact by name, or all whose names match."""
    wanted = os.environ["NAME"] or os.environ["PATTERN"]
    names = [entry["name"] for entry in call("ListArtifacts").get("artifacts", [])]
    chosen = [name for name in names if fnmatch.fnmatchcase(name, wanted)]
    if os.environ["NAME"] and not chosen:
        sys.exit(f"Unable to download artifact(s): Artifact not found for name: {wanted}")
    for name in chosen:
        url = call("GetSignedArtifactURL", name=name)["signedUrl"]
        with urllib.request.urlopen(url) as reply:
            zipfile.ZipFile(io.BytesIO(reply.read())).extractall(os.environ["FILES"])


if __name__ == "__main__":
    {"upload": upload, "download": download}[sys.argv[1]]()
