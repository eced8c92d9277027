#!/usr/bin/env bash
# Everything that can be said of the workflows without running them. Silent when there is nothing to say.
set -euo pipefail
cd "$(dirname "$0")/../.."
actionlint
zizmor --offline --no-progress --quiet --pedantic .github | { grep -v "^No findings to report" || true; }
check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yaml
check-jsonschema --quiet --builtin-schema vendor.github-actions .github/actions/*/action.yml
shellcheck .github/scripts/*.sh
