#!/usr/bin/env bash
# Put `qnn-forge` on PATH, running the code of the checkout this script lies in, and name the store of the job.
#
# TOOLCHAIN         pip | pip:newest | pip:VERSION (of onnxruntime-qnn)
# IMAGE             the image the job runs in; its python3 has the dependencies
# QNN_FORGE_PYTHON  an interpreter that has the dependencies (a machine at home): nothing is installed
set -euo pipefail
checkout="$(cd "$(dirname "$0")/../.." && pwd)"
toolchain="${TOOLCHAIN:-pip}"
if [[ ! "$toolchain" =~ ^pip(:(newest|[0-9]+(\.[0-9]+){1,3}))?$ ]]; then
  echo "::error title=Unknown toolchain::write pip, pip:newest or pip:VERSION"
  exit 2
fi

python="${QNN_FORGE_PYTHON:-}"
if [[ -z "$python" && -n "${IMAGE:-}" ]]; then python="$(command -v python3)"; fi
if [[ -z "$python" ]]; then
  python3 -m venv "$RUNNER_TEMP/qnn-forge-venv"
  python="$RUNNER_TEMP/qnn-forge-venv/bin/python"
  pip=("$python" -m pip install --quiet --disable-pip-version-check)
  "$checkout/.github/scripts/retry.sh" "${pip[@]}" -c "$checkout/constraints.txt" "$checkout"
  case "$toolchain" in
    pip) ;;
    pip:newest) "$checkout/.github/scripts/retry.sh" "${pip[@]}" --upgrade onnxruntime onnxruntime-qnn ;;
    *) "$checkout/.github/scripts/retry.sh" "${pip[@]}" --upgrade onnxruntime "onnxruntime-qnn==${toolchain#pip:}" ;;
  esac
elif [[ "$toolchain" != pip ]]; then
  echo "::warning title=Toolchain::the interpreter at hand decides; $toolchain was not installed"
fi

mkdir -p "$RUNNER_TEMP/qnn-forge-bin"
cat > "$RUNNER_TEMP/qnn-forge-bin/qnn-forge" <<SHIM
#!/bin/sh
PYTHONPATH='$checkout/scripts' exec '$python' -m qnn.cli "\$@"
SHIM
chmod +x "$RUNNER_TEMP/qnn-forge-bin/qnn-forge"
echo "$RUNNER_TEMP/qnn-forge-bin" >> "$GITHUB_PATH"
echo "QNN_FORGE_STORE=$GITHUB_WORKSPACE/qnn-forge-work/store" >> "$GITHUB_ENV"
"$RUNNER_TEMP/qnn-forge-bin/qnn-forge" --version
