"""Reach onnxsim's simplifier without importing the rest of onnxsim.

`import onnxsim` (0.8) takes about a second of CPU for a zoo of quantizers that nothing here uses; its simplifier is
one extension module that loads in a few milliseconds. For the onnxsim versions this was tested with, that module is
loaded by itself, under its own name, so that a later `import onnxsim` shares it. For any other version, and where the
module's interface is not the expected one, onnxsim's public function is used. Both give the same bytes.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import ModelProto, TensorProto

from qnn.prepare.runtime import load_cpu, run_cpu

TESTED_VERSIONS = frozenset({"0.8.0", "0.8.1"})
_MODULE = "onnxsim.onnxsim_cpp2py_export"
# The parameters passed by position below, as the extension's own docstring states them.
_INTERFACE = (
    "simplify(executor:",
    ", model_bytes: bytes, skip_optimizers:",
    ", constant_folding: bool = True, shape_inference: bool = True, tensor_size_threshold: int, target_opset_version:",
    ", rewriter:",
    ", initializers_as_constants: bool = True, include_inline_functions: bool = False, mutable_initializer: bool",
    ", overwrite_input_shapes:",
    ", unused_output:",
    ", extra_optimizers:",
)


@dataclass(frozen=True)
class Simplifier:
    """onnxsim as used here: the names of its passes, and a run of its default passes that leaves out some.

    `run(model, skipped, folded_bytes)` folds constants and rewrites; Tile, Expand and ConstantOfShape are not folded
    into more than `folded_bytes`. It may raise RuntimeError or ValueError.
    """

    passes: tuple[str, ...]
    run: Callable[[ModelProto, Sequence[str], int], ModelProto]


def load_simplifier() -> Simplifier:
    """The light way where it is known to work, else the public one."""
    core = _load_core() if importlib.metadata.version("onnxsim") in TESTED_VERSIONS else None
    return public_simplifier() if core is None else _light_simplifier(core)


def public_simplifier() -> Simplifier:
    """onnxsim's documented interface; imports all of it."""
    import onnxsim  # noqa: PLC0415
    from onnxsim import onnxsim_cpp2py_export as core  # noqa: PLC0415

    def run(model: ModelProto, skipped: Sequence[str], folded_bytes: int) -> ModelProto:
        simplified, _ = onnxsim.simplify(
            model, skipped_optimizers=list(skipped), tensor_size_threshold=f"{folded_bytes}B"
        )
        return simplified

    return Simplifier(_passes(core), run)


def _light_simplifier(core: Any) -> Simplifier:
    class Executor(core.ModelExecutor):  # type: ignore[misc]
        """Runs the small models that onnxsim cuts out to fold them."""

        def Run(self, model: bytes, inputs: Sequence[bytes]) -> list[bytes]:  # noqa: N802
            names = [value.name for value in ModelProto.FromString(model).graph.input]
            arrays = [onnx.numpy_helper.to_array(TensorProto.FromString(tensor)) for tensor in inputs]
            results = run_cpu(load_cpu(model), None, dict(zip(names, arrays, strict=True)))
            return [_serialize(result) for result in results]

    def run(model: ModelProto, skipped: Sequence[str], folded_bytes: int) -> ModelProto:
        simplified = core.simplify(
            Executor(),
            model.SerializeToString(),
            list(skipped),
            True,  # fold constants
            True,  # infer shapes
            folded_bytes,
            None,  # the opset stays
            None,  # no rewriter
            True,  # initializers are constants
            False,  # functions are inlined already
            False,  # initializers are not inputs
            None,
            None,
            None,
        )
        if not simplified:
            raise ValueError("the simplified model exceeds 2 GB")
        return ModelProto.FromString(simplified)

    return Simplifier(_passes(core), run)


def _passes(core: Any) -> tuple[str, ...]:
    """Every pass there is. The list of others comes first: asking for it registers onnxsim's own default passes."""
    others = core._list_other_optimizers()
    return (*core._list_optimizers(), *others)


def _serialize(array: numpy.ndarray) -> bytes:
    return bytes(onnx.numpy_helper.from_array(numpy.asarray(array)).SerializeToString())


def _load_core() -> Any:
    """The extension module, or None when it is not there or not as expected."""
    loaded = sys.modules.get(_MODULE)
    if loaded is None:
        package = importlib.util.find_spec("onnxsim")
        folders = package.submodule_search_locations if package is not None else None
        files = [Path(folder) / f"onnxsim_cpp2py_export{end}" for folder in folders or () for end in _suffixes()]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            return None
        loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(file))
        spec = importlib.util.spec_from_loader(_MODULE, loader)
        assert spec is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE] = loaded  # a second copy of the extension in one process would break onnxsim
        loader.exec_module(loaded)
    return loaded if _is_expected(loaded) else None


def _suffixes() -> list[str]:
    return importlib.machinery.EXTENSION_SUFFIXES


def _is_expected(core: Any) -> bool:
    documentation = str(getattr(getattr(core, "simplify", None), "__doc__", ""))
    at = 0
    for part in _INTERFACE:
        at = documentation.find(part, at)
        if at < 0:
            return False
    return hasattr(core, "ModelExecutor") and hasattr(core, "_list_optimizers")
