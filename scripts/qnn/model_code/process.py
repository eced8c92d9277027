"""Starting other people's Python: a clean environment, a log, a time limit, and nothing left running."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

# What a program needs to find its libraries and to format text. Nothing else of the caller's environment goes to model
# code: no tokens, no keys, no proxies with passwords.
_NEEDED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "SOURCE_DATE_EPOCH")
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH|_PAT$", re.IGNORECASE
)
_TAIL_LINES = 8
_TAIL_BYTES = 8192


# Where Python would look for packages beside the environment's own.
_ELSEWHERE = frozenset({"PYTHONPATH", "PYTHONHOME"})


def environment_for_code(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The variables that model code sees. Pure.

    Its home is `scratch`, so that it finds no ~/.netrc, no cached token and no settings; hashes of strings are fixed,
    so that sets have the same order every time; nothing is compiled into the model's folder; weights are never pickles
    that run code.
    """
    clean = {name: environment[name] for name in _NEEDED if name in environment}
    home = str(scratch)
    return clean | {
        "HOME": home,
        "TMPDIR": home,
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONUNBUFFERED": "1",
        # torch.load takes tensors and nothing that runs code, even where a library asks for the whole pickle.
        "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1",
        # Files come as sources, pinned; Hugging Face's libraries look for none elsewhere.
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime 1.32 otherwise keeps a device id and a queue of events
    }


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that pip sees: all but those that sound secret (a package's build may run code). Pure.

    pip's own (PIP_…) stay: an index address there may hold the password that the index needs. Python's search path
    goes: pip takes what it finds there for installed, and the environment would lack it.
    """
    return {
        name: value
        for name, value in environment.items()
        if name.startswith("PIP_") or not (_SECRET.search(name) or name in _ELSEWHERE)
    }


def run_logged(
    command: Sequence[str], *, environment: Mapping[str, str], cwd: Path, log: Path, seconds: float
) -> int | None:
    """Run a command to its end with stdout and stderr appended to `log`; its return code, or None at the time limit.

    The return code is negative for a signal, as subprocess has it. Whatever the command started and left running is
    killed. Raises OSError where it cannot be started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
        )
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        _kill_below(process.pid)
        return None
    finally:
        _kill_group(process)


def log_tail(log: Path, start: int = 0) -> list[str]:
    """The last lines of a log that are not blank, from byte `start` on; for showing."""
    with log.open("rb") as stream:
        cut = stream.seek(0, os.SEEK_END) - _TAIL_BYTES
        stream.seek(max(start, cut))
        if cut > start:
            stream.readline()  # the rest of a line that was cut
        text = stream.read().decode("utf-8", errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return [f"| {line[:300]}" for line in lines[-_TAIL_LINES:]]


def log_size(log: Path) -> int:
    """Bytes in a log, 0 when there is none yet."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def _kill_below(pid: int) -> None:
    """Kill what a process has started, in whatever session; the group may not hold all of it."""
    from qnn.model_code.runner import descendants  # noqa: PLC0415 - NumPy, for a rare fault only

    for child in descendants(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # the whole group may have ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
