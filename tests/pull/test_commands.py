"""qnn-forge pull, search and info as a person or a script calls them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from qnn.cli import run
from qnn.index.document import IndexFallback
from qnn.index.update import yank
from tests.index.examples import manifest
from tests.pull.conftest import FILES, Puller, Shop
from tests.sources import fake_server as fake
from tests.sources.fake_server import FakeServer


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def pull(self) -> dict[str, Any]:
        (entry,) = json.loads(self.out)["pulls"]
        assert isinstance(entry, dict)
        return entry


Forge = Callable[..., Result]


@pytest.fixture
def forge(shop: Shop, puller: Puller, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Forge:
    """A command line with the shop's index and an output folder."""
    monkeypatch.setenv("QNN_FORGE_INDEX", str(shop.index))
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: str) -> Result:
        out = ["--out", str(puller.out)] if arguments[0] == "pull" and "--out" not in arguments else []
        code = run([*arguments, *out])
        printed = capfd.readouterr()
        return Result(code, printed.out, printed.err)

    return call


def test_use(shop: Shop, puller: Puller, forge: Forge) -> None:
    file = shop.publish()
    result = forge("pull", "toy", "--soc", "Snapdragon 8 Gen 3")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "use: toy 1.0 s16/w8a16, revision 1, made for SM8650 itself",
        "  made by QAIRT 2.51.0; the device needs a runtime of QAIRT 2.51.0 or newer",
        "  the index names no attestation; the sha256 was checked",
        str(puller.out / file.name.removesuffix(".tar.gz")),
    ]


def test_use_with_a_warning(shop: Shop, forge: Forge) -> None:
    shop.publish("SM8550")
    first = forge("pull", "toy", "--soc", "QCS8550")
    assert first.code == 20
    assert first.out.startswith("use with a warning: ")
    assert "to have one of its own: qnn-forge build toy --soc QCS8550 --bucket s16 --precision w8a16" in first.out
    assert forge("pull", "toy", "--soc", "QCS8550", "--accept-warnings").code == 0


def test_build_it(shop: Shop, puller: Puller, forge: Forge) -> None:
    shop.publish("SM8550")
    result = forge("pull", "toy", "--soc", "SM8650")
    assert (result.code, result.out, puller.left()) == (21, "", [])
    assert "QF732 toy 1.0 is not published for SM8650" in result.err
    assert "near: SM8550: its files are for v73, SM8650 is v75" in result.err
    assert "build it: qnn-forge build toy --soc SM8650 --bucket s16 --precision w8a16" in result.err
    assert "float model of toy net for the CPU: pypi toy==1.0, file toy/model.onnx" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["toys"], "near: toy"),
        (["../toy"], "no model called '../toy'"),
        (["toy==9"], "near: toy==1.0"),
        (["toy", "--precision", "fp16"], "near: --precision w8a16"),
        (["toy", "--bucket", "x"], "near: --bucket s16 (size 16)"),
        (["toy", "--runtime", "2.40"], "nothing can be built for it"),
        (["toy", "--revision", "2"], "near: --revision 1"),
    ],
)
def test_no(shop: Shop, puller: Puller, forge: Forge, arguments: list[str], words: str) -> None:
    shop.publish()
    result = forge("pull", *arguments, "--soc", "SM8650")
    assert (result.code, result.out, puller.left()) == (22, "", [])
    assert "QF733" in result.err
    assert words in result.err


def test_a_chip_without_an_htp_is_a_no_that_names_the_float_model(shop: Shop, forge: Forge) -> None:
    shop.publish()
    result = forge("pull", "toy", "--soc", "SM7150")
    assert result.code == 22
    assert "float model of toy net for the CPU: pypi toy==1.0" in result.err


@pytest.mark.parametrize(("soc", "error"), [("SM9999", "QF201"), ("X Plus", "QF202"), ("57", "QF201")])
def test_a_name_that_means_no_single_chip(shop: Shop, forge: Forge, soc: str, error: str) -> None:
    shop.publish()
    result = forge("pull", "toy", "--soc", soc)
    assert (result.code, error in result.err) == (4, True)


def test_another_version_that_has_the_chip_is_named(shop: Shop, forge: Forge) -> None:
    shop.publish()
    whole, archive = shop.archive(manifest("SM8750", version="2.0"))
    shop.enter(whole, archive)
    result = forge("pull", "toy", "--soc", "SM8650")
    assert result.code == 21
    assert "near: toy==1.0 has files for SM8650" in result.err
    assert forge("pull", "toy==1.0", "--soc", "SM8650").code == 0


def test_json_is_one_document_for_every_verdict(shop: Shop, puller: Puller, forge: Forge) -> None:
    file = shop.publish()
    used = forge("pull", "toy", "--soc", "SM8650P", "--json")
    assert used.code == 0
    assert used.pull["verdict"] == "use"
    assert used.pull["chip"] == {"name": "SM8650", "soc_id": 57}
    assert used.pull["folder"] == str(puller.out / file.name.removesuffix(".tar.gz"))
    assert used.pull["file"]["sha256"] == file.sha256
    assert used.pull["file"]["urls"] == [str(shop.index / FILES / file.name)]
    missed = forge("pull", "toy", "--soc", "SM8550", "--json")
    assert (missed.code, missed.pull["verdict"], missed.pull["file"]) == (21, "build it", None)
    assert missed.pull["build"] == "qnn-forge build toy --soc SM8550 --bucket s16 --precision w8a16"
    unknown = forge("pull", "toys", "--soc", "SM8550", "--json")
    assert (unknown.code, unknown.pull["verdict"], unknown.pull["near"]) == (22, "no", ["toy"])


