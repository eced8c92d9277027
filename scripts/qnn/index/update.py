"""Putting files into an index folder, and withdrawing them.

`add_release` and `yank` are the only writers. A published entry is never altered: it can gain addresses and a yank,
nothing else. Documents are written one by one, each by a rename, the root last: a reader that comes in between sees
the index of before, or a version that the root does not name yet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from qnn.bundle.manifest import Manifest
from qnn.chips.soc import qairt_key
from qnn.chips.table import load_table
from qnn.errors.index import EntryDiffers, NothingYanked, ReleaseUnusable
from qnn.index.chips import chips_index
from qnn.index.document import (
    CHIPS,
    ROOT,
    SCHEMA_VERSION,
    Document,
    IndexFile,
    IndexModel,
    IndexVariant,
    IndexVersion,
    ModelIndex,
    RootIndex,
    VersionIndex,
    from_json,
    model_path,
    to_json,
    version_path,
)
from qnn.index.entries import fallback_of, file_of, graphs_of

ALL = "all"
_TEMPORARY = ".index.tmp"
_D = TypeVar("_D", RootIndex, ModelIndex, VersionIndex)


@dataclass(frozen=True)
class PublishedFile:
    """One archive as it is published.

    `size` is bytes, `published` a date (YYYY-MM-DD), `urls` every address it has; an address without a scheme is
    relative to the index's base. `provenance`, `sbom` and `attestation` (a sigstore bundle) are addresses too.
    """

    manifest: Manifest
    name: str
    size: int
    sha256: str
    urls: tuple[str, ...]
    revision: int
    published: str
    provenance: str | None = None
    sbom: str | None = None
    attestation: str | None = None


@dataclass(frozen=True)
class PublishedRelease:
    """Files of one model version."""

    files: tuple[PublishedFile, ...]


def add_release(folder: Path, release: PublishedRelease) -> tuple[Path, ...]:
    """Enter a release into the index in `folder`; returns the documents that changed, none when all of it was there.

    A file whose sha256 stands there already for its chip and QAIRT only gains the addresses that are new. Raises
    ReleaseUnusable (QF713), EntryDiffers (QF712), InvalidIndex (QF710) and NewerIndex (QF711), before anything is
    written; OSError.
    """
    first = _checked(release)
    name, version = first.model.name, first.model.version
    with _locked(folder):
        document = _read(folder, version_path(name, version), VersionIndex)
        entered = _entered(document or _empty(first), release)
        return _store(folder, entered)


def yank(folder: Path, model: str, version: str, wanted: Sequence[str], reason: str) -> tuple[Path, ...]:
    """Withdraw files: each of `wanted` is a sha256, a chip's name, or ``all``. Returns the documents that changed.

    The files stay where they are, and the entries stay in the index with the reason. Raises NothingYanked (QF714)
    when one of `wanted` matches nothing; as `add_release` otherwise.
    """
    if not reason.strip():
        raise NothingYanked("a yank needs a reason, which pull shows", remedy="say why the files are withdrawn")
    with _locked(folder):
        document = _read(folder, version_path(model, version), VersionIndex)
        if document is None:
            raise NothingYanked(f"the index has no {model} {version}", remedy="see qnn-forge info MODEL")
        unmatched = [word for word in wanted if not any(_means(word, file) for file in _files(document))]
        if unmatched or not wanted:
            raise NothingYanked(
                f"{model} {version} has no file that is {', '.join(unmatched) or 'named'}",
                remedy=f"name files by sha256 or by chip (qnn-forge info {model} --json), or all of them as {ALL}",
            )
        variants = tuple(
            replace(variant, files=tuple(_yanked(file, wanted, reason.strip()) for file in variant.files))
            for variant in document.variants
        )
        return _store(folder, replace(document, variants=variants))


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """To sort versions by: numbers as numbers, letters before the end, the end before numbers.

    1.0rc1 < 1.0 < 1.0.1 < 1.2 < 1.10.
    """
    parts = re.findall(r"[0-9]+|[a-z]+", version.lower())
    key = tuple((2, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)
    return (*key, (1, 0, ""))


def _checked(release: PublishedRelease) -> Manifest:
    """The manifest that speaks for the model; the newest toolchain's, so that its words are the newest."""
    models = {(file.manifest.model.name, file.manifest.model.version) for file in release.files}
    if len(models) != 1:
        listed = ", ".join(" ".join(model) for model in sorted(models)) or "no files"
        raise ReleaseUnusable(
            f"a release is of one version of one model, this one has {listed}", remedy="publish each by itself"
        )
    unverified = [file.name for file in release.files if not file.manifest.verified]
    if unverified:
        raise ReleaseUnusable(
            "files that were not verified are not entered into the index",
            remedy="build them with --verify all",
            details=unverified,
        )
    homeless = [file.name for file in release.files if not file.urls]
    if homeless:
        raise ReleaseUnusable("files without an address", remedy="publish them first", details=homeless)
    return max(release.files, key=lambda file: qairt_key(file.manifest.toolchain.qairt)).manifest


