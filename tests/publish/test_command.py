"""qnn-forge publish as a user runs it: real bundles, the real `gh` and huggingface_hub, fakes of the two servers."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

from tests.publish import fake_hub_uploads, fake_releases
from tests.publish.conftest import TOY, Shop, edit
from tests.publish.fake_releases import REPOSITORY, Trouble

FOLDER = ("--to", "folder", "--folder", "public")


def names(*socs: str, model: str = "toy") -> set[str]:
    return {f"{model}-1.0-s16-fp16-{soc}-qairt2.51.0.tar.gz" for soc in socs}


def test_github_from_nothing_to_the_next_revision(shop: Shop, tmp_path: Path) -> None:
    with fake_releases.serving(tmp_path) as github:
        to = ("publish", "dist", "--to", "github", "--repo", REPOSITORY, "--index", "index")
        environment = fake_releases.environment(tmp_path)

        dry = shop.forge(*to, "--dry-run", "--json", env=environment)
        assert dry.code == 0, dry.err
        [toy, other] = dry.document["units"]
        assert {file["name"] for file in toy["releases"][0]["files"]} == names("SM8550", "SM8650")
        assert (toy["releases"][0]["revision"], other["model"], dry.document["published"]) == (1, "toy-b", False)
        assert github.releases == {}
        assert not (shop.root / "index").exists()

        done = shop.forge(*to, "--json", env=environment)
        assert done.code == 0, done.err
        assert set(github.published()) == {"toy-1.0-r1", "toy-b-1.0-r1"}
        files = github.published()["toy-1.0-r1"]
        assert set(files) == names("SM8550", "SM8650") | {
            "README.md", "SHA256SUMS", "provenance.intoto.json", "sbom.cdx.json",
        }  # fmt: skip
        for name in names("SM8550", "SM8650"):
            assert files[name] == (shop.dist / name).read_bytes()
        # The checksums work with the tool that everybody has.
        folder = tmp_path / "download"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, check=True)
        assert checked.stdout.count(b": OK") == 5
        # The index has each file at its address.
        index = json.loads((shop.root / "index/v1/models/toy/1.0.json").read_text())
        [variant] = index["variants"]
        entry = variant["files"][0]
        assert entry["urls"] == [f"https://github.com/{REPOSITORY}/releases/download/toy-1.0-r1/{entry['name']}"]
        assert entry["sbom"].endswith("/toy-1.0-r1/sbom.cdx.json")
        assert (entry["revision"], entry["published"]) == (1, "2026-11-30")

        sent, tree = sum(github.sent.values()), (shop.root / "index/v1/models/toy/1.0.json").read_bytes()
        again = shop.forge(*to, env=environment)
        assert again.code == 0, again.err
        assert "nothing new" in again.out
        assert sum(github.sent.values()) == sent
        assert (shop.root / "index/v1/models/toy/1.0.json").read_bytes() == tree

        edit(shop, lambda manifest: manifest.update(forge="0.0.1"))
        next_ = shop.forge(*to, "--dry-run", env=environment)
        assert "send" in next_.out
        assert "r2" in next_.out
        assert github.wrongs == []


def test_what_was_published_is_at_its_address(shop: Shop, tmp_path: Path) -> None:
    """curl gets what the index says from where it says; GITHUB_SERVER_URL names the server, as in a workflow."""
    with fake_releases.serving(tmp_path) as github, fake_releases.downloads(github) as server:
        environment = {**fake_releases.environment(tmp_path), "GITHUB_SERVER_URL": server}
        to = ("publish", "dist", "--to", "github", "--repo", REPOSITORY, "--models", "models", "--index", "index")
        done = shop.forge(*to, "--json", env=environment)
        assert done.code == 0, done.err
        # toy-b's model.yaml does not send it to GitHub.
        assert set(github.published()) == {"toy-1.0-r1"}
        assert set(done.document["left_out"]) == names("SM8550", "SM8650", model="toy-b")
        [unit] = done.document["units"]
        for name, address in unit["addresses"].items():
            got = subprocess.run(["curl", "-fsSL", address], capture_output=True, check=True).stdout
            assert got == (shop.dist / name).read_bytes()


def test_the_hub_with_repositories_from_each_model_yaml(shop: Shop, tmp_path: Path) -> None:
    with fake_hub_uploads.serving() as hub:
        for name in ("acme/toy", "acme/toy-b"):
            hub.make(name)
        to = ("publish", "dist", "--to", "huggingface", "--models", "models", "--index", "index")
        done = shop.forge(*to, env=fake_hub_uploads.environment(hub, str(tmp_path / "hf")))
        assert done.code == 0, done.err
        toy = hub.repositories["acme/toy"].main()
        assert {path for path in toy if path.startswith("1.0/r1/toy")} == {
            f"1.0/r1/{name}" for name in names("SM8550", "SM8650")
        }
        assert toy["README.md"].startswith(b"---\nlicense: mit\nlibrary_name: qnn-forge\n")
        assert {path for path in hub.repositories["acme/toy-b"].main() if "/toy-" in path} == {
            f"1.0/r1/{name}" for name in names("SM8550", "SM8650", model="toy-b")
        }
        assert hub.wrongs == []


def run_as_the_notes_say(notes: str, archive: Path, scratch: Path) -> dict[str, list[int]]:
    """Open the session of the notes' Python lines in an unpacked archive; shapes of its outputs by name."""
    with tarfile.open(archive) as packed:
        packed.extractall(scratch / "unpacked", filter="data")
    lines = notes.split("```python\n")[1].split("```", maxsplit=1)[0]
    shown = 'import json; print("OUT", json.dumps({o.name: o.shape for o in session.get_outputs()}))'
    done = subprocess.run(
        [sys.executable, "-c", f"{textwrap.dedent(lines)}\n{shown}"],
        cwd=scratch / "unpacked" / archive.name.removesuffix(".tar.gz"),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[int]] = json.loads(done.stdout.rpartition("OUT ")[2])
    return found


