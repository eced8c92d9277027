"""A stand-in for qnn-net-run on the fake device, behaving as the documented one does.

It finds libraries through LD_LIBRARY_PATH and the Skel through ADSP_LIBRARY_PATH (`;`-separated, first match wins),
refuses Skels of another build (1008), binaries of a newer QAIRT (5000) and for another chip (5005), reads inputs as
float32 unless told `--use_native_input_files` (other dtypes become zeros), and writes float32 unless told
`--use_native_output_files`.

A "context binary" here is JSON: soc_model, qairt, inputs and outputs (name, NumPy dtype, shape, scale, offset), and
`formula`, a NumPy expression an output over the inputs' real values. `device.json` in the device's root says what chip
the device has and how it misbehaves.
"""

# ruff: noqa: PLC0415 - a run that fails need not wait for NumPy
from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

_START_NS = 700_000_000
_BUILD = re.compile(rb"v\d+\.\d+\.\d+\.\d{12}")


class Failure(Exception):
    """What is printed before the program ends with 1."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    root = Path(os.environ["FAKE_DEVICE"])
    device = json.loads((root / "device.json").read_text())
    # The test's own view of what was asked for.
    with (root / "net_run.jsonl").open("a") as log:
        log.write(json.dumps({**vars(options), "adsp": os.environ.get("ADSP_LIBRARY_PATH", "")}) + "\n")
    print("qnn-net-run pid:4242")
    if device.get("hang"):
        time.sleep(device["hang"])
    if device.get("says"):
        print("\n".join(device["says"]))
    try:
        if device.get("code"):
            return int(device["code"])
        build = _load_libraries(root, options.backend, device["arch"])
        _run(options, device, _load_context(options.retrieve_context, device, build))
    except Failure as failure:
        for line in failure.args:
            print(f"     0.0ms [ ERROR ] {line}")
        return 1
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("qnn-net-run", allow_abbrev=False)
    for name in ("--backend", "--retrieve_context", "--input_list", "--output_dir"):
        parser.add_argument(name, required=True)
    for name in ("--use_native_input_files", "--use_native_output_files"):
        parser.add_argument(name, action="store_true")
    for name in ("--num_inferences", "--keep_num_outputs"):
        parser.add_argument(name, type=int)
    for name in ("--perf_profile", "--profiling_level", "--log_level"):
        parser.add_argument(name)
    return parser.parse_args(arguments)


def _load_libraries(root: Path, backend: str, arch: str) -> bytes:
    """The build of the libraries, when all that are needed are where they must be."""
    folders = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    _find(folders, Path(backend).name, "Unable to load backend. dlerror(): dlopen failed: library")
    stub = _find(folders, f"libQnnHtpV{arch}Stub.so", "QnnDsp <W> Failed in loading stub: dlopen failed: library")
    skel = next(
        (
            Path(folder) / f"libQnnHtpV{arch}Skel.so"
            for folder in os.environ.get("ADSP_LIBRARY_PATH", "").split(";")
            if (Path(folder) / f"libQnnHtpV{arch}Skel.so").is_file()
        ),
        None,
    )
    if skel is None:
        raise Failure(
            "QnnDsp <E> DspTransport.openSession qnn_open failed, 0x80000406, prio 100",
            "QnnDsp <E> Failed to retrieve skel build id: err: 1003",
            "QnnDsp <E> Failed to load skel, error: 4000",
            "QnnDsp <E> Transport layer setup failed: 14001",
        )
    builds: set[bytes] = {_BUILD.findall(path.read_bytes())[0] for path in (stub, skel)}
    if len(builds) != 1:
        raise Failure("QnnDsp <E> Failed to load skel, error: 1008", "Failed to create device: 1008")
    return builds.pop()


def _find(folders: list[Path], name: str, said: str) -> Path:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise Failure(
        f'{said} "{name}" not found', "Failed to load skel, error: 4000", "Transport layer setup failed: 14001"
    )


def _load_context(path: str, device: dict[str, Any], build: bytes) -> dict[str, Any]:
    data = Path(path).read_bytes()
    if device.get("wrappers"):
        return {"emulated": device["wrappers"][Path(path).name]}
    context: dict[str, Any] = json.loads(data)
    ours = [int(part) for part in build.decode().removeprefix("v").split(".")[:3]]
    if [int(part) for part in context["qairt"].split(".")] > ours:
        raise Failure("Could not create context from binary for context index = 0 : err 5000")
    if context["soc_model"] != device["soc_model"]:
        raise Failure("Failed to create context from binary with err 0x138d", "Create From Binary FAILED!")
    return context


def _run(options: argparse.Namespace, device: dict[str, Any], context: dict[str, Any]) -> None:

    lines = [line.split() for line in Path(options.input_list).read_text().splitlines() if line.strip()]
    count = options.num_inferences or len(lines)
    keep = count if options.keep_num_outputs is None else options.keep_num_outputs
    for number in range(count):
        if "emulated" in context:
            outputs = _emulate(context["emulated"], lines[number % len(lines)])
        else:
            outputs = _compute(context, lines[number % len(lines)], native=options.use_native_input_files)
        if number < keep:
            folder = Path(options.output_dir) / f"Result_{number}"
            folder.mkdir(parents=True, exist_ok=True)
            for name, values, tensor in outputs:
                _write(folder, name, values * device.get("factor", 1) + device.get("noise", 0), tensor, options)
    clock = Path(os.environ["FAKE_DEVICE"]) / "clock"
    clock.write_text(str(int(clock.read_text()) + _START_NS + count * device.get("us", 0) * 1000))
    if options.profiling_level:
        (Path(options.output_dir) / "qnn-profiling-data_0.log").write_bytes(b"\0profile")


def _compute(context: dict[str, Any], words: list[str], *, native: bool) -> list[tuple[str, Any, dict[str, Any]]]:
    import numpy as np

    files = dict(word.split(":=") for word in words) if all(":=" in word for word in words) else {}
    values = {}
    for tensor, word in zip(context["inputs"], words, strict=True):
        path = Path(files.get(tensor["name"], word))
        if not path.is_file():
            raise Failure(f"Failed to open input file: {path}")
        values[tensor["name"]] = _read(path.read_bytes(), tensor, native=native)
    return [
        (tensor["name"], np.asarray(eval(tensor["formula"], {"np": np, "inputs": values})), tensor)
        for tensor in context["outputs"]
    ]


def _read(data: bytes, tensor: dict[str, Any], *, native: bool) -> Any:
    import numpy as np

    dtype, scale = np.dtype(tensor["dtype"]), tensor.get("scale")
    if native:
        stored = np.frombuffer(data, dtype).reshape(tensor["shape"]).astype(np.float64)
        return stored if scale is None else (stored + tensor["offset"]) * scale
    if dtype == np.float32 or scale is not None:
        return np.frombuffer(data, np.float32).reshape(tensor["shape"]).astype(np.float64)
    return np.zeros(tensor["shape"])


def _write(folder: Path, name: str, values: Any, tensor: dict[str, Any], options: argparse.Namespace) -> None:
    import numpy as np

    stem = re.sub(r"[/:]", "_", name)
    if not options.use_native_output_files:
        (folder / f"{stem}.raw").write_bytes(values.astype(np.float32).tobytes())
        return
    dtype, scale = np.dtype(tensor["dtype"]), tensor.get("scale")
    if scale is not None:
        limits = np.iinfo(dtype)
        values = np.clip(np.rint(values / scale) - tensor["offset"], limits.min, limits.max)
    (folder / f"{stem}_native.raw").write_bytes(values.astype(dtype).tobytes())


def _emulate(wrapper: str, words: list[str]) -> list[tuple[str, Any, dict[str, Any]]]:
    """What the real context binary computes on the emulator, through its ONNX wrapper."""
    import numpy as np
    import onnxruntime as ort
    import onnxruntime_qnn

    ort.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
    devices = [one for one in ort.get_ep_devices() if one.ep_name == "QNNExecutionProvider"][:1]
    options = ort.SessionOptions()
    options.add_provider_for_devices(devices, {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), "soc_model": "57"})
    session = ort.InferenceSession(wrapper, options)
    files = dict(word.split(":=") for word in words)
    feed = {
        one.name: np.frombuffer(Path(files[one.name]).read_bytes(), np.float32).reshape(one.shape)
        for one in session.get_inputs()
    }
    names = [one.name for one in session.get_outputs()]
    return [
        (name, value, {"dtype": str(value.dtype)}) for name, value in zip(names, session.run(names, feed), strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
