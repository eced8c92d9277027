"""An archive becomes a folder in the output folder, all of it or nothing, and nothing outside it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from qnn.bundle.archive import extract_archive
from qnn.bundle.manifest import Manifest
from qnn.bundle.recheck import MANIFEST, check_files, read_manifest
from qnn.errors.bundles import DamagedBundle, InvalidManifest, UnsafeArchive
from qnn.errors.pull import OutputTaken

_SCRATCH = ".qnn-forge-pull-"


def unpack(archive: Path, out: Path, judge: Callable[[Manifest], None]) -> Path:
    """Extract a bundle into `out` (made if it is not there); returns the bundle's folder.

    The bundle appears by one rename, after `judge` accepted its manifest and every file was found to be as the
    manifest says. A bundle with the same content that is there already is left as it is. Raises UnsafeArchive
    (QF703), InvalidManifest (QF701), DamagedBundle (QF702), OutputTaken (QF728), whatever `judge` raises, and
    OSError; then `out` is as it was before.
    """
    made = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        with _alone(out), _scratch(out) as scratch:
            bundle = extract_archive(archive, scratch)
            manifest = read_manifest(bundle)
            if manifest.name != bundle.name:
                raise UnsafeArchive(
                    f"{archive.name} holds {bundle.name!r:.80}, which its manifest calls {manifest.name!r:.80}",
                    remedy="report it to whoever published it",
                )
            judge(manifest)
            check_files(bundle, manifest)
            target = out / bundle.name
            if target.exists() or target.is_symlink():
                _require_same(target, bundle, manifest)
            else:
                bundle.rename(target)
            return target
    except BaseException:
        if made and not any(out.iterdir()):
            out.rmdir()
        raise


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One pull at a time extracts into a folder; the lock is on the folder itself, so that no lock file stays there."""
    descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A hidden folder on the same disk, gone afterwards, together with those that killed pulls left."""
    for left in out.glob(f"{_SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=out))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _require_same(target: Path, bundle: Path, manifest: Manifest) -> None:
    remedy = "remove it, or give another folder with --out"
    try:
        if not target.is_symlink() and (target / MANIFEST).read_bytes() == (bundle / MANIFEST).read_bytes():
            check_files(target, manifest)
            return
    except (DamagedBundle, InvalidManifest, FileNotFoundError, NotADirectoryError) as error:
        raise OutputTaken(f"{target} is there already and differs: {error}", remedy=remedy) from None
    raise OutputTaken(f"{target} is there already and is another bundle", remedy=remedy)
