"""Paths on the device and lists of them. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from qnn.errors.device import UnfitDevicePath

ROOT = "/data/local/tmp/qnn-forge"
# Where devices keep their own DSP libraries; the loader looks here for what is not in the first folder.
_DSP_FOLDERS = ("/vendor/dsp/cdsp", "/vendor/lib/rfsa/adsp", "/system/lib/rfsa/adsp", "/dsp")
_FIT = re.compile(r"[A-Za-z0-9._+=@/-]+")


def fit(path: str) -> str:
    """The path, if no list and no shell on the device can misread it. Raises UnfitDevicePath (QF792)."""
    if not _FIT.fullmatch(path) or ".." in path.split("/"):
        raise UnfitDevicePath(
            f"{path!r:.200} cannot be a path on the device",
            remedy="use letters, digits and . _ - + = @ / only; the default folder is always fit",
        )
    return path


def fit_root(path: str) -> str:
    """A folder of the device that is ours alone: absolute, and at least two levels deep.

    Everything below it is removed by `clean`. Raises UnfitDevicePath (QF792).
    """
    folder = str(PurePosixPath(fit(path)))
    if not folder.startswith("/") or folder.startswith("//") or folder.count("/") < 2:
        raise UnfitDevicePath(
            f"{path} is not a folder that can be left to qnn-forge",
            remedy=f"give an absolute path of its own, such as {ROOT}",
        )
    return folder


def library_path(folders: Sequence[str]) -> str:
    """LD_LIBRARY_PATH: separated by colons. Raises UnfitDevicePath (QF792)."""
    return ":".join(fit(folder) for folder in folders)


def adsp_path(folder: str) -> str:
    """ADSP_LIBRARY_PATH: separated by semicolons (FastRPC's own rule), our folder first.

    The first match wins, and a Skel of the device's firmware is of another QAIRT. Raises UnfitDevicePath (QF792).
    """
    return ";".join(fit(one) for one in (folder, *_DSP_FOLDERS))


def command(*words: str) -> str:
    """One command line for the device's shell: words, each quoted where it must be."""
    return shlex.join(words)
