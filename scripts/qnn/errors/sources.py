"""Faults of sources: what can go wrong between an address in model.yaml and a verified file."""

from qnn.errors.base import ExitCode, ForgeError


class SourceError(ForgeError):
    """Base of everything that can go wrong while a source is fetched; never raised itself."""

    exit_code = ExitCode.SOURCE


class ContentMismatch(SourceError):
    """What: The file that arrived is not the file that model.yaml pins: its sha256 or its size differs.

    Why: A build must start from exactly the bytes its author looked at. A different file means that the publisher
    replaced it, that the address was edited without pinning it again, or that somebody tampered with it on the way.

    Mend: Find out why the file changed. If the new one is wanted, run `qnn-forge pin MODEL` and review the change
    like code; otherwise point the source at an address that does not change (a commit, a version, a tag).
    """

    id = "QF301"
    title = "a source is not the file that was pinned"


class SourceNotFound(SourceError):
    """What: The other side says that the address does not exist: HTTP 404 or 410, a version that the package index
    has no wheel of, a repository, revision or file that the Hub does not know.

    Why: Spelling, a deleted release, or a package version that only has a source distribution. Source distributions
    are not used, because opening one runs its code. Private files look like missing ones without a token.

    Mend: Open the address in a browser and correct it in model.yaml. For a package, check that the version has a
    wheel. For a private file, provide a token (HF_TOKEN, GITHUB_TOKEN).
    """

    id = "QF302"
    title = "a source does not exist"


class SourceForbidden(SourceError):
    """What: The server knows the address and refuses to hand it out (HTTP 401, 403 or 407, or a gated repository).

    Why: The file is private or gated, the token is missing, expired or lacks a right, or a proxy wants a login.

    Mend: Accept the repository's terms on its web page if it is gated, and provide a token: HF_TOKEN for the Hub,
    GITHUB_TOKEN for GitHub releases. For a proxy, put the login into HTTPS_PROXY.
    """

    id = "QF303"
    title = "access to a source was refused"


class RateLimited(SourceError):
    """What: The server answers "too many requests" and kept doing so, or asks for a longer wait than a build waits.

    Why: Servers limit anonymous downloads per address, and CI machines share addresses.

    Mend: Wait for the time named in the message, or provide a token (HF_TOKEN, GITHUB_TOKEN), which has a limit of
    its own. What was downloaded so far is kept and continued.
    """

    id = "QF304"
    title = "a server limits the number of requests"


class ServerFault(SourceError):
    """What: The server answered with an error of its own (HTTP 5xx), several times in a row.

    Why: The service is down or overloaded. It was asked again with growing pauses.

    Mend: Run the same command later; what was downloaded so far is kept and continued.
    """

    id = "QF305"
    title = "a server failed"


class TransferBroken(SourceError):
    """What: The download ended before all announced bytes arrived.

    Why: The connection broke, or the server or a proxy cut the answer short. Where the server proves by an ETag that
    the file is still the same, the download is continued from where it stopped, several times; this error means
    that even so it did not become complete.

    Mend: Run the same command again: it continues from the bytes it has, if the server allows that.
    """

    id = "QF306"
    title = "a download was cut short"


class SourceTooBig(SourceError):
    """What: The download is bigger than it may be: more bytes than its bound.

    Why: Before a source is pinned, downloads are bounded so that a wrong address or a hostile server cannot fill
    the disk. After pinning, the bound of a plain file is its pinned size.

    Mend: If the file really is that big, run `qnn-forge pin --max-gb N MODEL` once; afterwards the pinned size is
    the bound. Otherwise correct the address.
    """

    id = "QF307"
    title = "a download is bigger than its bound"


class TlsFailed(SourceError):
    """What: No trusted TLS connection could be made: the certificate is not trusted, is expired, or is another
    host's; or the server does not speak TLS.

    Why: Without a trusted certificate nobody knows who sent the file. Certificates are checked against the
    system's store. Company proxies that open TLS need their certificate in that store.

    Mend: Correct the clock or the host name, or add the proxy's certificate to the system's store (or name a bundle
    with SSL_CERT_FILE). There is no option to skip the check.
    """

    id = "QF308"
    title = "a server's certificate was not accepted"


class HostUnreachable(SourceError):
    """What: No connection: the host name cannot be resolved, nothing answers at its address, or the network is off.

    Why: No network, a wrong host name, a proxy that is not set, or HF_HUB_OFFLINE in the environment. It was tried
    several times with growing pauses.

    Mend: Check the network and the host name; behind a proxy set HTTPS_PROXY. Everything that was fetched before
    needs no network.
    """

    id = "QF309"
    title = "a host cannot be reached"


class SourceTimedOut(SourceError):
    """What: The other side stopped sending, or sent so slowly that the download would never end.

    Why: An overloaded server or a broken network path. A limit keeps one dead connection from blocking a build.

    Mend: Run the same command again: it continues from the bytes it has, if the server allows that.
    """

    id = "QF310"
    title = "a download stood still"


class RedirectRefused(SourceError):
    """What: The server sent the download somewhere it must not go: to plain http, in a circle, through too many
    steps, to an address with a login in it, or nowhere.

    Why: One hop over plain http would let anybody on the way replace the file, also where its hash is not yet known.

    Mend: Put the final https address into model.yaml (`curl -sIL ADDRESS` shows the steps).
    """

    id = "QF311"
    title = "a redirect was refused"


