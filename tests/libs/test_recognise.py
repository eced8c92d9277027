"""What must not be published is recognised by name, by being native code, and inside archives."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.bundle.archive import write_archive
from qnn.libs.recognise import HEAD_BYTES, is_qairt_library

_ELF = b"\x7fELF\x02\x01\x01" + bytes(57)
_PE = b"MZ" + bytes(58) + b"\x80\0\0\0" + bytes(64) + b"PE\0\0" + bytes(20)
_BINARIES = sorted((Path(__file__).parents[1] / "binary" / "data").glob("*.bin"))


@pytest.mark.parametrize(
    "name",
    [
        *("libQnnHtp.so", "lib/arm64-v8a/libQnnHtpV75Skel.so", "libHtpPrepare.so", "libSnpeHtpV73Skel.so"),
        *("QnnHtp.dll", "libs\\arm64ec\\QnnHtpV73Stub.dll", "HtpPrepare.dll", "libqnnhtpv73.cat", "Genie.dll"),
        *("qnn-net-run", "bin/qnn-context-binary-generator", "qnn-net-run.exe"),
        *("qnn-libs-2.51.0-android-aarch64.tar.gz", "qnn-runtime-2.51.0.aar"),
        "onnxruntime_qnn-2.7.0-cp311-cp311-win_arm64.whl",
    ],
)
def test_names_that_qairt_uses(name: str) -> None:
    assert is_qairt_library(name, b"")
    assert is_qairt_library(name.upper(), b"")


@pytest.mark.parametrize(
    "name",
    [
        *("manifest.json", "encoder.bin", "encoder_ctx.onnx", "README.md", "htp_backend_extensions.json"),
        *("silero-vad-5.1-default-fp16-SM8650-qairt2.51.0.tar.gz", "qnn-notes.txt", "libqnn.md", "LICENSE"),
    ],
)
def test_names_of_bundles_and_texts(name: str) -> None:
    assert not is_qairt_library(name, b"{}")


@pytest.mark.parametrize("head", [_ELF, _PE])
def test_native_code_by_any_name(head: bytes) -> None:
    assert is_qairt_library("weights.bin", head)


@pytest.mark.parametrize("head", [b"", b"MZ", b"MZ" + bytes(200), b"MZ" + b"\xff" * 200, b"ELF"])
def test_what_only_begins_like_native_code(head: bytes) -> None:
    assert not is_qairt_library("weights.bin", head)


@pytest.mark.parametrize("path", _BINARIES, ids=lambda path: path.name)
def test_context_binaries_are_the_users_own(path: Path) -> None:
    assert not is_qairt_library(path.name, path.read_bytes()[:HEAD_BYTES])


def test_a_renamed_archive_is_known_by_its_members(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"x" * 700)
    (folder / "libQnnHtp.so").write_bytes(_ELF)
    write_archive(folder, "top", tmp_path / "ours")
    with tarfile.open(tmp_path / "plain", "w:gz") as packed:
        packed.add(folder, "top")
    for name in ("ours", "plain"):
        assert is_qairt_library("data.bin", (tmp_path / name).read_bytes()[:HEAD_BYTES])


def test_an_archive_of_a_bundle_may_go(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "manifest.json").write_bytes(b"{}")
    (folder / "encoder.bin").write_bytes(_BINARIES[0].read_bytes())
    write_archive(folder, "top", tmp_path / "bundle.tar.gz")
    assert not is_qairt_library("bundle.tar.gz", (tmp_path / "bundle.tar.gz").read_bytes()[:HEAD_BYTES])


@pytest.mark.parametrize(
    ("member", "refused"),
    [("jni/arm64-v8a/libQnnHtp.so", True), ("onnxruntime_qnn/__init__.py", True), ("model/graph.onnx", False)],
)
def test_zips_are_known_by_their_members(member: str, refused: bool) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("AndroidManifest.xml", "<manifest/>")
        packed.writestr(member, b"x")
    assert is_qairt_library("thing", out.getvalue()) is refused


@given(st.sampled_from([b"", b"PK\x03\x04", b"\x1f\x8b", b"MZ"]), st.binary(max_size=600))
def test_no_bytes_make_it_fail(start: bytes, rest: bytes) -> None:
    assert is_qairt_library("x", start + rest) in (True, False)
