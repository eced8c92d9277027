#!/usr/bin/env bash
# Prepare the store for the cache: bound its size, and name the cache by the digests the store holds.
#
# CACHE_ID  whose outputs these are       RESTORED  key of the cache the job began with
# Outputs: key, and save=true when the store holds something that cache has not.
set -euo pipefail
qnn-forge store prune --max-size "${STORE_MAX_SIZE:-1G}"
objects="$QNN_FORGE_STORE/objects"
digest=none
if [[ -d "$objects" ]]; then
  digest="$(find "$objects" -mindepth 2 -maxdepth 2 -type d -printf '%f\n' | LC_ALL=C sort | sha256sum | cut -c1-32)"
fi
key="qnn-forge-store-1-$CACHE_ID-$digest"
save=true
if [[ "$key" == "${RESTORED:-}" || "$digest" == none ]]; then save=false; fi
printf 'key=%s\nsave=%s\n' "$key" "$save" >> "$GITHUB_OUTPUT"
