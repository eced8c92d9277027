"""Memory and cores, in and out of containers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.doctor.resources import (
    Memory,
    cores,
    memory,
    parse_cpu_max,
    parse_limit,
    parse_meminfo,
    usable_cores,
    within,
)

MEMINFO = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    800 kB\nHugePages_Total:       0\nOdd line\n"


def cgroup(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    return tmp_path / "proc"


def test_meminfo_is_in_bytes_and_counts_are_left_out() -> None:
    assert parse_meminfo(MEMINFO) == {"MemTotal": 1024000, "MemFree": 1024, "MemAvailable": 819200}


def test_a_machine_without_limits(proc: Path, tmp_path: Path) -> None:
    assert memory(proc, tmp_path / "none") == Memory(1024000, 819200, limited=False)


def test_cgroup_v2_limits(proc: Path, tmp_path: Path) -> None:
    group = cgroup(tmp_path / "cg", memory_dot_max="500000\n", memory_dot_current="400000\n")
    assert memory(proc, group) == Memory(500000, 100000, limited=True)


def test_cgroup_v1_without_a_limit_states_a_huge_one(proc: Path, tmp_path: Path) -> None:
    group = cgroup(
        tmp_path / "cg", memory__memory_dot_limit_in_bytes="9223372036854771712", memory__memory_dot_usage_in_bytes="5"
    )
    assert memory(proc, group) == Memory(1024000, 819200, limited=False)


def test_no_proc_at_all(tmp_path: Path) -> None:
    assert memory(tmp_path, tmp_path) == Memory(0, 0, limited=False)


def test_a_quota_is_rounded_up_and_never_more_than_the_affinity() -> None:
    assert usable_cores(8, parse_cpu_max("150000 100000\n")) == 2
    assert usable_cores(1, parse_cpu_max("400000 100000\n")) == 1
    assert usable_cores(8, parse_cpu_max("max 100000\n")) == 8
    assert usable_cores(8, parse_cpu_max("1000 100000\n")) == 1


def test_cores_of_this_process_are_limited_by_the_group(tmp_path: Path) -> None:
    assert cores(cgroup(tmp_path, cpu_dot_max="100000 100000")) == 1


@given(st.text(max_size=60))
def test_the_kernels_files_may_say_anything(text: str) -> None:
    assert all(value >= 0 for value in parse_meminfo(text).values())
    assert (parse_limit(text) or 0) >= 0
    quota = parse_cpu_max(text)
    assert quota is None or quota >= 0


@given(
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.none() | st.integers(0, 10**13),
    st.none() | st.integers(0, 10**13),
)
def test_a_limit_never_makes_memory(total: int, available: int, limit: int | None, used: int | None) -> None:
    free = Memory(total, min(total, available), limited=False)
    found = within(free, limit, used)
    assert 0 <= found.available <= free.available
    assert found.available <= found.total <= free.total
    assert found.limited == (limit is not None and limit < total)
