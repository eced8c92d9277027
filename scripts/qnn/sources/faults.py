"""From what HTTP libraries raise and servers answer to the errors of qnn.errors.sources.

Errors of httpx and of whatever client huggingface_hub uses are told apart by their class names: the two clients are
different distributions with the same names.
"""

from __future__ import annotations

import email.utils
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from qnn.errors.sources import (
    AnswerUnusable,
    HostUnreachable,
    RateLimited,
    ServerFault,
    SourceError,
    SourceForbidden,
    SourceNotFound,
    SourceTimedOut,
    TlsFailed,
    TransferBroken,
)
from qnn.sources.protocol import printable

RUN_AGAIN = "run the same command again; it goes on from the bytes it has if the server allows that"
_PROBLEM_HEADERS = ("x-error-message", "x-error-code")


def network_fault(error: BaseException, what: str, url: str) -> SourceError | None:
    """The error for a failed request or a broken transfer, or None when `error` is no network fault.

    `what` names the source in the message, `url` the address that was being spoken to.
    """
    host = urlsplit(url).hostname or url
    causes = tuple(_chain(error))
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if (tls := _tls_reason(causes, names)) is not None:
        return TlsFailed(
            f"{what}: no trusted TLS connection to {host}: {tls}",
            remedy="check the host name; a company proxy's certificate belongs into the system's store",
        )
    if (connection := _connection_fault(causes, names, what, host)) is not None:
        return connection
    if names & {"TimeoutException", "TimeoutError"}:
        return SourceTimedOut(f"{what}: {host} does not answer any more", remedy=RUN_AGAIN)
    if names & {"RemoteProtocolError", "ReadError", "WriteError", "ConnectionError"}:
        return TransferBroken(f"{what}: the connection to {host} broke: {_reason(causes)}", remedy=RUN_AGAIN)
    return None


def _connection_fault(causes: tuple[BaseException, ...], names: set[str], what: str, host: str) -> SourceError | None:
    """The error when no connection came about, unless it is TLS or a timeout that is to blame."""
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return HostUnreachable(
            f"{what}: the host name {host} cannot be resolved",
            remedy="check the network and the address; behind a proxy set HTTPS_PROXY",
        )
    if "ProxyError" in names and "407" in _reason(causes):
        return SourceForbidden(
            f"{what}: the proxy on the way to {host} wants a login",
            remedy="put it into HTTPS_PROXY: http://user:password@proxy:port",
        )
    if names & {"ConnectError", "ProxyError", "ConnectionRefusedError"}:
        return HostUnreachable(
            f"{what}: no connection to {host}: {_reason(causes)}",
            remedy="check the network and the address; behind a proxy set HTTPS_PROXY",
        )
    return None


def _tls_reason(causes: tuple[BaseException, ...], names: set[str]) -> str | None:
    """Why TLS is to blame, or None. A TLS stream that breaks later on is a broken transfer like any other."""
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        if isinstance(cause, ssl.SSLError) and names & {"ConnectError", "ProxyError"}:
            return str(cause)
    return None


def status_fault(status: int, headers: Mapping[str, str], what: str, url: str) -> SourceError:
    """The error for an HTTP status that is not a success. `headers` by lower-case name."""
    host = urlsplit(url).hostname or url
    answer = f"{what}: {host} answers {status}"
    details = [f"{name}: {headers[name][:200]}" for name in _PROBLEM_HEADERS if headers.get(name)]
    if is_rate_limit(status, headers):
        wait = retry_after(headers)
        until = "" if wait is None else f" and asks to wait {wait:.0f} s"
        return RateLimited(
            f"{answer} (too many requests){until}",
            remedy="try again later, or provide a token (HF_TOKEN, GITHUB_TOKEN)",
            details=details,
        )
    if status in (404, 410):
        return SourceNotFound(
            f"{answer}: there is nothing at this address",
            remedy="correct the address in model.yaml; private files need a token",
            details=details,
        )
    if status in (401, 403, 407):
        return SourceForbidden(
            f"{answer}: access is refused",
            remedy="provide a token that may read it (HF_TOKEN, GITHUB_TOKEN), or accept the repository's terms",
            details=details,
        )
    if status >= 500:
        return ServerFault(f"{answer} (a fault of the server)", remedy="try again later", details=details)
    return AnswerUnusable(
        f"{answer}, which is no answer to a download",
        remedy="open the address in a browser and see what answers there",
        details=details,
    )


def is_rate_limit(status: int, headers: Mapping[str, str]) -> bool:
    """429, or the 403 with a rate-limit header that GitHub sends in its place."""
    return status == 429 or (
        status == 403 and ("retry-after" in headers or headers.get("x-ratelimit-remaining") == "0")
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a Retry-After header (seconds or an HTTP date) asks to wait; None without a usable one."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _reason(causes: tuple[BaseException, ...]) -> str:
    texts = [str(cause).strip() for cause in reversed(causes)]
    return next((printable(text.splitlines()[0][:200]) for text in texts if text), type(causes[0]).__name__)
