"""One call of a model's own function through runner.py: its answer, or the error that it is."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import qnn
from qnn.errors.base import ForgeError, Place
from qnn.errors.model_code import ModelCodeDied, ModelCodeTimedOut
from qnn.errors.system import from_os_error
from qnn.model_code.faults import FAULTS
from qnn.model_code.process import environment_for_code, log_size, log_tail, run_logged
from qnn.model_code.requests import ModelCode

_RUNNER = Path(__file__).with_name("runner.py")
_SHOWN_LINES = 20
_NPZ = Path(qnn.__file__).with_name("npz.py")


def call(code: ModelCode, action: Mapping[str, object]) -> dict[str, Any]:
    """Run the function in the model's environment as `action` says (see runner.py); what the runner answered.

    Whatever the code started and left running is ended. Raises the errors that qnn.model_code.faults knows, and
    ModelCodeTimedOut (QF803), ModelCodeDied (QF804).
    """
    # Not resolved beforehand: the model's folder may be a link, and its frames are looked for where it really is.
    folder = code.folder.resolve()
    start = log_size(code.log)
    with tempfile.TemporaryDirectory(prefix="qnn-forge-code-") as name:
        scratch = Path(name)
        request, answer = scratch / "request.json", scratch / "answer.json"
        work = scratch / "work"
        work.mkdir()
        common = {
            "folder": str(folder),
            "file": str(folder / code.entry.partition(":")[0]),
            "function": code.function,
            "npz": str(_NPZ),
            "answer": str(answer),
            "memory_bytes": code.limits.memory_bytes,
            "parent": os.getpid(),
        }
        request.write_text(json.dumps({**common, **action}), encoding="utf-8")
        # -s: no packages of the user's own; -P: nothing from the working directory. Variables are cleaned instead of
        # ignored (-E, -I) because the fixed hash seed is one of them.
        command = [str(code.python), "-s", "-P", str(_RUNNER), str(request)]
        try:
            status = run_logged(
                command,
                environment=environment_for_code(os.environ, work),
                cwd=work,
                log=code.log,
                seconds=code.limits.seconds,
            )
        except OSError as error:
            raise from_os_error(error) from None
        if status is None:
            raise _timed_out(code, start)
        if not answer.exists():
            raise _died(code, status, start)
        document: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if document["kind"] != "ok":
        raise _fault(code, folder, document)
    return document


def _fault(code: ModelCode, folder: Path, answer: dict[str, Any]) -> ForgeError:
    kind, remedy = FAULTS[answer["kind"]]
    message: str = answer["message"]
    if message.startswith("ModuleNotFoundError"):
        remedy = "add the package to `requires` in model.yaml, pinned: name==version"
    first, *more = map(_printable, message.splitlines())
    return kind(
        f"{code.function}: {first}" if answer["kind"] != "missing" else first,
        remedy=remedy,
        place=_place(code, folder, answer["file"], answer["line"]),
        details=[*more, *map(_printable, answer["details"])][:_SHOWN_LINES],
        log=code.log,
    )


def _printable(line: str) -> str:
    """At most 300 characters, and none that a terminal's encoding cannot take."""
    return line[:300].encode("utf-8", "backslashreplace").decode()


def _place(code: ModelCode, folder: Path, file: str | None, line: int | None) -> Place:
    """Where the fault is, by the path the caller knows the folder under."""
    if file is None:
        return Place(str(code.file), line)
    return Place(str(code.folder / Path(file).resolve().relative_to(folder)), line)


def _timed_out(code: ModelCode, start: int) -> ModelCodeTimedOut:
    return ModelCodeTimedOut(
        f"{code.function} did not end within {code.limits.seconds:.0f} s and was stopped",
        remedy="make it faster, or raise limits.minutes in model.yaml",
        place=Place(str(code.file)),
        details=log_tail(code.log, start),
        log=code.log,
    )


def _died(code: ModelCode, status: int, start: int) -> ModelCodeDied:
    how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit code {status} and no result"
    return ModelCodeDied(
        f"{code.function} ended too soon: {how}",
        remedy="read the log; after a crash it holds the Python lines that were running",
        place=Place(str(code.file)),
        details=log_tail(code.log, start),
        log=code.log,
    )


def absolute(sources: Mapping[str, Path]) -> dict[str, str]:
    """Paths of sources as the runner takes them."""
    return {name: str(path.absolute()) for name, path in sources.items()}
