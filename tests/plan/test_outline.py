"""Reading what planning needs: the quick way gives what the full way gives, and leaves every doubt to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from qnn.errors.model import InvalidModel
from qnn.model.load import load_model
from qnn.plan import outline as module
from qnn.plan.outline import outline_of, read_outline, read_outlines
from tests.model import sample
from tests.model.faults import exported

MODELS = Path(__file__).parents[2] / "models"


def write(folder: Path, text: str, name: str = "reader") -> Path:
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "model.yaml").write_text(text)
    return folder / name


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """The model that uses every part of the format, with the files it names."""
    return sample.write_model(tmp_path)


@pytest.fixture
def only_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The full way is closed."""

    def closed(folder: Path) -> None:
        raise AssertionError(f"{folder} was read in full")

    monkeypatch.setattr(module, "load_model", closed)


@pytest.mark.parametrize("folder", sorted(MODELS.iterdir()), ids=lambda folder: folder.name)
def test_quick_and_full_agree_on_the_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = outline_of(load_model(folder))
    monkeypatch.setattr(module, "load_model", None)
    assert read_outline(folder) == full


def test_quick_and_full_agree_on_the_whole_format(reader: Path, only_quick: None) -> None:
    found = read_outline(reader)
    assert found == outline_of(load_model(reader))
    assert found.buckets == ("large", "small")
    assert found.exclude == ((("SM8350",), "no fp16"),)
    det, rec = found.graphs
    assert det.weights == {"fp16": 4745517, "w8a8": 1200000}
    assert rec.weights == {"fp16": 10, "w8a8": 20}


def test_an_exported_graph_may_hold_the_weights_of_any_source(reader: Path, only_quick: None) -> None:
    text = (reader / "model.yaml").read_text()
    text = text.replace("source: {fp16: det, w8a8: det-w8a8}\n    reference: det", "export: export.py:det")
    (reader / "model.yaml").write_text(text)
    weights = 4745517 + 1200000 + 10 + 20 + 11
    assert read_outline(reader).graphs[0].weights == {"fp16": weights, "w8a8": weights}


def test_quick_and_full_agree_on_an_export(reader: Path) -> None:
    files = exported()
    for name, text in files.items():
        (reader / name).write_text(text)
    assert read_outline(reader) == outline_of(load_model(reader))


def test_a_graph_with_both_or_neither_is_left_to_the_full_way(reader: Path) -> None:
    text = (reader / "model.yaml").read_text()
    for key in ("export: export.py:det\n    source: det", "reference: det"):
        (reader / "model.yaml").write_text(text.replace("source: {fp16: det, w8a8: det-w8a8}", key))
        with pytest.raises(InvalidModel, match=r"QF024|export"):
            read_outline(reader)


def test_external_data_counts_as_weights(reader: Path, only_quick: None) -> None:
    text = (reader / "model.yaml").read_text().replace("    size: 10\n", "    size: 10\n    beside: [words]\n")
    (reader / "model.yaml").write_text(text)
    assert read_outline(reader).graphs[1].weights["fp16"] == 30


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: reader", "name: &a reader"),  # an anchor, which could make a small file large
        ("name: reader", "name: other"),  # not the folder's
        ("name: reader", "name: ../reader"),
        ("precisions: [fp16, w8a8]", "precisions: [fp16, fp16]"),
        ("precisions: [fp16, w8a8]", "precisions: [int4]"),
        ("precisions: [fp16, w8a8]", "precisions: fp16"),
        ("precisions: [fp16, w8a8]", "precisions: []"),
        ("  small:", "  'a; rm -rf /':"),
        ("source: {fp16: det, w8a8: det-w8a8}", "source: nowhere"),
        ("size: 4745517", "size: many"),
        ("targets:", "targets: [\n"),
        ("targets:", "tragets:"),
    ],
)
def test_what_is_wrong_is_said_by_the_full_reader_with_a_place(reader: Path, old: str, new: str) -> None:
    text = (reader / "model.yaml").read_text()
    assert old in text
    (reader / "model.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(InvalidModel, match=r"reader/model\.yaml:\d+:\d+ QF\d{3}"):
        read_outline(reader)


@pytest.mark.parametrize("text", ["", "- a\n", "a: *b\n", "a: 1\n---\nb: 2\n", "[" * 2000, "\x00", "name: [a, b"])
def test_what_is_no_model_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidModel):
        read_outline(write(tmp_path, text))


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, reader: Path) -> None:
    (tmp_path / "elsewhere.yaml").write_text((reader / "model.yaml").read_text())
    (reader / "model.yaml").unlink()
    (reader / "model.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    with pytest.raises(InvalidModel, match="symbolic link"):
        read_outline(reader)


def test_problems_of_all_models_come_together(tmp_path: Path, reader: Path) -> None:
    other = write(tmp_path, "name: other\n", "other")
    third = tmp_path / "third"
    third.mkdir()
    with pytest.raises(InvalidModel) as caught:
        read_outlines([other, reader, third])
    assert {Path(problem.place.path).parent.name for problem in caught.value.problems} == {"other", "third"}
