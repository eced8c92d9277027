from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qnn.cli import run
from qnn.cli.downloads import download_bars
from qnn.errors.base import ForgeError
from qnn.errors.model import InvalidModel
from qnn.model.load import lint_model
from qnn.sources.pinning import survey, write_pins, written_sources
from qnn.sources.pins import Pin
from qnn.sources.protocol import Policy, Silent
from tests.sources import fake_server as fake
from tests.sources.conftest import CONTENT, PLAIN, digest
from tests.sources.fake_server import FakeServer

HEAD = """\
# yaml-language-server: $schema=../../scripts/qnn/model/model.schema.json
name: tiny   # a comment
version: "1.0"
summary: A model for tests.
task: text-recognition
licence:
  {spdx: Apache-2.0, text: licence}
"""
TAIL = """\
graphs:
  det:
    source: det
    inputs:
      x: [1, 3]
precisions: [fp16]
targets: {socs: [SM8650]}
checks: {data: data.py:samples}
"""
SOURCES = """\
sources:
  det:
    local: det.onnx     # beside this file
  licence: {local: LICENSE}
"""
TERMS = b"terms\n"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """models/tiny below the current folder, complete but for its pins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QNN_FORGE_STORE", str(tmp_path / "store"))
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "model.yaml").write_text(HEAD + SOURCES + TAIL)
    (folder / "det.onnx").write_bytes(CONTENT)
    (folder / "LICENSE").write_bytes(TERMS)
    (folder / "data.py").write_text("def samples(*, graph, inputs, sources, count):\n    return []\n")
    return folder


def pinned(det: bytes = CONTENT) -> str:
    return f"""\
sources:
  det:
    local: det.onnx     # beside this file
    sha256: {digest(det)}
    size: {len(det)}
  licence: {{local: LICENSE, sha256: {digest(TERMS)}, size: 6}}
