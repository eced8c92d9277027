"""Bytes of a library, and the one error for those that make no sense."""

from __future__ import annotations

import mmap

Bytes = bytes | mmap.mmap
_LONGEST_NAME = 256


class ImageError(Exception):
    """Why a file cannot be read as a library, as a sentence about "it"."""


def text_at(data: Bytes, at: int) -> str:
    """The zero-terminated text at an offset. Raises ImageError where there is none."""
    end = data.find(b"\0", at, at + _LONGEST_NAME) if 0 <= at < len(data) else -1
    if end <= at:
        raise ImageError("a name in it is not where its header says")
    try:
        return data[at:end].decode("ascii")
    except UnicodeDecodeError:
        raise ImageError("a name in it is not text") from None
