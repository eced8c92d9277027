"""--device: ro.soc.model through adb, with a stand-in for adb that answers as the real one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.pull.device_chip import soc_model


@pytest.fixture
def adb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script called adb that is the only one there is; it notes its arguments."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "adb"


def answers(adb: Path, script: str) -> None:
    adb.write_text(f'#!/bin/sh\necho "$@" >> "{adb}.asked"\n{script}\n')
    adb.chmod(0o755)


def test_the_property_of_the_only_device(adb: Path) -> None:
    answers(adb, 'printf "SM8650\\r\\n"')
    assert soc_model(None) == "SM8650"
    assert Path(f"{adb}.asked").read_text() == "shell getprop ro.soc.model\n"


def test_the_property_of_a_named_device(adb: Path) -> None:
    answers(adb, "echo SM8750P")
    assert soc_model("R5CT30") == "SM8750P"
    assert Path(f"{adb}.asked").read_text() == "-s R5CT30 shell getprop ro.soc.model\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('echo "adb: no devices/emulators found" >&2; exit 1', "no devices/emulators found"),
        ('echo "adb: more than one device/emulator" >&2; exit 1', "more than one device"),
        ('echo "adb: device unauthorized." >&2; exit 1', "unauthorized"),
        ('printf "adb: \\033[31mred" >&2; exit 1', "\\x1b[31mred"),
        ("echo", "has no property ro.soc.model"),
        ("exit 3", "adb says: nothing"),
    ],
)
def test_a_device_that_does_not_say(adb: Path, script: str, words: str) -> None:
    answers(adb, script)
    with pytest.raises(ForgeError) as caught:
        soc_model(None)
    assert (caught.value.id, int(caught.value.exit_code)) == ("QF730", 13)
    assert words in caught.value.message


def test_no_adb(adb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(adb.parent))
    with pytest.raises(ForgeError, match="cannot be started: No such file") as caught:
        soc_model(None)
    assert (caught.value.id, int(caught.value.exit_code)) == ("QF729", 13)
