"""What every call of PyTorch gives inside a module, for a file of the older exporter. Loaded by qnn.model_code.runner.

The tracing exporter leaves nothing by which a tensor of its file could be told from another. So the module is exported
once more, with the result of every call as a further output: what of that file is computed just so in the other one is
the same tensor (qnn.export.traced). The module is traced on the sample, so the calls' results are the module's own.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Document = dict[str, Any]

_IN_TORCH = Path(__file__).with_name("in_torch.py")


def act(request: Document, load: Callable[[], Callable[..., Any]]) -> Document:
    """As in_torch.act, for ``request["torch"]`` being ``calls``.

    Writes the further export to ``request["written"]`` and ``call-NNNNN.npy`` into ``request["output"]``. The answer's
    `origins` have, in the order of the calls, the function of torch and the lines of Python it was called on; `outputs`
    is how many outputs come before them.
    """
    base = _in_torch()
    base._ACTIONS["calls"] = _calls
    answer: Document = base.act(request, load)
    return answer


@functools.cache
def _in_torch() -> Any:
    """A module of its own file, which in_torch.py is as well: the key of an export holds that one and not this."""
    spec = importlib.util.spec_from_file_location("qnn_forge_in_torch", _IN_TORCH)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _calls(request: Document, torch: Any, export: Any) -> Document:
    base = _in_torch()
    sample = base._load(request["npz"], "npz").read_npz(Path(request["sample"]))
    arguments = base._arguments(export, sample, torch, double=False)
    names = list(base._named(export, base._forward(export, arguments, "the sample", request["folder"]), torch))
    kept: list[Any] = []
    origins: list[list[str]] = []
    forward = export.module.forward

    class Recorder(torch.overrides.TorchFunctionMode):  # type: ignore[misc] # torch is not here when types are checked
        """Keeps a copy of each result: what works in place changes the result itself later."""

        def __init__(self) -> None:
            super().__init__()
            self._bytes = 0
            self._last: Any = None

        def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            # The exporter folds a normalisation into the convolution before it, unless that is an output too.
            if function.__name__ == "batch_norm" and self._last is not None and args[0] is self._last:
                kept.pop()
                origins.pop()
            results = function(*args, **(kwargs or {}))
            for result in results if isinstance(results, list | tuple) else [results]:
                if type(result) is torch.Tensor and self._bytes <= base._MOST_INTERMEDIATES:
                    self._bytes += result.numel() * result.element_size()
                    self._last = result
                    kept.append(result.clone())
                    origins.append([function.__name__, *_lines(base, request["folder"])])
            return results

    def recorded(*given: Any) -> tuple[Any, ...]:
        kept.clear()
        origins.clear()
        with Recorder():
            results = forward(*given)
        return (*base._named(export, results, torch).values(), *kept)

    export.module.forward = recorded
    traced = dataclasses.replace(export, inputs=dict(zip(export.inputs, arguments, strict=True)))
    base._write(request, torch, traced, names)
    for number, tensor in enumerate(kept):
        np.save(Path(request["output"], f"call-{number:05d}.npy"), base._array(tensor, torch))
    return {"kind": "ok", "origins": origins, "outputs": len(names)}


def _lines(base: Any, folder: str) -> list[str]:
    """As in_torch._trace, of the call that is under way."""
    frames = [
        f'File "{frame.f_code.co_filename}", line {line}'
        for frame, line in traceback.walk_stack(None)
        if not frame.f_code.co_filename.endswith((Path(__file__).name, "overrides.py"))
    ]
    lines: list[str] = base._trace("\n".join(reversed(frames)), folder)
    return lines
