"""The resolver beyond the vectors of tests/index: what it says, and that order does not matter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn import index
from qnn.chips.table import load_table
from qnn.index.document import IndexFile, IndexVariant, VersionIndex, from_json
from qnn.pull.compare import differences
from qnn.pull.explain import miss
from qnn.pull.resolve import resolve
from qnn.pull.run import Found
from qnn.pull.wish import Choice, Verdict, Wish, parse_runtime
from tests.index.examples import manifest

VECTORS = json.loads(Path(index.__file__).with_name("vectors.json").read_text())
DOCUMENT = from_json(json.dumps(VECTORS["documents"]["v1/models/toy/1.0.json"]), VersionIndex, "1.0")


def ask(soc: str, runtime: str | None = None, **wishes: object) -> Choice:
    wish = Wish("toy", load_table().lookup(soc), runtime=None if runtime is None else parse_runtime(runtime))
    return resolve(DOCUMENT, replace(wish, **wishes))  # type: ignore[arg-type]


def test_a_file_of_the_chips_own_is_explained() -> None:
    assert ask("SM8650", "2.48").reasons == (
        "toy 1.0 default/fp16, revision 1, made for SM8650 itself",
        "made by QAIRT 2.48.40; the device needs a runtime of QAIRT 2.48.40 or newer",
        "files of QAIRT 2.51.0 are newer than the runtime",
    )


def test_a_warning_says_which_chip_it_was_made_for_and_how_to_do_better() -> None:
    choice = ask("QCS8550")
    assert choice.verdict is Verdict.WARN
    assert "made for SM8550 (v73, 8 MB VTCM, 4 HVX threads), not for QCS8550" in choice.reasons[0]
    assert choice.build == "qnn-forge build toy --soc QCS8550 --bucket default --precision fp16"


def test_a_chip_without_a_file_gets_the_command_and_the_nearest_chips_with_what_is_in_the_way() -> None:
    choice = ask("SM8845")
    assert choice.verdict is Verdict.BUILD
    assert choice.build == "qnn-forge build toy --soc SM8845 --bucket default --precision fp16"
    assert choice.near == (
        "SM8850: its files use 8 HVX threads, SM8845 has 6",
        "SM8750: its files are for v79, SM8845 is v81",
        "SM8650: its files are for v75, SM8845 is v81",
    )
    assert ask("SM7675").near == () or ask("SM7675").verdict is not Verdict.BUILD
    small = ask("SM7450", precision="w8a16")  # v69 with 2 MB
    assert small.near[0] == "SM8475: its files use 8 MB of VTCM, SM7450 has 2"


def test_an_old_runtime_is_told_why_and_what_would_load() -> None:
    choice = ask("SM8550", "2.49")
    assert choice.verdict is Verdict.BUILD
    assert "made by a newer QAIRT than the runtime 2.49" in choice.reasons[0]
    assert choice.reasons[1] == "build it with a toolchain of QAIRT 2.49 or older (docs/toolchains.md)"
    assert choice.near == ("a runtime of QAIRT 2.51.0 or newer on the device loads what is published",)


def test_what_there_is_is_named_when_something_else_is_asked_for() -> None:
    assert ask("SM8650", precision="w4a16").near == ("--precision fp16", "--precision w8a16")
    assert ask("SM8650", bucket="30s").near == ("--bucket default",)
    assert ask("SM8650", revision=9).near == ("--revision 1", "--revision 2")
    assert ask("SM8635", precision="fp16").near == ("--precision w8a16",)
    assert ask("SM8750").near == ("--revision 1 --allow-yanked takes it all the same",)


def test_buckets_are_named_with_their_sizes() -> None:
    two = from_json(json.dumps(VECTORS["documents"]["v1/models/toy/2.0.json"]), VersionIndex, "2.0")
    choice = resolve(two, Wish("toy", load_table().lookup("SM8550")))
    assert choice.near == ("--bucket 10s (seconds 10)", "--bucket 5s (seconds 5)")


@given(st.data())
def test_the_order_of_a_document_does_not_matter(data: st.DataObject) -> None:
    soc = data.draw(st.sampled_from([soc.name for soc in load_table().socs]))
    runtime = data.draw(st.sampled_from([None, "2.40", "2.48", "2.50", "2.51"]))
    shuffled = replace(
        DOCUMENT,
        variants=tuple(
            replace(variant, files=tuple(data.draw(st.permutations(variant.files))))
            for variant in data.draw(st.permutations(DOCUMENT.variants))
        ),
    )
    wish = Wish("toy", load_table().lookup(soc), runtime=None if runtime is None else parse_runtime(runtime))
    one, other = (replace(resolve(document, wish), variant=None) for document in (shuffled, DOCUMENT))
    assert one == other


@given(st.sampled_from(load_table().socs), st.sampled_from([None, "2.48", "2.51.0"]))
def test_no_file_is_ever_taken_that_the_chip_or_the_runtime_cannot_load(soc: object, runtime: str | None) -> None:
    chip = load_table().lookup(soc.name)  # type: ignore[attr-defined]
    wish = Wish("toy", chip, runtime=None if runtime is None else parse_runtime(runtime))
    choice = resolve(DOCUMENT, wish)
    if choice.file is None:
        assert choice.verdict in (Verdict.BUILD, Verdict.NO)
        return
    assert choice.variant is not None
    assert choice.file.arch == chip.arch
    assert choice.file.vtcm_mb <= chip.vtcm_mb
    assert choice.file.hvx_threads <= chip.hvx_threads
    assert chip.fp16 or choice.variant.precision != "fp16"
    assert choice.file.yanked is None
    assert runtime != "2.48" or choice.file.qairt.startswith("2.48")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2.48", (2, 48)), ("2.51.0", (2, 51, 0)), ("v2.51.0.260929181845", (2, 51, 0, 260929181845))],
)
def test_runtimes(text: str, numbers: tuple[int, ...]) -> None:
    runtime = parse_runtime(text)
    assert runtime is not None
    assert runtime.numbers == numbers
    assert not runtime.is_older_than("2.48.40")
    assert runtime.is_older_than("2.52.0")


@pytest.mark.parametrize("text", ["", "2", "latest", "2.x", "2.48.", "2.٤٨", "-2.48", "2.48.1.2.3"])
def test_what_is_no_runtime(text: str) -> None:
    assert parse_runtime(text) is None


def test_a_miss_of_several_models_names_all_and_no_comes_before_build_it() -> None:
    chip = load_table().lookup("SM8845")
    build = Found(Wish("toy", chip), ask("SM8845"), DOCUMENT)
    never = Found(Wish("other", chip), Choice(Verdict.NO, ("the index has no model called 'other'",)))
    found = Found(Wish("toy", load_table().lookup("SM8650")), ask("SM8650"), DOCUMENT)
    assert miss([found]) is None
    both = miss([found, build, never])
    assert both is not None
    assert (both.id, int(both.exit_code)) == ("QF733", 22)
    assert "build: qnn-forge build toy --soc SM8845 --bucket default --precision fp16" in both.details
    one = miss([found, build])
    assert one is not None
    assert (one.id, int(one.exit_code)) == ("QF732", 21)
    assert one.remedy == "build it: qnn-forge build toy --soc SM8845 --bucket default --precision fp16"


def entry() -> tuple[VersionIndex, IndexVariant, IndexFile]:
    from qnn.index.entries import file_of, graphs_of  # noqa: PLC0415

    of = manifest()
    file = replace(file_of(of, "x.tar.gz", 5, "ab" * 32), urls=("u",), revision=3, published="2026-11-30", yanked="y")
    variant = IndexVariant(of.bucket, of.precision, dict(of.dimensions), graphs_of(of), (file,))
    return VersionIndex(1, "toy", "1.0", "A toy.", "test", "MIT", (variant,)), variant, file


def test_an_entry_is_compared_with_the_manifest_fact_by_fact() -> None:
    document, variant, file = entry()
    assert differences(document, variant, file, manifest()) == ()
    assert differences(replace(document, model="other"), variant, file, manifest()) == (
        "model: the index says other, the file toy",
    )
    for fact, value in {"soc_id": 1, "arch": "v1", "fp16": False, "hvx_threads": 9, "minimum_runtime": "1.0"}.items():
        (line,) = differences(document, variant, replace(file, **{fact: value}), manifest())  # type: ignore[arg-type]
        assert line.startswith(f"{fact}: the index says {value}")
