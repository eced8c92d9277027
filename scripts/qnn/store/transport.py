"""Carries store entries from one machine to another: pack them into a tar, take them over after checking every byte.

The tar holds ``<digest>/entry.json`` and ``<digest>/files/…``. An entry is taken over only if its record hashes to its
digest (so it cannot pass for another stage's output) and every file has the recorded size and sha256.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import uuid
from collections.abc import Iterable
from pathlib import Path

from qnn.errors.system import ForeignEntry, from_os_error
from qnn.store.digest import StageKey
from qnn.store.store import Entry, Store
from qnn.tar import UnsafeTarError, extract_files


def pack(store: Store, keys: Iterable[StageKey], target: Path) -> tuple[Entry, ...]:
    """Write the entries that exist (each checked) to the plain tar `target`; the same entries, the same bytes."""
    entries = {entry.digest: entry for key in keys if (entry := store.get(key)) is not None}
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
            for digest in sorted(entries):
                folder = entries[digest].folder
                _add(archive, folder.parent / "entry.json", f"{digest}/entry.json")
                for file in entries[digest].files:
                    _add(archive, folder / file.name, f"{digest}/files/{file.name}")
        os.replace(partial, target)
    except OSError as error:
        raise from_os_error(error) from None
    finally:
        partial.unlink(missing_ok=True)
    return tuple(entries[digest] for digest in sorted(entries))


def unpack(store: Store, archive: Path) -> tuple[Entry, ...]:
    """Take over every entry of a tar that the store does not have; returns all of the tar's entries.

    Raises ForeignEntry (QF905) for a tar that is damaged, would leave its folder, or holds an entry that is not what
    its name says; entries taken over before that stay.
    """
    work = store.root / "tmp" / f"import-{uuid.uuid4().hex}"
    try:
        work.mkdir(parents=True)
        extract_files(archive, work, "r:")
        return tuple(_take(store, folder, archive) for folder in sorted(work.iterdir()))
    except UnsafeTarError as error:
        raise _foreign(archive, f"it {error}") from None
    except (tarfile.TarError, EOFError) as error:
        raise _foreign(archive, f"it is truncated or no tar: {error}") from None
    except OSError as error:
        raise from_os_error(error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = path.stat().st_size
    member.mode = 0o644
    with path.open("rb") as stream:
        archive.addfile(member, stream)


def _take(store: Store, folder: Path, archive: Path) -> Entry:
    try:
        document = json.loads((folder / "entry.json").read_text(encoding="utf-8"))
        key = StageKey(document["stage"], document["code"], document["parameters"], document["inputs"])
        files = {str(file["name"]): (str(file["sha256"]), int(file["size"])) for file in document["files"]}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise _foreign(archive, f"the record of {folder.name[:16]} cannot be read") from None
    if key.digest != folder.name:
        raise _foreign(archive, f"the record of {folder.name[:16]} is another entry's")

    def produce(target: Path) -> None:
        for path in sorted((folder / "files").rglob("*")):
            if path.is_file():
                place = target / path.relative_to(folder / "files")
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, place)

    made = store.make(key, produce)
    if {file.name: (file.sha256, file.size) for file in made.entry.files} != files:
        if not made.reused:
            store.remove(key.digest)
        raise _foreign(archive, f"the files of {folder.name[:16]} are not what its record says")
    return made.entry


def _foreign(archive: Path, why: str) -> ForeignEntry:
    return ForeignEntry(
        f"{archive.name}: {why}", remedy="export it again; if it came from elsewhere, do not use it, build anew"
    )
