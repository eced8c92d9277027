"""Publishing into repositories of the Hugging Face Hub: a staging branch, read back, then one commit to main."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from qnn.errors.publish import OccupiedRepository, PublishedMeanwhile, ReadBackDiffers, TargetFault, TargetMissing
from qnn.provenance import checksums
from qnn.publish.card import model_card
from qnn.publish.hub_client import HubClient
from qnn.publish.notes import Story
from qnn.publish.plan import reconcile, same
from qnn.publish.target import DOCUMENTS, Limits, LocalFile, Progress, Published, Release, RemoteFile, Shelf, Unit

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
# Files in one commit to the staging branch: what a kill in the middle can cost at most, against a request each.
_BATCH = 25


class HubTarget:
    """``<version>/r<revision>/<file>`` in a model's own repository, with the tag ``<version>-r<revision>``.

    `repositories` has owner/name by model.
    """

    name = "huggingface"
    # HfApi.create_commit: 25,000 files in large-file storage a commit; the Hub's documentation: 50 GB a file.
    limits = Limits(files=25_000, file_bytes=50_000_000_000)

    def __init__(self, repositories: Mapping[str, str], client: HubClient | None = None) -> None:
        for repository in repositories.values():
            if not _REPOSITORY.fullmatch(repository):
                raise TargetMissing(f"{repository!r} is no owner/name of a Hub repository", remedy="correct --repo")
        if len(set(repositories.values())) < len(repositories):
            raise OccupiedRepository(
                f"{', '.join(sorted(repositories))} would share {sorted(set(repositories.values()))[0]}",
                remedy="give each model a repository of its own (--repo 'owner/{model}')",
            )
        self._repositories = dict(repositories)
        self._client = client or HubClient()
        self._heads: dict[str, str] = {}

    def place(self, unit: Unit) -> str:
        """The repository and the folder in it."""
        return f"{self._client.address.partition('://')[2]}/{self._repository(unit)}/{unit.version}"

    def look(self, unit: Unit) -> Shelf:
        """Every revision on main, and what waits on the staging branch of the next one."""
        repository = self._repository(unit)
        refs = self._client.ask(repository, lambda api: api.list_repo_refs(repository))
        heads = {branch.name: branch.target_commit for branch in refs.branches}
        if "main" not in heads:
            raise TargetMissing(f"{repository} has no branch main", remedy="make a first commit on its web page")
        self._heads[repository] = heads["main"]
        by_revision = self._tree(unit, heads["main"])
        dates = self._dates(unit, sorted(by_revision), heads["main"])
        published = tuple(
            Published(revision, tuple(self._remote(unit, revision, files, heads["main"])), dates.get(revision, ""))
            for revision, files in sorted(by_revision.items())
        )
        following = max(by_revision, default=0) + 1
        staged = heads.get(_branch(unit, following))
        waiting = {} if staged is None else {following: _in_storage(self._tree(unit, staged).get(following, ()))}
        return Shelf(published, waiting)

    def introduction(self, story: Story) -> str:
        """The model card."""
        return model_card(story)

    def stage(self, release: Release, progress: Progress) -> None:
        """Commit to the staging branch, some files at a time, and read it back."""
        unit, branch = release.unit, _branch(release.unit, release.revision)
        repository, head = self._repository(unit), self._heads[self._repository(unit)]
        self._client.ask(
            f"{repository}, staging",
            lambda api: api.create_branch(repository, branch=branch, revision=head, exist_ok=True),
        )
        there = _in_storage(self._tree(unit, branch).get(release.revision, ()))
        todo = reconcile(release.files, there)
        for file in todo.keep:
            progress.kept(file)
        for start in range(0, len(todo.send), _BATCH):
            batch = todo.send[start : start + _BATCH]
            self._commit(release, batch, branch)
            for file in batch:
                progress.sent(file)
        self._read_back(release, branch)

    def reveal(self, release: Release) -> None:
        """One commit to main, on top of what was looked at, with the files and the model card."""
        repository = self._repository(release.unit)
        card = release.notes.encode()

        def commit(api: HfApi) -> str:
            from huggingface_hub import CommitOperationAdd  # noqa: PLC0415

            operations = [*_additions(release, release.files), CommitOperationAdd("README.md", card)]
            head = self._heads[repository]
            made = api.create_commit(repository, operations, commit_message=_title(release), parent_commit=head)
            return str(made.oid)

        try:
            self._heads[repository] = self._client.ask(f"{repository}, commit", commit)
        except (PublishedMeanwhile, TargetFault):
            # The first of two requests may have been carried out although its answer was lost.
            if not self._is_there(release):
                raise

    def settle(self, unit: Unit, revisions: Sequence[int]) -> None:
        """The tag of each revision; staging branches of published ones are removed."""
        repository = self._repository(unit)
        refs = self._client.ask(repository, lambda api: api.list_repo_refs(repository))
        tags = {tag.name for tag in refs.tags}
        branches = {branch.name for branch in refs.branches}
        for revision in revisions:
            tag, branch = _tag(unit, revision), _branch(unit, revision)
            if tag not in tags:
                commit = self._commit_of(unit, revision)
                self._client.ask(
                    f"{repository}, tag {tag}",
                    lambda api, tag=tag, commit=commit: api.create_tag(  # type: ignore[misc]
                        repository, tag=tag, revision=commit, exist_ok=True
                    ),
                )
            if branch in branches:
                self._client.ask(
                    f"{repository}, staging",
                    lambda api, branch=branch: api.delete_branch(repository, branch=branch),  # type: ignore[misc]
                )

    def address(self, unit: Unit, revision: int, name: str) -> str:
        """The file at the revision's tag."""
        path = quote(f"{_tag(unit, revision)}/{unit.version}/r{revision}/{name}", safe="/+")
        return f"{self._client.address}/{self._repository(unit)}/resolve/{path}"

    def _repository(self, unit: Unit) -> str:
        return self._repositories[unit.model]

    def _tree(self, unit: Unit, revision: str) -> dict[int, list[RepoFile]]:
        """Files of the unit by their release's number. Raises OccupiedRepository for files of another model."""
        repository = self._repository(unit)

        def listed(api: HfApi) -> list[RepoFile]:
            from huggingface_hub.errors import RemoteEntryNotFoundError  # noqa: PLC0415
            from huggingface_hub.hf_api import RepoFile  # noqa: PLC0415

            try:
                found = list(api.list_repo_tree(repository, unit.version, recursive=True, revision=revision))
            except RemoteEntryNotFoundError:
                return []
            return [entry for entry in found if isinstance(entry, RepoFile)]

        by_revision: dict[int, list[RepoFile]] = {}
        for file in self._client.ask(repository, listed):
            found = re.fullmatch(rf"{re.escape(unit.version)}/r(\d+)/([^/]+)", file.path)
            if found is None or not (found[2] in DOCUMENTS or found[2].startswith(f"{unit.model}-{unit.version}-")):
                raise OccupiedRepository(
                    f"{repository} holds {file.path}, which is no file of {unit}",
                    remedy="give each model a repository of its own (--repo 'owner/{model}')",
                )
            by_revision.setdefault(int(found[1]), []).append(file)
        return by_revision

    def _remote(self, unit: Unit, revision: int, files: Sequence[RepoFile], commit: str) -> Iterator[RemoteFile]:
        """Digests as the Hub knows them; of bundles too small for large-file storage SHA256SUMS has them."""
        unknown = [file for file in files if file.lfs is None and _name(file) not in DOCUMENTS]
        listed = self._listed(unit, revision, commit) if unknown else {}
        for file in files:
            sha256 = file.lfs.sha256 if file.lfs is not None else listed.get(_name(file))
            yield RemoteFile(_name(file), file.size, sha256)

    def _listed(self, unit: Unit, revision: int, commit: str) -> Mapping[str, str]:
        repository, path = self._repository(unit), f"{unit.version}/r{revision}/{checksums.FILE_NAME}"
        with tempfile.TemporaryDirectory(prefix="qnn-forge-publish-") as cache:
            got = self._client.ask(
                f"{repository}/{path}",
                lambda api: api.hf_hub_download(repository, path, revision=commit, cache_dir=cache),
            )
            return {subject.name: subject.sha256 for subject in checksums.read(Path(got))}

    def _dates(self, unit: Unit, revisions: Sequence[int], commit: str) -> dict[int, str]:
        return {
            revision: file.last_commit.date.date().isoformat()
            for revision, file in self._marks(unit, revisions, commit).items()
            if file.last_commit is not None
        }

    def _commit_of(self, unit: Unit, revision: int) -> str:
        """The commit that made a revision visible."""
        mark = self._marks(unit, [revision], "main").get(revision)
        if mark is None or mark.last_commit is None:
            raise PublishedMeanwhile(
                f"r{revision} of {unit} is no longer on the Hub", remedy="run the same command again"
            )
        return str(mark.last_commit.oid)

    def _marks(self, unit: Unit, revisions: Sequence[int], commit: str) -> dict[int, RepoFile]:
        """SHA256SUMS of each revision with its last commit; no published file ever gets another one."""
        repository = self._repository(unit)
        paths = {f"{unit.version}/r{revision}/{checksums.FILE_NAME}": revision for revision in revisions}
        if not paths:
            return {}
        found = self._client.ask(
            repository, lambda api: api.get_paths_info(repository, list(paths), expand=True, revision=commit)
        )
        return {paths[file.path]: file for file in found if file.path in paths}

    def _commit(self, release: Release, files: Sequence[LocalFile], branch: str) -> None:
        repository = self._repository(release.unit)
        self._client.ask(
            f"{repository}, upload",
            lambda api: api.create_commit(
                repository, _additions(release, files), commit_message=_title(release), revision=branch
            ),
        )

    def _read_back(self, release: Release, branch: str) -> None:
        there = {_name(file): file for file in self._tree(release.unit, branch).get(release.revision, ())}
        wrong = [file.name for file in release.files if file.name not in there or not _same(file, there[file.name])]
        if wrong:
            raise ReadBackDiffers(
                f"{len(wrong)} file(s) did not arrive on the Hub as they were sent; nothing was published",
                remedy="run the same command again; the files are sent anew",
                details=wrong,
            )

    def _is_there(self, release: Release) -> bool:
        there = {_name(file): file for file in self._tree(release.unit, "main").get(release.revision, ())}
        return all(file.name in there and _same(file, there[file.name]) for file in release.files)


