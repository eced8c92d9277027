"""qnn-forge libs as a user calls it, with the stand-in for Maven Central behind https."""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from qnn.cli import run
from qnn.errors.base import ExitCode
from tests.libs import fake_maven
from tests.sources.fake_server import FakeServer, certificate, serving

AAR = fake_maven.aar()
DIGEST = hashlib.sha256(AAR).hexdigest()


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A repository over https that this machine trusts, named by the environment."""
    folder = tmp_path / "tls"
    folder.mkdir()
    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    with serving(context) as server:
        monkeypatch.setenv("QNN_FORGE_MAVEN", server.url("/maven2", "localhost"))
        monkeypatch.setenv("QNN_FORGE_STORE", str(tmp_path / "store"))
        yield server


def libs(tmp_path: Path, *arguments: str) -> int:
    return run(["libs", "--soc", "SM8650", "--out", str(tmp_path / "out"), *arguments])


ANDROID = ("--os", "android", "--toolchain", "2.50", "--sha256", DIGEST)


def test_it_writes_and_says_what(maven: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_maven.publish(maven, "2.50.0", AAR)
    assert libs(tmp_path, *ANDROID, "--with", "prepare") == ExitCode.OK
    said = capsys.readouterr()
    assert "downloading com.qualcomm.qti:qnn-runtime:2.50.0" in said.err
    assert "QAIRT v2.50.0.260828221209, android-aarch64, SM8650 (v75)" in said.out
    assert "lib/libQnnHtpPrepare.so" in said.out
    assert "note: what onnxruntime-qnn compiles with QAIRT 2.50.40 is newer than this runtime" in said.out
    assert "do not publish this archive" in said.out
    assert (tmp_path / "out" / "qnn-libs-2.50.0-android-aarch64.tar.gz").is_file()
    assert libs(tmp_path, *ANDROID, "--with", "prepare") == ExitCode.OK
    said = capsys.readouterr()
    assert "MB, unchanged" in said.out
    assert said.err == ""


def test_json_is_one_document(maven: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_maven.publish(maven, "2.50.0", AAR)
    assert libs(tmp_path, *ANDROID, "--json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    archive = Path(document["archive"]["path"])
    assert document["archive"]["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert document["manifest"]["package"]["sha256"] == DIGEST


def test_a_dry_run_asks_nobody(maven: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert libs(tmp_path, *ANDROID, "--dry-run", "--json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert (document["qairt"], document["downloaded"], document["sha256"]) == ("2.50.0", False, DIGEST)
    assert libs(tmp_path, "--os", "linux", "--arch", "x86_64", "--toolchain", "2.49", "--dry-run") == ExitCode.OK
    said = capsys.readouterr().out
    assert "from onnxruntime-qnn==2.5.0 (manylinux_2_35_x86_64), still to be downloaded" in said
    assert "there is no NPU, so there is no Skel" in said
    assert maven.seen == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--os", "android", "--arch", "x86_64"), ExitCode.USAGE, "no QAIRT libraries for Android on x86_64"),
        (("--os", "ios"), ExitCode.USAGE, "'ios' is not one of"),
        (("--os", "linux", "--sha256", "abc"), ExitCode.USAGE, "64 hexadecimal digits"),
        (("--os", "linux", "--toolchain", "2.47"), ExitCode.SOURCE, "QF770"),
        (("--os", "android", "--toolchain", "2.66"), ExitCode.SOURCE, "QF770"),
        (("--os", "android", "--maven", "http://localhost:1/x"), ExitCode.SOURCE, "QF320"),
        (("--os", "android", "--maven", "ftp:"), ExitCode.SOURCE, "QF320"),
        (("--os", "linux", "--soc", "SM9999"), ExitCode.CHIP, "QF201"),
        (("--os", "linux", "--soc", "SDM845"), ExitCode.CHIP, "QF203"),
    ],
)
def test_what_is_refused(
    maven: FakeServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: ExitCode,
    says: str,
) -> None:
    assert libs(tmp_path, *arguments) == code
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""


def test_a_full_disk(maven: FakeServer, small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = fake_maven.aar({"NOTICE.txt": bytes(range(256)) * 4096})
    fake_maven.publish(maven, "2.50.0", big)
    arguments = ("--os", "android", "--toolchain", "2.50", "--sha256", hashlib.sha256(big).hexdigest())
    assert run(["libs", "--soc", "SM8650", *arguments, "--out", str(small_disk)]) == ExitCode.SYSTEM
    assert "QF901" in capsys.readouterr().err
    assert list(small_disk.iterdir()) == []
