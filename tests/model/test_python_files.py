"""What is read out of Python files; nothing in them ever runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.model.python_files import MAX_BYTES, Function, parse


def _write(folder: Path, source: str | bytes) -> Path:
    path = folder / "code.py"
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    return path


def test_functions_and_texts(tmp_path: Path) -> None:
    source = """
import a.b, c as d
from e import f as g
h: int = 1
i = "a text"
@decorate
def j(p, /, q, r=1, *args, s, t=2, **u):
    def inner(): ...
    return f"{p} another text"
if i:
    async def k(): ...
    def l(x, *, y): ...
class M:
    def method(self): ...
"""
    found = parse(_write(tmp_path, source))
    assert found.fault is None
    assert set(found.functions) == {"a", "d", "g", "i", "j", "l"}
    assert found.functions["g"] is None
    j = Function(7, 1, frozenset("qrst"), frozenset("pqs"), open=True)
    assert found.functions["j"] == j
    assert found.functions["l"] == Function(12, 5, frozenset("xy"), frozenset("xy"), open=False)
    assert {"a text", " another text"} <= found.texts


def test_nothing_runs(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    parse(_write(tmp_path, f"open({str(witness)!r}, 'w')\n"))
    assert not witness.exists()


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def f(:\n", 1),
        ("x = 1\n  y = 2\n", 2),
        ("x = 'a\n", 1),
        (b"x = '\xff'\n", 1),
        ("x = 1\0", 1),
        ("(" * 300, 1),
        ("x = " + "-" * 100_000 + "1", 1),
        ("#" * (MAX_BYTES + 1), 1),
    ],
)
def test_what_is_no_python_has_a_line_and_a_reason(tmp_path: Path, source: str | bytes, line: int) -> None:
    fault = parse(_write(tmp_path, source)).fault
    assert fault is not None
    assert fault.line == line
    assert fault.message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    fault = parse(tmp_path / "missing.py").fault
    assert fault is not None
    assert fault.message == "the file cannot be read: No such file or directory"


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode(errors="replace")))
def test_any_bytes_are_parsed_or_faulty(tmp_path_factory: pytest.TempPathFactory, source: bytes) -> None:
    found = parse(_write(tmp_path_factory.getbasetemp(), source))
    assert found.fault is None or found.fault.line >= 1
