"""The Python environments of models: one virtual environment for each set of pins, made once, in place."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from qnn.errors.model_code import EnvironmentFailed
from qnn.errors.system import from_os_error
from qnn.model_code.process import log_size, log_tail, run_logged, without_secrets

# Written last: an environment without it is half-built. Virtual environments hold their own path, so they cannot be
# made elsewhere and renamed into place as other results are.
_COMPLETE = "complete.json"
_SECONDS = 1800.0
_LAYOUT = 1  # raise when environments are to be made anew


def environment_python(requires: Sequence[str], envs: Path, *, log: Path) -> Path:
    """The interpreter that runs a model's code.

    qnn-forge's own when `requires` is empty; else that of an environment in the folder `envs` with exactly these
    pins and NumPy (qnn-forge's version, unless a pin names another). Made on first use, under a lock; a half-built one
    is made anew. Raises EnvironmentFailed (QF820) with pip's last lines, QF901 or QF902 where nothing can be written.
    """
    if not requires:
        return Path(sys.executable)
    from filelock import FileLock  # noqa: PLC0415 - 40 ms that a build with nothing to do need not pay

    packages = _packages(requires)
    folder = envs.absolute() / environment_name(packages)
    python = folder / "bin" / "python"
    try:
        envs.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not ((folder / _COMPLETE).exists() and python.exists()):
                shutil.rmtree(folder, ignore_errors=True)
                _make(folder, python, packages, log)
    except OSError as error:
        raise from_os_error(error) from None
    return python


def environment_name(packages: Sequence[str]) -> str:
    """The folder's name: a digest of what makes one environment differ from another."""
    identity = [_LAYOUT, sorted(packages), platform.python_version(), platform.machine(), sys.base_prefix]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


def _packages(requires: Sequence[str]) -> list[str]:
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    try:
        names = {canonicalize_name(Requirement(pin).name) for pin in requires}
    except InvalidRequirement as error:
        raise EnvironmentFailed(f"`requires` holds no valid pin: {error}", remedy="write name==version") from None
    return [*requires] if "numpy" in names else [f"numpy=={version('numpy')}", *requires]


def _make(folder: Path, python: Path, packages: Sequence[str], log: Path) -> None:
    for what, command in _steps(folder, python, packages, own_pip=find_spec("pip") is not None):
        start = log_size(log)
        status = run_logged(
            command, environment=without_secrets(os.environ), cwd=folder.parent, log=log, seconds=_SECONDS
        )
        if status != 0:
            shutil.rmtree(folder, ignore_errors=True)
            how = f"did not end within {_SECONDS:.0f} s" if status is None else f"failed with code {status}"
            raise EnvironmentFailed(
                f"the environment for {', '.join(packages)} cannot be made: {what} {how}",
                remedy="see that each pin exists for this Python and agrees with the others; see the log",
                details=log_tail(log, start),
                log=log,
            )
    partial = folder / f"{_COMPLETE}.part"
    partial.write_text(json.dumps({"packages": list(packages)}), encoding="utf-8")
    os.replace(partial, folder / _COMPLETE)


def _steps(folder: Path, python: Path, packages: Sequence[str], *, own_pip: bool) -> list[tuple[str, list[str]]]:
    """What to run, with a name for each. Where we have a pip, it serves the environment: making another one there
    would take longer than most installations.
    """
    venv = [sys.executable, "-m", "venv", *(["--without-pip"] if own_pip else []), str(folder)]
    pip = [sys.executable, "-m", "pip", "--python", str(python)] if own_pip else [str(python), "-m", "pip"]
    options = ["--no-input", "--disable-pip-version-check", "--prefer-binary", "--progress-bar", "off"]
    return [("python -m venv", venv), ("pip install", [*pip, "install", *options, *packages])]