def test_print_url_prints_addresses_and_downloads_nothing(shop: Shop, puller: Puller, forge: Forge) -> None:
    shop.publish(urls=("https://files.example/a.tar.gz",))
    result = forge("pull", "toy", "--soc", "SM8650", "--print-url")
    assert (result.code, result.out, puller.left()) == (0, "https://files.example/a.tar.gz\n", [])
    assert "made for SM8650 itself" in result.err
    shop.publish("SM8550", seed=1, urls=("files/b.tar.gz",))
    assert forge("pull", "toy", "--soc", "QCS8550", "--print-url").code == 20


def test_several_models_are_all_or_nothing(shop: Shop, puller: Puller, forge: Forge) -> None:
    shop.publish()
    whole, archive = shop.archive(manifest("SM8650", model="other"), seed=5)
    shop.enter(whole, archive)
    assert forge("pull", "toy", "other", "nothing", "--soc", "SM8650").code == 22
    assert puller.left() == []
    assert forge("pull", "toy", "other", "toy", "--soc", "SM8650", "--jobs", "1").code == 0
    assert [name.partition("-")[0] for name in puller.left()] == ["other", "toy"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["toy"],
        ["toy", "--soc", "SM8650", "--device", "x"],
        ["toy", "--soc", "SM8650", "--allow-yanked"],
        ["toy", "--soc", "SM8650", "--runtime", "newest"],
        ["toy", "--soc", "SM8650", "--revision", "0"],
    ],
)
def test_a_command_line_that_is_wrong(shop: Shop, forge: Forge, arguments: list[str]) -> None:
    shop.publish()
    result = forge("pull", *arguments)
    assert (result.code, result.out) == (2, "")


def test_a_yanked_file_on_request(shop: Shop, forge: Forge) -> None:
    shop.publish()
    yank(shop.index, "toy", "1.0", ["all"], "wrong numbers")
    assert forge("pull", "toy", "--soc", "SM8650").code == 22
    forced = forge("pull", "toy", "--soc", "SM8650", "--revision", "1", "--allow-yanked")
    assert forced.code == 20
    assert "it is yanked, and taken because --allow-yanked says so: wrong numbers" in forced.out


def test_the_chip_of_a_device(shop: Shop, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.publish()
    adb = tmp_path / "adb"
    adb.write_text("#!/bin/sh\necho SM8650Q\n")
    adb.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = forge("pull", "toy", "--device", "--json")
    assert (result.code, result.pull["chip"]["name"]) == (0, "SM8650")
    adb.unlink()
    missing = forge("pull", "toy", "--device")
    assert (missing.code, "QF729" in missing.err) == (13, True)


def test_an_index_over_https_and_none_over_http(
    shop: Shop,
    forge: Forge,
    tls_server: FakeServer,
    certificate_and_key: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop.publish()
    shop.serve(tls_server)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate_and_key[0]))
    assert forge("pull", "toy", "--soc", "SM8650", "--from", tls_server.url("/")).code == 0
    assert forge("search", "--from", tls_server.url("")).code == 0
    plain = forge("pull", "toy", "--soc", "SM8650", "--from", "http://127.0.0.1:1")
    assert (plain.code, "QF724" in plain.err) == (5, True)
    monkeypatch.delenv("SSL_CERT_FILE")
    distrusted = forge("pull", "toy", "--soc", "SM8650", "--from", tls_server.url(""))
    assert (distrusted.code, "QF725" in distrusted.err) == (5, True)


def test_no_index_there(forge: Forge, tmp_path: Path) -> None:
    result = forge("pull", "toy", "--soc", "SM8650", "--from", str(tmp_path / "nothing"))
    assert (result.code, "QF720" in result.err) == (5, True)


def test_a_full_disk_is_said_as_such(shop: Shop, small_disk: Path, forge: Forge) -> None:
    shop.publish(size=400_000)
    result = forge("pull", "toy", "--soc", "SM8650", "--out", str(small_disk / "out"))
    assert (result.code, "QF901" in result.err) == (11, True)
    assert list(small_disk.iterdir()) == []


def test_text_of_the_index_is_neither_markup_nor_orders_to_the_terminal(shop: Shop, forge: Forge) -> None:
    shop.publish()
    shop.edit('"summary":"A toy."', '"summary":"[bold]A\\u001b[31m toy.[/bold]"')
    shop.edit('"summary":"A toy."', '"summary":"[bold]A\\u001b[31m toy.[/bold]"', "v1/index.json")
    yank(shop.index, "toy", "1.0", ["all"], "bad\x1b[31m[red]")
    for arguments in (["search"], ["info", "toy"], ["pull", "toy", "--soc", "SM8650"]):
        result = forge(*arguments)
        assert "\x1b" not in result.out + result.err
        assert "[red]" in result.out + result.err or "[bold]A" in result.out


