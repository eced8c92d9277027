"""Runs one function of a model in the model's own environment: ``python runner.py REQUEST.json``.

What is done with the function is the request's `action`: one of this file's, or of the file `actions` that it names.
Needs NumPy and nothing else: qnn-forge is not installed there. The answer is a JSON file, never stdout, which belongs
to the model's code. The other side of this conversation is qnn.model_code.run.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib.util
import inspect
import itertools
import json
import math
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

Document = dict[str, Any]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SHOWN_FRAMES = 8
# How torch.load names what it did not load; the rest of what it says is how to load it all the same.
_GLOBAL = re.compile(r"(?:GLOBAL|class) ([\w.]*\w)")


class Fault(Exception):
    """What the model's code did wrong: `kind` is a word that qnn.model_code.run knows."""

    def __init__(self, kind: str, message: str, line: int | None = None, details: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line
        self.details = list(details)


def main(request_file: str) -> NoReturn:
    """Do what the request says and leave the answer where it says.

    Ends the process at once: exit handlers and threads of the model's code do not hold up what is finished.
    """
    request: Document = json.loads(Path(request_file).read_text(encoding="utf-8"))
    me = os.getpid()
    _die_with_parent(request["parent"])
    if request["memory_bytes"] is not None:
        # Counts private writable memory, so files mapped for reading cost nothing.
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = request["memory_bytes"] if most == resource.RLIM_INFINITY else min(request["memory_bytes"], most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    faulthandler.enable()
    answer = _answer(request)
    if os.getpid() != me:
        os._exit(0)  # the code forked, and both came back; one answer is enough
    _end_descendants(me)
    partial = Path(request["answer"] + ".part")
    partial.write_text(json.dumps(answer), encoding="utf-8")
    os.replace(partial, request["answer"])
    os._exit(0)


def _answer(request: Document) -> Document:
    folder = request["folder"]
    try:
        if "actions" in request:
            act: Callable[[Document, Callable[[], Callable[..., Any]]], Document]
            act = _module(request["actions"], "qnn_forge_actions").act
            return act(request, lambda: _function(request))
        return _ACTIONS[request["action"]](request)
    except Fault as fault:
        return {"kind": fault.kind, "message": str(fault), "line": fault.line, "details": fault.details, "file": None}
    except SystemExit as end:
        traceback.print_exc()
        frames = _frames(end, folder)
        return _with_frames("exit", f"called exit({end.code!r})", frames, folder)
    except BaseException as error:  # noqa: BLE001 - the model's code may raise anything; all of it is an answer
        traceback.print_exc()
        frames = _frames(error, folder)
        message = "".join(traceback.format_exception_only(error)).strip()
        if isinstance(error, SyntaxError) and error.filename is not None and _inside(error.filename, folder):
            frames.append((error.filename, error.lineno or 1, "", ""))
            message = f"SyntaxError: {error.msg}\n{(error.text or '').strip()}"
        if type(error).__name__ == "UnpicklingError" and "eights only load failed" in message:
            held = _GLOBAL.search(message)
            message = f"a file of weights holds {held[1] if held else 'more than tensors'}, and was not loaded"
            return _with_frames("pickle", message, frames, folder)
        return _with_frames("raised", message, frames, folder)


def _data(request: Document) -> Document:
    function = _function(request)
    wanted = {name: (dtype, tuple(shape)) for name, dtype, shape in request["inputs"]}
    given = function(
        graph=request["graph"],
        inputs={name: shape for name, (_, shape) in wanted.items()},
        sources=_sources(request),
        count=request["count"],
    )
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise Fault("type", f"returned a {_kind(given)}, not one dictionary for each sample", _first_line(function))
    write_npz = _module(request["npz"], "npz").write_npz
    iterator = iter(given)
    number = 0
    for number, sample in enumerate(itertools.islice(iterator, request["count"]), 1):
        _check(sample, wanted, number - 1, _line(function, iterator))
        arrays = {name: np.asarray(sample[name]) for name in wanted}
        write_npz(Path(request["output"], f"{number - 1:03d}.npz"), arrays)
    if number < request["count"]:
        message = f"gave {number} samples, checks.count asks for {request['count']}"
        raise Fault("count", message, _first_line(function))
    return {"kind": "ok"}


def _metric(request: Document) -> Document:
    function = _function(request)
    read_npz = _module(request["npz"], "npz").read_npz
    pairs = []
    for number, (inputs, reference, outputs) in enumerate(request["samples"]):
        pair = []
        for results in (reference, outputs):
            # Read again for each call, so that code which changes its arguments sees the same as code that does not.
            values = function(
                graph=request["graph"],
                inputs=read_npz(Path(inputs)),
                outputs=read_npz(Path(results)),
                reference=read_npz(Path(reference)),
                sources=_sources(request),
            )
            which = "float" if results == reference else "HTP"
            pair.append(_flat(values, f"sample {number}, {which} results", _first_line(function)))
        pairs.append(pair)
    return {"kind": "ok", "values": pairs}


_ACTIONS: dict[str, Callable[[Document], Document]] = {"data": _data, "metric": _metric}


def _function(request: Document) -> Callable[..., Any]:
    folder, file, name = request["folder"], request["file"], request["function"]
    if not Path(file).is_file():
        raise Fault("missing", f"there is no file {Path(file).name}")
    sys.path.insert(0, folder)
    module = _module(file, Path(file).stem)
    function = getattr(module, name, None)
    if not callable(function):
        here = [other for other, value in vars(module).items() if inspect.isfunction(value) and other[0] != "_"]
        raise Fault("missing", f"has no function {name}", details=[f"functions there: {', '.join(here) or 'none'}"])
    found: Callable[..., Any] = function
    return found


def _module(file: str, name: str) -> ModuleType:
    # The plain name, so that a sibling's `import data` finds this module, unless a library has it.
    name = f"model_{name}" if name in sys.modules or name in sys.stdlib_module_names else name
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look modules up by name
    spec.loader.exec_module(module)
    return module


def _sources(request: Document) -> dict[str, Path]:
    return {name: Path(path) for name, path in request["sources"].items()}


def _check(sample: object, wanted: Mapping[str, tuple[str, tuple[int, ...]]], number: int, line: int | None) -> None:
    """Raise the first kind of fault of a sample, with all faults of the kind."""
    if not isinstance(sample, Mapping):
        raise Fault("type", f"sample {number} is a {_kind(sample)}, not a dictionary", line)
    for kind, found in problems(sample, wanted):
        if found:
            raise Fault(kind, f"sample {number}: {found[0]}", line, found[1:])


def problems(
    sample: Mapping[Any, Any], wanted: Mapping[str, tuple[str, tuple[int, ...]]]
) -> Iterator[tuple[str, list[str]]]:
    """Each kind of fault with all faults of that kind, most basic first; later ones need earlier ones to be none.

    `wanted` is dtype and shape by input name.
    """
    lacks = [f"lacks {name}" for name in wanted if name not in sample]
    yield "names", lacks + [f"has {name!r}, which is no input of the graph" for name in sample if name not in wanted]
    yield (
        "type",
        [
            f"{name} is a {_kind(sample[name])}, not a NumPy array"
            for name in wanted
            if not isinstance(sample[name], np.ndarray | np.generic)
        ],
    )
    arrays = {name: np.asarray(sample[name]) for name in wanted}
    yield (
        "dtype",
        [
            f"{name} is {arrays[name].dtype.name}, the graph takes {dtype}"
            for name, (dtype, _) in wanted.items()
            if arrays[name].dtype.name != dtype
        ],
    )
    yield (
        "shape",
        [
            f"{name} has shape {list(arrays[name].shape)}, the graph takes {list(shape)}"
            for name, (_, shape) in wanted.items()
            if arrays[name].shape != shape
        ],
    )
    yield (
        "finite",
        [
            f"{name} holds {int((~np.isfinite(array)).sum())} of {array.size} values that are infinite or not a number"
            for name, array in arrays.items()
            if array.dtype.kind == "f" and not np.isfinite(array).all()
        ],
    )


def _flat(values: object, where: str, line: int | None) -> dict[str, Any]:
    """The metric's values as JSON can hold them."""
    if not isinstance(values, Mapping):
        raise Fault("flat", f"returned a {_kind(values)}, not a dictionary ({where})", line)
    flat = {}
    for name, value in values.items():
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = value.item()  # noqa: PLW2901
        if not isinstance(name, str) or not isinstance(value, bool | int | float | str):
            raise Fault("flat", f"{name!r} is a {_kind(value)}, not a number, string or boolean ({where})", line)
        if isinstance(value, str) and not value.isascii() and value != value.encode("utf-8", "replace").decode():
            raise Fault("flat", f"{name} holds half of a surrogate pair, which no file can ({where})", line)
        if isinstance(value, float) and not math.isfinite(value):
            raise Fault("metric-finite", f"{name} is {value} ({where})", line)
        flat[name] = value
    return flat


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _line(function: Callable[..., Any], iterator: object) -> int | None:
    """The line of the yield that gave the last sample, or of the function."""
    frame = getattr(iterator, "gi_frame", None)
    return frame.f_lineno if frame is not None else _first_line(function)


def _first_line(function: Callable[..., Any]) -> int | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_firstlineno if code is not None else None


def _frames(error: BaseException, folder: str) -> list[tuple[str, int, str, str]]:
    """The model's own frames, outermost first: file, line, function, source."""
    return [
        (frame.filename, frame.lineno or 1, frame.name, frame.line or "")
        for frame in traceback.extract_tb(error.__traceback__)
        if _inside(frame.filename, folder)
    ]


def _inside(file: str, folder: str) -> bool:
    return Path(file).resolve().is_relative_to(folder)


def _with_frames(kind: str, message: str, frames: list[tuple[str, int, str, str]], folder: str) -> Document:
    shown = [
        f"{Path(file).resolve().relative_to(folder)}:{line} in {name}: {source}"
        for file, line, name, source in frames[-_SHOWN_FRAMES:]
        if name
    ]
    file, line = (frames[-1][0], frames[-1][1]) if frames else (None, None)
    return {"kind": kind, "message": message, "line": line, "file": file, "details": shown}


def _die_with_parent(parent: int) -> None:
    """So that nothing outlives a build that was killed outright."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what the code starts stays below this process, so it can be found
    if os.getppid() != parent:
        sys.exit(1)


def descendants(pid: int) -> list[int]:
    """Every process below one, from /proc; none where there is no /proc."""
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        below.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _end_descendants(me: int) -> None:
    """Kill what the code started and left running, whatever session it made for itself."""
    left = descendants(me)
    if left:
        print(f"qnn-forge: ending {len(left)} processes that the model's code left running", flush=True)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
