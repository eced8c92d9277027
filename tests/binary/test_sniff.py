"""What kind of file is this, from its first bytes."""

from __future__ import annotations

import struct

from hypothesis import example, given
from hypothesis import strategies as st

from qnn.binary.sniff import HEAD_BYTES, Extent, FileKind, extent, sniff
from tests.binary.conftest import DATA

HEADER = struct.pack(">4I", 2, 3, 0, 1)


def test_real_binaries_state_their_own_size() -> None:
    for name in ("float-sm8650.bin", "quantized-unknown-chip.bin"):
        content = (DATA / name).read_bytes()
        assert sniff(content[:HEAD_BYTES]) is FileKind.CONTEXT
        found = extent(content[:HEAD_BYTES])
        assert found is not None
        assert found.end == len(content)
        assert found.metadata_size < found.blob_offset == 4096


@given(st.integers(0, 2**63), st.integers(0, 2**63), st.integers(0, 2**63), st.binary(max_size=20))
def test_extent_reads_the_three_numbers_behind_the_magic(metadata: int, offset: int, size: int, rest: bytes) -> None:
    head = HEADER + struct.pack("<3Q", metadata, offset, size) + rest
    found = extent(head)
    assert found == Extent(metadata, offset, size)
    assert found.end == offset + size
    assert extent(head[:39]) is None


@example(b"\0")
@example(b"\0\0\0\2")
@given(st.binary(max_size=HEAD_BYTES))
def test_sniff_has_an_answer_for_any_bytes(head: bytes) -> None:
    kind = sniff(head)
    assert (kind is FileKind.EMPTY) == (not head)
    # At least the first word must be there: anything shorter could be the beginning of many files.
    assert (kind is FileKind.CONTEXT) == (len(head) >= 4 and HEADER[:8].startswith(head[:8]))


@given(st.text(st.characters(categories=["L", "N", "Z"], exclude_characters="\u2028\u2029"), min_size=1))
def test_any_text_is_text_even_when_cut_inside_a_character(text: str) -> None:
    encoded = ("# " + text.replace("\N{NO-BREAK SPACE}", " ") * 60).encode()
    printable = all(character.isprintable() or character == " " for character in text)
    assert (sniff(encoded[:HEAD_BYTES]) is FileKind.TEXT) or not printable


def test_onnx_is_told_from_other_protobufs_and_from_text() -> None:
    assert sniff(b"\x08\x0a\x12\x07pytorch") is FileKind.ONNX
    assert sniff(b"\x08\x09:\x10") is FileKind.ONNX
    assert sniff(b"\x0a\x09\x12\x10") is FileKind.UNKNOWN
    assert sniff(b"\x08\xff\x12\x10") is FileKind.UNKNOWN
