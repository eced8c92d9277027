"""Publishing to the Hub: the real huggingface_hub against a fake Hub."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from qnn.errors.base import ForgeError
from qnn.errors.publish import (
    AnswerNotUnderstood,
    OccupiedRepository,
    PublishedMeanwhile,
    ReadBackDiffers,
    TargetFault,
    TargetForbidden,
    TargetLimited,
    TargetMissing,
)
from qnn.publish.hub import HubTarget
from qnn.publish.hub_client import HubClient
from qnn.publish.patience import Patience
from qnn.publish.target import Release
from tests.publish.conftest import CARD, UNIT, Recorder, Sleeps, content_of
from tests.publish.fake_hub_uploads import TOKEN, Blob, FakeHub
from tests.publish.fake_releases import Trouble

Make = Callable[..., Release]
A, B = "toy-1.0-a.tar.gz", "toy-1.0-b.tar.gz"


def publish(target: HubTarget, release: Release) -> Recorder:
    recorder = Recorder()
    target.look(release.unit)
    target.stage(release, recorder)
    target.reveal(release)
    target.settle(release.unit, [release.revision])
    return recorder


def test_one_commit_makes_all_of_it_visible(hub_target: HubTarget, hub: FakeHub, release: Make) -> None:
    assert hub_target.look(UNIT).published == ()
    wanted = release(A, B)
    hub_target.stage(wanted, Recorder())
    repository = hub.repositories["acme/toy"]
    assert set(repository.main()) == {".gitattributes"}
    hub_target.reveal(wanted)
    assert len(repository.mains) == 1
    assert set(repository.main()) == {
        ".gitattributes", "README.md", f"1.0/r1/{A}", f"1.0/r1/{B}", "1.0/r1/SHA256SUMS",
    }  # fmt: skip
    assert repository.main()["README.md"] == CARD.encode()
    assert repository.main()[f"1.0/r1/{A}"] == content_of(A)
    hub_target.settle(UNIT, [1])
    assert repository.tags == {"1.0-r1": repository.branches["main"]}
    assert set(repository.branches) == {"main"}
    # What is published is known by name, size and digest.
    [seen] = hub_target.look(UNIT).published
    assert (seen.revision, seen.date) == (1, "2026-11-30")
    assert {file.name: file.sha256 for file in seen.files if file.name != "SHA256SUMS"} == {
        name: hashlib.sha256(content_of(name)).hexdigest() for name in (A, B)
    }
    assert hub_target.address(UNIT, 1, A) == f"{hub.address}/acme/toy/resolve/1.0-r1/1.0/r1/{A}"


def test_the_next_revision_leaves_the_first_as_it_was(hub_target: HubTarget, hub: FakeHub, release: Make) -> None:
    publish(hub_target, release(A))
    publish(hub_target, release(A, seed="new", revision=2))
    repository = hub.repositories["acme/toy"]
    assert repository.main()[f"1.0/r1/{A}"] == content_of(A)
    assert repository.main()[f"1.0/r2/{A}"] == content_of(A, "new")
    assert sorted(repository.tags) == ["1.0-r1", "1.0-r2"]
    assert repository.tags["1.0-r1"] != repository.tags["1.0-r2"]
    assert hub.wrongs == []


def test_a_second_try_sends_only_what_is_missing(
    hub_target: HubTarget, hub: FakeHub, release: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qnn.publish.hub._BATCH", 1)
    wanted, first = release(A, B), Recorder()
    hub.troubles = [
        Trouble("POST", "/commit/", 0, times=2),
        Trouble("POST", "/commit/", 403, times=1),
    ]
    hub_target.look(UNIT)
    with pytest.raises(TargetForbidden):
        hub_target.stage(wanted, first)
    assert set(hub.repositories["acme/toy"].main()) == {".gitattributes"}
    assert first.sent_names == ["SHA256SUMS", A]
    assert [file.name for file in hub_target.look(UNIT).waiting[1]] == [A]  # small files are not asked about
    second = publish(hub_target, wanted)
    assert (second.kept_names, second.sent_names) == ([A], ["SHA256SUMS", B])
    assert set(hub.sent.values()) == {1}
    assert len(hub.sent) == 2


def test_objects_that_were_sent_are_not_sent_again_without_a_commit(
    hub_target: HubTarget, hub: FakeHub, release: Make
) -> None:
    hub.troubles = [Trouble("POST", "/commit/", 403)]
    hub_target.look(UNIT)
    with pytest.raises(TargetForbidden):
        hub_target.stage(release(A, B), Recorder())
    publish(hub_target, release(A, B))
    assert set(hub.sent.values()) == {1}


@pytest.mark.parametrize("name", [A, "SHA256SUMS"])
def test_a_file_that_did_not_arrive_as_it_was_sent_is_never_shown(
    hub_target: HubTarget, hub: FakeHub, release: Make, name: str
) -> None:
    def spoil(path: str, blob: Blob) -> Blob:
        return replace(blob, content=blob.content[::-1]) if path.endswith(name) else blob

    hub.damage = spoil
    hub_target.look(UNIT)
    with pytest.raises(ReadBackDiffers) as caught:
        hub_target.stage(release(A), Recorder())
    assert caught.value.details == (name,)
    assert set(hub.repositories["acme/toy"].main()) == {".gitattributes"}


def test_a_commit_in_between_is_noticed(hub_target: HubTarget, hub: FakeHub, release: Make, patience: Patience) -> None:
    wanted = release(A)
    hub_target.look(UNIT)
    hub_target.stage(wanted, Recorder())
    publish(HubTarget({"toy": "acme/toy"}, HubClient(patience, hub.address)), release(B))
    before = hub.repositories["acme/toy"].main()
    with pytest.raises(PublishedMeanwhile, match="412"):
        hub_target.reveal(wanted)
    assert hub.repositories["acme/toy"].main() == before


def test_a_commit_whose_answer_was_lost_is_not_made_twice(
    hub_target: HubTarget, hub: FakeHub, release: Make, sleeps: Sleeps
) -> None:
    hub.troubles = [Trouble("POST", "/commit/main", 502, after=True)]
    publish(hub_target, release(A))
    assert len(hub.repositories["acme/toy"].mains) == 1
    assert sleeps.naps == [0.5]


def test_a_tag_that_is_missing_is_made_at_its_own_commit(hub_target: HubTarget, hub: FakeHub, release: Make) -> None:
    """A publish that was killed between its commit and its tag."""
    publish(hub_target, release(A))
    repository = hub.repositories["acme/toy"]
    first = repository.tags.pop("1.0-r1")
    publish(hub_target, release(A, seed="new", revision=2))
    hub_target.settle(UNIT, [1, 2])
    assert repository.tags["1.0-r1"] == first


def test_small_bundles_outside_of_large_file_storage_are_known_by_sha256sums(
    hub_target: HubTarget, hub: FakeHub, release: Make
) -> None:
    publish(hub_target, release(A))
    repository = hub.repositories["acme/toy"]
    tree = repository.commits[repository.branches["main"]]
    sha256 = hashlib.sha256(content_of(A)).hexdigest()
    tree[f"1.0/r1/{A}"] = replace(tree[f"1.0/r1/{A}"], lfs=False)
    tree["1.0/r1/SHA256SUMS"] = replace(tree["1.0/r1/SHA256SUMS"], content=f"{sha256}  {A}\n".encode())
    [seen] = hub_target.look(UNIT).published
    assert {file.name: file.sha256 for file in seen.files}[A] == sha256


def test_a_repository_of_another_model(hub_target: HubTarget, hub: FakeHub) -> None:
    repository = hub.repositories["acme/toy"]
    tree = repository.commits[repository.branches["main"]]
    tree["1.0/r1/other-1.0-a.tar.gz"] = Blob(b"x", True, "0" * 40)
    with pytest.raises(OccupiedRepository, match=r"other-1\.0-a"):
        hub_target.look(UNIT)


def test_two_models_cannot_share_a_repository() -> None:
    with pytest.raises(OccupiedRepository, match="a, b would share acme/x"):
        HubTarget({"a": "acme/x", "b": "acme/x"})


@pytest.mark.parametrize(
    ("trouble", "kind", "words"),
    [
        (Trouble("GET", "/refs", 401, 9), TargetForbidden, "401"),
        (Trouble("GET", "/refs", 403, 9), TargetForbidden, "403"),
        (Trouble("GET", "/refs", 404, 9), TargetMissing, "404"),
        (Trouble("GET", "/refs", 500, 9), TargetFault, "500"),
        (Trouble("GET", "/refs", 429, 9), TargetLimited, "429"),
        (Trouble("GET", "/refs", 418, 9), AnswerNotUnderstood, "418"),
        (Trouble("GET", "/refs", 200, 9, body="<html>"), AnswerNotUnderstood, "could not use"),
        (Trouble("GET", "/refs", 200, 9, body='{"branches": []}'), AnswerNotUnderstood, "could not use"),
    ],
)
def test_every_answer_of_the_hub_is_one_clear_error(
    hub_target: HubTarget, hub: FakeHub, trouble: Trouble, kind: type[ForgeError], words: str
) -> None:
    hub.troubles = [trouble]
    with pytest.raises(kind) as caught:
        hub_target.look(UNIT)
    assert words in caught.value.message
    assert TOKEN not in "\n".join(caught.value.lines())


def test_a_wrong_token_is_one_clear_error_that_does_not_show_it(
    hub_target: HubTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(TargetForbidden, match="Invalid credentials") as caught:
        hub_target.look(UNIT)
    assert "hf_wrong" not in "\n".join(caught.value.lines())


@pytest.mark.parametrize(
    "headers", [(("Retry-After", "7"),), (("ratelimit", '"api";r=0;t=7'),)], ids=["retry-after", "ratelimit"]
)
def test_a_limit_is_waited_for_as_long_as_it_says(
    hub_target: HubTarget, hub: FakeHub, sleeps: Sleeps, headers: tuple[tuple[str, str], ...]
) -> None:
    hub.troubles = [Trouble("GET", "/refs", 429, 2, headers)]
    assert hub_target.look(UNIT).published == ()
    assert sleeps.naps == [7.0, 7.0]


def test_a_limit_in_the_middle_of_an_upload_is_bounded_too(
    hub_target: HubTarget, hub: FakeHub, release: Make, sleeps: Sleeps
) -> None:
    """The library would sleep for an hour by itself."""
    hub.troubles = [Trouble("PUT", "/storage/", 429, 9, (("Retry-After", "3600"),))]
    hub_target.look(UNIT)
    with pytest.raises(TargetLimited, match="3600 s"):
        hub_target.stage(release(A), Recorder())
    assert sleeps.naps == []


def test_nobody_answers(patience: Patience, sleeps: Sleeps) -> None:
    with pytest.raises(TargetFault, match="no connection"):
        HubTarget({"toy": "acme/toy"}, HubClient(patience, "http://127.0.0.1:1")).look(UNIT)
    assert sleeps.naps == [0.5, 1.0]


def test_no_such_repository(hub: FakeHub, patience: Patience) -> None:
    with pytest.raises(TargetMissing, match="404"):
        HubTarget({"toy": "acme/none"}, HubClient(patience, hub.address)).look(UNIT)
    with pytest.raises(TargetMissing, match="owner/name"):
        HubTarget({"toy": "acme"})
