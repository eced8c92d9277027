"""Faults of the machine a build runs on: disk, store, and qnn-forge itself."""

from __future__ import annotations

import errno

from qnn.errors.base import ExitCode, ForgeError


class DiskFull(ForgeError):
    """What: Writing failed because the disk, or the user's quota on it, is full.

    Why: Stage outputs are written to a temporary folder and renamed only when they are complete, so a full disk
    leaves the store as it was.

    Mend: Free some space, run `qnn-forge store prune --max-size 10G`, or point `--store` at another disk. Then run
    the same command again: what was finished is reused.
    """

    id = "QF901"
    title = "the disk is full"
    exit_code = ExitCode.SYSTEM


class NotWritable(ForgeError):
    """What: A folder that must be written to is read-only, or belongs to another user.

    Why: The store and the output folder are where results are kept; a build cannot do without them.

    Mend: Give another folder with `--store` or `--out`, or mend the permissions of the one named.
    """

    id = "QF902"
    title = "a folder cannot be written to"
    exit_code = ExitCode.SYSTEM


class StoreInUse(ForgeError):
    """What: The store cannot be pruned because a build is using it.

    Why: Pruning removes entries that a running build may be about to read.

    Mend: Wait for the build to end, then prune again.
    """

    id = "QF903"
    title = "the store is in use"
    exit_code = ExitCode.SYSTEM


class InputOutputFault(ForgeError):
    """What: The operating system refused to read or write a file.

    Why: The message names the file and the system's reason.

    Mend: Mend what the message names (a missing folder, a broken disk or mount), then run the command again.
    """

    id = "QF904"
    title = "a file could not be read or written"
    exit_code = ExitCode.SYSTEM


class ForeignEntry(ForgeError):
    """What: A tar given to `qnn-forge store import` is damaged, or holds an entry that is not what its name says.

    Why: Entries are taken on trust in every later build, so each is checked on the way in: its record must hash to its
    digest, and every file must have the recorded size and sha256.

    Mend: Export the entries again. If the tar came from elsewhere, do not use it; build anew.
    """

    id = "QF905"
    title = "a store entry is not what it says"
    exit_code = ExitCode.SYSTEM


class InternalFault(ForgeError):
    """What: qnn-forge met something it does not know how to handle. This is a defect of qnn-forge.

    Why: No input should be able to cause this. The technical details are in the log file that the message names.

    Mend: Please report it with that log file and the command you ran. Running again with another model, chip or
    `--jobs 1` may avoid it.
    """

    id = "QF999"
    title = "a defect of qnn-forge"
    exit_code = ExitCode.INTERNAL


def from_os_error(error: OSError) -> ForgeError:
    """The error a user should see for an operating-system error."""
    where = str(error.filename) if error.filename is not None else "a file"
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"no space left while writing {where}",
            remedy="free space, prune the store (qnn-forge store prune --max-size 10G) or use --store on another disk",
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return NotWritable(
            f"{where} cannot be written: {reason}",
            remedy="choose another folder with --store or --out, or mend its permissions",
        )
    return InputOutputFault(f"{where}: {reason}", remedy="mend what is named here and run the command again")
