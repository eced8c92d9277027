"""Which bundles may go out: real ones, and the same ones tampered with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qnn.bundle.archive import write_archive
from qnn.child import HostPool
from qnn.errors.base import ForgeError
from qnn.errors.publish import ArchiveDiffers, NothingToPublish, RuntimeLibrary
from qnn.publish.bundles import Checker, accept, accept_all, find_archives, find_results
from qnn.publish.target import Unit
from qnn.toolchains.pip.toolchain import PipToolchain
from tests.publish.conftest import TOY, Shop, edit

NAME = TOY.format("SM8650")


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    with HostPool(1) as pool, pool.host() as host:
        yield Checker(PipToolchain(), host, tmp_path_factory.mktemp("log") / "log", {}, libraries=False)


def refusal(archive: Path, checker: Checker) -> ForgeError:
    with pytest.raises(ForgeError) as caught:
        accept(archive, checker)
    return caught.value


def test_what_a_build_made_is_accepted(built_shop: Shop, checker: Checker) -> None:
    archives = find_archives([built_shop.dist])
    results = find_results([built_shop.dist], [])
    assert set(results) == {archive.name for archive in archives}
    accepted, refused = accept_all(archives, replace(checker, results=results))
    assert refused == ()
    assert {bundle.unit for bundle in accepted} == {Unit("toy", "1.0"), Unit("toy-b", "1.0")}
    for bundle in accepted:
        content = bundle.file.path.read_bytes()
        assert (bundle.file.size, bundle.file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def not_verified(manifest: dict[str, Any]) -> None:
    manifest["verified"] = False


def no_samples(manifest: dict[str, Any]) -> None:
    manifest["samples"] = 0


def misses_a_gate(manifest: dict[str, Any]) -> None:
    manifest["graphs"][0]["numerics"][0]["max_rel"] = 0.9


def misses_cosine(manifest: dict[str, Any]) -> None:
    manifest["graphs"][0]["numerics"][0]["cosine"] = 0.9


def not_measured(manifest: dict[str, Any]) -> None:
    manifest["graphs"][0]["numerics"] = []


def no_commercial_use(manifest: dict[str, Any]) -> None:
    manifest["model"]["licence"] = "CC-BY-NC-4.0"


def no_licence(manifest: dict[str, Any]) -> None:
    manifest["model"].update(licence=None, licence_reason="none is stated")


def another_chip(manifest: dict[str, Any]) -> None:
    manifest["chip"]["soc_id"] = 36


def another_sdk(manifest: dict[str, Any]) -> None:
    manifest["toolchain"]["build_id"] = "v2.51.0.1"


def another_precision(manifest: dict[str, Any]) -> None:
    manifest["precision"] = "w8a16"


def a_file_less(manifest: dict[str, Any]) -> None:
    manifest["files"].pop()


@pytest.mark.parametrize(
    ("change", "error_id", "words"),
    [
        (not_verified, "QF751", "was not run"),
        (no_samples, "QF751", "was not run"),
        (misses_a_gate, "QF751", "max_rel 0.9 is over"),
        (misses_cosine, "QF751", "cosine 0.9 is below"),
        (not_measured, "QF751", "no output was measured"),
        (no_commercial_use, "QF752", "CC-BY-NC-4.0"),
        (no_licence, "QF752", "none is stated"),
        (another_precision, "QF754", "w8a16"),
        (another_chip, "QF603", "36"),
        (another_sdk, "QF603", "v2.51.0.1"),
        (a_file_less, "QF702", "not listed"),
    ],
)
def test_a_bundle_that_may_not_go_out(
    shop: Shop, checker: Checker, change: Callable[[dict[str, Any]], None], error_id: str, words: str
) -> None:
    error = refusal(edit(shop, change), checker)
    assert error.id == error_id
    assert words in "\n".join(error.lines())


def test_another_archive_than_the_builds(shop: Shop, checker: Checker) -> None:
    results = find_results([shop.dist], [])
    archive = edit(shop, lambda manifest: manifest.update(forge="9"))
    assert refusal(archive, replace(checker, results=results)).id == "QF754"


def test_another_folder_beside_the_archive(shop: Shop, checker: Checker) -> None:
    archive = shop.dist / f"{NAME}.tar.gz"
    before = archive.read_bytes()
    edit(shop, lambda manifest: manifest.update(forge="9"))
    archive.write_bytes(before)
    assert refusal(archive, checker).id == "QF754"


def test_an_archive_of_another_name(shop: Shop, checker: Checker) -> None:
    archive = shop.dist / f"{NAME}.tar.gz"
    assert refusal(archive.rename(archive.with_name("toy-2.0.tar.gz")), checker).id == "QF754"


def test_a_truncated_archive(shop: Shop, checker: Checker) -> None:
    archive = shop.dist / f"{NAME}.tar.gz"
    archive.write_bytes(archive.read_bytes()[:-100])
    assert refusal(archive, checker).id == "QF703"


def test_qairt_libraries_are_refused_unless_it_is_said_that_one_may(shop: Shop, checker: Checker) -> None:
    folder = shop.dist / NAME
    content = b"\x7fELF and more"
    (folder / "lib.renamed").write_bytes(content)

    def listed(manifest: dict[str, Any]) -> None:
        sha256 = hashlib.sha256(content).hexdigest()
        manifest["files"].append({"path": "lib.renamed", "sha256": sha256, "size": len(content)})

    archive = edit(shop, listed)
    assert refusal(archive, checker).details == ("lib.renamed",)
    assert accept(archive, replace(checker, libraries=True)).manifest.name == NAME


def test_libraries_that_were_put_together_are_refused_by_name(shop: Shop, checker: Checker) -> None:
    libs = shop.dist / "qnn-libs-2.51.0-android-aarch64.tar.gz"
    libs.write_bytes(b"")
    assert isinstance(refusal(libs, checker), RuntimeLibrary)
    assert libs in find_archives([shop.dist])


def test_folders_without_archives_and_with_two_of_one_name(shop: Shop) -> None:
    with pytest.raises(NothingToPublish, match="models"):
        find_archives([shop.root / "models"])
    other = shop.root / "other"
    other.mkdir()
    write_archive(shop.dist / NAME, "changed", other / f"{NAME}.tar.gz")
    with pytest.raises(ArchiveDiffers, match=NAME.replace(".", r"\.")):
        find_archives([shop.dist, other])


def test_results_that_are_none_and_results_that_disagree(shop: Shop) -> None:
    odd = shop.root / "odd.json"
    odd.write_text("{}")
    with pytest.raises(ArchiveDiffers, match="no result"):
        find_results([], [odd])
    (shop.dist / "results" / "odd.json").write_text("[]")  # of something else: none of ours
    assert len(find_results([shop.dist], [])) == 4
    odd.write_text(json.dumps({"targets": [{"archive": f"x/{NAME}.tar.gz", "sha256": "0" * 64}]}))
    with pytest.raises(ArchiveDiffers, match="disagree"):
        find_results([shop.dist], [odd])
