"""qnn-forge inspect: what a person reads and what a machine reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.binary.consumers import complaints
from qnn.binary.info import ContextBinary, GraphInfo, QnnDType, QuantizationInfo, TensorInfo, Version
from qnn.binary.remarks import ChipFacts, remarks
from qnn.cli import run
from qnn.errors.base import ExitCode
from qnn.errors.child import ChildCrashed
from tests.binary.conftest import DATA


def test_a_person_reads_chip_build_and_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "quantized-sm8650.bin"
    assert run(["inspect", str(path)]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f"{path}  49,152 bytes",
        "  chip     SM8650 (soc_model 57)  v75",
        "  QAIRT    2.51.0 (v2.51.0.260929181845)",
        "  format   blob 4.0.6, info 3, core API 2.40.0, HTP API 5.51.0",
        "  sha256   b8a8395413ebbdeaa3a4d4a91caf8a8afef5953a225f3693143ef9efa66fff57",
        "  graph    QNNExecutionProvider_QNNExecutionProvider_4534053821767735619_1_0",
        "           VTCM 8 MB, O0, HVX threads by the chip, DLBC off, spill-fill 0 bytes, I/O 16,384 bytes, "
        "constants 8,192 bytes",
        "                name  dtype     shape   quantization",
        "           in   xq    ufixed16  [2, 4]  (q -1000) × 0.25",
        "           out  yq    ufixed16  [2, 3]  (q -32768) × 0.125",
    ]


def test_a_machine_reads_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "--json", str(DATA / "float-sm8650-vtcm4.bin"), str(DATA / "quantized-sm8650.bin")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["errors"]) == (1, [])
    first, second = document["files"]
    assert (first["soc"], first["soc_model"], first["dsp_arch"], first["qairt"]) == ("SM8650", 57, "v75", "2.51.0")
    assert first["remarks"] == ["graph 0 uses 4 MB of VTCM, less than SM8650 has (8 MB)"]
    assert first["graphs"][0]["vtcm_mb"] == 4
    assert first["graphs"][0]["outputs"][2] == {
        "name": "total",
        "dtype": "float32",
        "numpy": "float32",
        "shape": [1],
        "dynamic": None,
        "quantization": None,
    }
    assert second["graphs"][0]["inputs"][0]["quantization"] == {
        "encoding": "scale-offset",
        "scales": [0.25],
        "offsets": [-1000],
        "axis": None,
        "bitwidth": None,
    }
    assert second["graphs"][0]["memory"]["constants_bytes"] == 8192


def test_a_bad_file_does_not_hide_the_good_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = tmp_path / "none.bin"
    files = [str(DATA / "universal.bin"), str(DATA / "float-sm8450.bin"), str(missing)]
    assert run(["inspect", "--json", *files]) == ExitCode.GATE
    document = json.loads(capsys.readouterr().out)
    assert [file["soc"] for file in document["files"]] == ["SM8450"]
    assert [(error["path"], error["id"]) for error in document["errors"]] == [
        (files[0], "QF601"),
        (str(missing), "QF604"),
    ]
    assert run(["inspect", *files]) == ExitCode.GATE
    printed = capsys.readouterr()
    assert "chip     SM8450" in printed.out
    assert f"error: {files[0]} QF601 universal.bin is a flexible context binary" in printed.err
    assert "log:" not in printed.err


def test_no_file_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect"]) == ExitCode.USAGE
    assert "Missing argument" in capsys.readouterr().err


def _binary(soc_model: int | None, vtcm_mb: int | None = 8, dsp_arch: int | None = 75) -> ContextBinary:
    version = Version(2, 40, 0)
    graph = GraphInfo("g", (), (), vtcm_mb=vtcm_mb)
    return ContextBinary("g.bin", 1, "", 3, 6, "v2.51.0.1", version, version, version, 1, (graph,), soc_model, dsp_arch)


SM8650 = ChipFacts("SM8650", "v75", 8)


@pytest.mark.parametrize(
    ("binary", "chip", "said"),
    [
        (_binary(57), SM8650, ()),
        (_binary(0), None, ("compiled for no chip (socModel 0)",)),
        (replace(_binary(None), info_version=1), None, ("info version 1 does not say which chip",)),
        (_binary(9999), None, ("soc_model 9999 is not in the chip table",)),
        (_binary(57, dsp_arch=68), SM8650, ("compiled for v68, SM8650 is v75",)),
        (
            _binary(57, vtcm_mb=16),
            SM8650,
            ("graph 0 wants 16 MB of VTCM, more than SM8650 has (8 MB)",),
        ),
        (_binary(57, vtcm_mb=2), SM8650, ("graph 0 uses 2 MB of VTCM, less than SM8650 has (8 MB)",)),
        (_binary(57, vtcm_mb=None), SM8650, ()),
    ],
)
def test_oddities_are_remarked_on(binary: ContextBinary, chip: ChipFacts | None, said: tuple[str, ...]) -> None:
    found = remarks(binary, chip)
    assert len(found) == len(said)
    assert all(sentence.startswith(start) for sentence, start in zip(found, said, strict=True))


def test_what_sherpa_onnx_can_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "--for", "sherpa-onnx", str(DATA / "quantized-sm8650.bin")]) == 0
    assert capsys.readouterr().err == ""


def _with(tensor: TensorInfo, **changes: object) -> ContextBinary:
    graph = GraphInfo("g", (tensor,), (TensorInfo("y", QnnDType.FLOAT32, 0x0232, (1,)),))
    return replace(_BINARY, graphs=(graph,), **changes)  # type: ignore[arg-type]


_BINARY = ContextBinary(
    "a.bin", 100, "0" * 64, 3, 6, "v2.51.0.1", Version(2, 40, 0), Version(5, 51, 0), Version(4, 0, 6), 90, (), 57, 75
)
_SCALE = QuantizationInfo("scale-offset", (0.5,), (0,))
_AXIS = QuantizationInfo("axis-scale-offset", (0.5, 1.0), (0, 0), axis=0)
_X = TensorInfo("x", QnnDType.FLOAT32, 0x0232, (1, 2))


@pytest.mark.parametrize(
    ("binary", "said"),
    [
        (_with(_X), ()),
        (_with(replace(_X, dtype=QnnDType.FLOAT16)), ()),
        (_with(replace(_X, dtype=QnnDType.INT32)), ()),
        (_with(replace(_X, dtype=QnnDType.UFIXED16, quantization=_SCALE)), ()),
        (
            _with(replace(_X, dtype=QnnDType.UFIXED16, quantization=_AXIS)),
            (
                "input 'x' is ufixed16 with a scale for each index of an axis; it exchanges float32, float16, int32 "
                "and ufixed16",
            ),
        ),
        (
            _with(replace(_X, dtype=QnnDType.UFIXED8, quantization=_SCALE)),
            ("input 'x' is ufixed8; it exchanges float32, float16, int32 and ufixed16",),
        ),
        (
            _with(replace(_X, dtype=QnnDType.INT64)),
            ("input 'x' is int64; it exchanges float32, float16, int32 and ufixed16",),
        ),
        (_with(_X, info_version=2), ("metadata of version 2; it reads version 3",)),
        (_with(_X, size=2**31), ("2,147,483,648 bytes; it reads at most 2,147,483,647",)),
        (_BINARY, ("no graph",)),
        (
            replace(_BINARY, graphs=(GraphInfo("a", (_X,), ()), GraphInfo("b", (), ()))),
            ("2 graphs; it runs the first one only, never 'b'",),
        ),
    ],
)
def test_complaints_of_sherpa_onnx(binary: ContextBinary, said: tuple[str, ...]) -> None:
    assert complaints(binary, "sherpa-onnx") == said


def test_a_binary_that_the_runtime_cannot_use_is_shown_and_refused(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "float-sm8650-vtcm4.bin"
    assert run(["inspect", "--for", "sherpa-onnx", str(path)]) == ExitCode.GATE
    seen = capsys.readouterr()
    assert "out  best    int64" in seen.out
    exchanged = "it exchanges float32, float16, int32 and ufixed16"
    assert seen.err.splitlines()[:3] == [
        f"error: {path} QF606 sherpa-onnx cannot use it: input 'mask' is bool8; {exchanged}",
        f"  output 'above' is bool8; {exchanged}",
        f"  output 'best' is int64; {exchanged}",
    ]


def test_a_machine_reads_where_the_log_of_a_crash_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Vendor code dies of some damaged files; what it said is kept, and the document says where."""

    def dies(path: Path, host: object, *, log: Path) -> ContextBinary:
        log.write_text("last words")
        raise ChildCrashed("read request failed: killed by SIGSEGV", remedy="", log=log)

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("qnn.binary.inspecting.inspect_file", dies)
    assert run(["inspect", "--json", str(DATA / "quantized-sm8650.bin")]) == ExitCode.TOOLCHAIN
    [error] = json.loads(capsys.readouterr().out)["errors"]
    assert error["id"] == "QF501"
    assert Path(error["log"]).read_text() == "last words"
