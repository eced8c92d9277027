"""Reads a GGUF file: what it says of the model, and its tensors as float32."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# Kinds of metadata values: struct's letter, by GGUF's number. 8 is a string, 9 a list.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _LIST = 8, 9
_BLOCK = 32  # values that share a scale


def _float32(data: memoryview, count: int) -> Floats:
    return np.frombuffer(data, "<f4", count).astype(np.float32)


def _float16(data: memoryview, count: int) -> Floats:
    return np.frombuffer(data, "<f2", count).astype(np.float32)


def _q4_1(data: memoryview, count: int) -> Floats:
    """Blocks of a scale, a minimum (both float16) and 16 bytes; the low halves of the bytes come first."""
    blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("least", "<f2"), ("bytes", "u1", 16)]), count // _BLOCK)
    steps = np.concatenate([blocks["bytes"] & 15, blocks["bytes"] >> 4], axis=1).astype(np.float32)
    return (steps * _column(blocks["scale"]) + _column(blocks["least"])).reshape(-1)


def _q8_0(data: memoryview, count: int) -> Floats:
    """Blocks of a scale (float16) and 32 signed bytes."""
    blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("steps", "i1", _BLOCK)]), count // _BLOCK)
    return (blocks["steps"].astype(np.float32) * _column(blocks["scale"])).reshape(-1)


def _column(halves: NDArray[np.float16]) -> Floats:
    return halves.astype(np.float32)[:, None]


_READERS: dict[int, Callable[[memoryview, int], Floats]] = {0: _float32, 1: _float16, 3: _q4_1, 8: _q8_0}


@dataclass
class Gguf:
    """`facts` is the metadata by key; `tensors` gives shape (rows first), kind and place of each tensor by name."""

    content: memoryview
    facts: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, tuple[tuple[int, ...], int, int]] = field(default_factory=dict)

    def tensor(self, name: str) -> Floats:
        """The values of a tensor, float32. Raises KeyError for a name or kind that is not there."""
        shape, kind, place = self.tensors[name]
        return _READERS[kind](self.content[place:], math.prod(shape)).reshape(shape)


def read(file: Path) -> Gguf:
    """Read the head of a file; tensors are read when they are asked for."""
    with file.open("rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    cursor = _Cursor(content)
    magic, _, tensors, facts = (cursor.number(letter) for letter in "IIQQ")
    if magic != int.from_bytes(b"GGUF", "little"):
        raise ValueError(f"{file.name} is no GGUF file")
    found = Gguf(content)
    for _ in range(facts):
        key = cursor.string()
        found.facts[key] = cursor.value(cursor.number("I"))
    for _ in range(tensors):
        name = cursor.string()
        shape = tuple(cursor.number("Q") for _ in range(cursor.number("I")))
        found.tensors[name] = (shape[::-1], cursor.number("I"), cursor.number("Q"))
    align = found.facts.get("general.alignment", 32)
    start = -(-cursor.place // align) * align
    found.tensors = {name: (shape, kind, start + place) for name, (shape, kind, place) in found.tensors.items()}
    return found


class _Cursor:
    """Reads one thing after another."""

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.place = 0

    def number(self, letter: str) -> Any:
        (value,) = struct.unpack_from(f"<{letter}", self.content, self.place)
        self.place += struct.calcsize(letter)
        return value

    def string(self) -> str:
        size = self.number("Q")
        self.place += size
        return bytes(self.content[self.place - size : self.place]).decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _LIST:
            item, count = self.number("I"), self.number("Q")
            return [self.value(item) for _ in range(count)]
        return self.number(_SCALARS[kind])
