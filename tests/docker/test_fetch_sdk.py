"""docker/fetch_sdk.py as the image's build runs it: no licence word, wrong archives, and the right ones."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.docker.fake_sdk import GENERATOR, NDK, SDK, Archive, Link, Script, described, write_zip
from tests.docker.parse import DOCKER

SCRIPT = DOCKER / "fetch_sdk.py"
KIT = "QAIRT_SDK"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_sdk", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fetch_sdk"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


fetch_sdk = _load()


@dataclass
class Mirror:
    """A loopback server: what it serves by path, and what it was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    state = Mirror()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append((self.path, self.headers.get("Authorization")))
            to = state.redirects.get(self.path)
            content = state.files.get(self.path)
            self.send_response(302 if to else 404 if content is None else 200)
            if to:
                self.send_header("Location", to)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            """Nothing on the tests' stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield state
        server.shutdown()


@pytest.fixture
def sdk(tmp_path: Path) -> Archive:
    return write_zip(tmp_path / "qairt.zip", SDK)


def run(accept: str, *kits: tuple[object, ...]) -> subprocess.CompletedProcess[str]:
    words = [str(word) for kit in kits for word in ("--kit", *kit, *([GENERATOR] if len(kit) == 5 else []))]
    command = [sys.executable, "-I", str(SCRIPT), "--accept", accept, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def kit_of(archive: Archive, to: Path, url: str | None = None) -> tuple[object, ...]:
    return (KIT, url or archive.path.as_uri(), archive.sha256, archive.size, to)


def refusal(archive: Archive, to: Path) -> str:
    """The message for an archive that must be refused; nothing may be left of it."""
    done = run("yes", kit_of(archive, to))
    assert done.returncode == 1
    assert not to.exists()
    assert [path.name for path in to.parent.iterdir() if path.name.startswith("tmp")] == []
    return done.stderr


def test_both_kits_are_unpacked_without_the_folders_around_them(tmp_path: Path, sdk: Archive) -> None:
    ndk = write_zip(tmp_path / "ndk.zip", NDK)
    done = run(
        "yes",
        kit_of(sdk, tmp_path / "kits" / "qairt"),
        ("ANDROID_NDK", *kit_of(ndk, tmp_path / "kits/ndk")[1:], "source.properties"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    kits = tmp_path / "kits"
    generator = kits / "qairt" / GENERATOR
    assert subprocess.run([generator], capture_output=True, text=True, check=True).stdout.startswith("stand-in")
    assert (kits / "qairt" / "lib" / "libQnnHtp.so").read_text() == "no library\n"
    assert os.readlink(kits / "qairt" / "lib" / "libQnnHtp.so") == "libQnnHtp.so.1"
    assert (kits / "ndk" / "source.properties").stat().st_mode & 0o777 == 0o644
    receipt = json.loads((kits / "qairt" / ".qnn-forge-kit.json").read_text())
    assert receipt == {"folder": "qairt/9.9.9", "kit": KIT, "sha256": sdk.sha256, "size": sdk.size}
    assert sorted(path.name for path in kits.iterdir()) == ["ndk", "qairt"]


@pytest.mark.parametrize("word", ["", "no", "YES", "true", "1", "yes "])
def test_without_the_exact_word_nothing_is_even_asked_for(word: str, mirror: Mirror, tmp_path: Path) -> None:
    done = run(word, (KIT, f"{mirror.address}/sdk.zip", "0" * 64, 1, tmp_path / "sdk"))
    assert done.returncode == 1
    assert done.stderr.startswith("fetch_sdk: the licence was not accepted.\n")
    assert "--build-arg ACCEPT_QAIRT_LICENSE=yes" in done.stderr
    assert "--target pip" in done.stderr
    assert mirror.asked == []


def test_a_wrong_sha256_is_refused_before_anything_is_unpacked(tmp_path: Path, sdk: Archive) -> None:
    wrong = Archive(sdk.path, "0" * 64, sdk.size)
    message = refusal(wrong, tmp_path / "sdk")
    assert (
        f"the archive's sha256 is {sdk.sha256}, and QAIRT_SDK_SHA256 says {'0' * 64}; nothing was unpacked" in message
    )


@pytest.mark.parametrize(("change", "words"), [(1, "it was cut short"), (-1, "larger than QAIRT_SDK_SIZE")])
def test_a_wrong_size_is_refused(change: int, words: str, tmp_path: Path, sdk: Archive) -> None:
    assert words in refusal(Archive(sdk.path, sdk.sha256, sdk.size + change), tmp_path / "sdk")


@pytest.mark.parametrize(
    ("url", "sha256", "size", "named"),
    [
        ("", "0" * 64, "1", "QAIRT_SDK_URL"),
        ("http://example.org/sdk.zip", "0" * 64, "1", "QAIRT_SDK_URL"),
        ("ftp://example.org/sdk.zip", "0" * 64, "1", "QAIRT_SDK_URL"),
        ("sdk.zip", "0" * 64, "1", "QAIRT_SDK_URL"),
        ("https://example.org/sdk.zip", "", "1", "QAIRT_SDK_SHA256"),
        ("https://example.org/sdk.zip", "A" * 64, "1", "QAIRT_SDK_SHA256"),
        ("https://example.org/sdk.zip", "0" * 64, "", "QAIRT_SDK_SIZE"),
        ("https://example.org/sdk.zip", "0" * 64, "0", "QAIRT_SDK_SIZE"),
        ("https://example.org/sdk.zip", "0" * 64, "1e9", "QAIRT_SDK_SIZE"),
    ],
)
def test_a_missing_or_wrong_argument_is_named_before_the_first_download(
    url: str, sha256: str, size: str, named: str, mirror: Mirror, tmp_path: Path
) -> None:
    good = ("ANDROID_NDK", f"{mirror.address}/ndk.zip", "0" * 64, 1, tmp_path / "ndk")
    done = run("yes", good, (KIT, url, sha256, size, tmp_path / "sdk"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"fetch_sdk: {named} must be ")
    assert mirror.asked == []


def test_a_missing_archive_is_named_without_what_may_be_secret(mirror: Mirror, tmp_path: Path) -> None:
    url = mirror.address.replace("//", "//me:hunter2@") + "/gone.zip?token=hunter3"
    with pytest.raises(fetch_sdk.Refused) as caught:
        fetch_sdk.install(
            fetch_sdk.parse_kit(KIT, url.replace("me:hunter2@", ""), "0" * 64, "1", str(tmp_path / "k"), GENERATOR),
            None,
        )
    assert f"{mirror.address}/gone.zip cannot be fetched: Not Found" in str(caught.value)
    done = run("yes", (KIT, url.replace("http://", "ftp://"), "0" * 64, 1, tmp_path / "sdk"))
    assert "hunter" not in done.stderr


def test_the_authorization_is_sent_and_not_sent_on(mirror: Mirror, tmp_path: Path, sdk: Archive) -> None:
    mirror.files["/real.zip"] = sdk.path.read_bytes()
    mirror.redirects["/sdk.zip"] = f"{mirror.address}/real.zip"
    kit = fetch_sdk.parse_kit(
        KIT, f"{mirror.address}/sdk.zip", sdk.sha256, str(sdk.size), str(tmp_path / "sdk"), GENERATOR
    )
    fetch_sdk.install(kit, "Bearer hunter2")
    assert mirror.asked == [("/sdk.zip", "Bearer hunter2"), ("/real.zip", None)]
    assert (tmp_path / "sdk" / GENERATOR).is_file()


@pytest.mark.parametrize(
    "entries",
    [
        {"../evil": "x"},
        {"a/../../evil": "x"},
        {"/evil": "x"},
        {"a\\..\\..\\evil": "x"},
        {"a/link": Link("/etc/passwd"), "a/b": "x"},
        {"a/link": Link("../../evil"), "a/b": "x"},
        {"a/b/c/up": Link("../.."), "a/out": Link("b/c/up/../../evil"), "a/d": "x"},
    ],
)
def test_an_archive_that_leads_out_of_its_folder_is_refused(
    entries: dict[str, str | Script | Link], tmp_path: Path
) -> None:
    message = refusal(write_zip(tmp_path / "evil.zip", entries), tmp_path / "in" / "sdk")
    assert "which leads out of its folder; nothing was kept" in message
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "in" / "evil").exists()


def test_what_is_no_zip_is_refused(tmp_path: Path, sdk: Archive) -> None:
    (tmp_path / "page.zip").write_text("<html>log in first</html>")
    assert "not a zip that can be read" in refusal(described(tmp_path / "page.zip"), tmp_path / "sdk")
    (tmp_path / "half.zip").write_bytes(sdk.path.read_bytes()[:200])
    assert "not a zip that can be read" in refusal(described(tmp_path / "half.zip"), tmp_path / "sdk")


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    message = refusal(write_zip(tmp_path / "ndk.zip", NDK), tmp_path / "sdk")
    assert f"the archive holds no {GENERATOR}; QAIRT_SDK_URL is of something else" in message


def test_common_folder_of_a_flat_archive_is_none() -> None:
    common = fetch_sdk.common_folder
    assert common([PurePosixPath("a/b/c"), PurePosixPath("a/d")]) == PurePosixPath("a")
    assert common([PurePosixPath("a/b/c/d")]) == PurePosixPath("a/b/c")
    assert common([PurePosixPath("a"), PurePosixPath("b/c")]) == PurePosixPath()
    assert common([]) == PurePosixPath()
    assert common([PurePosixPath("ab/x"), PurePosixPath("abc/y")]) == PurePosixPath()


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=6))
def test_common_folder_holds_every_file_and_no_deeper_one_does(names: list[list[str]]) -> None:
    files = [PurePosixPath(*name) for name in names]
    found = fetch_sdk.common_folder(files)
    assert all(found in file.parents for file in files)
    deeper = {file.parts[len(found.parts)] for file in files if len(file.parts) > len(found.parts) + 1}
    assert len(deeper) != 1 or any(file.parent == found for file in files)
