"""Memory and cores as the kernel's files state them, a container's limits included. Parsers are pure."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Where a container sees its own limits: cgroup v2, then v1 (Linux, Documentation/admin-guide/cgroup-v*).
_CGROUP = Path("/sys/fs/cgroup")
_MEMORY_FILES = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


@dataclass(frozen=True)
class Memory:
    """Bytes, and whether a container's limit made them smaller."""

    total: int
    available: int
    limited: bool


def parse_meminfo(text: str) -> Mapping[str, int]:
    """/proc/meminfo as bytes by field; lines of another form are left out."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdecimal():
            found[name] = int(words[0]) * 1024
    return found


def parse_limit(text: str) -> int | None:
    """A limit in bytes; None for "max" and whatever is no number."""
    return int(text) if text.strip().isdecimal() else None


def parse_cpu_max(text: str) -> float | None:
    """cgroup v2's cpu.max, "quota period" in microseconds, as a number of cores; None for no limit."""
    words = text.split()
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def within(memory: Memory, limit: int | None, used: int | None) -> Memory:
    """What is left of the memory under a container's limit. An unlimited v1 group states a limit beyond all memory."""
    if limit is None or limit >= memory.total:
        return memory
    left = max(0, limit - (used or 0))
    return Memory(limit, min(left, memory.available), limited=True)


def usable_cores(allowed: int, quota: float | None) -> int:
    """Cores this process may use: at least one, no more than its affinity, and a quota rounded up."""
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def memory(proc: Path = Path("/proc"), cgroup: Path = _CGROUP) -> Memory:
    """This process's memory; zeros where the system has no /proc."""
    fields = parse_meminfo(_text(proc / "meminfo"))
    found = Memory(fields.get("MemTotal", 0), fields.get("MemAvailable", 0), limited=False)
    for limit, used in _MEMORY_FILES:
        found = within(found, parse_limit(_text(cgroup / limit)), parse_limit(_text(cgroup / used)))
    return found


def cores(cgroup: Path = _CGROUP) -> int:
    """Cores this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return usable_cores(allowed, parse_cpu_max(_text(cgroup / "cpu.max")))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:  # not this kind of cgroup, or no Linux
        return ""
