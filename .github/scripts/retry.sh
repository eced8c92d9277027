#!/usr/bin/env bash
# Run a command that needs the network up to three times. Nothing else is retried: a build that fails, fails.
set -uo pipefail
for wait in 5 20; do
  "$@" && exit 0
  echo "failed ($?); again in $wait s" >&2
  sleep "${RETRY_WAIT:-$wait}"
done
exec "$@"