def _tag(unit: Unit, revision: int) -> str:
    return f"{unit.version}-r{revision}"


def _branch(unit: Unit, revision: int) -> str:
    return f"staging-{unit.version}-r{revision}"


def _title(release: Release) -> str:
    return f"{release.unit.model} {release.unit.version}, revision {release.revision}"


def _name(file: RepoFile) -> str:
    return str(file.path).rpartition("/")[2]


def _additions(release: Release, files: Sequence[LocalFile]) -> list[object]:
    from huggingface_hub import CommitOperationAdd  # noqa: PLC0415

    folder = f"{release.unit.version}/r{release.revision}"
    return [CommitOperationAdd(f"{folder}/{file.name}", str(file.path)) for file in files]


def _in_storage(files: Sequence[RepoFile]) -> tuple[RemoteFile, ...]:
    """Files of large-file storage with their digests; the few small ones are sent anew."""
    return tuple(RemoteFile(_name(file), file.size, file.lfs.sha256) for file in files if file.lfs is not None)


def _same(file: LocalFile, there: RepoFile) -> bool:
    if there.lfs is not None:
        return same(file, RemoteFile(_name(there), there.lfs.size, there.lfs.sha256))
    content = file.path.read_bytes()
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return (int(there.size), str(there.blob_id)) == (file.size, git)
