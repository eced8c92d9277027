"""The pip toolchain as the rest of qnn-forge sees it. Nothing here loads vendor code; that is jobs.py, in children."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from qnn.binary.gate import ExpectedBinary, ExpectedGraph
from qnn.binary.qnn_system import inspect_file
from qnn.chips.table import needs_fp16
from qnn.errors.toolchain import NoToolchain
from qnn.files import link_or_copy
from qnn.toolchains.pip.request import CompileJob
from qnn.toolchains.protocol import CompileRequest, RunRequest, ToolchainId

if TYPE_CHECKING:
    from qnn.binary.info import ContextBinary
    from qnn.child import Host, Limits
    from qnn.verify.comparison import OutputComparison

# onnxruntime-qnn version → exact QAIRT build, read from binaries each of them made (docs/toolchains.md).
KNOWN_BUILDS = {
    "2.7.0": "v2.51.0.260929181845",
    "2.6.0": "v2.50.40.260831140417",
    "2.5.0": "v2.49.40.260810104044",
    "2.4.0": "v2.48.40.260702151143",
}
_OPTIMIZATION = 3


class PipToolchain:
    """The HTP compiler and emulator of the installed onnxruntime-qnn wheel (Linux x86-64)."""

    code_modules: Sequence[str] = ("qnn.toolchains.pip.*", "qnn.binary.*", "qnn.tensors")
    # The jobs, by name, so that a test can put a crash, a hang or a refusal in their place.
    compile_job = "qnn.toolchains.pip.jobs:compile_graph"
    run_job = "qnn.toolchains.pip.jobs:run_graph"

    @cached_property
    def identity(self) -> ToolchainId:
        """Versions as installed; raises NoToolchain (QF513) when the wheel is missing or cannot run here."""
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise NoToolchain(
                f"the pip toolchain runs on Linux x86_64, not on {platform.system()} {platform.machine()}",
                remedy="build on Linux x86-64 (any CI runner will do); linting and pulling work everywhere",
            )
        try:
            packages = {name: version(name) for name in ("onnxruntime", "onnxruntime-qnn")}
            from onnxruntime_qnn.build_and_package_info import qnn_version  # noqa: PLC0415 - the wheel may be missing
        except (PackageNotFoundError, ImportError) as error:
            raise NoToolchain(
                f"the pip toolchain is not installed: {error}",
                remedy="pip install -c constraints.txt onnxruntime onnxruntime-qnn",
            ) from None
        return ToolchainId(
            name="pip",
            qairt=qnn_version,
            build_id=KNOWN_BUILDS.get(packages["onnxruntime-qnn"]),
            packages=tuple(sorted(packages.items())),
        )

    def compile(self, request: CompileRequest, host: Host, *, log: Path, limits: Limits) -> ContextBinary:
        """See Toolchain.compile. The graph is staged in a scratch folder under a fixed name: the compiler mixes a hash
        of the path it is given into the binary."""
        # Beside the output, so that files move between the two by name only.
        with tempfile.TemporaryDirectory(prefix="stage-", dir=request.output.parent) as staging:
            for name in request.graph.files:
                link_or_copy(request.prepared_folder / name, Path(staging) / name)
            job = CompileJob(
                graph=request.graph.graph,
                soc=request.soc,
                float_graph=needs_fp16(request.precision),
                expected=self._expected(request),
                output=str(request.output.absolute()),
                log=str(log.absolute()),
            )
            read_back: ContextBinary = host.call(self.compile_job, job, log=log, limits=limits, cwd=Path(staging))
        return read_back

    def run(self, request: RunRequest, host: Host, *, log: Path, limits: Limits) -> tuple[OutputComparison, ...]:
        """See Toolchain.run."""
        compared: tuple[OutputComparison, ...] = host.call(self.run_job, request, log=log, limits=limits)
        return compared

    def describe(self, path: Path, host: Host, *, log: Path) -> ContextBinary:
        """See Toolchain.describe."""
        return inspect_file(path, host, log=log)

    def _expected(self, request: CompileRequest) -> ExpectedBinary:
        facts = request.graph
        graph = ExpectedGraph(
            inputs=tuple(tensor for tensor in facts.inputs if tensor.name not in facts.unused_inputs),
            outputs=tuple(tensor for tensor in facts.outputs if tensor.name not in facts.constant_outputs),
            quantized=frozenset() if needs_fp16(request.precision) else None,
        )
        return ExpectedBinary(
            soc_id=request.soc.soc_id,
            soc_name=request.soc.name,
            arch=request.soc.arch,
            vtcm_mb=request.soc.vtcm_mb,
            graphs=(graph,),
            build_id=self.identity.build_id,
            qairt=self.identity.qairt,
            optimization_level=_OPTIMIZATION,
        )
