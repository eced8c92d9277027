"""Faults of bundles: what a folder or archive should hold and does not."""

from qnn.errors.base import ExitCode, ForgeError


class InvalidManifest(ForgeError):
    """What: A bundle's manifest.json is missing, not JSON, of another schema version, or not valid.

    Why: Everything about a bundle is read from its manifest; without it nothing can be checked.

    Mend: Build or download the bundle again, or use the qnn-forge version that made it.
    """

    id = "QF701"
    title = "the manifest cannot be read"
    exit_code = ExitCode.BUNDLE


class DamagedBundle(ForgeError):
    """What: Files of a bundle are missing, changed, or not listed in its manifest.

    Why: The manifest lists every file with its sha256 and size. A bundle that differs is not the one that was
    checked.

    Mend: Build or download the bundle again. Do not edit a bundle in place.
    """

    id = "QF702"
    title = "the bundle is damaged"
    exit_code = ExitCode.BUNDLE


class UnsafeArchive(ForgeError):
    """What: An archive is truncated, not an archive at all, or holds an entry that would be written outside its folder.

    Why: An archive from elsewhere can hold absolute paths, `..`, links or devices. Nothing of such an archive is
    extracted.

    Mend: Download it again from where it was published, and report it if it is the same.
    """

    id = "QF703"
    title = "the archive is not safe to extract"
    exit_code = ExitCode.BUNDLE
