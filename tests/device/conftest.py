"""A bundle, runtime libraries, a fake device on a private adb server, and the command line on them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qnn.bundle.archive import write_archive
from qnn.bundle.manifest import (
    Manifest,
    ManifestChip,
    ManifestFile,
    ManifestGraph,
    ManifestTensor,
    to_json,
)
from qnn.chips.table import load_table
from qnn.cli import run as qnn_forge
from qnn.libs.build import Request, build_libraries
from qnn.libs.fetch import Depot
from qnn.libs.packages import Arch, Os, Platform, find_package
from qnn.model.spec import Gates
from qnn.npz import write_npz
from qnn.sources.protocol import Policy
from qnn.tensors import TensorSpec
from qnn.verify.golden import write_golden
from tests.bundle.test_manifest import EXAMPLE
from tests.device.fake_adbd import FakeDevice, plugged_in
from tests.libs import fake_maven
from tests.sources.fake_server import serving

QAIRT = "2.50.0"
SHAPE = (1, 3, 4)
Archive = Callable[[dict[str, Any], dict[str, bytes]], Path]
PLAIN = Policy(attempts=1, first_pause=0.01, plain_http_hosts=frozenset({"127.0.0.1"}))


@pytest.fixture(scope="session")
def adb_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with Google's adb (from the package adbutils) in it, with a server of its own for the session."""
    folder = tmp_path_factory.mktemp("adb")
    spec = find_spec("adbutils")
    assert spec is not None
    assert spec.origin is not None
    shutil.copy(Path(spec.origin).parent / "binaries" / "adb", folder / "adb")
    (folder / "adb").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"ANDROID_ADB_SERVER_PORT": str(port), "HOME": str(folder), "PATH": f"{folder}:{os.environ['PATH']}"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        for name in ("ADB_SERVER_SOCKET", "ANDROID_SERIAL", "QNN_SDK_ROOT", "QNN_FORGE_INDEX"):
            patch.delenv(name, raising=False)
        subprocess.run([folder / "adb", "start-server"], check=True, capture_output=True, timeout=60)
        try:
            yield folder
        finally:
            subprocess.run([folder / "adb", "kill-server"], check=False, capture_output=True, timeout=60)


@pytest.fixture(scope="session")
def libs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Libraries for SM8650, made by qnn-forge libs from a stand-in AAR."""
    folder, content = tmp_path_factory.mktemp("libs"), fake_maven.aar()
    platform = Platform(Os.ANDROID, Arch.AARCH64)
    package = replace(find_package(platform, QAIRT, None, None), sha256=hashlib.sha256(content).hexdigest(), size=None)
    with serving() as server:
        fake_maven.publish(server, QAIRT, content)
        depot = Depot(folder / "downloads", server.url("/maven2"), PLAIN)
        wanted = Request(platform, (load_table().lookup("SM8650"),), package, prepare=False, pages=16384)
        return build_libraries(wanted, depot, folder / "out").archive


@pytest.fixture(scope="session")
def net_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in as one program."""
    program = tmp_path_factory.mktemp("sdk") / "a net-run; of 'mine'"
    source = Path(__file__).with_name("fake_net_run.py").read_text()
    program.write_text(f"#!{sys.executable}\n{source}")
    return program


FLOAT = {"x": ManifestTensor("x", "float32", SHAPE), "y": ManifestTensor("y", "float32", SHAPE)}
QUANTIZED = {
    "x": ManifestTensor("x", "ufixed16", SHAPE, (0.001,), (-32768,)),
    "y": ManifestTensor("y", "ufixed8", SHAPE, (0.1,), (-128,)),
}


