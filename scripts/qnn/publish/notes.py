"""The Markdown text of a release, on GitHub and in a folder. Pure. qnn.publish.card makes a model card of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from qnn.bundle.manifest import Manifest, ManifestGraph, ManifestModel
from qnn.provenance.subject import ReleasedBundle
from qnn.publish.target import ATTESTATION, Unit

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~#$])")


@dataclass(frozen=True)
class Story:
    """What a text tells of: a revision's bundles, where a file of it will be found, the repository (owner/name) whose
    workflow attested them if one did, and the files of earlier revisions that are still the newest of their name.
    """

    unit: Unit
    revision: int
    bundles: tuple[ReleasedBundle, ...]
    address: Callable[[str], str]
    attested: str | None
    earlier: tuple[tuple[str, int], ...] = ()


def release_notes(story: Story, rows: int | None = None) -> str:
    """The text of a release, with at most `rows` rows in its tables."""
    return "\n".join(body(story, f"{story.unit.model} {story.unit.version}, revision {story.revision}", rows)) + "\n"


def escape(text: str) -> str:
    """Text of a model's author as Markdown shows it letter by letter, on one line, without mentions or HTML."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split())).replace("@", "@\u200b")


def body(story: Story, title: str, rows: int | None) -> Iterator[str]:
    """The lines that notes and card have in common."""
    model = story.bundles[0].manifest.model
    yield from (f"# {escape(title)}", "", escape(model.summary), "")
    yield "Context binaries for the Hexagon NPU (HTP) of Snapdragon chips, each run on the HTP emulator and compared"
    yield "with the float model before it was published. One archive a chip: take the one that names yours."
    yield from ("", "## Chips", "", *_chips(story.bundles, rows))
    yield from ("", "## Numbers", "", *_numbers(story.bundles, rows))
    yield from ("", "## Get one", "", *_download(story))
    yield from ("", "## Run it", "", *_run(story))
    yield from ("", "## Licence", "", *_licence(model))
    yield from ("", "## Where it comes from", "", *_provenance(story))


def _chips(bundles: Sequence[ReleasedBundle], rows: int | None) -> Iterator[str]:
    yield "| chip | Hexagon | VTCM | variant | QAIRT | file | size |"
    yield "|---|---|---|---|---|---|---|"
    for bundle in bundles[:rows]:
        manifest = bundle.manifest
        yield (
            f"| {manifest.chip.name} | {manifest.chip.arch} | {manifest.chip.vtcm_mb} MB "
            f"| {manifest.bucket}, {manifest.precision} | {manifest.toolchain.qairt} | {code(bundle.file.name)} "
            f"| {_size(sum(file.size for file in manifest.files))} |"
        )
    yield from _cut(len(bundles), rows)
    yield ""
    yield "The runtime on the device must be of the QAIRT version in the table or newer: context binaries load"
    yield "forwards, never backwards. Sizes are of the unpacked bundle."


def _numbers(bundles: Sequence[ReleasedBundle], rows: int | None) -> Iterator[str]:
    yield "| file | graph | against the float model, on the HTP emulator |"
    yield "|---|---|---|"
    lines = [
        f"| {code(bundle.file.name)} | {escape(graph.name)} | {measured} |"
        for bundle in bundles
        for graph in bundle.manifest.graphs
        for measured in ["; ".join((*_outputs(graph), *_metrics(graph)))]
    ]
    yield from lines[:rows]
    yield from _cut(len(lines), rows)


def _outputs(graph: ManifestGraph) -> Iterator[str]:
    for output in graph.numerics:
        parts = [
            _held("cosine", output.cosine, ".6f", "≥", output.gates.cosine),
            _held("max abs error", output.max_abs, ".3g", "≤", output.gates.max_abs),
            _held("max rel error", output.max_rel, ".3g", "≤", output.gates.max_rel),
            _held("same argmax", output.argmax, ".4f", "≥", output.gates.argmax),
            _held("equal", output.equal, ".4f", "≥", None),
        ]
        yield f"{code(output.name)}: {', '.join(part for part in parts if part)}"


def _held(name: str, value: float | None, form: str, relation: str, gate: float | None) -> str:
    if value is None:
        return ""
    return f"{name} {value:{form}}" + (f" (gate {relation} {gate:.6g})" if gate is not None else "")


def _metrics(graph: ManifestGraph) -> Iterator[str]:
    for metric in graph.metrics:
        yield (
            f"{code(metric.name)}: float {_value(metric.float_value)}, HTP {_value(metric.htp_value)}, worst of "
            f"{metric.samples} (gate: {escape(metric.gate)})"
        )


def _value(value: float | str | bool) -> str:
    return escape(str(value))[:80] if isinstance(value, str | bool) else f"{value:.4g}"


def _cut(total: int, rows: int | None) -> Iterator[str]:
    if rows is not None and total > rows:
        yield ""
        yield f"{total - rows} more rows are in README.md of this release."


