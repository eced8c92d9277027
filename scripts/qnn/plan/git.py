"""What changed between a base and HEAD, as git says. The only module of the planner that starts a process."""

from __future__ import annotations

import posixpath
import subprocess
from collections.abc import Callable
from pathlib import Path

from qnn.errors.plan import NoBase
from qnn.plan.changes import ChangedFile, Texts


def changed_since(ref: str, folder: Path, needs_texts: Callable[[str], bool]) -> tuple[ChangedFile, ...]:
    """The files that differ between HEAD and where it left `ref`, with paths as seen from `folder`, sorted.

    A renamed file is one that went and one that came. Contents are read only where `needs_texts(path)` says so. What
    is not committed does not count. Raises NoBase (QF950) when git is missing, `folder` is in no repository, or there
    is no common ancestor (a shallow clone).
    """
    head = _git(ref, folder, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
    other = _git(ref, folder, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}").decode().split()[-1]
    base = _git(ref, folder, "merge-base", other, head).decode().strip()
    prefix = _git(ref, folder, "rev-parse", "--show-prefix").decode().strip().rstrip("/")
    listed = _git(ref, folder, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base, head)
    changed = []
    for name in sorted(part.decode(errors="replace") for part in listed.split(b"\0") if part):
        path = posixpath.relpath(name, prefix) if prefix else name
        texts = Texts(_show(folder, base, name), _show(folder, head, name)) if needs_texts(path) else None
        changed.append(ChangedFile(path, texts))
    return tuple(changed)


def _show(folder: Path, commit: str, name: str) -> str | None:
    """A file's text in a commit; None where it is not there (or is no file)."""
    done = _run(folder, "cat-file", "blob", f"{commit}:{name}")
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def _git(ref: str, folder: Path, *arguments: str) -> bytes:
    try:
        done = _run(folder, *arguments)
    except FileNotFoundError:
        raise _no_base(ref, "git is not installed") from None
    if done.returncode:
        raise _no_base(ref, done.stderr.decode(errors="replace").strip() or "there is no common ancestor with HEAD")
    return done.stdout


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)


def _no_base(ref: str, said: str) -> NoBase:
    return NoBase(
        f'the change since "{ref}" cannot be told: {said.splitlines()[-1]}',
        remedy="fetch the base with its history (actions/checkout: fetch-depth: 0), or give the files with --changed",
        details=said.splitlines()[:5] if "\n" in said else (),
    )
