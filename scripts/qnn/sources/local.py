"""Files that lie in the model folder itself."""

from __future__ import annotations

import errno
import stat
from pathlib import Path, PurePosixPath

from qnn.errors.sources import LocalFileMissing, PathEscapes
from qnn.model.spec import Source
from qnn.sources.protocol import describe


def local_file(source: Source, model_folder: Path) -> Path:
    """The real path of a `local` source. Links are followed, and must end inside the model folder.

    Raises PathEscapes (QF317) and LocalFileMissing (QF316).
    """
    named = PurePosixPath(source.locator)
    if named.is_absolute() or ".." in named.parts or "\\" in source.locator or "\0" in source.locator:
        raise _escapes(source, "it is not a plain path relative to the model folder")
    root = model_folder.resolve()
    try:
        path = (root / named).resolve(strict=True)
    except FileNotFoundError:
        raise _missing(source, "it is not there") from None
    except NotADirectoryError:
        raise _missing(source, "a part of its path is a file") from None
    except RuntimeError:  # what Python before 3.13 raises for a circle of links
        raise _missing(source, "its symbolic links go in a circle") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _missing(source, "its symbolic links go in a circle") from None
        if error.errno == errno.ENAMETOOLONG:
            raise _missing(source, "its name is longer than a file name can be") from None
        raise
    if not path.is_relative_to(root):
        raise _escapes(source, "a symbolic link leads out of the model folder")
    if not stat.S_ISREG(path.stat().st_mode):
        raise _missing(source, "it is not a regular file")
    return path


def _escapes(source: Source, reason: str) -> PathEscapes:
    return PathEscapes(
        f"{describe(source)}: {reason}", remedy="copy the file into the model folder and name it by its relative path"
    )


def _missing(source: Source, reason: str) -> LocalFileMissing:
    return LocalFileMissing(
        f"{describe(source)}: {reason}", remedy="add the file to the model folder, or correct its name in model.yaml"
    )
