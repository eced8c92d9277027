"""qnn-forge store, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qnn.cli import run
from qnn.cli.index_options import cache_folder
from qnn.store import StageKey, Store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store of two outputs, 1,000 and 3,000 bytes, and a download of 500."""
    with Store(tmp_path / "store") as store:
        for stage, size in (("prepare", 1000), ("compile", 3000)):
            store.make(StageKey(stage, "c"), lambda folder, size=size: _write(folder / "out", size))  # type: ignore[misc]
    _write(tmp_path / "store" / "downloads" / "wheel", 500)
    return tmp_path / "store"


def _write(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["store", *arguments, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_info_counts_outputs_and_what_lies_beside_them(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stages = document(capsys, "info", "--store", str(root))["stages"]
    assert stages == {
        "compile": {"bytes": 3000, "entries": 1},
        "prepare": {"bytes": 1000, "entries": 1},
        "downloads": {"bytes": 500, "entries": 1},
        "environments": {"bytes": 0, "entries": 0},
        "logs": {"bytes": 0, "entries": 0},
        "pull": {"bytes": 0, "entries": 0},
    }


def test_prune_to_a_size_and_only_on_a_real_run(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = document(capsys, "prune", "--store", str(root), "--max-size", "2K", "--dry-run")
    assert dry["bytes"] == document(capsys, "prune", "--store", str(root), "--max-size", "2K")["bytes"]
    assert document(capsys, "prune", "--store", str(root), "--max-size", "2K")["removed"] == []
    assert (root / "downloads" / "wheel").exists()
    monkeypatch.delenv("QNN_FORGE_CACHE", raising=False)
    monkeypatch.setenv("QNN_FORGE_STORE", str(root))
    (cache_folder() / "artefacts").mkdir(parents=True)
    document(capsys, "prune", "--store", str(root), "--side")
    assert not (root / "downloads").exists()
    assert not cache_folder().exists()


@pytest.mark.parametrize("arguments", [["prune"], ["prune", "--max-size", "ten"], ["prune", "--max-age", "-1"]])
def test_usage_errors(root: Path, arguments: list[str]) -> None:
    assert run(["store", *arguments, "--store", str(root)]) == 2


def test_verify_names_damage_removes_it_and_exits_11(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = next(root.glob("objects/*/*/files/out"))
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    assert run(["store", "verify", "--store", str(root)]) == 11
    assert "out: content differs; removed" in capsys.readouterr().out
    assert run(["store", "verify", "--store", str(root)]) == 0
    assert "1 entries checked, 0 damaged" in capsys.readouterr().out
