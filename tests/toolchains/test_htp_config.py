"""The HTP configuration files: what is in them, what is refused, and that nothing misspelt gets through."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from qnn.chips.soc import Soc
from qnn.chips.table import load_table
from qnn.cli import run
from qnn.errors.base import ExitCode
from qnn.errors.htp_config import InvalidHtpConfig, InvalidHtpOption, UnknownGraphName
from qnn.toolchains.htp_config import (
    CONFIG_FILE,
    EXTENSIONS_FILE,
    HtpDocuments,
    converter_graph_name,
    htp_documents,
    require_valid,
    write_documents,
)
from qnn.toolchains.htp_options import OPTION_NAMES, PERF_PROFILES, HtpOptions, parse_options

GOLDEN = Path(__file__).parent / "golden"
BINARY = Path(__file__).parents[1] / "binary" / "data" / "float-sm8650.bin"
BINARY_GRAPH = "QNNExecutionProvider_QNNExecutionProvider_4534053821767735619_1_0"
SM8650 = load_table().lookup("SM8650")
SM8350 = load_table().lookup("SM8350")
SM8850 = load_table().lookup("SM8850")

CASES: dict[str, tuple[str, tuple[str, ...], HtpOptions]] = {
    "sm8350-plain": ("SM8350", ("encoder",), HtpOptions()),
    "sm8550-sherpa": (
        "SM8550",
        ("model_5_seconds_quantized",),
        HtpOptions(fp16=False, rpc_control_latency=200),
    ),
    "sm8650-shared": (
        "SM8650",
        ("prefill", "decode"),
        HtpOptions(weight_sharing=True, hvx_threads=4, pd_session="unsigned"),
    ),
    "sm8850-everything": (
        "SM8850",
        ("a", "b"),
        HtpOptions(
            optimization=2,
            vtcm_mb=4,
            hvx_threads=2,
            dlbc=True,
            dlbc_weights=True,
            weights_packing=True,
            perf_profile="sustained_high_performance",
            rpc_polling_time=9999,
            hmx_timeout_us=300000,
            pd_session="signed",
            weight_sharing=True,
            extended_udma=True,
            device_id=1,
            core_id=1,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_documents_are_the_golden_ones(case: str) -> None:
    soc, graphs, options = CASES[case]
    documents = htp_documents(load_table().lookup(soc), graphs, options)
    assert documents.config == (GOLDEN / f"htp-config-{case}.json").read_text(encoding="utf-8")
    assert documents.extensions == (GOLDEN / "htp-backend-extensions.json").read_text(encoding="utf-8")


SOCS = st.sampled_from(load_table().socs)
GRAPHS = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5, unique=True)


@st.composite
def fitting_options(draw: st.DrawFn, soc: Soc, graph_count: int) -> HtpOptions:
    """Options that fit a chip; every field takes each kind of value it can."""
    microseconds = st.none() | st.integers(0, 10**6)
    dlbc = draw(st.booleans())
    return HtpOptions(
        optimization=draw(st.integers(1, 3)),
        vtcm_mb=draw(st.none() | st.integers(1, soc.vtcm_mb)),
        fp16=draw(st.sampled_from([None, False, *([True] if soc.fp16 else [])])),
        hvx_threads=draw(st.none() | st.integers(1, soc.hvx_threads)),
        dlbc=dlbc,
        dlbc_weights=dlbc and draw(st.booleans()),
        weights_packing=draw(st.booleans()),
        perf_profile=draw(st.sampled_from(PERF_PROFILES)),
        rpc_control_latency=draw(st.integers(0, 10**6)),
        rpc_polling_time=draw(st.none() | st.integers(0, 10000 if soc.arch_number > 68 else 0)),
        hmx_timeout_us=draw(microseconds),
        pd_session=draw(st.sampled_from([None, "signed", "unsigned"])),
        weight_sharing=graph_count > 1 and draw(st.booleans()),
        extended_udma=soc.arch_number >= 81 and draw(st.booleans()),
        device_id=draw(st.integers(0, 3)),
        core_id=draw(st.integers(0, 3)),
    )


@st.composite
def configurations(draw: st.DrawFn) -> tuple[Soc, list[str], HtpOptions, HtpDocuments]:
    soc = draw(SOCS)
    graphs = draw(GRAPHS)
    options = draw(fitting_options(soc, len(graphs)))
    return soc, graphs, options, htp_documents(soc, graphs, options)


@given(configurations())
def test_any_fitting_options_give_valid_documents_of_that_chip(
    made: tuple[Soc, list[str], HtpOptions, HtpDocuments],
) -> None:
    soc, graphs, options, documents = made
    config = json.loads(documents.config)
    require_valid(CONFIG_FILE, documents.config)
    (graph,), (device,) = config["graphs"], config["devices"]
    assert graph["graph_names"] == graphs
    assert graph["vtcm_mb"] == (options.vtcm_mb or soc.vtcm_mb) <= soc.vtcm_mb
    assert ("fp16_relaxed_precision" in graph) == (soc.fp16 if options.fp16 is None else options.fp16)
    assert (device["soc_id"], device["soc_model"], device["dsp_arch"]) == (soc.soc_id, soc.soc_id, soc.arch)
    assert config.get("context", {}).get("weight_sharing_enabled", False) == options.weight_sharing
    assert "/" not in documents.extensions


def _places(node: Any) -> list[tuple[Any, str]]:
    """Every (object, key) of a document."""
    if isinstance(node, list):
        return [place for item in node for place in _places(item)]
    if not isinstance(node, dict):
        return []
    return [(node, key) for key in node] + [place for value in node.values() for place in _places(value)]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(configurations(), st.data())
def test_a_misspelt_key_never_passes(
    made: tuple[Soc, list[str], HtpOptions, HtpDocuments], data: st.DataObject
) -> None:
    for name, content in made[3].by_name:
        document = copy.deepcopy(json.loads(content))
        node, key = data.draw(st.sampled_from(_places(document)))
        position = data.draw(st.integers(0, len(key) - 1))
        wrong = key[:position] + data.draw(st.sampled_from(["", "x", key[position].swapcase()])) + key[position + 1 :]
        assume(wrong not in node)
        node[wrong] = node.pop(key)
        with pytest.raises(InvalidHtpConfig) as caught:
            require_valid(name, json.dumps(document))
        assert any(repr(wrong) in line for line in caught.value.details)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda config: config["devices"][0].update(soc_id=0), "$.devices[0].soc_id"),
        (lambda config: config["graphs"][0].update(vtcm_mb=0), "$.graphs[0].vtcm_mb"),
        (lambda config: config["graphs"][0].update(O=4), "$.graphs[0].O"),
        (lambda config: config["graphs"][0].update(hvx_threads="4"), "$.graphs[0].hvx_threads"),
        (lambda config: config["devices"][0]["cores"][0].update(perf_profile="fast"), "perf_profile"),
        (lambda config: config["devices"][0].update(perf_profile="burst"), "$.devices[0]"),
        (lambda config: config.update(graphs=config["graphs"][0]), "$.graphs"),
        (lambda config: config.update(memory={"mem_type": "shared_buffer"}), "$"),
    ],
)
def test_wrong_values_and_places_never_pass(change: Any, where: str) -> None:
    config = json.loads(htp_documents(SM8650, ["encoder"], HtpOptions()).config)
    change(config)
    with pytest.raises(InvalidHtpConfig) as caught:
        require_valid(CONFIG_FILE, json.dumps(config))
    assert any(where in line.partition(": ")[0] for line in caught.value.details)


@pytest.mark.parametrize("path", ["/opt/libQnnHtpNetRunExtensions.so", "C:\\QnnHtpNetRunExtensions.dll", "libQnn.so"])
def test_absolute_paths_and_other_libraries_never_pass(path: str) -> None:
    document = {"backend_extensions": {"shared_library_path": path, "config_file_path": "htp_config.json"}}
    with pytest.raises(InvalidHtpConfig):
        require_valid(EXTENSIONS_FILE, json.dumps(document))


@pytest.mark.parametrize(
    ("soc", "options", "problem"),
    [
        (SM8350, HtpOptions(vtcm_mb=8), "vtcm_mb is 8; SM8350 has 4"),
        (SM8350, HtpOptions(fp16=True), "fp16 is on; SM8350 has no fp16"),
        (SM8650, HtpOptions(hvx_threads=7), "hvx_threads is 7; SM8650 has 4"),
        (SM8350, HtpOptions(rpc_polling_time=100), "rpc_polling_time is set; SM8350 is v68"),
        (SM8650, HtpOptions(extended_udma=True), "extended_udma is on; SM8650 is v75"),
        (SM8650, HtpOptions(dlbc_weights=True), "dlbc_weights has an effect only together with dlbc"),
        (SM8650, HtpOptions(weight_sharing=True), "weight_sharing is for 2 to 64 graphs in one binary; there are 1"),
        (SM8650, HtpOptions(optimization=4), "optimization is 4; it goes from 1 to 3"),
        (SM8650, HtpOptions(perf_profile="fast"), "perf_profile is 'fast'"),
        (SM8650, HtpOptions(rpc_polling_time=10001), "rpc_polling_time is 10001 µs; at most 10000"),
        (SM8650, HtpOptions(hmx_timeout_us=-1), "hmx_timeout_us is -1; it cannot be negative"),
        (SM8650, HtpOptions(vtcm_mb=0), "vtcm_mb is 0; it is at least 1"),
    ],
)
def test_what_a_chip_cannot_do_is_refused(soc: Soc, options: HtpOptions, problem: str) -> None:
    with pytest.raises(InvalidHtpOption) as caught:
        htp_documents(soc, ["encoder"], options)
    (line,) = caught.value.details
    assert line.startswith(problem)


def test_every_problem_is_listed_at_once() -> None:
    with pytest.raises(InvalidHtpOption) as caught:
        htp_documents(SM8350, ["encoder"], HtpOptions(vtcm_mb=16, fp16=True, optimization=0))
    assert len(caught.value.details) == 3


@pytest.mark.parametrize(
    ("names", "known", "message"),
    [
        ((), None, "no graph name is given"),
        (("",), None, "a graph name is empty"),
        (("a", "b", "a"), None, "'a' is given more than once"),
        (("encodr",), ("encoder", "decoder"), "there is no graph 'encodr'; did you mean 'encoder'?"),
        (("model-5-seconds",), ("model_5_seconds",), "did you mean 'model_5_seconds'?"),
    ],
)
def test_graph_names_that_match_nothing_are_refused(
    names: tuple[str, ...], known: tuple[str, ...] | None, message: str
) -> None:
    with pytest.raises(UnknownGraphName) as caught:
        htp_documents(SM8650, names, HtpOptions(), known)
    assert caught.value.message.endswith(message)


def test_the_converters_rule_for_names() -> None:
    assert converter_graph_name("model-5-seconds-quantized") == "model_5_seconds_quantized"
    assert converter_graph_name("encoder") == "encoder"
    assert converter_graph_name("a.b c/ü") == "a_b_c__"


def test_options_are_parsed_by_the_kind_of_their_field() -> None:
    assert parse_options([]) == HtpOptions()
    assert parse_options(["vtcm_mb=4", "hvx-threads = 2", "dlbc=on", "perf_profile=balanced", "fp16=no"]) == replace(
        HtpOptions(), vtcm_mb=4, hvx_threads=2, dlbc=True, perf_profile="balanced", fp16=False
    )


@given(st.sampled_from(fields(HtpOptions)), st.data())
def test_what_an_option_prints_as_parses_back(field: Any, data: st.DataObject) -> None:
    soc = data.draw(SOCS)
    value = getattr(data.draw(fitting_options(soc, 2)), field.name)
    assume(value is not None)
    assert getattr(parse_options([f"{field.name}={value}"]), field.name) == value


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("vtcm_mb", "'vtcm_mb' is not of the form name=value"),
        ("vtcm=8", "there is no option 'vtcm'; did you mean 'vtcm_mb'?"),
        ("O=3", "there is no option 'O'"),
        ("vtcm_mb=eight", "vtcm_mb is 'eight'; it is a whole number"),
        ("dlbc=2", "dlbc is '2'; write true or false"),
        ("pd_session=root", "pd_session is 'root'; known are signed, unsigned"),
    ],
)
def test_options_that_do_not_parse_are_refused(pair: str, message: str) -> None:
    with pytest.raises(InvalidHtpOption) as caught:
        parse_options([pair])
    assert caught.value.message == message
    with pytest.raises(InvalidHtpOption, match="given twice"):
        parse_options(["dlbc=1", "dlbc=0"])


def test_every_option_reaches_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["htp-config", "--help"]) == 0
    text = capsys.readouterr().out
    assert [name for name in OPTION_NAMES if name not in text] == []


def test_files_are_written_whole_and_over_old_ones(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "config"
    first = htp_documents(SM8650, ["encoder"], HtpOptions())
    second = htp_documents(SM8850, ["encoder"], HtpOptions())
    write_documents(first, folder)
    written = write_documents(second, folder)
    assert written == (folder / EXTENSIONS_FILE, folder / CONFIG_FILE)
    assert (folder / CONFIG_FILE).read_text(encoding="utf-8") == second.config
    assert sorted(path.name for path in folder.iterdir()) == [EXTENSIONS_FILE, CONFIG_FILE]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).mkdir()  # a folder where the file should go
    with pytest.raises(IsADirectoryError):
        write_documents(htp_documents(SM8650, ["encoder"], HtpOptions()), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [CONFIG_FILE]


def test_command_writes_for_the_graphs_of_a_binary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["htp-config", "--soc", "snapdragon 8 gen 3", "--from", str(BINARY), "--out", str(tmp_path), "--json"]
    assert run(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "schema": 1,
        "soc": "SM8650",
        "files": [str(tmp_path / EXTENSIONS_FILE), str(tmp_path / CONFIG_FILE)],
    }
    config = json.loads((tmp_path / CONFIG_FILE).read_text(encoding="utf-8"))
    assert config["graphs"][0]["graph_names"] == [BINARY_GRAPH]


def test_command_refuses_a_graph_the_files_do_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "encoder-5s.onnx"
    model.write_bytes(b"\x08\x0a\x12\x07pytorch")
    out = tmp_path / "out"
    command = ["htp-config", "--soc", "SM8650", "--from", str(model), "--out", str(out), "--graph"]
    assert run([*command, "encoder-5s"]) == ExitCode.TOOLCHAIN
    assert "there is no graph 'encoder-5s'; did you mean 'encoder_5s'?" in capsys.readouterr().err
    assert not out.exists()
    assert run([*command, "encoder_5s"]) == 0
    assert json.loads((out / CONFIG_FILE).read_text(encoding="utf-8"))["graphs"][0]["graph_names"] == ["encoder_5s"]


def test_command_refuses_a_file_that_holds_no_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("encoder\n")
    assert run(["htp-config", "--soc", "SM8650", "--from", str(text), "--out", str(tmp_path)]) == ExitCode.GATE
    assert "QF600" in capsys.readouterr().err
    assert run(["htp-config", "--soc", "SM9999", "--graph", "a", "--out", str(tmp_path)]) == ExitCode.CHIP
