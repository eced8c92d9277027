"""Asking the compiler: the real one for a few ids, a misbehaving one for isolation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qnn.child import Host, Limits
from qnn.chips import sweep
from qnn.chips.probe import Answer, Probe, ProbeGraph, Refusal, Settings, read_settings
from qnn.chips.sweep import Crash, Observation, ask_compiler, ids_to_ask
from qnn.chips.table import load_table
from tests.chips.fake_compiler import recorded

TABLE = load_table()
LIMITS = Limits(seconds=120, memory_bytes=4 << 30)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.close()


def ask(request: Probe, host: Host, folder: Path) -> Answer | Refusal:
    work = folder / "work"
    work.mkdir()
    reply: Answer | Refusal = host.call("qnn.chips.probe:probe", request, log=folder / "log", limits=LIMITS, cwd=work)
    return reply


@pytest.mark.parametrize(
    ("soc_id", "graph"),
    [
        (57, ProbeGraph.FP16),
        (64, ProbeGraph.QUANTIZED),  # 2 MB, 2 HVX threads
        (103, ProbeGraph.QUANTIZED),  # 12 MB, v85
        (89, ProbeGraph.QUANTIZED),  # v73, although the compiler's settings say v68
        (30, ProbeGraph.FP16),  # the compiler is lenient here
        (1, ProbeGraph.QUANTIZED),  # no HTP, taken all the same
        (59, ProbeGraph.QUANTIZED),
    ],
)
def test_the_compiler_says_what_was_recorded(soc_id: int, graph: ProbeGraph, host: Host, tmp_path: Path) -> None:
    assert ask(Probe(soc_id, graph), host, tmp_path) == recorded()[soc_id].quantized


@pytest.mark.parametrize(
    ("soc_id", "graph"),
    [(68, ProbeGraph.FP16), (14, ProbeGraph.QUANTIZED), (199, ProbeGraph.FP16)],
)
def test_the_compiler_refuses(soc_id: int, graph: ProbeGraph, host: Host, tmp_path: Path) -> None:
    reply = ask(Probe(soc_id, graph), host, tmp_path)
    assert isinstance(reply, Refusal)
    assert "assigned to the default CPU EP" in reply.message


def test_all_ids_of_the_table_and_up_to_200_are_asked() -> None:
    ids = ids_to_ask(TABLE)
    assert ids == tuple(range(1, 201))


def test_a_crash_costs_only_the_id_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_JOB", "tests.chips.fake_compiler:probe")
    monkeypatch.setattr(sweep, "_PRELOAD", ())
    told: list[int] = []
    ids = (13, 14, 57, 69, 68)
    found = ask_compiler(ids, lambda observation: told.append(observation.soc_id), workers=2)
    assert [observation.soc_id for observation in found] == list(ids)
    assert sorted(told) == sorted(ids)
    by_id = {observation.soc_id: observation for observation in found}
    assert by_id[13] == Observation(13, Crash("probe failed: killed by SIGABRT; | free(): invalid pointer"))
    assert isinstance(by_id[57].quantized, Answer)
    assert isinstance(by_id[57].fp16, Crash)
    assert by_id[14] == recorded()[14]
    assert by_id[69] == recorded()[69]
    assert by_id[68] == recorded()[68]


@pytest.mark.parametrize(
    ("binary", "settings"),
    [
        (b"\0x;soc_type=SM8650;arch=75;use=true;hvx_threads=4;vtcm_size=8388608;y", Settings("SM8650", 4, 8 << 20)),
        (b"soc_type=SM8650 hvx_threads=4", Settings(None, None, None)),
        (b";soc_type=SM8650;vtcm_size=x;hvx_threads=;", Settings("SM8650", None, None)),
        (b"", Settings(None, None, None)),
    ],
)
def test_settings_are_read_as_they_are_written(binary: bytes, settings: Settings) -> None:
    assert read_settings(binary) == settings
