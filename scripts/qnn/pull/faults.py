"""From the errors of downloading sources to those of downloading published files.

The downloader is the one of qnn.sources; what it raises speaks of model.yaml and pins, which whoever pulls has not.
"""

from __future__ import annotations

from qnn.errors import pull, sources
from qnn.errors.base import ForgeError
from qnn.model.spec import Source
from qnn.sources.protocol import describe

_AGAIN = "run the same command again; it goes on from the bytes it has"
_REPORT = "try again; if it stays, report it to whoever keeps the index"
_MEANINGS: tuple[tuple[tuple[type[sources.SourceError], ...], type[ForgeError], str], ...] = (
    (
        (sources.SourceNotFound, sources.SourceForbidden),
        pull.PublishedFileMissing,
        "check the address given with --from; a file that the index names and that is missing is worth a report",
    ),
    ((sources.RateLimited,), pull.DownloadsLimited, "try again later; what came so far is kept"),
    ((sources.ServerFault, sources.AnswerUnusable), pull.DownloadServerFault, "try again later"),
    ((sources.TransferBroken, sources.SourceTimedOut), pull.DownloadCut, _AGAIN),
    ((sources.RedirectRefused, sources.AddressUnusable), pull.DownloadRedirected, _REPORT),
    (
        (sources.TlsFailed, sources.HostUnreachable),
        pull.NoConnection,
        "check the network and the address; behind a proxy set HTTPS_PROXY",
    ),
    ((sources.ContentMismatch, sources.SourceTooBig), pull.NotThePublishedFile, _REPORT),
)


def translated(error: sources.SourceError, source: Source, what: str) -> ForgeError:
    """The error a user of pull should see; `what` names the file in place of `source`."""
    text = error.message.replace(describe(source), what).replace("model.yaml pins", "the index says")
    for kinds, meaning, remedy in _MEANINGS:
        if isinstance(error, kinds):
            return meaning(text, remedy=remedy, details=error.details)
    return error
