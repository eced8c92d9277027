"""Publishing as GitHub releases: a draft, which only those who may write can see, is filled, checked and published.

Source of requests and fields: docs.github.com/rest/releases. Releases are not changed after they are published.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from qnn.errors.publish import AnswerNotUnderstood, PublishedMeanwhile, ReadBackDiffers, TargetFault, TargetMissing
from qnn.provenance import checksums
from qnn.publish.gh import Gh
from qnn.publish.notes import Story, release_notes
from qnn.publish.patience import Again
from qnn.publish.plan import Reconciled, reconcile, same
from qnn.publish.target import Limits, LocalFile, Progress, Published, Release, RemoteFile, Shelf, Unit

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
# Drafts have no git tag yet, so only this way finds one by the tag it will have.
_DRAFT = """query($owner: String!, $name: String!, $tag: String!) {
  repository(owner: $owner, name: $name) { release(tagName: $tag) { databaseId isDraft } }
}"""
# GitHub refuses a body of more than 125,000 characters.
_LONGEST_BODY = 120_000


class GithubTarget:
    """Releases of one repository (owner/name), tagged ``<model>-<version>-r<revision>``.

    `commit` is what new tags point at; the default branch's newest when None. `server` is where people and
    downloads go.
    """

    name = "github"
    # docs.github.com, "About releases": up to 1,000 assets, each under 2 GiB.
    limits = Limits(files=1000, file_bytes=(2 << 30) - 1)

    def __init__(
        self,
        repository: str,
        *,
        gh: Gh | None = None,
        commit: str | None = None,
        server: str = "https://github.com",
    ) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise TargetMissing(f"{repository!r} is no owner/name of a GitHub repository", remedy="correct --repo")
        self._repository = repository
        self._gh = gh or Gh()
        self._commit = commit
        self._server = server.rstrip("/")
        self._drafts: dict[str, _Draft] = {}

    def place(self, unit: Unit) -> str:  # noqa: ARG002 - all models share the repository
        """The repository."""
        return f"{self._server.partition('://')[2]}/{self._repository}"

    def look(self, unit: Unit) -> Shelf:
        """Published releases by their tags, and a draft of the next number."""
        published = tuple(self._published(unit, revision) for revision in self._revisions(unit))
        following = max((release.revision for release in published), default=0) + 1
        draft = self._find_draft(unit, following)
        waiting = {} if draft is None else {following: tuple(asset.file for asset in self._assets(draft.number))}
        return Shelf(published, waiting)

    def introduction(self, story: Story) -> str:
        """The notes, with as many rows as GitHub takes; README.md of the release has them all."""
        texts = (release_notes(story, rows) for rows in (None, 200, 50, 10, 0))
        return next((text for text in texts if len(text) <= _LONGEST_BODY), f"{story.unit}: see README.md")

    def stage(self, release: Release, progress: Progress) -> None:
        """Bring the draft's assets to what is wanted, in rounds that each begin with GitHub's own account of them."""
        gone_on: set[str] = set()

        def round_() -> None:
            draft = self._draft(release)
            todo = self._todo(release, draft)
            for file in todo.keep:
                if file.name not in gone_on:
                    gone_on.add(file.name)
                    progress.kept(file)
            for file in todo.send:
                self._upload(draft, file)
                gone_on.add(file.name)
                progress.sent(file)
            self._read_back(release, draft)

        self._gh.patience.persevere(round_)

    def reveal(self, release: Release) -> None:
        """Publish the draft: one request."""
        draft = self._draft(release)
        body = {"draft": False, "make_latest": "false", "name": _title(release), "body": release.notes}
        answer = self._gh.call("PATCH", f"{self._releases}/{draft.number}", body=body).document
        if not isinstance(answer, dict) or answer.get("draft") is not False:
            raise AnswerNotUnderstood(
                "GitHub did not say that the release is published now", remedy="run the same command again"
            )

    def settle(self, unit: Unit, revisions: Sequence[int]) -> None:
        """A published release has its tag already."""

    def address(self, unit: Unit, revision: int, name: str) -> str:
        """The asset's download URL."""
        tag = quote(self._tag(unit, revision), safe="+")
        return f"{self._server}/{self._repository}/releases/download/{tag}/{quote(name, safe='+')}"

    @property
    def _releases(self) -> str:
        return f"repos/{self._repository}/releases"

    @staticmethod
    def _tag(unit: Unit, revision: int) -> str:
        return f"{unit.model}-{unit.version}-r{revision}"

    def _revisions(self, unit: Unit) -> list[int]:
        prefix = f"{unit.model}-{unit.version}-r"
        refs = self._gh.pages(f"repos/{self._repository}/git/matching-refs/tags/{quote(prefix)}")
        found = (re.fullmatch(rf"refs/tags/{re.escape(prefix)}(\d+)", str(ref.get("ref"))) for ref in refs)
        return sorted(int(match[1]) for match in found if match)

    def _published(self, unit: Unit, revision: int) -> Published:
        """A tag without a release keeps its number: its files are gone, and nothing else may be called so."""
        tag = self._tag(unit, revision)
        release = self._gh.get(f"{self._releases}/tags/{quote(tag)}", must=False)
        if release is None:
            return Published(revision, (), "")
        number, date = _field(release, "id", int), _field(release, "published_at", str)[:10]
        assets = [asset for asset in self._assets(number) if asset.whole]
        return Published(revision, tuple(self._known(assets)), date)

    def _known(self, assets: Sequence[_Asset]) -> Iterator[RemoteFile]:
        """GitHub computes digests since June 2025; of older assets the release's own SHA256SUMS has them."""
        listed: dict[str, str] = {}
        sums = next((asset for asset in assets if asset.file.name == checksums.FILE_NAME), None)
        if sums is not None and any(asset.file.sha256 is None for asset in assets):
            text = self._gh.download(f"{self._releases}/assets/{sums.number}").decode("utf-8", "replace")
            subjects = checksums.parse(text, Path(checksums.FILE_NAME))
            listed = {subject.name: subject.sha256 for subject in subjects}
        for asset in assets:
            file = asset.file
            yield RemoteFile(file.name, file.size, file.sha256 or listed.get(file.name))

    def _find_draft(self, unit: Unit, revision: int) -> _Draft | None:
        owner, _, name = self._repository.partition("/")
        data = self._gh.query(_DRAFT, {"owner": owner, "name": name, "tag": self._tag(unit, revision)})
        repository = data.get("repository")
        if not isinstance(repository, dict):
            raise TargetMissing(f"the repository {self._repository} is not there, or not for this token", remedy=_CHECK)
        found = repository.get("release")
        if not isinstance(found, dict) or found.get("isDraft") is not True:
            return None
        return _draft(self._gh.get(f"{self._releases}/{_field(found, 'databaseId', int)}"))

    def _draft(self, release: Release) -> _Draft:
        """The draft of a release; a new one when there is none. A new round finds what the one before made."""
        tag = self._tag(release.unit, release.revision)
        if tag not in self._drafts:
            self._drafts[tag] = self._find_draft(release.unit, release.revision) or self._new_draft(release, tag)
        return self._drafts[tag]

    def _new_draft(self, release: Release, tag: str) -> _Draft:
        body: dict[str, Any] = {"tag_name": tag, "name": _title(release), "body": release.notes, "draft": True}
        if self._commit is not None:
            body["target_commitish"] = self._commit
        return _draft(self._post(self._releases, body=body))

    def _todo(self, release: Release, draft: _Draft) -> Reconciled:
        """What is left to do in the draft; assets that are not wanted, broken off or another content are deleted."""
        assets = list(self._assets(draft.number))
        todo = reconcile(release.files, self._checked(assets))
        for asset in assets:
            if asset.file.name in todo.drop:
                self._gh.call("DELETE", f"{self._releases}/assets/{asset.number}", accept=(404,))
        return todo

    def _checked(self, assets: Sequence[_Asset]) -> Iterator[RemoteFile]:
        """Assets with their digests; where GitHub does not tell, what it hands out is hashed."""
        for asset in assets:
            if not asset.whole or asset.file.sha256 is not None:
                yield asset.file
            else:
                size, sha256 = self._gh.digest(f"{self._releases}/assets/{asset.number}")
                yield RemoteFile(asset.file.name, size, sha256)

    def _upload(self, draft: _Draft, file: LocalFile) -> None:
        self._post(f"{draft.upload}?name={quote(file.name)}", file=file.path)

    def _post(self, path: str, *, body: Mapping[str, Any] | None = None, file: Path | None = None) -> Any:
        """A request that makes something. After a fault, or when it is there already, a new round looks again."""
        try:
            return self._gh.call("POST", path, body=body, file=file).document
        except (TargetFault, PublishedMeanwhile) as error:
            raise Again(error) from None

    def _read_back(self, release: Release, draft: _Draft) -> None:
        there = {file.name: file for file in self._checked(list(self._assets(draft.number)))}
        wrong = [file.name for file in release.files if file.name not in there or not same(file, there[file.name])]
        wrong += sorted(there.keys() - {file.name for file in release.files})
        if wrong:
            raise ReadBackDiffers(
                f"{len(wrong)} file(s) did not arrive on GitHub as they were sent; nothing was published",
                remedy="run the same command again; the files are sent anew",
                details=wrong,
            )

    def _assets(self, release: int) -> Iterator[_Asset]:
        return (_asset(document) for document in self._gh.pages(f"{self._releases}/{release}/assets"))


_CHECK = "check --repo, and that the token may see it"


@dataclass(frozen=True)
class _Draft:
    """A draft's number, and where its assets are sent."""

    number: int
    upload: str


def _draft(document: object) -> _Draft:
    return _Draft(_field(document, "id", int), _field(document, "upload_url", str).partition("{")[0])


@dataclass(frozen=True)
class _Asset:
    number: int
    file: RemoteFile
    whole: bool


def _asset(document: object) -> _Asset:
    number, name, size = _field(document, "id", int), _field(document, "name", str), _field(document, "size", int)
    assert isinstance(document, dict)
    digest = document.get("digest")
    sha256 = digest.removeprefix("sha256:") if isinstance(digest, str) and digest.startswith("sha256:") else None
    whole = document.get("state", "uploaded") == "uploaded"
    return _Asset(number, RemoteFile(name, size, sha256 if whole else None), whole)


def _field(document: object, name: str, kind: type) -> Any:
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, kind):
        raise AnswerNotUnderstood(f"GitHub's answer has no {name}", remedy="check GH_HOST and the proxy settings")
    return value


def _title(release: Release) -> str:
    return f"{release.unit.model} {release.unit.version}, revision {release.revision}"
