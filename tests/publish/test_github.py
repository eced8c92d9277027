"""Publishing to GitHub: the real `gh` against a fake GitHub on a unix socket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qnn.errors.base import ForgeError
from qnn.errors.publish import (
    AnswerNotUnderstood,
    ClientMissing,
    PublishedMeanwhile,
    ReadBackDiffers,
    TargetFault,
    TargetForbidden,
    TargetLimited,
    TargetMissing,
)
from qnn.publish.gh import Gh
from qnn.publish.github import GithubTarget
from qnn.publish.patience import Patience
from qnn.publish.target import Release
from qnn.store import file_digest
from tests.publish.conftest import BIN, UNIT, Recorder, Sleeps, content_of
from tests.publish.fake_releases import REPOSITORY, TOKEN, Asset, FakeReleases, Trouble

Make = Callable[..., Release]
A, B = "toy-1.0-a.tar.gz", "toy-1.0-b.tar.gz"


def publish(target: GithubTarget, release: Release) -> Recorder:
    recorder = Recorder()
    target.stage(release, recorder)
    target.reveal(release)
    return recorder


def test_a_release_is_a_draft_until_all_of_it_is_there(
    github: GithubTarget, releases: FakeReleases, release: Make
) -> None:
    assert github.look(UNIT).published == ()
    wanted = release(A, B)
    github.stage(wanted, Recorder())
    assert releases.published() == {}
    assert set(releases.drafts()["toy-1.0-r1"]) == {A, B, "SHA256SUMS"}
    github.reveal(wanted)
    assert releases.drafts() == {}
    assert releases.published()["toy-1.0-r1"][A] == content_of(A)
    [kept] = releases.releases.values()
    assert (kept.fields["make_latest"], kept.fields["body"]) == ("false", wanted.notes)
    # What is published is known by name, size and digest.
    [seen] = github.look(UNIT).published
    assert (seen.revision, seen.date) == (1, "2026-11-30")
    assert {(file.name, file.sha256) for file in seen.files} == {(file.name, file.sha256) for file in wanted.files}
    assert github.address(UNIT, 1, A) == f"https://github.com/{REPOSITORY}/releases/download/toy-1.0-r1/{A}"


def test_a_second_try_sends_only_what_is_missing(github: GithubTarget, releases: FakeReleases, release: Make) -> None:
    wanted, first = release(A, B), Recorder()
    releases.trouble_after(1, Trouble("POST", "/assets", 403))
    with pytest.raises(TargetForbidden):
        github.stage(wanted, first)
    assert len(first.sent_names) == 1
    second = publish(GithubTarget(REPOSITORY, gh=Gh(str(BIN / "gh"))), wanted)
    assert sorted([*first.sent_names, *second.sent_names]) == sorted(file.name for file in wanted.files)
    assert second.kept_names == first.sent_names
    assert set(releases.sent.values()) == {1}
    assert len(releases.releases) == 1


def test_what_waits_is_kept_when_it_is_the_same_and_replaced_when_not(
    github: GithubTarget, releases: FakeReleases, release: Make
) -> None:
    github.stage(release(A, B, seed="old"), Recorder())
    waiting = github.look(UNIT).waiting[1]
    assert {file.name for file in waiting} == {A, B, "SHA256SUMS"}
    old, new = release(A, seed="old"), release("toy-1.0-c.tar.gz", seed="new")
    mixed = Release(UNIT, 1, (*old.files[:1], *new.files), "notes")
    recorder = publish(github, mixed)
    assert recorder.kept_names == [A]
    assert set(releases.published()["toy-1.0-r1"]) == {A, "toy-1.0-c.tar.gz", "SHA256SUMS"}
    assert releases.published()["toy-1.0-r1"]["SHA256SUMS"] == content_of("SHA256SUMS", "new")
    assert releases.wrongs == []


def test_an_upload_that_broke_off_is_sent_again(github: GithubTarget, releases: FakeReleases, release: Make) -> None:
    """The connection ends in the middle; GitHub keeps an asset of state "starter", and its name is taken."""
    releases.cut = 100
    publish(github, release(A))
    assert releases.published()["toy-1.0-r1"][A] == content_of(A)


def test_the_name_is_taken_although_the_answer_said_otherwise(
    github: GithubTarget, releases: FakeReleases, release: Make, sleeps: Sleeps
) -> None:
    """A 502 after the asset was stored; the next try would get 422 already_exists, and finds it there instead."""
    releases.troubles = [Trouble("POST", "/assets", 502, after=True)]
    recorder = publish(github, release(A))
    assert recorder.kept_names == ["SHA256SUMS"]
    assert set(releases.sent.values()) == {1}
    assert sleeps.naps == [0.5]


def test_a_name_that_somebody_took_in_between_is_looked_at_again(
    github: GithubTarget, releases: FakeReleases, release: Make
) -> None:
    body = '{"message": "Validation Failed", "errors": [{"code": "already_exists", "field": "name"}]}'
    releases.troubles = [Trouble("POST", "/assets", 422, body=body)]
    publish(github, release(A))
    assert releases.published()["toy-1.0-r1"][A] == content_of(A)
    releases.troubles = [Trouble("POST", "/releases$", 422, body='{"message": "tag_name is not valid"}')]
    with pytest.raises(AnswerNotUnderstood, match="tag_name is not valid"):
        github.stage(release(A, revision=2), Recorder())


def test_a_release_that_was_made_without_an_answer_is_found(
    github: GithubTarget, releases: FakeReleases, release: Make
) -> None:
    releases.troubles = [Trouble("POST", "/releases$", 500, after=True)]
    publish(github, release(A))
    assert len(releases.releases) == 1


@pytest.mark.parametrize("damage", ["content", "size", "digest"])
def test_a_file_that_did_not_arrive_as_it_was_sent_is_never_shown(
    github: GithubTarget, releases: FakeReleases, release: Make, damage: str
) -> None:
    def spoil(asset: Asset) -> None:
        if asset.name == A and damage == "content":
            asset.content = asset.content[::-1]
        elif asset.name == A:
            asset.told = {"size": 7} if damage == "size" else {"digest": "sha256:" + "0" * 64}

    releases.damage = spoil
    with pytest.raises(ReadBackDiffers) as caught:
        github.stage(release(A), Recorder())
    assert A in caught.value.details[0]
    assert releases.published() == {}
    releases.damage = None
    publish(github, release(A))
    assert releases.published()["toy-1.0-r1"][A] == content_of(A)


def test_without_digests_what_github_hands_out_is_hashed(
    github: GithubTarget, releases: FakeReleases, release: Make
) -> None:
    releases.digests = False

    def spoil(asset: Asset) -> None:
        asset.content = asset.content[::-1]

    releases.damage = spoil
    with pytest.raises(ReadBackDiffers):
        github.stage(release(A), Recorder())
    releases.damage = None
    recorder = publish(github, release(A))
    assert sorted(recorder.sent_names) == ["SHA256SUMS", A]


def test_of_old_releases_without_digests_sha256sums_tells(
    github: GithubTarget, releases: FakeReleases, release: Make
) -> None:
    wanted = release(A)
    sums = wanted.files[1]
    sums.path.write_text(f"{wanted.files[0].sha256}  {A}\n")
    listed = replace(sums, size=sums.path.stat().st_size, sha256=file_digest(sums.path))
    publish(github, replace(wanted, files=(wanted.files[0], listed)))
    releases.digests = False
    [seen] = github.look(UNIT).published
    assert {file.name: file.sha256 for file in seen.files}[A] == wanted.files[0].sha256


def test_more_than_a_page_of_assets(github: GithubTarget, releases: FakeReleases, release: Make) -> None:
    github.stage(release(A), Recorder())
    [kept] = releases.releases.values()
    for number in range(200):
        kept.assets[1000 + number] = Asset(1000 + number, f"{number}.tar.gz", b"x")
    assert len(github.look(UNIT).waiting[1]) == 202


def test_somebody_else_published_the_same_revision(github: GithubTarget, releases: FakeReleases, release: Make) -> None:
    wanted = release(A)
    github.stage(wanted, Recorder())
    other = GithubTarget(REPOSITORY, gh=Gh(str(BIN / "gh")))
    theirs = next(iter(releases.releases.values()))
    hidden = releases.releases.pop(theirs.number)
    publish(other, release(B))
    releases.releases[hidden.number] = hidden
    before = dict(releases.published())
    with pytest.raises(PublishedMeanwhile):
        github.reveal(wanted)
    assert releases.published() == before


@pytest.mark.parametrize(
    ("trouble", "kind", "words"),
    [
        (Trouble("GET", "matching-refs", 401, 9), TargetForbidden, "401"),
        (Trouble("GET", "matching-refs", 403, 9), TargetForbidden, "403"),
        (Trouble("GET", "matching-refs", 404, 9), TargetMissing, "404"),
        (Trouble("GET", "matching-refs", 409, 9), TargetMissing, "409"),
        (Trouble("GET", "matching-refs", 500, 9), TargetFault, "500"),
        (Trouble("GET", "matching-refs", 429, 9), TargetLimited, "429"),
        (Trouble("GET", "matching-refs", 403, 9, (("x-ratelimit-remaining", "0"),)), TargetLimited, "403"),
        (Trouble("GET", "matching-refs", 418, 9), AnswerNotUnderstood, "418"),
        (Trouble("GET", "matching-refs", 200, 9, body="<html>"), AnswerNotUnderstood, "no list"),
        (Trouble("POST", "graphql", 200, 9, body='{"errors": [{"message": "slow"}]}'), AnswerNotUnderstood, "slow"),
    ],
)
def test_every_answer_of_github_is_one_clear_error(
    github: GithubTarget, releases: FakeReleases, trouble: Trouble, kind: type[ForgeError], words: str
) -> None:
    releases.troubles = [trouble]
    with pytest.raises(kind) as caught:
        github.look(UNIT)
    assert words in caught.value.message
    assert TOKEN not in "\n".join(caught.value.lines())


def test_a_wrong_token_is_one_clear_error_that_does_not_show_it(
    github: GithubTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_TOKEN", "ghp_wrong")
    with pytest.raises(TargetForbidden, match="Bad credentials") as caught:
        github.look(UNIT)
    assert "ghp_wrong" not in "\n".join(caught.value.lines())


def test_no_token_at_all(github: GithubTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GH_TOKEN")
    with pytest.raises(TargetForbidden, match="no token"):
        github.look(UNIT)


def test_a_limit_is_waited_for_as_long_as_it_says(github: GithubTarget, releases: FakeReleases, sleeps: Sleeps) -> None:
    releases.troubles = [Trouble("GET", "matching-refs", 429, 2, (("Retry-After", "7"),))]
    assert github.look(UNIT).published == ()
    assert sleeps.naps == [7.0, 7.0]


def test_a_secondary_limit_without_a_header_is_waited_for(
    github: GithubTarget, releases: FakeReleases, sleeps: Sleeps
) -> None:
    body = '{"message": "You have exceeded a secondary rate limit."}'
    releases.troubles = [Trouble("GET", "matching-refs", 403, 1, body=body)]
    assert github.look(UNIT).published == ()
    assert sleeps.naps == [60.0]


def test_a_limit_is_not_waited_for_longer_than_a_publish_waits(
    github: GithubTarget, releases: FakeReleases, sleeps: Sleeps
) -> None:
    releases.troubles = [Trouble("GET", "matching-refs", 429, 9, (("Retry-After", "3600"),))]
    with pytest.raises(TargetLimited, match="3600 s"):
        github.look(UNIT)
    assert sleeps.naps == []


def test_no_such_repository() -> None:
    with pytest.raises(TargetMissing, match="owner/name"):
        GithubTarget("acme")


def test_no_gh(patience: Patience) -> None:
    with pytest.raises(ClientMissing, match="not on PATH"):
        GithubTarget(REPOSITORY, gh=Gh("no-such-gh", patience)).look(UNIT)


def test_gh_beside_this_python_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who calls .venv/bin/qnn-forge has no venv on PATH; the check of attestations looks there too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Gh().program == str(BIN / "gh")


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: Patience, sleeps: Sleeps) -> None:
    (tmp_path / "config.yml").write_text(f"version: 1\nhttp_unix_socket: {tmp_path}/none.sock\n")
    monkeypatch.setenv("GH_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("GH_TOKEN", "ghs_secret")
    with pytest.raises(TargetFault, match="did not answer"):
        GithubTarget(REPOSITORY, gh=Gh(str(BIN / "gh"), patience)).look(UNIT)
    assert sleeps.naps == [0.5, 1.0]


def test_a_tag_without_a_release_keeps_its_number(github: GithubTarget, releases: FakeReleases, release: Make) -> None:
    publish(github, release(A))
    [kept] = releases.releases.values()
    releases.troubles = [Trouble("GET", "/releases/tags/", 404)]
    shelf = github.look(UNIT)
    assert [(one.revision, one.files) for one in shelf.published] == [(1, ())]
    assert kept.tag == "toy-1.0-r1"