"""


def test_pin_fills_in_and_the_model_is_then_complete(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {problem.id for problem in lint_model(model)} == {"QF106"}  # nothing but the pins is missing
    assert run(["pin", "tiny"]) == 0
    assert (model / "model.yaml").read_text() == HEAD + pinned() + TAIL
    assert lint_model(model) == ()
    assert capsys.readouterr().out.splitlines() == [
        f"tiny det: new  {digest(CONTENT)}  10240 bytes",
        f"tiny licence: new  {digest(TERMS)}  6 bytes",
    ]
    assert run(["pin", "tiny", "--check"]) == 0
    assert ": same  " in capsys.readouterr().out


def test_check_and_dry_run_write_nothing(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pin", "--dry-run"]) == 0
    assert run(["pin", "--check"]) == 5
    assert (model / "model.yaml").read_text() == HEAD + SOURCES + TAIL
    errors = capsys.readouterr().err
    assert "models/tiny/model.yaml:10:12 QF318" in errors
    assert digest(CONTENT) in errors
    assert "remedy: qnn-forge pin tiny" in errors


def test_a_changed_file_is_shown_with_what_it_was(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["pin"])
    (model / "det.onnx").write_bytes(CONTENT[:100])
    assert run(["pin", "--check"]) == 5
    capsys.readouterr()
    assert run(["pin"]) == 0
    shown = capsys.readouterr()
    assert f"tiny det: changed  {digest(CONTENT[:100])}  100 bytes" in shown.out
    assert f"was {digest(CONTENT)}  10240 bytes" in shown.out
    assert "find out why" in shown.err
    assert (model / "model.yaml").read_text() == HEAD + pinned(CONTENT[:100]) + TAIL


def test_json_is_one_document(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pin", "--json", "--check"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert document["written"] is False
    (entry,) = document["models"]
    assert entry["model"] == "tiny"
    assert entry["failures"] == []
    assert entry["sources"][0] == {
        "name": "det",
        "state": "new",
        "sha256": digest(CONTENT),
        "size": 10240,
        "old_sha256": None,
        "old_size": None,
    }


def test_one_failure_does_not_keep_the_others(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / "det.onnx").unlink()
    broken = model.parent / "broken"
    broken.mkdir()
    assert run(["pin"]) == 3  # that of the first failure
    shown = capsys.readouterr().err
    assert shown.index("models/broken/model.yaml QF001") < shown.index("models/tiny/model.yaml:10:12 QF316")
    text = (model / "model.yaml").read_text()
    assert f"licence: {{local: LICENSE, sha256: {digest(TERMS)}, size: 6}}" in text
    assert "size: 10240" not in text


@pytest.mark.parametrize(
    ("sources", "error_id", "line"),
    [
        ("sources: {}\n", "QF320", 8),
        ("sources: [a]\n", "QF320", 8),
        ("", "QF320", 2),
        ("sources:\n  a: {file: x}\n", "QF320", 9),
        ("sources:\n  a: {local: x, url: https://example.org/x}\n", "QF320", 9),
        ("sources:\n  a: {local: 5}\n", "QF320", 9),
        ("sources:\n  a: {local: x, file: [y]}\n", "QF320", 9),
        ("sources:\n  a: {pypi: x==1}\n", "QF320", 9),
        ("sources:\n  a: {local: ../../outside}\n", "QF317", 9),
        ("sources:\n  a: {url: http://example.org/x}\n", "QF320", 9),
        ("sources:\n  a: &a {local: x}\n", "QF100", 9),
        ("sources:\n\ta: {local: x}\n", "QF100", 9),
    ],
)
def test_what_cannot_be_pinned_has_a_line(
    model: Path, capsys: pytest.CaptureFixture[str], sources: str, error_id: str, line: int
) -> None:
    before = HEAD + sources
    (model / "model.yaml").write_text(before)
    assert run(["pin"]) == (3 if error_id == "QF100" else 5)
    shown = capsys.readouterr().err
    assert f"model.yaml:{line}:" in shown
    assert error_id in shown or error_id == "QF100"
    assert (model / "model.yaml").read_text() == before


def test_a_folder_without_a_model_is_said_to_be_one(model: Path) -> None:
    (model / "model.yaml").unlink()
    with pytest.raises(InvalidModel):
        written_sources(model)
    assert run(["pin", "nothing-like-that"]) == 3


def test_pinning_asks_the_address_although_it_is_pinned(server: FakeServer, model: Path) -> None:
    url = server.url("/det.onnx")
    server.routes["/det.onnx"] = fake.in_turn(fake.file(CONTENT), fake.file(CONTENT[::-1], '"v2"'))
    (model / "model.yaml").write_text(f"sources:\n  det: {{url: {url}, sha256: {'ab' * 32}, size: 1}}\n")
    downloads = model / "downloads"
    for expected in (CONTENT, CONTENT[::-1]):
        found = survey(written_sources(model), model, downloads, progress=Silent(), policy=PLAIN).found[0]
        assert found.state == "changed"
        assert found.pin == Pin(digest(expected), 10240)
        assert list(downloads.glob("pin-*")) == []
    failed = survey(written_sources(model), model, downloads, progress=Silent(), policy=Policy()).failures[0]
    assert (failed.id, str(failed.place)) == ("QF320", f"{model}/model.yaml:2:14")


def test_an_unfinished_or_malformed_pin_counts_as_none(model: Path) -> None:
    (model / "model.yaml").write_text(f"sources:\n  det: {{local: det.onnx, sha256: 12, size: '{'5'}'}}\n")
    found = survey(written_sources(model), model, model / "downloads", progress=Silent(), policy=PLAIN).found[0]
    assert (found.state, found.old_sha256, found.old_size) == ("new", None, None)


def test_writing_is_all_or_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    before = (model / "model.yaml").read_text()
    with monkeypatch.context() as patch:
        patch.setattr("qnn.sources.pinning.os.fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            write_pins(model, {"det": Pin("a" * 64, 5)})
    assert (model / "model.yaml").read_text() == before
    assert sorted(path.name for path in model.iterdir()) == ["LICENSE", "data.py", "det.onnx", "model.yaml"]


def test_mode_and_links_stay(model: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.yaml"
    (model / "model.yaml").rename(real)
    real.chmod(0o640)
    (model / "model.yaml").symlink_to(real)
    assert write_pins(model, {"det": Pin("a" * 64, 5)})
    assert (model / "model.yaml").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "size: 5" in real.read_text()
    assert not write_pins(model, {"det": Pin("a" * 64, 5)})


def test_a_refused_edit_names_the_file(model: Path) -> None:
    with pytest.raises(ForgeError) as caught:
        write_pins(model, {"rec": Pin("a" * 64, 5)})
    assert caught.value.id == "QF323"
    assert str(caught.value.place) == f"{model}/model.yaml"


def test_bars_are_drawn_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    def download() -> None:
        with download_bars("tiny") as progress:
            progress.advance("det", 0, None)
            progress.advance("det", 2048, 4096)

    drawn = on_terminal(download)
    assert "tiny det" in drawn
    assert "2.0/4.1 kB" in drawn
    download()
    assert capsys.readouterr().err == ""


def on_terminal(action: Callable[[], None]) -> str:
    """What an action shows if stderr is a terminal."""
    leader, follower = os.openpty()
    shown: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(leader, 4096)
            except OSError:
                return
            if not data:
                return
            shown.append(data)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with os.fdopen(follower, "w") as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", terminal)
        patch.setenv("TERM", "xterm")
        action()
        terminal.flush()
    reader.join(timeout=5)
    os.close(leader)
    return b"".join(shown).decode()