def _empty(manifest: Manifest) -> VersionIndex:
    model = manifest.model
    return VersionIndex(SCHEMA_VERSION, model.name, model.version, model.summary, model.task, model.licence, ())


def _entered(document: VersionIndex, release: PublishedRelease) -> VersionIndex:
    model = _checked(release).model
    variants = {variant.name: variant for variant in document.variants}
    for file in release.files:
        fresh = _variant(file.manifest)
        old = variants.get(fresh.name, fresh)
        if (old.dimensions, old.graphs) != (fresh.dimensions, fresh.graphs):
            raise EntryDiffers(
                f"{file.name}: other inputs, outputs or dimensions than what is published of {model.name} "
                f"{model.version} {fresh.name}",
                remedy="give the model a new version, or build with the code that keeps its inputs and outputs",
                details=(f"published {old.graphs}", f"this file {fresh.graphs}"),
            )
        variants[fresh.name] = replace(old, files=_with(old.files, _entry(file)))
    return replace(
        document,
        summary=model.summary,
        task=model.task,
        licence=model.licence,
        licence_reason=model.licence_reason,
        attribution=model.attribution,
        fallback=fallback_of(file.manifest for file in release.files) or document.fallback,
        variants=tuple(variants[name] for name in sorted(variants)),
    )


def _variant(manifest: Manifest) -> IndexVariant:
    dimensions = dict(sorted(manifest.dimensions.items()))
    return IndexVariant(manifest.bucket, manifest.precision, dimensions, graphs_of(manifest), ())


def _entry(file: PublishedFile) -> IndexFile:
    entry = file_of(file.manifest, file.name, file.size, file.sha256)
    return replace(
        entry,
        urls=tuple(dict.fromkeys(file.urls)),
        revision=file.revision,
        published=file.published,
        provenance=file.provenance,
        sbom=file.sbom,
        attestations=() if file.attestation is None else (file.attestation,),
    )


def _with(files: tuple[IndexFile, ...], new: IndexFile) -> tuple[IndexFile, ...]:
    """The files with the new one among them, each once, sorted by chip, QAIRT and revision."""
    there = [file for file in files if (file.soc_id, file.qairt) == (new.soc_id, new.qairt)]
    same = next((file for file in there if file.sha256 == new.sha256), None)
    if same is not None:
        merged = _merged(same, new)
        return tuple(merged if file is same else file for file in files)
    clash = next((file for file in there if file.revision == new.revision), None)
    if clash is not None:
        raise _differs(clash, new, "sha256", clash.sha256, new.sha256)
    return tuple(sorted((*files, new), key=lambda file: (file.soc, qairt_key(file.qairt), file.revision)))


