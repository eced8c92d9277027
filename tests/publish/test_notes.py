"""Release notes and model card, as files to look at; `python -m tests.publish.test_notes` writes them anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from qnn.bundle.manifest import ManifestSource
from qnn.provenance.subject import ReleasedBundle, Subject
from qnn.publish.card import model_card
from qnn.publish.github import GithubTarget
from qnn.publish.notes import Story, escape, release_notes
from qnn.publish.target import Unit
from tests.provenance.conftest import BUNDLES

NOTES = Path(__file__).with_name("notes.golden.md")
CARD = Path(__file__).with_name("card.golden.md")
STORY = Story(
    unit=Unit("toy", "1.0"),
    revision=2,
    bundles=BUNDLES,
    address=lambda name: f"https://github.com/acme/models/releases/download/toy-1.0-r2/{name}",
    attested="acme/forge",
    earlier=(("toy-1.0-s16-w8a16-SM8750-qairt2.51.0.tar.gz", 1),),
)


def front_matter(card: str) -> Any:
    head, text, _ = card.split("---\n", 2)
    assert head == ""
    return yaml.safe_load(text)


def of_model(**fields: Any) -> Story:
    """The story of a model with other fields."""
    bundles = tuple(
        ReleasedBundle(one.file, replace(one.manifest, model=replace(one.manifest.model, **fields))) for one in BUNDLES
    )
    return replace(STORY, bundles=bundles)


def test_the_notes_are_as_they_were_looked_at() -> None:
    assert release_notes(STORY) == NOTES.read_text(encoding="utf-8")


def test_the_card_is_as_it_was_looked_at() -> None:
    assert model_card(STORY) == CARD.read_text(encoding="utf-8")


def test_the_front_matter_is_what_the_hub_knows() -> None:
    fields = front_matter(model_card(of_model(task="automatic-speech-recognition", licence="Apache-2.0")))
    assert (fields["license"], fields["pipeline_tag"]) == ("apache-2.0", "automatic-speech-recognition")
    assert "automatic-speech-recognition" not in fields["tags"]
    fields = front_matter(model_card(of_model(task="no-such-task", licence="MIT OR Apache-2.0")))
    assert (fields["license"], fields["license_name"]) == ("other", "MIT OR Apache-2.0")
    assert "pipeline_tag" not in fields
    assert "no-such-task" in fields["tags"]


def test_weights_from_the_hub_are_named_as_the_base() -> None:
    source = ManifestSource("w", "huggingface", f"acme/base@{'0' * 40}", "m.onnx", "ab" * 32, 1)
    bundles = tuple(ReleasedBundle(one.file, replace(one.manifest, sources=(source,))) for one in BUNDLES)
    assert front_matter(model_card(replace(STORY, bundles=bundles)))["base_model"] == ["acme/base"]


def test_notes_of_a_thousand_files_are_what_github_takes() -> None:
    """GitHub refuses more than 125,000 characters; what is left out is in README.md."""
    target = GithubTarget("acme/models")
    assert target.introduction(STORY) == release_notes(STORY)
    name = "x" * 150
    many = tuple(ReleasedBundle(Subject(f"{name}{n:04d}.tar.gz", "11" * 32), BUNDLES[0].manifest) for n in range(995))
    story = replace(STORY, bundles=many)
    short = target.introduction(story)
    assert len(short) < 125_000
    assert "795 more rows are in README.md of this release." in short
    assert f"{name}0994" in release_notes(story)


def test_what_an_author_writes_stays_text() -> None:
    notes = release_notes(of_model(summary="<script>|a|\n# Heading @everyone [x](y) `z`", attribution="*A*"))
    [line] = [line for line in notes.splitlines() if "script" in line]
    assert line == "\\<script\\>\\|a\\| \\# Heading @\u200beveryone \\[x\\](y) \\`z\\`"
    assert "by \\*A\\*." in notes


@given(st.text(max_size=60))
def test_no_text_ends_its_line_or_the_front_matter(text: str) -> None:
    assert len(escape(text).splitlines()) <= 1
    card = model_card(of_model(task=text, licence=text, summary=text))
    fields = front_matter(card)
    assert fields["license"] == "other" or text in ("MIT", "Apache-2.0")
    if text.strip() and fields.get("license_name"):
        assert fields["license_name"] == text


def test_without_an_attestation_nobody_is_told_to_verify_one() -> None:
    assert "gh attestation" in release_notes(STORY)
    assert "gh attestation" not in release_notes(replace(STORY, attested=None))


def test_a_folder_of_this_machine_has_no_curl() -> None:
    notes = release_notes(replace(STORY, address=lambda name: f"file:///srv/{name}"))
    assert "curl" not in notes
    assert "sha256sum --ignore-missing -c SHA256SUMS" in notes


if __name__ == "__main__":
    NOTES.write_text(release_notes(STORY), encoding="utf-8")
    CARD.write_text(model_card(STORY), encoding="utf-8")