def test_search(shop: Shop, forge: Forge) -> None:
    shop.publish()
    whole, archive = shop.archive(manifest("SM8750", model="crane"), seed=5)
    shop.enter(whole, archive)

    def names(*arguments: str) -> list[str]:
        return [model["name"] for model in json.loads(forge("search", *arguments, "--json").out)["models"]]

    assert names() == ["crane", "toy"]
    assert names("TOY") == ["crane", "toy"], "both have it in their summary"
    assert names("toy", "cran") == ["crane"]
    assert names("--soc", "8 Elite") == ["crane"]
    assert names("--task", "test") == ["crane", "toy"]
    assert names("--task", "tes") == []
    assert "no model of the index is like that" in forge("search", "zebra").err
    assert forge("search", "--soc", "SM9999").code == 4
    table = forge("search").out
    assert "crane" in table
    assert "1.0" in table


def test_info(shop: Shop, forge: Forge) -> None:
    shop.publish()
    shop.publish("SM8750", seed=1)
    yank(shop.index, "toy", "1.0", ["SM8750"], "wrong numbers")
    text = forge("info", "toy").out
    assert "toy 1.0: A toy." in text
    assert "net: x float32[1,3] → y float32[1,2]" in text
    row = next(line for line in text.splitlines() if "SM8750" in line)
    assert [
        part for part in ("v79", "8 MB", "2.51.0", "cosine 0.999990", "text equal", "wrong numbers") if part not in row
    ] == []
    document = json.loads(forge("info", "toy==1.0", "--json").out)
    assert document["model"]["latest"] == "1.0"
    assert [file["soc"] for file in document["version"]["variants"][0]["files"]] == ["SM8650", "SM8750"]
    for arguments, near in ((["toys"], "near: toy"), (["toy==3"], "near: toy==1.0")):
        missing = forge("info", *arguments)
        assert (missing.code, near in missing.err) == (22, True)


def test_a_fallback_without_a_graph_is_named_too() -> None:
    from qnn.index.document import VersionIndex  # noqa: PLC0415
    from qnn.pull.explain import fallback_lines  # noqa: PLC0415

    one = IndexFallback("url", "https://x/a.onnx", "ab" * 32, 5)
    document = VersionIndex(1, "toy", "1.0", "A toy.", "test", None, (), fallback=(one, replace(one, graph="det")))
    assert [line.partition(" for the CPU")[0] for line in fallback_lines(document)] == [
        "float model of toy",
        "float model of toy det",
    ]


def test_help_imports_nothing_of_the_network() -> None:
    script = (
        "import sys\nfrom qnn.cli import run\n"
        "for name in ('pull', 'search', 'info'): run([name, '--help'])\n"
        "print([name for name in ('httpx', 'rich', 'cattrs', 'numpy', 'yaml') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "--require-attestation" in done.stdout


def test_ctrl_c_ends_all_downloads_at_once_and_the_next_try_goes_on(
    shop: Shop,
    puller: Puller,
    tls_server: FakeServer,
    certificate_and_key: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    forge: Forge,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate_and_key[0]))
    files = [shop.publish(size=300_000)]
    whole, archive = shop.archive(manifest("SM8650", model="other"), size=300_000, seed=5)
    files.append(shop.enter(whole, archive))
    shop.serve(tls_server)
    under_way = threading.Barrier(3, timeout=60)

    def endless(handler: fake.Handler) -> None:
        content = (shop.index / handler.seen.path.lstrip("/")).read_bytes()
        handler.head(200, Content_Length=len(content), ETag='"v1"')
        handler.body(content[:100_000])
        handler.wfile.flush()
        under_way.wait()
        for byte in content[100_000:]:
            handler.body(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.05)

    for file in files:
        tls_server.routes[f"/{FILES}/{file.name}"] = endless
    command = ["pull", "toy", "other", "--soc", "SM8650", "--from", tls_server.url(""), "--out", str(puller.out)]
    # As at a terminal: a test run in the background hands down a SIGINT that is ignored.
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from qnn.cli import run; sys.exit(run(sys.argv[1:]))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, *command], stderr=subprocess.PIPE, text=True)
    under_way.wait()
    while sum(part.stat().st_size >= 100_000 for part in puller.cache.rglob("partial")) < len(files):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, puller.left()) == (130, [])
    assert errors.lstrip().startswith("interrupted; what was finished is kept")
    assert "Traceback" not in errors
    shop.serve(tls_server)
    tls_server.seen.clear()
    for file in files:
        tls_server.routes[f"/{FILES}/{file.name}"] = fake.file((shop.index / FILES / file.name).read_bytes())
    assert forge(*command).code == 0
    ranges = [seen.headers.get("range", "") for seen in tls_server.seen if FILES in seen.path]
    assert len(ranges) == 2
    assert all(asked.startswith("bytes=1000") for asked in ranges)
