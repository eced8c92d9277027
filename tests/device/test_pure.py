"""The parts that decide: adb's list, paths, sums, output files, times, and numbers to and from a binary's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.bundle.manifest import ManifestTensor
from qnn.device.attached import Attached, choose, parse_devices
from qnn.device.native import Pair, pairs, read_binary, to_binary, to_golden
from qnn.device.net_run import elapsed, latency, output_files
from qnn.device.paths import adsp_path, fit, library_path
from qnn.device.staging import parse_sums
from qnn.errors.device import DeviceNotReady, OutputsMissing, UnfitDevicePath
from qnn.tensors import TensorSpec

LISTED = """\
* daemon not running; starting now at tcp:5037
* daemon started successfully
List of devices attached
R5CT10      device usb:1-2 product:e1q model:SM_S921B device:e1q transport_id:3
emulator-5554\toffline
0123        no permissions (missing udev rules? is the user in the plugdev group?); see [http://x] usb:3-1
A1          unauthorized usb:1-1

"""


def test_the_list_of_devices() -> None:
    assert parse_devices(LISTED) == (
        Attached("R5CT10", "device", "SM_S921B"),
        Attached("emulator-5554", "offline"),
        Attached("0123", "no permissions"),
        Attached("A1", "unauthorized"),
    )
    assert choose(parse_devices(LISTED), None).serial == "R5CT10"
    with pytest.raises(DeviceNotReady, match="'no permissions'"):
        choose(parse_devices(LISTED), "0123")


def test_search_paths_are_separated_as_their_readers_want() -> None:
    assert library_path(["/a", "/b"]) == "/a:/b"
    assert adsp_path("/data/local/tmp/x") == (
        "/data/local/tmp/x;/vendor/dsp/cdsp;/vendor/lib/rfsa/adsp;/system/lib/rfsa/adsp;/dsp"
    )


@pytest.mark.parametrize("path", ["/a;b", "/a:b", "/a b", "/a'b", '/a"b', "/a$b", "/a\nb", "/a/../b", "", "/ä", "/a`b"])
def test_no_path_can_be_misread(path: str) -> None:
    with pytest.raises(UnfitDevicePath):
        fit(path)


def test_sums_of_files() -> None:
    one, two = "ab" * 32, "cd" * 32
    assert parse_sums(f"{one}  ./net.bin\n{two} *inputs/a b.raw\nsha256sum: ./x: No such file\n") == {
        "net.bin": one,
        "inputs/a b.raw": two,
    }


def test_output_files_are_found_by_what_is_left_of_a_name() -> None:
    paths = [
        *("net/Result_0/y_native.raw", "net/Result_0/_head_z_0_native.raw", "net/Result_1/y_native.raw"),
        *("net/Result_10/y.raw", "net/qnn-profiling-data_0.log"),
    ]
    found = output_files(paths, ["y", "/head/z:0"], 0, "net")
    assert found == {"y": "net/Result_0/y_native.raw", "/head/z:0": "net/Result_0/_head_z_0_native.raw"}
    assert output_files(["g/Result_1/model/out.raw"], ["/model/out"], 1, "g") == {
        "/model/out": "g/Result_1/model/out.raw"
    }
    # A name that has a file of its own takes it, whatever else looks like it.
    both = ["Result_0/a_b_native.raw", "Result_0/ab_native.raw"]
    assert output_files(both, ["ab"], 0, "g") == {"ab": both[1]}
    with pytest.raises(OutputsMissing, match=r"wrote no file for y of sample 2"):
        output_files(paths, ["y"], 2, "net")
    with pytest.raises(OutputsMissing):
        output_files(["Result_0/a_b.raw", "Result_0/ab.raw"], ["a:b"], 0, "g")


def test_times() -> None:
    assert elapsed("words\nqnn-forge-ns:1000 251000\n") == 250_000
    assert elapsed("qnn-forge-ns:%N %N") is None
    found = latency(100, 20_000_000, 320_000_000, "")
    assert (found.runs, found.warm_ups, found.mean_us, found.average_us) == (100, 10, 3000.0, None)
    assert latency(100, 20_000_000, 19_000_000, "").mean_us is None
    assert latency(100, None, 5, "").mean_us is None
    text = "Execute Stats (Average):\n NetRun:  12 us\nExecute Stats (Overall):\n NetRun IPS: 3 inf/sec\n"
    assert latency(1, 1, 2, text).average_us == 12
    assert latency(1, 1, 2, text).min_us is None


def quantized(scale: tuple[float, ...], offset: tuple[int, ...], axis: int | None = None) -> Pair:
    return Pair(TensorSpec("x", "float32", (2, 3)), ManifestTensor("x", "ufixed8", (2, 3), scale, offset, axis))


@given(st.lists(st.floats(-12.75, 12.75, width=32), min_size=6, max_size=6))
def test_a_value_in_range_comes_back_within_half_a_step(values: list[float]) -> None:
    array = np.array(values, np.float32).reshape(2, 3)
    pair = quantized((0.1,), (-128,))
    back = to_golden(pair, to_binary(pair, np.clip(array, -12.75, 12.65)))
    assert np.abs(back - np.clip(array, -12.75, 12.65)).max() <= 0.0501


def test_quantizing_is_onnx_quantize_linear() -> None:
    pair = quantized((2.0,), (-10,))
    array = np.array([[0, 1, 3], [5, 1000, -1000]], np.float32)
    # 1/2 rounds to 0, 3/2 and 5/2 to 2; what is out of range saturates.
    assert to_binary(pair, array).tolist() == [[10, 10, 12], [12, 255, 0]]
    assert to_golden(pair, np.array([[10, 11, 12]], np.uint8)).tolist() == [[0.0, 2.0, 4.0]]


def test_scales_along_an_axis() -> None:
    pair = quantized((1.0, 10.0), (0, -5), axis=0)
    stored = to_binary(pair, np.array([[1, 2, 3], [10, 20, 30]], np.float32))
    assert stored.tolist() == [[1, 2, 3], [6, 7, 8]]
    assert to_golden(pair, stored).tolist() == [[1, 2, 3], [10, 20, 30]]


def test_integers_keep_their_values_or_are_refused() -> None:
    pair = Pair(TensorSpec("n", "int64", (1,)), ManifestTensor("n", "int32", (1,)))
    assert to_binary(pair, np.array([7])).dtype == np.int32
    with pytest.raises(OutputsMissing, match="do not fit int32"):
        to_binary(pair, np.array([1 << 40]))
    boolean = Pair(TensorSpec("m", "bool", (2,)), ManifestTensor("m", "bool8", (2,)))
    assert to_binary(boolean, np.array([True, False])).tobytes() == b"\1\0"
    assert to_golden(boolean, read_binary(boolean, b"\0\1")).tolist() == [False, True]
    with pytest.raises(ValueError, match="reshape"):
        read_binary(boolean, b"\0\1\1")


def test_tensors_are_matched_by_name_and_never_by_luck() -> None:
    golden = (TensorSpec("a", "float32", (2,)), TensorSpec("b", "float32", (3,)))
    binary = (ManifestTensor("b_quantized", "ufixed8", (3,), (1.0,), (0,)), ManifestTensor("a", "float32", (2,)))
    assert [(pair.golden.name, pair.binary.name) for pair in pairs(golden, binary, "g")] == [
        ("b", "b_quantized"),
        ("a", "a"),
    ]
    with pytest.raises(OutputsMissing, match="golden files are for a, b"):
        pairs(golden, binary[:1], "g")
    strangers = tuple(ManifestTensor(name, "float32", (2,)) for name in ("p", "q"))
    with pytest.raises(OutputsMissing):
        pairs(golden, strangers, "g")
    with pytest.raises(OutputsMissing, match="differ in shape"):
        pairs(golden, (binary[1], ManifestTensor("b", "float32", (4,))), "g")
