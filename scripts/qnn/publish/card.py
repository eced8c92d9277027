"""The model card of a Hub repository: YAML front matter that the Hub accepts, and the text of the notes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qnn.publish.notes import Story, body, code, manifests_of

# The Hub's own names of licences (https://huggingface.co/docs/hub/repositories-licenses); others are "other".
_HUB_LICENCES = {
    "AFL-3.0": "afl-3.0", "AGPL-3.0-only": "agpl-3.0", "AGPL-3.0-or-later": "agpl-3.0", "Apache-2.0": "apache-2.0",
    "BSD-2-Clause": "bsd-2-clause", "BSD-3-Clause": "bsd-3-clause", "BSD-3-Clause-Clear": "bsd-3-clause-clear",
    "BSL-1.0": "bsl-1.0", "CC-BY-3.0": "cc-by-3.0", "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-3.0": "cc-by-sa-3.0",
    "CC-BY-SA-4.0": "cc-by-sa-4.0", "CC0-1.0": "cc0-1.0", "CDLA-Permissive-1.0": "cdla-permissive-1.0",
    "CDLA-Permissive-2.0": "cdla-permissive-2.0", "CDLA-Sharing-1.0": "cdla-sharing-1.0", "ECL-2.0": "ecl-2.0",
    "EPL-2.0": "epl-2.0", "EUPL-1.2": "eupl-1.2", "GPL-2.0-only": "gpl-2.0", "GPL-2.0-or-later": "gpl-2.0",
    "GPL-3.0-only": "gpl-3.0", "GPL-3.0-or-later": "gpl-3.0", "ISC": "isc", "LGPL-2.1-only": "lgpl-2.1",
    "LGPL-2.1-or-later": "lgpl-2.1", "LGPL-3.0-only": "lgpl-3.0", "LGPL-3.0-or-later": "lgpl-3.0", "MIT": "mit",
    "MPL-2.0": "mpl-2.0", "MS-PL": "ms-pl", "NCSA": "ncsa", "ODbL-1.0": "odbl", "PDDL-1.0": "pddl",
    "PostgreSQL": "postgresql", "Unlicense": "unlicense", "WTFPL": "wtfpl", "Zlib": "zlib",
}  # fmt: skip
# Tasks that the Hub has a page for; a tag of another word would be refused as `pipeline_tag`.
_HUB_TASKS = frozenset({
    "audio-classification", "audio-to-audio", "automatic-speech-recognition", "depth-estimation", "feature-extraction",
    "fill-mask", "image-classification", "image-feature-extraction", "image-segmentation", "image-text-to-text",
    "image-to-image", "image-to-text", "keypoint-detection", "mask-generation", "object-detection",
    "question-answering", "sentence-similarity", "summarization", "text-classification", "text-generation",
    "text-to-image", "text-to-speech", "token-classification", "translation", "video-classification",
    "voice-activity-detection", "zero-shot-image-classification",
})  # fmt: skip


def model_card(story: Story) -> str:
    """README.md of a Hub repository: YAML front matter, then the same as the notes, and what earlier revisions have."""
    lines = [*_front_matter(story), "", *body(story, story.unit.model, None)]
    lines += ["", f"This is version {story.unit.version}, revision {story.revision}. Other versions and revisions are"]
    lines += ["folders of this repository, each with a tag and a README.md of its own."]
    if story.earlier:
        lines += ["", "## Files of earlier revisions", "", "| file | revision |", "|---|---|"]
        lines += [f"| {code(name)} | r{revision} |" for name, revision in sorted(story.earlier)]
    return "\n".join(lines) + "\n"


def _front_matter(story: Story) -> Iterator[str]:
    import yaml  # noqa: PLC0415 - only a Hub publish needs it

    manifests = list(manifests_of(story.bundles))
    model = manifests[0].model
    fields: dict[str, object] = {}
    licence = _HUB_LICENCES.get(model.licence or "")
    fields["license"] = licence or "other"
    if licence is None and model.licence:
        fields["license_name"] = model.licence
    fields["library_name"] = "qnn-forge"
    if model.task in _HUB_TASKS:
        fields["pipeline_tag"] = model.task
    bases = {
        source.address.partition("@")[0] for m in manifests for source in m.sources if source.kind == "huggingface"
    }
    if bases:
        fields["base_model"] = sorted(bases)
    tags = {"qnn", "qairt", "htp", "hexagon", "qualcomm", "onnx"}
    tags |= {tag for m in manifests for tag in (m.precision, m.chip.name.lower())}
    fields["tags"] = sorted(tags if model.task in _HUB_TASKS else {*tags, model.task})
    yield "---"
    yield from yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100).rstrip().split("\n")
    yield "---"
