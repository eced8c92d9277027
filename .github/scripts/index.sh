#!/usr/bin/env bash
# The index's folder, which is the branch `index` of this repository.
#
# index.sh get FOLDER   bring it, or begin an empty one where the branch is not there yet
# index.sh put FOLDER   push what changed in it as one commit; nothing when nothing did
#
# GH_TOKEN is asked for by git through `gh`, so that it stands in no file and in no argument.
set -euo pipefail
verb="$1" folder="$2"
remote="${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY"
ours=(git -C "$folder" -c credential.helper= -c "credential.helper=!gh auth git-credential")

case "$verb" in
  get)
    git init --quiet --initial-branch=index "$folder"
    # 2: there is no such branch; anything else is a failure that must not look like an empty index.
    found=0
    "${ours[@]}" ls-remote --quiet --exit-code --heads "$remote" index > /dev/null || found=$?
    if [[ "$found" == 0 ]]; then
      "${ours[@]}" fetch --quiet --depth 1 "$remote" index
      "${ours[@]}" reset --quiet --hard FETCH_HEAD
    elif [[ "$found" != 2 ]]; then
      echo "::error title=Index::the branch index cannot be read"
      exit 1
    fi
    ;;
  put)
    if [[ -e "$folder/v1" ]]; then "${ours[@]}" add --all -- v1; fi
    if "${ours[@]}" diff --cached --quiet; then
      echo "the index is as it was"
      exit 0
    fi
    "${ours[@]}" -c user.name="github-actions[bot]" -c user.email="41898282+github-actions[bot]@users.noreply.github.com" \
      commit --quiet --message "Published by ${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
    "${ours[@]}" push --quiet "$remote" HEAD:refs/heads/index
    ;;
  *)
    echo "index.sh get|put FOLDER" >&2
    exit 2
    ;;
esac