def _download(story: Story) -> Iterator[str]:
    name = story.bundles[0].file.name
    address = story.address(name)
    yield f"    qnn-forge pull {story.unit.model} --soc {story.bundles[0].manifest.chip.name}"
    yield ""
    yield "or without any tool of ours:"
    yield ""
    if address.startswith(("https://", "http://")):
        yield f"    curl -fLO '{address}'"
        yield f"    curl -fLO '{story.address('SHA256SUMS')}'"
    yield "    sha256sum --ignore-missing -c SHA256SUMS"
    yield f"    tar xzf {name}"


def _run(story: Story) -> Iterator[str]:
    manifest = story.bundles[0].manifest
    graph = manifest.graphs[0]
    yield f"Every archive holds the raw context binary of each graph ({_binaries(manifest)}), an ONNX wrapper around it"
    yield f"({code(graph.wrapper)}), golden inputs and outputs, and a README.txt with commands to paste."
    yield ""
    yield f"- **ONNX Runtime** with the QNN execution provider opens {code(graph.wrapper)}:"
    yield from ("", "  ```python", *(f"  {line}".rstrip() for line in _onnxruntime(manifest, graph)), "  ```", "")
    yield "- **qnn-net-run** of a QAIRT SDK, on the device:"
    yield f"  `qnn-net-run --backend libQnnHtp.so --retrieve_context {graph.binary} --input_list"
    yield f"  golden/{graph.name}/input_list.txt`, with the flags that README.txt gives for the inputs' dtypes."
    yield "- **sherpa-onnx**, for the model families it knows: give the raw binaries as `context_binary` (several in"
    yield "  its own order, with commas), and `libQnnHtp.so` and `libQnnSystem.so` as `backend_lib` and `system_lib`."
    yield "- **To check it again** without a phone: `qnn-forge verify` and the archive."
    yield ""
    yield "The runtime libraries are Qualcomm's and are not part of this release; `qnn-forge libs` collects them on"
    yield "your machine from the official packages."


def _onnxruntime(manifest: Manifest, graph: ManifestGraph) -> Iterator[str]:
    """README.txt in the archive has the same with inputs, and with the versions it was made with."""
    yield from ("import onnxruntime as ort, onnxruntime_qnn as qnn", "")
    yield 'ort.register_execution_provider_library("QNNExecutionProvider", qnn.get_library_path())'
    yield 'devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"][:1]'
    yield "options = ort.SessionOptions()"
    where = f'{{"backend_path": qnn.get_qnn_htp_path(), "soc_model": "{manifest.chip.soc_id}"}}'
    yield f"options.add_provider_for_devices(devices, {where})"
    yield f'session = ort.InferenceSession("{graph.wrapper}", options)'


def _binaries(manifest: Manifest) -> str:
    return ", ".join(code(graph.binary) for graph in manifest.graphs)


def _licence(model: ManifestModel) -> Iterator[str]:
    yield f"The weights, and so the binaries made from them: **{escape(model.licence or 'none')}**" + (
        f", by {escape(model.attribution)}." if model.attribution else "."
    )
    yield "The text, where the model names one, is LICENSE.txt in each archive."


def _provenance(story: Story) -> Iterator[str]:
    sources = sorted(
        {
            (source.name, f"{source.kind} {source.address}" + (f", {source.member}" if source.member else ""), digest)
            for bundle in story.bundles
            for source in bundle.manifest.sources
            for digest in [source.sha256]
        }
    )
    yield "| source | address | sha256 |"
    yield "|---|---|---|"
    for name, address, digest in sources:
        yield f"| {escape(name)} | {code(address)} | {code(digest)} |"
    yield ""
    builds = sorted({(m.toolchain.qairt, m.toolchain.build_id) for m in manifests_of(story.bundles)})
    yield "Compiled with " + ", ".join(f"QAIRT {qairt} (build {code(build)})" for qairt, build in builds) + " by"
    yield f"qnn-forge {', '.join(sorted({m.forge for m in manifests_of(story.bundles)}))}. Beside the archives:"
    yield "`SHA256SUMS` (for `sha256sum -c`), `sbom.cdx.json` (CycloneDX 1.6) and `provenance.intoto.json` (in-toto"
    yield "statement with an SLSA provenance predicate: digests of sources and of every stage, workflow and commit)."
    if story.attested is not None:
        yield ""
        yield "The archives are attested by the workflow that built them:"
        yield ""
        yield f"    gh attestation verify {story.bundles[0].file.name} --bundle {ATTESTATION} --repo {story.attested}"


def manifests_of(bundles: Iterable[ReleasedBundle]) -> Iterator[Manifest]:
    return (bundle.manifest for bundle in bundles)


def code(text: str) -> str:
    """Inline code that its content cannot end, in a table too."""
    plain = " ".join(text.split()).replace("|", "\\|")
    ticks = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    return f"{ticks}{plain}{ticks}" if "`" not in plain else f"{ticks} {plain} {ticks}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
