"""The plan of a publish, which is pure."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.errors.publish import BeyondLimits
from qnn.publish.plan import plan_unit, reconcile
from qnn.publish.target import DOCUMENTS, Limits, LocalFile, Published, RemoteFile, Shelf, Unit

UNIT = Unit("toy", "1.0")
ROOMY = Limits(files=1000, file_bytes=1000)


def local(name: str, seed: str = "", size: int = 10) -> LocalFile:
    return LocalFile(name, Path("dist") / name, size, hashlib.sha256(f"{name}{seed}".encode()).hexdigest())


def remote(file: LocalFile) -> RemoteFile:
    return RemoteFile(file.name, file.size, file.sha256)


def published(revision: int, *files: LocalFile) -> Published:
    return Published(revision, tuple(map(remote, files)), "2026-11-30")


def test_the_first_publish_is_revision_one() -> None:
    plan = plan_unit(UNIT, [local("b.tar.gz"), local("a.tar.gz")], Shelf(), ROOMY)
    [release] = plan.releases
    assert (release.revision, [file.name for file in release.bundles]) == (1, ["a.tar.gz", "b.tar.gz"])
    assert release.waiting == frozenset()
    assert plan.skips == ()


def test_the_same_bytes_are_left_alone_and_other_bytes_are_the_next_revision() -> None:
    old, same, new = local("a.tar.gz"), local("b.tar.gz"), local("a.tar.gz", "rebuilt")
    plan = plan_unit(UNIT, [new, same], Shelf((published(1, old, same),)), ROOMY)
    assert [(release.revision, release.bundles) for release in plan.releases] == [(2, (new,))]
    assert [(skip.file, skip.revision) for skip in plan.skips] == [(same, 1)]
    assert plan.revisions == {"a.tar.gz": 2, "b.tar.gz": 1}
    assert plan.earlier(2) == (("b.tar.gz", 1),)


def test_nothing_new_is_no_release() -> None:
    files = [local("a.tar.gz"), local("b.tar.gz")]
    plan = plan_unit(UNIT, files, Shelf((published(3, files[0]), published(1, files[1]))), ROOMY)
    assert plan.releases == ()
    assert plan.revisions == {"a.tar.gz": 3, "b.tar.gz": 1}


def test_a_number_is_used_once_even_if_its_files_are_gone() -> None:
    plan = plan_unit(UNIT, [local("a.tar.gz")], Shelf((Published(4, (), ""),)), ROOMY)
    assert plan.releases[0].revision == 5


def test_what_waits_is_told_apart_by_content() -> None:
    a, b = local("a.tar.gz"), local("b.tar.gz")
    shelf = Shelf((), {1: (remote(a), remote(local("b.tar.gz", "other")))})
    assert plan_unit(UNIT, [a, b], shelf, ROOMY).releases[0].waiting == {"a.tar.gz"}
    assert plan_unit(UNIT, [a, b], Shelf((published(1),), shelf.waiting), ROOMY).releases[0].waiting == frozenset()


def test_more_than_a_release_takes_goes_into_the_next() -> None:
    files = [local(f"{number:04d}.tar.gz") for number in range(2100)]
    plan = plan_unit(UNIT, files, Shelf(), Limits(1000, 1000))
    assert [len(release.bundles) for release in plan.releases] == [995, 995, 110]
    assert [release.revision for release in plan.releases] == [1, 2, 3]
    assert all(len(release.bundles) + len(DOCUMENTS) <= 1000 for release in plan.releases)
    # Killed after the first: the second try has the same plan for the rest.
    again = plan_unit(UNIT, files, Shelf((published(1, *plan.releases[0].bundles),)), Limits(1000, 1000))
    assert again.releases == plan.releases[1:]


def test_a_file_that_is_too_big_or_oddly_named_is_refused_by_name() -> None:
    with pytest.raises(BeyondLimits) as caught:
        plan_unit(UNIT, [local("big.tar.gz", size=1001), local("ok.tar.gz"), local("a b.tar.gz")], Shelf(), ROOMY)
    assert [line.split(":")[0] for line in caught.value.details] == ["big.tar.gz", "a b.tar.gz"]


def test_what_is_published_already_is_not_refused_for_its_size() -> None:
    big = local("big.tar.gz", size=1001)
    assert plan_unit(UNIT, [big], Shelf((published(1, big),)), ROOMY).releases == ()


def test_what_waits_and_is_not_wanted_goes() -> None:
    a, b = local("a.tar.gz"), local("b.tar.gz")
    torn = RemoteFile("c.tar.gz", 0, None)
    todo = reconcile([a, b], [remote(a), remote(local("b.tar.gz", "other")), torn])
    assert (todo.keep, todo.send, todo.drop) == ((a,), (b,), ("b.tar.gz", "c.tar.gz"))


NAMES = st.sampled_from([f"{letter}.tar.gz" for letter in "abcdef"])
FILES = st.dictionaries(NAMES, st.sampled_from(["", "1", "2"])).map(
    lambda found: [local(name, seed) for name, seed in sorted(found.items())]
)


@given(FILES, st.lists(FILES, max_size=3), FILES, st.integers(len(DOCUMENTS) + 1, len(DOCUMENTS) + 4))
def test_every_bundle_ends_up_published_once_with_its_own_bytes(
    wanted: list[LocalFile], history: list[list[LocalFile]], waiting: list[LocalFile], room: int
) -> None:
    """Whatever is there: published files stay, every wanted file has a revision, and doing it again does nothing."""
    before = tuple(published(number, *files) for number, files in enumerate(history, 1))
    shelf = Shelf(before, {len(before) + 1: tuple(map(remote, waiting))})
    plan = plan_unit(UNIT, wanted, shelf, Limits(room, 1000))
    assert [release.revision for release in plan.releases] == list(
        range(len(before) + 1, len(before) + 1 + len(plan.releases))
    )
    after = before + tuple(published(release.revision, *release.bundles) for release in plan.releases)
    for file in wanted:
        [at] = [one for one in after if one.revision == plan.revisions[file.name]]
        assert remote(file) in at.files
    assert plan_unit(UNIT, wanted, Shelf(after), Limits(room, 1000)).releases == ()
    assert all(len(release.bundles) + len(DOCUMENTS) <= room for release in plan.releases)


@given(FILES, FILES)
def test_reconciling_ends_with_what_is_wanted(wanted: list[LocalFile], there: list[LocalFile]) -> None:
    todo = reconcile(wanted, map(remote, there))
    left = {file.name: remote(file) for file in there if file.name not in todo.drop}
    left |= {file.name: remote(file) for file in todo.send}
    assert left == {file.name: remote(file) for file in wanted}
    assert not {file.name for file in todo.keep} & {file.name for file in todo.send}
