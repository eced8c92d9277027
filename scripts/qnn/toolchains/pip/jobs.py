"""The jobs of the pip toolchain that touch vendor code. Each runs in a fresh fork of a host (see qnn.child.host)."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from qnn.binary.gate import require_readback
from qnn.binary.info import ContextBinary
from qnn.binary.qnn_system import read_context_binary
from qnn.errors.base import ForgeError
from qnn.errors.graphs import UnsupportedOps
from qnn.errors.toolchain import CompilerRefused, ContextDoesNotLoad, EmulatorFailed, NoContext
from qnn.npz import read_npz, write_npz
from qnn.onnxruntime_errors import ORT_ERRORS
from qnn.toolchains.pip.heap import keep_freed_memory
from qnn.toolchains.pip.op_trace import TRACE_FILE, RefusedNode, diagnose
from qnn.toolchains.pip.request import CompileJob
from qnn.toolchains.pip.session import (
    CompileOptions,
    compile_options,
    compiling_session,
    loading_session,
)
from qnn.toolchains.protocol import RunRequest
from qnn.verify.compare import compare_sample, merge
from qnn.verify.comparison import OutputComparison


def compile_graph(job: CompileJob) -> ContextBinary:
    """Compile, name the files, read the binary back and hold it against the plan.

    Raises UnsupportedOps (QF4xx) with every refused node, CompilerRefused (QF510), NoContext (QF511), and
    ReadBackMismatch (QF603).
    """
    keep_freed_memory()
    model = f"{job.graph}.onnx"
    wrapper = f"{job.graph}_ctx.onnx"
    trace = Path("trace")
    trace.mkdir()
    options = compile_options(job.soc, float_graph=job.float_graph, trace_folder=trace)
    try:
        compiling_session(model, wrapper, options)
    except ORT_ERRORS as error:
        raise _refusal(job, options, str(error)) from None
    binary = _single_context(job, Path(wrapper), options)
    output = Path(job.output)
    target = output / f"{job.graph}.bin"
    os.replace(binary, target)
    _point_wrapper_at(Path(wrapper), output / wrapper, target.name)
    read_back = read_context_binary(target)
    require_readback(read_back, job.expected)
    return read_back


def run_graph(job: RunRequest) -> tuple[OutputComparison, ...]:
    """Load the package's own files, run every sample on the emulator, keep the outputs, compare.

    Writes ``000.npz`` … (keys are output names). Raises ContextDoesNotLoad (QF512) and EmulatorFailed (QF514).
    """
    os.chdir(job.folder)  # the wrapper names its binary by a relative path
    try:
        session = loading_session(f"{job.graph}_ctx.onnx", job.soc_id)
    except ORT_ERRORS as error:
        raise ContextDoesNotLoad(
            f"{job.graph}: the context binary does not load: {error}", remedy="read the log; report the model"
        ) from None
    names = list(job.outputs)
    merged: tuple[OutputComparison, ...] = ()
    for index, sample in enumerate(job.samples):
        arrays = read_npz(sample)
        feed = {tensor.name: arrays[tensor.name] for tensor in session.get_inputs()}
        try:
            results = dict(zip(names, session.run(names, feed), strict=True))
        except ORT_ERRORS as error:
            raise EmulatorFailed(
                f"{job.graph}: the emulator failed on sample {index}: {error}", remedy="read the log"
            ) from None
        write_npz(job.output / f"{index:03d}.npz", results)
        if not job.references:
            continue
        truth = read_npz(job.references[index])
        compared = tuple(compare_sample(name, truth[name], results[name]) for name in names)
        merged = compared if not merged else tuple(merge(old, new) for old, new in zip(merged, compared, strict=True))
    return merged


def _refusal(job: CompileJob, options: CompileOptions, message: str) -> ForgeError:
    if "Failed to write" in message:  # the provider says no more than that, and a full disk is the usual reason
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), job.output)
    refused = _refused_nodes(job, options, message)
    if refused:
        return UnsupportedOps(
            f"{job.graph}: {len(refused)} node(s) cannot run on the NPU of {job.soc.name}",
            remedy="change the nodes named here, or leave them out of the graph",
            details=[str(node) for node in refused],
        )
    return CompilerRefused(
        f"{job.graph} for {job.soc.name}: {message}",
        remedy="read the log; try another bucket, precision or chip to see what the fault depends on",
    )


def _single_context(job: CompileJob, wrapper: Path, options: CompileOptions) -> Path:
    """The one binary that the compiler left; anything else is a failure even when the compiler said nothing."""
    binaries = sorted(Path(".").glob("*.bin"))
    if wrapper.exists() and len(binaries) == 1:
        return binaries[0]
    raise NoContext(
        f"{job.graph} for {job.soc.name}: no error from the compiler, and {len(binaries)} context binaries",
        remedy="a graph must be one partition with static shapes; see the nodes named here",
        details=[str(node) for node in _refused_nodes(job, options, "")],
    )


def _refused_nodes(job: CompileJob, options: CompileOptions, message: str) -> tuple[RefusedNode, ...]:
    """The nodes the compiler refused, by the trace of the first attempt and the verbose log of a second one.

    The second attempt costs little: a refusal comes before the graph is finalized.
    """
    trace = Path("trace") / TRACE_FILE
    text = trace.read_text(encoding="utf-8") if trace.exists() else "{}"
    try:
        compiling_session(f"{job.graph}.onnx", "again_ctx.onnx", options, severity=0)
    except ORT_ERRORS as error:
        message = f"{message}\n{error}"
    log = Path(job.log).read_text(encoding="utf-8", errors="replace")
    import onnx  # noqa: PLC0415 - see qnn.child.client.PRELOAD

    return diagnose(text, f"{log}\n{message}", onnx.load(f"{job.graph}.onnx", load_external_data=False))


def _point_wrapper_at(source: Path, target: Path, binary_name: str) -> None:
    """Copy the wrapper, naming the binary by its final name; refuses a wrapper with more than one context."""
    import onnx  # noqa: PLC0415 - see qnn.child.client.PRELOAD

    model = onnx.load(source)
    contexts = [node for node in model.graph.node if node.op_type == "EPContext"]
    if len(contexts) != 1:
        raise NoContext(
            f"the compiled model has {len(contexts)} contexts, not one", remedy="a graph must be one partition"
        )
    for attribute in contexts[0].attribute:
        if attribute.name == "ep_cache_context":
            attribute.s = binary_name.encode()
    target.write_bytes(model.SerializeToString(deterministic=True))
