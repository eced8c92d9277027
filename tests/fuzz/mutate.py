"""Damage, drawn from a `Random`: to bytes, to text, and to data as JSON and YAML have it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

ODD_BYTES = (b"", b"\0", b"\xff" * 8, b"\x80", b"\xef\xbb\xbf", b"\r\n", b"\x08\x01", b"\x7f" * 10)
ODD_TEXT = (
    "",
    "\0",
    "\t",
    "\ufeff",
    "é",
    "\ud7ff\U0010ffff",
    "\u2028",
    "\x1b[31m",
    "[bold]x[/bold]",
    "[/]",
    "../..",
    "/etc/passwd",
    "a\\b",
    "CON",
    "%s%n{0}",
    "$(touch x)",
    "<b>&amp;",
    "::error::x",
    "x" * 5000,
)
ODD_NUMBERS = (0, -1, 1, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0, 1e308, 5e-324)
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], {"": {}}, [None], {"x": None}, *ODD_NUMBERS, *ODD_TEXT,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip


def bytes_of(random: Random, data: bytes) -> bytes:
    """`data` with one to five of: bits turned, bytes overwritten, pieces cut out, moved or doubled, the end cut off."""
    made = bytearray(data)
    for _ in range(random.randint(1, 5)):
        at, end = _piece(random, len(made))
        match random.randrange(7):
            case 0 if at < len(made):
                made[at] ^= 1 << random.randrange(8)
            case 1 if at < len(made):
                made[at] = random.randrange(256)
            case 2:
                made[at:at] = random.choice(ODD_BYTES)
            case 3:
                del made[at:end]
            case 4:
                made[at:at] = made[at:end]
            case 5:
                to = random.randint(0, len(made))
                made[to : to + end - at] = made[at:end]
            case _ if random.randrange(3) == 0:
                del made[at:]
    return bytes(made)


def text_of(random: Random, text: str, words: Sequence[str]) -> str:
    """`text` with one to four lines or pieces of lines taken out, doubled, swapped, or replaced by one of `words`."""
    lines = text.split("\n")
    for _ in range(random.randint(1, 4)):
        here, there = random.randrange(len(lines)), random.randrange(len(lines))
        line = lines[here]
        at, end = _piece(random, len(line))
        match random.randrange(7):
            case 0 if len(lines) > 1:
                del lines[here]
            case 1:
                lines.insert(there, line)
            case 2:
                lines[here], lines[there] = lines[there], line
            case 3:
                lines[here] = " " * random.randrange(9) + line.lstrip()
            case 4:
                lines[here] = line[:at] + random.choice(words) + line[end:]
            case 5:
                lines[here] = line[:at] + random.choice(words) + line[at:]
            case _:
                lines[here] = line[:at] + line[end:]
    return "\n".join(lines)


def data_of(random: Random, data: Any, values: Sequence[Any] = ODD_VALUES) -> Any:
    """A copy of `data` with one to four items taken out, renamed, added, or replaced by odd ones or by each other."""
    made = copy.deepcopy(data)
    for _ in range(random.randint(1, 4)):
        places = list(_containers(made))
        container = random.choice(places)
        steps: list[Any] = list(container) if isinstance(container, dict) else list(range(len(container)))
        value = copy.deepcopy(random.choice(places if random.randrange(5) == 0 else values))
        if not steps or random.randrange(6) == 0:
            if isinstance(container, list):
                container.append(value)
            else:
                container[random.choice(ODD_TEXT)] = value
            continue
        step = random.choice(steps)
        match random.randrange(4):
            case 0:
                del container[step]
            case 1 if isinstance(container, dict):
                container[random.choice((*ODD_TEXT, *steps))] = container.pop(step)
            case _:
                container[step] = value
    return made


def nested(random: Random, opening: str, closing: str) -> str:
    """Brackets deeper than any recursion goes."""
    depth = random.choice((200, 3_000, 60_000))
    return opening * depth + closing * random.choice((0, depth))


def _piece(random: Random, length: int) -> tuple[int, int]:
    """A start, and an end that is seldom far from it."""
    at = random.randint(0, length)
    return at, min(length, at + random.choice((1, 2, 4, 8, 64, length)))


def _containers(data: Any) -> list[Any]:
    """Every list and mapping in `data`, itself first."""
    found = [data]
    for item in data.values() if isinstance(data, dict) else data:
        if isinstance(item, (dict, list)):
            found += _containers(item)
    return found
