"""Faults of the index: its documents, and what is to be put into it."""

from qnn.errors.base import ExitCode, ForgeError


class InvalidIndex(ForgeError):
    """What: A document of the index is not JSON, or lacks something that a client needs, or says it wrongly.

    Why: Addresses, sizes and sha256 of files come from the index; from a damaged one nothing is downloaded.

    Mend: Try again, since the document may have been cut short on its way. If it stays, report it to whoever keeps the
    index; with `--from` check that the address is that of an index, the folder above `v1/`.
    """

    id = "QF710"
    title = "the index cannot be read"
    exit_code = ExitCode.BUNDLE


class NewerIndex(ForgeError):
    """What: The index has a newer schema version than this qnn-forge reads.

    Why: Fields may be added to the index at any time, and older clients ignore them. The version only changes when an
    older client would misread it, so guessing is not an option.

    Mend: Install a newer qnn-forge.
    """

    id = "QF711"
    title = "the index is of a newer kind"
    exit_code = ExitCode.BUNDLE


class EntryDiffers(ForgeError):
    """What: A file is to be entered into the index where another file stands already: same model, version, bucket,
    precision, chip, QAIRT version and revision, but another sha256 or other facts.

    Why: What is published never changes. People pin sha256, caches keep files for ever, and a client that resolved
    yesterday must get the same file today.

    Mend: Publish new content as the next revision (`qnn-forge publish` does that by itself). Other inputs or outputs of
    a graph are another model version: change `version` in model.yaml.
    """

    id = "QF712"
    title = "a published entry would change"
    exit_code = ExitCode.PUBLISH


class ReleaseUnusable(ForgeError):
    """What: Files cannot be entered into the index as they are: they are of several models or versions, were not
    verified, or have no address.

    Why: The index lists only what can be downloaded and was checked, one model version at a time.

    Mend: Publish each model version by itself, from bundles that `qnn-forge build` verified.
    """

    id = "QF713"
    title = "a release cannot be entered into the index"
    exit_code = ExitCode.PUBLISH


class NothingYanked(ForgeError):
    """What: A yank names a model, a version or files that the index does not have.

    Why: A yank that changes nothing would leave the broken file in use while everybody thinks it is withdrawn.

    Mend: Look the file up with `qnn-forge info MODEL --json` and name it by its sha256, or by its chip.
    """

    id = "QF714"
    title = "there is nothing to yank"
    exit_code = ExitCode.PUBLISH