def make_bundle(root: Path, *, quantized: bool = False, soc: str = "SM8650", qairt: str = QAIRT) -> Path:
    """A bundle of one graph: y = 2 x + n, and z = x + 1 under a name with slashes; two golden samples."""
    own = QUANTIZED if quantized else FLOAT
    inputs = (own["x"], ManifestTensor("n", "int32", (1,)))
    outputs = (own["y"], ManifestTensor("/head/z:0", "float32", SHAPE))
    formulas = {"y": "2 * inputs['x'] + inputs['n']", "/head/z:0": "inputs['x'] + 1"}
    chip = load_table().lookup(soc)
    dtypes = {"ufixed16": "uint16", "ufixed8": "uint8"}

    def described(tensor: ManifestTensor) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": tensor.name,
            "dtype": dtypes.get(tensor.dtype, tensor.dtype),
            "shape": tensor.shape,
        }
        return {**found, "scale": tensor.scale[0], "offset": tensor.offset[0]} if tensor.scale else found

    binary = {
        "soc_model": chip.soc_id,
        "qairt": qairt,
        "inputs": [described(tensor) for tensor in inputs],
        "outputs": [{**described(tensor), "formula": formulas[tensor.name]} for tensor in outputs],
    }
    folder = root / f"toy for {soc}; 'quoted'"
    folder.mkdir(parents=True)
    (folder / "net.bin").write_text(json.dumps(binary))
    (folder / "net_ctx.onnx").write_bytes(b"wrapper")
    interface_inputs = (TensorSpec("x", "float32", SHAPE), TensorSpec("n", "int64", (1,)))
    interface_outputs = (TensorSpec("y", "float32", SHAPE), TensorSpec("/head/z:0", "float32", SHAPE))
    samples, references = [], []
    for number in range(2):
        x = np.random.default_rng(number).normal(0, 1, SHAPE).astype(np.float32)
        n = np.array([number + 3])
        samples.append(root / f"in{number}.npz")
        write_npz(samples[-1], {"x": x, "n": n})
        references.append(root / f"out{number}.npz")
        write_npz(references[-1], {"y": (2 * x + n).astype(np.float32), "/head/z:0": x + 1})
    write_golden(
        folder, "net", inputs=interface_inputs, outputs=interface_outputs, samples=samples, references=references
    )
    numeric = replace(EXAMPLE.graphs[0].numerics[0], gates=Gates(cosine=0.999, max_abs=0.2))
    graph = ManifestGraph(
        **{
            **vars(EXAMPLE.graphs[0]),
            "inputs": inputs,
            "outputs": outputs,
            "interface_inputs": interface_inputs,
            "interface_outputs": interface_outputs,
            "numerics": (replace(numeric, name="y"), replace(numeric, name="/head/z:0")),
        }
    )
    files = tuple(
        ManifestFile(
            path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    manifest: Manifest = replace(
        EXAMPLE,
        name=f"toy-1.0-s16-w8a16-{soc}-qairt{qairt}",
        chip=ManifestChip(chip.name, chip.soc_id, chip.arch, chip.vtcm_mb, chip.hvx_threads, chip.fp16),
        toolchain=replace(EXAMPLE.toolchain, qairt=qairt, build_id="v2.50.0.260828221209"),
        golden=2,
        graphs=(graph,),
        files=files,
    )
    (folder / "manifest.json").write_text(to_json(manifest), encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Result:
    """One finished command line."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass
class Desk:
    """Everything a check needs, and the fake devices that are plugged in."""

    root: Path
    libs: Path
    net_run: Path
    stack: ExitStack
    capture: pytest.CaptureFixture[str]
    serials: list[str]

    def phone(self, soc: str = "SM8650", **settings: Any) -> FakeDevice:
        """Plug a device in; its chip is `soc`."""
        chip = load_table().lookup(soc)
        props = {
            "ro.soc.model": soc,
            "ro.board.platform": "pineapple",
            "ro.product.cpu.abi": "arm64-v8a",
            "ro.build.version.release": "14",
            "ro.build.version.sdk": "34",
            "ro.product.model": "Fake Phone",
            **settings.pop("props", {}),
        }
        device = FakeDevice(self.root / f"phone{len(self.serials)}", props, **settings)
        for name in ("vendor/lib64/libcdsprpc.so", "dev/fastrpc-cdsp"):
            device.path(name).parent.mkdir(parents=True, exist_ok=True)
            device.path(name).touch()
        self.behave(device, soc_model=chip.soc_id, arch=chip.arch.removeprefix("v"))
        self.plug(device)
        return device

    def plug(self, device: FakeDevice) -> str:
        serial = self.stack.enter_context(plugged_in(device))
        # A device that never answers keeps `adb connect` waiting; its state is seen without.
        with subprocess.Popen(["adb", "connect", serial], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as connect:
            self._wait_for(serial, device.state)
            connect.kill()
        self.serials.append(serial)
        return serial

    def behave(self, device: FakeDevice, **settings: Any) -> None:
        """Change how the device's qnn-net-run behaves."""
        path = device.root / "device.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, **settings}))

    def forge(self, *arguments: str) -> Result:
        """qnn-forge device …, in this process."""
        self.capture.readouterr()
        code = qnn_forge(["device", *arguments])
        out, err = self.capture.readouterr()
        return Result(code, out, err)

    def run(self, bundle: Path, *arguments: str) -> Result:
        """qnn-forge device run … with libraries and qnn-net-run, untimed and as JSON unless told otherwise."""
        given = ["--libs", str(self.libs), "--net-run", str(self.net_run), "--runs", "0", "--json"]
        return self.forge("run", str(bundle), *given, *arguments)

    def calls(self, device: FakeDevice) -> list[dict[str, Any]]:
        """What the stand-in was called with."""
        path = device.root / "net_run.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def left(self, device: FakeDevice) -> list[str]:
        """All files below our folder on the device."""
        root = device.path("/data/local/tmp/qnn-forge")
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())

    def _wait_for(self, serial: str, state: str) -> None:
        """Until adb's server has the device in this state; it passes through others."""
        for _ in range(300):
            listed = subprocess.run(["adb", "devices"], capture_output=True, text=True, check=True, timeout=30).stdout
            if f"{serial}\t{state}\n" in listed:
                return
            time.sleep(0.02)
        raise AssertionError(f"{serial} does not become {state}: {listed}")


@pytest.fixture
def desk(
    tmp_path: Path, adb_folder: Path, libs: Path, net_run: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Desk]:
    with ExitStack() as stack:
        made = Desk(tmp_path, libs, net_run, stack, capsys, [])
        yield made
        for serial in made.serials:
            subprocess.run(["adb", "disconnect", serial], check=False, capture_output=True, timeout=30)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return make_bundle(tmp_path / "made here")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Archives as qnn-forge libs makes them, with any manifest and files."""

    def make(manifest: dict[str, Any], files: dict[str, bytes]) -> Path:
        content = tmp_path / "content"
        for name, data in files.items():
            (content / name).parent.mkdir(parents=True, exist_ok=True)
            (content / name).write_bytes(data)
        (content / "manifest.json").write_text(json.dumps(manifest))
        target = tmp_path / "qnn-libs-made.tar.gz"
        write_archive(content, "qnn-libs-made", target)
        return target

    return make
