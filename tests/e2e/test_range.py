"""fp16's range through the public commands: refused before a compile, acknowledged, mended, shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

from tests.e2e.conftest import YAML, Workshop, save

MAGIKA = Path(__file__).resolve().parents[2] / "models" / "magika"
OFF = "    rewrites: {sum-to-mean: false, norm-written-out: false, clip-exp: false}\n"


def overflowing(shop: Workshop, *, graph: str = "", checks: str = "", rows: int = 2) -> None:
    """The toy with a sum of squares beyond fp16 in its way: y = x / sqrt(Σx²/768 + ε)."""
    share = numpy_helper.from_array(np.float32(1 / 768), "share")
    axes = numpy_helper.from_array(np.array([1, 2, 3]), "axes")
    save(
        shop.model / "model.onnx",
        [
            helper.make_node("Mul", ["x", "x"], ["squares"], name="square"),
            helper.make_node("ReduceSum", ["squares", "axes"], ["total"], name="sum"),
            helper.make_node("Mul", ["total", "share"], ["mean"], name="mean"),
            helper.make_node("Sqrt", ["mean"], ["root"], name="root"),
            helper.make_node("Div", ["x", "root"], ["y"], name="divide"),
        ],
        {"x": [1, 3, 16, 16]},
        {"y": [1, 3, 16, 16]},
        [share, axes],
    )
    for number in range(rows):
        signs = np.sign(np.random.default_rng(number).standard_normal((1, 3, 16, 16)))
        np.savez(shop.model / "samples" / f"{number:03d}.npz", x=(signs * 150).astype(np.float32))
    text = YAML.format(extra=checks).replace("    inputs:\n", f"{graph}    inputs:\n")
    (shop.model / "model.yaml").write_text(text)
    assert shop.forge("pin", "toy").code == 0


def test_refused_before_the_compile_with_node_value_and_rewrite(workshop: Workshop) -> None:
    overflowing(workshop, graph=OFF)
    run = workshop.build_with("segfault", "--soc", "SM8650,SM8850", "--keep-going")  # a compile would be another error
    assert run.code == 6
    assert run.err.count("QF440") == 2  # one error for both chips: its headline and where to read more
    assert "models/toy/model.yaml:9:3 QF440 net: 1 tensor leaves fp16's range, and output y comes out wrong" in run.err
    assert "node sum (ReduceSum): total reaches 1.728e+07, fp16 ends at 65504" in run.err
    assert "rewrites: {sum-to-mean: true}" in run.err
    assert "Traceback" not in run.err


def test_its_rewrite_builds_it_and_stands_in_the_manifest(workshop: Workshop) -> None:
    overflowing(workshop)
    run = workshop.build("--soc", "SM8650")
    assert run.code == 0, run.err
    [manifest] = workshop.dist.glob("*/manifest.json")
    assert "rewritten: mean (Mul): sum-to-mean: the sum sum of 768 terms" in manifest.read_text()


def test_acknowledged_it_is_compiled_and_the_gates_decide(workshop: Workshop) -> None:
    overflowing(workshop, graph=OFF, checks="  ranges: {net: {total: to see what verify says}}\n")
    run = workshop.build("--soc", "SM8650")
    assert run.code == 8, run.err
    assert "QF62" in run.err


def test_what_does_no_harm_is_one_warning_for_all_chips_and_again_of_a_finished_bundle(workshop: Workshop) -> None:
    """1e-12 is 0 in fp16; under |x| of 150 that changes nothing."""
    epsilon = numpy_helper.from_array(np.float32(1e-12), "epsilon")
    nodes = [
        helper.make_node("Abs", ["x"], ["size"], name="size"),
        helper.make_node("Add", ["size", "epsilon"], ["floored"], name="floor"),
        helper.make_node("Div", ["x", "floored"], ["y"], name="divide"),
    ]
    overflowing(workshop)
    save(workshop.model / "model.onnx", nodes, {"x": [1, 3, 16, 16]}, {"y": [1, 3, 16, 16]}, [epsilon])
    assert workshop.forge("pin", "toy").code == 0
    run = workshop.build("--soc", "SM8650,SM8850")
    assert run.code == 0, run.err
    [line] = [line for line in run.err.splitlines() if line.startswith("warning:")]
    assert line.startswith(
        "warning: toy-1.0-s16-fp16 net: 1 tensor leaves fp16's range, and the outputs come out right"
    )
    assert "epsilon (constant or input) is as small as 1e-12" in line
    [remark] = run.document["remarks"]
    assert (remark["stage"], remark["subject"]) == ("range", "toy-1.0-s16-fp16 net")
    assert line.endswith(remark["text"])
    manifests = [json.loads(file.read_text()) for file in workshop.dist.glob("*/manifest.json")]
    assert [manifest["graphs"][0]["remarks"] for manifest in manifests] == [[remark["text"]]] * 2
    again = workshop.build("--soc", "SM8650,SM8850")
    assert [bundle["reused"] for bundle in again.document["targets"]] == [True, True]
    assert (again.err, again.document["remarks"]) == (f"{line}\n", [remark])
    (workshop.root / "results.json").write_text(again.out)
    assert "1 warning</summary>" in workshop.forge("report", "results.json", "--format", "comment").out
    known = (workshop.model / "model.yaml").read_text() + "  ranges: {net: {epsilon: against a division by 0}}\n"
    (workshop.model / "model.yaml").write_text(known)
    quiet = workshop.build("--soc", "SM8650")
    assert (quiet.err, quiet.document["remarks"], quiet.document["targets"][0]["reused"]) == ("", [], False)
    folder = workshop.root / quiet.document["targets"][0]["folder"]
    assert json.loads((folder / "manifest.json").read_text())["graphs"][0]["remarks"] == []


def test_range_shows_and_says_wrong(workshop: Workshop) -> None:
    overflowing(workshop, graph=OFF)
    run = workshop.forge("range", "toy")
    assert run.code == 6
    assert "wrong toy-1.0-s16-fp16 net" in run.out
    row = next(line.split() for line in run.out.splitlines() if line.startswith("total"))
    assert row == ["total", "ReduceSum", *["1.73e+07"] * 3, "2.99e+14", "1.73e+07", "1.73e+07", "inf"]
    document = workshop.forge("range", "toy", "--json").document
    [graph] = document["graphs"]
    assert (graph["variant"], graph["wrong"], graph["samples"]) == ("toy-1.0-s16-fp16", True, 1)
    assert [(finding["tensor"], finding["harmful"]) for finding in graph["findings"]] == [("total", True)]
    assert workshop.forge("range", "toy", "--samples", "2", "--json").document["graphs"][0]["samples"] == 2


def test_range_of_what_fits(workshop: Workshop) -> None:
    run = workshop.forge("range", "toy", "--all")
    assert run.code == 0
    assert "fits toy-1.0-s16-fp16 net" in run.out
    assert {"x", "c", "r", "y"} <= {line.split()[0] for line in run.out.splitlines() if line}


def test_magika_as_shipped_is_caught_and_rewritten_passes(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    folder = tmp_path / "models" / "magika"
    folder.mkdir(parents=True)
    for file in MAGIKA.iterdir():
        if file.is_file():
            (folder / file.name).write_text(file.read_text())
    assert shop.forge("range", "magika").code == 0
    text = (folder / "model.yaml").read_text()
    shipped = text.replace("    source: weights\n", f"    source: weights\n{OFF}")
    (folder / "model.yaml").write_text(shipped)
    run = shop.forge("range", "magika")
    assert run.code == 6
    assert "LayerNorm_1/Sum_1" in run.err
    assert "rewrites: {sum-to-mean: true}" in run.err