def _merged(old: IndexFile, new: IndexFile) -> IndexFile:
    for fact in ("size", "soc", "arch", "vtcm_mb", "hvx_threads", "fp16", "build_id", "minimum_runtime", "graphs"):
        was, now = getattr(old, fact), getattr(new, fact)
        if was != now:
            raise _differs(old, new, fact, was, now)
    return replace(
        old,
        urls=tuple(dict.fromkeys((*old.urls, *new.urls))),
        provenance=old.provenance or new.provenance,
        sbom=old.sbom or new.sbom,
        attestations=tuple(dict.fromkeys((*old.attestations, *new.attestations))),
    )


def _differs(old: IndexFile, new: IndexFile, fact: str, was: object, now: object) -> EntryDiffers:
    return EntryDiffers(
        f"{new.name}: {old.soc} with QAIRT {old.qairt} is published as revision {old.revision} with another {fact}",
        remedy="publish new content as the next revision",
        details=(f"published {was}", f"this file {now}"),
    )


def _files(document: VersionIndex) -> Iterator[IndexFile]:
    return (file for variant in document.variants for file in variant.files)


def _means(word: str, file: IndexFile) -> bool:
    return word in (ALL, file.sha256, file.soc)


def _yanked(file: IndexFile, wanted: Iterable[str], reason: str) -> IndexFile:
    return replace(file, yanked=reason) if any(_means(word, file) for word in wanted) else file


def _store(folder: Path, document: VersionIndex) -> tuple[Path, ...]:
    """Write the version and, from it, the model and the root; the root last."""
    model = _with_version(_read(folder, model_path(document.model), ModelIndex), document)
    newest = document
    if model.latest != document.version:
        newest = _read(folder, version_path(model.name, model.latest), VersionIndex) or document
    root = _with_model(_read(folder, ROOT, RootIndex), model, newest)
    written: tuple[tuple[str, Document], ...] = (
        (CHIPS, chips_index(load_table())),
        (version_path(document.model, document.version), document),
        (model_path(document.model), model),
        (ROOT, root),
    )
    return tuple(folder / path for path, content in written if _write(folder, path, to_json(content)))


def _with_version(model: ModelIndex | None, document: VersionIndex) -> ModelIndex:
    files = tuple(_files(document))
    own = IndexVersion(
        version=document.version,
        published=min(file.published for file in files),
        variants=tuple(variant.name for variant in document.variants),
        socs=tuple(sorted({file.soc for file in files})),
        qairt=tuple(sorted({file.qairt for file in files}, key=qairt_key)),
        files=len(files),
        yanked=all(file.yanked is not None for file in files),
    )
    others = () if model is None else model.versions
    versions = sorted(
        (*(version for version in others if version.version != own.version), own),
        key=lambda version: (version_key(version.version), version.version),
    )
    latest = next((version for version in reversed(versions) if not version.yanked), versions[-1]).version
    words = document if model is None or versions[-1] is own else model
    return ModelIndex(SCHEMA_VERSION, document.model, words.summary, words.task, words.licence, latest, tuple(versions))


def _with_model(root: RootIndex | None, model: ModelIndex, newest: VersionIndex) -> RootIndex:
    soc_ids = tuple(sorted({file.soc_id for file in _files(newest) if file.yanked is None}))
    models = {} if root is None else {other.name: other for other in root.models}
    models[model.name] = IndexModel(model.name, model.summary, model.task, model.licence, model.latest, soc_ids)
    return RootIndex(SCHEMA_VERSION, tuple(models[name] for name in sorted(models)))


def _read(folder: Path, path: str, kind: type[_D]) -> _D | None:
    try:
        text = (folder / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return from_json(text, kind, path)


def _write(folder: Path, path: str, text: str) -> bool:
    """Put the text there by a rename; returns whether it was not there already."""
    target, data = folder / path, text.encode()
    if target.is_file() and target.read_bytes() == data:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder / _TEMPORARY  # beside v1, so that nothing half-written can ever be served
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time; the lock is beside v1, which is all that is served."""
    from filelock import FileLock  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".index.lock"):
        yield