def test_a_folder_with_an_index_beside_it(shop: Shop) -> None:
    done = shop.forge("publish", "dist", "--to", "folder", "--folder", "public", "--index", "public")
    assert done.code == 0, done.err
    notes = (shop.root / "public/toy/1.0/r1/README.md").read_text()
    archive = shop.root / "public/toy/1.0/r1" / f"{TOY.format('SM8550')}.tar.gz"
    assert run_as_the_notes_say(notes, archive, shop.root) == {"y": [1, 8, 1, 1]}
    index = json.loads((shop.root / "public/v1/models/toy/1.0.json").read_text())
    for entry in index["variants"][0]["files"]:
        [address] = entry["urls"]
        content = (shop.root / "public" / address).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    again = shop.forge("publish", "dist", *FOLDER, "--json")
    assert [unit["releases"] for unit in again.document["units"]] == [[], []]

    withdrawn = shop.forge(
        "yank", "toy", "1.0", "--soc", "SM8650", "--reason", "wrong on long audio", "--index", "public"
    )
    assert withdrawn.code == 0, withdrawn.err
    index = json.loads((shop.root / "public/v1/models/toy/1.0.json").read_text())
    assert {entry["soc"]: entry.get("yanked") for entry in index["variants"][0]["files"]} == {
        "SM8550": None, "SM8650": "wrong on long audio",
    }  # fmt: skip
    assert shop.forge("yank", "toy", "1.0", "--reason", "x", "--index", "public").code == 2


def test_a_bundle_that_may_not_go_out_stops_everything(shop: Shop) -> None:
    edit(shop, lambda manifest: manifest.update(verified=False))
    run = shop.forge("publish", "dist", *FOLDER, "--json")
    assert (run.code, run.document["refused"][0]["id"], run.document["published"]) == (12, "QF751", False)
    assert "QF751" in run.err
    assert "Traceback" not in run.err
    assert not (shop.root / "public").exists()


def test_nothing_there(shop: Shop) -> None:
    (shop.root / "empty").mkdir()
    assert (run := shop.forge("publish", "empty", *FOLDER)).code == 12
    assert "QF750" in run.err
    assert shop.forge("publish", "dist", "--to", "folder").code == 2
    assert shop.forge("publish", "dist", "--to", "huggingface").code == 2


def test_a_wrong_token_and_a_long_wait_are_one_error_and_nothing_is_left_behind(shop: Shop, tmp_path: Path) -> None:
    with fake_releases.serving(tmp_path) as github:
        to: tuple[str, ...] = ("publish", "dist", "--to", "github", "--repo", REPOSITORY, "--index", "index")
        run = shop.forge(*to, env=fake_releases.environment(tmp_path, token="ghp_wrong"))
        assert (run.code, "QF756" in run.err) == (12, True)
        assert "ghp_wrong" not in run.err + run.out
        assert "Traceback" not in run.err
        github.troubles = [Trouble("GET", "matching-refs", 429, 9, (("Retry-After", "30"),))]
        run = shop.forge(*to, "--max-wait", "20", env=fake_releases.environment(tmp_path))
        assert (run.code, "QF758" in run.err, "30 s" in run.err) == (12, True, True)
        assert github.releases == {}
    with fake_hub_uploads.serving() as hub:
        hub.make("acme/toy")
        hub.make("acme/toy-b")
        to = ("publish", "dist", "--to", "huggingface", "--repo", "acme/{model}", "--index", "index")
        run = shop.forge(*to, env=fake_hub_uploads.environment(hub, str(tmp_path / "hf"), token="hf_wrong"))
        assert (run.code, "QF756" in run.err) == (12, True)
        assert "hf_wrong" not in run.err + run.out
    assert not (shop.root / "index").exists()


def test_what_the_index_cannot_take_is_not_published(shop: Shop) -> None:
    (shop.root / "index/v1/models/toy").mkdir(parents=True)
    (shop.root / "index/v1/models/toy/1.0.json").write_text('{"schema": 99}')
    run = shop.forge("publish", "dist", *FOLDER, "--index", "index")
    assert (run.code, "QF711" in run.err) == (9, True)
    assert not list((shop.root).rglob("r1"))
