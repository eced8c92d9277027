"""README.txt of a bundle: what it is, and commands that can be pasted."""

from __future__ import annotations

import textwrap

from qnn.bundle.manifest import Manifest, ManifestChain, ManifestGraph, ManifestMetric, ManifestTensor


def readme(manifest: Manifest) -> str:
    """The text for one bundle; plain ASCII-width lines of at most 100 columns outside commands."""
    model, chip, toolchain = manifest.model, manifest.chip, manifest.toolchain
    parts = [
        manifest.name,
        "=" * len(manifest.name),
        "",
        textwrap.fill(model.summary, 100),
        "",
        f"Chip       {chip.name} (soc_id {chip.soc_id}, Hexagon {chip.arch}, {chip.vtcm_mb} MB VTCM)",
        f"Precision  {manifest.precision}",
        f"Made with  QAIRT {toolchain.qairt} (build {toolchain.build_id}); the runtime on the device must be this",
        "           version or newer: context binaries load forwards, never backwards",
        f"Licence    {model.licence or 'none stated: ' + str(model.licence_reason)}",
        f"           {model.attribution}" if model.attribution else "",
        "",
        "Graphs",
        "------",
        *(line for graph in manifest.graphs for line in _graph(graph)),
        *_chain(manifest.chain),
        "",
        "Check this bundle again (needs only qnn-forge, no phone)",
        "--------------------------------------------------------",
        "  qnn-forge verify .",
        "",
        "Run with ONNX Runtime (Python shown; the same options exist in C, C++, C#, Java)",
        "--------------------------------------------------------------------------------",
        *_onnxruntime(manifest),
        "",
        "Run on a device with qnn-net-run (from a QAIRT SDK of the version above or newer)",
        "----------------------------------------------------------------------------------",
        *(line for graph in manifest.graphs for line in _net_run(manifest, graph)),
        "",
        "manifest.json holds the same facts and more for programs: digests, read-back facts, numerics.",
        "",
    ]
    return "\n".join(line.rstrip() for line in parts if line is not None)


def _graph(graph: ManifestGraph) -> list[str]:
    lines = [f"{graph.name}: {graph.binary} (context binary), {graph.wrapper} (ONNX wrapper around it)"]
    lines += [f"  in   {_tensor(tensor)}" for tensor in graph.inputs]
    lines += [f"  out  {_tensor(tensor)}" for tensor in graph.outputs]
    for output in graph.numerics:
        numbers = [f"max abs error {output.max_abs:.3g}" if output.max_abs is not None else ""]
        numbers += [f"cosine {output.cosine:.6f}" if output.cosine is not None else ""]
        numbers += [f"equal {output.equal:.4f}" if output.equal is not None else ""]
        shown = ", ".join(number for number in numbers if number)
        lines.append(f"  checked on the HTP emulator against the float model: {output.name}: {shown}")
    for metric in graph.metrics:
        lines.append(f"  {metric.name}, worst of {metric.samples} samples: {_both(metric)}")
    return lines


def _chain(chain: ManifestChain | None) -> list[str]:
    if chain is None:
        return []
    order = " -> ".join(graph.name for graph in chain.graphs) + (f", {chain.rounds} rounds" if chain.rounds > 1 else "")
    lines = [f"all together ({order}), each on what the ones before it gave on the HTP emulator"]
    return lines + [f"  {metric.name}: {_both(metric)}" for metric in chain.metrics]


def _both(metric: ManifestMetric) -> str:
    return f"float {_value(metric.float_value)}, HTP {_value(metric.htp_value)} (gate: {metric.gate})"


def _value(value: float | str | bool) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _tensor(tensor: ManifestTensor) -> str:
    shape = ",".join(str(dim) for dim in tensor.shape)
    quantized = f", value = (q + {tensor.offset[0]}) * {tensor.scale[0]:.8g}" if len(tensor.scale) == 1 else ""
    return f"{tensor.name}  {tensor.dtype}[{shape}]{quantized}"


def _onnxruntime(manifest: Manifest) -> list[str]:
    graph = manifest.graphs[0]
    packages = manifest.toolchain.packages
    pins = " ".join(f"{name}=={packages[name]}" for name in ("onnxruntime", "onnxruntime-qnn") if name in packages)
    return [
        f"  pip install {pins} numpy",
        "  python - <<'END'",
        "  import numpy, onnxruntime as ort, onnxruntime_qnn as qnn",
        '  ort.register_execution_provider_library("QNNExecutionProvider", qnn.get_library_path())',
        '  devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"][:1]',
        "  options = ort.SessionOptions()",
        "  options.add_provider_for_devices(devices, {",
        f'      "backend_path": qnn.get_qnn_htp_path(), "soc_model": "{manifest.chip.soc_id}"}})',
        f'  session = ort.InferenceSession("{graph.wrapper}", options)',
        "  kinds = {'tensor(float)': 'float32', 'tensor(float16)': 'float16', 'tensor(bool)': 'bool',",
        "           'tensor(int32)': 'int32', 'tensor(int64)': 'int64', 'tensor(uint8)': 'uint8'}",
        "  zeros = {i.name: numpy.zeros(i.shape, kinds[i.type]) for i in session.get_inputs()}",
        "  print({o.name: r.shape for o, r in zip(session.get_outputs(), session.run(None, zeros))})",
        "  END",
    ]


def _net_run(manifest: Manifest, graph: ManifestGraph) -> list[str]:
    native = all(not tensor.scale for tensor in (*graph.inputs, *graph.outputs))
    # Without the flag qnn-net-run reads every input as float32 and gives other dtypes zeros without a word.
    flags = " --use_native_input_files --use_native_output_files" if native else ""
    return [
        f"  adb push . /data/local/tmp/{manifest.name}",
        f'  adb shell "cd /data/local/tmp/{manifest.name} && LD_LIBRARY_PATH=/data/local/tmp/qnn \\',
        "    ADSP_LIBRARY_PATH='/data/local/tmp/qnn;/vendor/dsp/cdsp;/vendor/lib/rfsa/adsp' \\",
        f"    /data/local/tmp/qnn/qnn-net-run --backend libQnnHtp.so --retrieve_context {graph.binary} \\",
        f'    --input_list golden/{graph.name}/input_list.txt{flags} --output_dir out_{graph.name}"',
        f"  # compare out_{graph.name}/Result_0 with golden/{graph.name}",
    ]
