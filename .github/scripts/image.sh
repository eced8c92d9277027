#!/usr/bin/env bash
# Names of an image. Without DIGEST: its tags and build arguments, as outputs; with it: what to write where it is used.
#
# TARGET  pip or sdk     BASE  base image by digest; the Dockerfile's own when empty
#    DIGEST  of the pushed image     GITHUB_REPOSITORY, GITHUB_SHA, GITHUB_SERVER_URL  from the runner
set -euo pipefail
cd "$(dirname "$0")/../.."
name="ghcr.io/$(tr '[:upper:]' '[:lower:]' <<< "$GITHUB_REPOSITORY")"
if [[ -n "${DIGEST:-}" ]]; then
  printf '### Image\n\nSet the repository variable QNN_FORGE_IMAGE to use it:\n\n    %s@%s\n' "$name" "$DIGEST" \
    >> "$GITHUB_STEP_SUMMARY"
  exit 0
fi
wheel="$(sed -n 's/^onnxruntime-qnn==//p' constraints.txt)"
qairt="$(sed -n 's/^ARG QAIRT_VERSION=//p' docker/Dockerfile)"
{
  printf 'tags<<END\n%s:%s-qairt%s\n%s:%s-latest\nEND\n' "$name" "$TARGET" "$qairt" "$name" "$TARGET"
  printf 'arguments<<END\nONNXRUNTIME_QNN_VERSION=%s\nREVISION=%s\nSOURCE=%s/%s\n%sEND\n' \
    "$wheel" "$GITHUB_SHA" "$GITHUB_SERVER_URL" "$GITHUB_REPOSITORY" "${BASE:+BASE=$BASE
}"
} >> "$GITHUB_OUTPUT"