class MemberMissing(SourceError):
    """What: The archive (wheel, zip or tar) holds no file of the name that `file` gives.

    Why: Names are compared exactly, with upper and lower case and all folders. Publishers move files between
    versions.

    Mend: The message lists the nearest names and the ONNX files that are there; put the right one into `file`.
    """

    id = "QF312"
    title = "a file is not in the archive"


class ArchiveUnsafe(SourceError):
    """What: The wanted archive member must not be unpacked: its name leaves the folder (absolute, `..`, backslash,
    drive letter), it is a link, a device or another special file, there are several of the same name, or it is
    encrypted.

    Why: Such members are how archives write outside their folder or show different content to different tools.
    Nothing else of the archive is ever unpacked.

    Mend: Point `file` at a regular file in the archive, or use another archive. Links: name the file that is linked.
    """

    id = "QF313"
    title = "an archive member is unsafe to unpack"


class ArchiveDamaged(SourceError):
    """What: `file` asks for a member, but the download is not a zip, wheel or tar (plain, gz, xz, bz2), or its
    content is damaged.

    Why: The address leads to the file itself or to a web page, or the publisher's archive is broken. Archives are
    recognised by their content, not by their name.

    Mend: Remove `file` if the address is the file itself; otherwise correct the address, or report the broken
    archive to its publisher.
    """

    id = "QF314"
    title = "a download is not a usable archive"


class MemberTooBig(SourceError):
    """What: An archive member unpacks to more bytes than were pinned, or than the bound before pinning allows.

    Why: A small archive can unpack to a full disk. The bytes that come out are counted; the size that the archive
    claims is not trusted.

    Mend: If the file really is that big, run `qnn-forge pin MODEL` (with `--max-gb N` beyond the bound) after making
    sure that the new content is wanted.
    """

    id = "QF315"
    title = "an archive member unpacks to too much"


class LocalFileMissing(SourceError):
    """What: A `local` source names something in the model folder that is not there or is not a regular file.

    Why: It was not committed, is spelled differently, or is a folder.

    Mend: Add the file to the model folder, or correct its name in model.yaml.
    """

    id = "QF316"
    title = "a local source file is missing"


class PathEscapes(SourceError):
    """What: A path leaves the folder it belongs to: an absolute path, one with `..`, or a symbolic link that leads
    outside the model folder. Also: a name that cannot be the name of a file.

    Why: A model is its folder. Reading other files of the machine that builds it would publish them in a bundle.

    Mend: Copy the file into the model folder and name it by its relative path.
    """

    id = "QF317"
    title = "a source path leaves its folder"


class PinOutdated(SourceError):
    """What: `qnn-forge pin --check` found sources whose sha256 or size is missing from model.yaml or is not that of
    the file at their address.

    Why: Without pins a build is not reproducible; with wrong ones it fails.

    Mend: Run `qnn-forge pin MODEL`, and commit the change after looking at why a file changed.
    """

    id = "QF318"
    title = "pins are missing or wrong"


class PipFailed(SourceError):
    """What: `pip download` failed in a way that is not one of the better known ones. Its last lines are shown.

    Why: Package files are fetched by pip itself, so that mirrors, proxies, certificates and all of pip's own
    settings work. The cause is often one of those settings: a constraint, a required hash, an index.

    Mend: Run the command shown in the message by hand and mend what pip says. If pip is missing from the
    environment, `python -m ensurepip` installs it.
    """

    id = "QF319"
    title = "pip could not download a package"


class AddressUnusable(SourceError):
    """What: The address of a source is not of the form its kind needs.

    Why: Only addresses that name exactly one thing are fetched: `name==version`, `owner/repo@` with a full commit,
    an https URL without a login, `owner/repo@tag/asset`.

    Mend: Correct the address; docs/sources.md shows one of each kind.
    """

    id = "QF320"
    title = "the address of a source cannot be used"


class AnswerUnusable(SourceError):
    """What: The server's answer makes no sense for a download: an unusual status, another revision than the one asked
    for, or no information about the file.

    Why: Something between here and the server (a captive portal, a mirror) answers in its place, or the address is
    not one of a file.

    Mend: Open the address in a browser and see what answers; check HF_ENDPOINT and proxy settings.
    """

    id = "QF321"
    title = "a server's answer cannot be used"


class NotTheFile(SourceError):
    """What: What arrived is a web page or a Git LFS pointer, not the file.

    Why: Code hosts show a page about a file at its usual address, and "raw" addresses of files under Git LFS give a
    pointer of three lines. Pinning that would make a model of it.

    Mend: Use the address of the download itself: a release asset, a `resolve` address of the Hub (better: the
    `huggingface` kind), or a media address of the code host.
    """

    id = "QF322"
    title = "a download is a page about the file, not the file"


class PinNotWritten(SourceError):
    """What: The pins could not be put into model.yaml without touching anything else of it.

    Why: `pin` edits the text in place, so that comments and layout stay. It checks its own edit by reading the
    result back, and gives up rather than change something else. Anchors, aliases, merge keys and explicit keys
    (`? key`) among the sources are the usual cause.

    Mend: Write the sha256 and size shown in the message into model.yaml by hand, or write the source out plainly.
    """

    id = "QF323"
    title = "pins could not be written"
