"""Files over https: streamed, bounded, resumed, with every redirect checked.

Imports httpx, so import this module only where something is going to be downloaded.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

import qnn
from qnn.errors.sources import (
    AddressUnusable,
    AnswerUnusable,
    ContentMismatch,
    RedirectRefused,
    SourceError,
    SourceForbidden,
    SourceTimedOut,
    SourceTooBig,
    TlsFailed,
    TransferBroken,
)
from qnn.model.spec import Source
from qnn.sources.faults import RUN_AGAIN, is_rate_limit, network_fault, retry_after, status_fault
from qnn.sources.protocol import Order, Policy, archive_member, describe, download_limit
from qnn.sources.shelf import Resumable, Shelved

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class HttpsFetcher:
    """`url: https://…`."""

    def address(self, source: Source) -> str:
        """The URL itself. Raises AddressUnusable unless it is an absolute URL without a login or a fragment."""
        try:
            url = httpx.URL(source.locator)
        except httpx.InvalidURL as error:
            raise _unusable(source, str(error)) from None
        if url.scheme not in ("https", "http") or not url.host:
            raise _unusable(source, "it is not an https URL")
        if url.userinfo:
            raise _unusable(source, "it holds a login")
        if url.fragment:
            raise _unusable(source, "it holds a fragment (#…)")
        return f"url:{url}"

    def obtain(self, order: Order) -> Shelved:
        """The file at the URL; asked for again by ETag if it is in the slot already."""
        return download(order, order.source.locator)


@dataclass(frozen=True)
class Credential:
    """A header value that only these hosts may see."""

    value: str
    hosts: frozenset[str]


def download(order: Order, url: str, credential: Credential | None = None) -> Shelved:
    """Get `url` into the order's slot, going on with what is there.

    Connection failures, 5xx and 429 are tried again with growing pauses; a broken transfer goes on by Range as long
    as the server gives a strong ETag. Raises a SourceError; OSError (as a full disk) goes through.
    """
    policy = order.policy
    former = order.slot.find()
    if former is not None and former.etag is None:
        former = None
    timeout = httpx.Timeout(policy.read_timeout, connect=policy.connect_timeout)
    headers = {"user-agent": f"qnn-forge/{qnn.__version__}", "accept": "*/*", "accept-encoding": "identity"}
    trust = policy.tls or ssl.create_default_context()
    pause = policy.first_pause
    with httpx.Client(verify=trust, timeout=timeout, headers=headers, follow_redirects=False) as client:
        session = _Session(client, order, url, credential, former)
        for left in reversed(range(policy.attempts)):
            try:
                return session.attempt()
            except _Again as again:
                wait = pause if again.wait is None else again.wait
                if left == 0 or wait > policy.longest_pause:
                    raise again.error from None
                time.sleep(wait)
                pause = min(2 * pause, policy.longest_pause)
    raise AssertionError("the last attempt returns or raises")


class _Again(Exception):
    """This attempt failed with `error`, and another one may succeed."""

    def __init__(self, error: SourceError, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


@dataclass
class _Pace:
    """Notices a transfer that is alive but too slow to ever end."""

    policy: Policy
    since: float = field(default_factory=time.monotonic)
    received: int = 0

    def too_slow(self, count: int) -> bool:
        self.received += count
        elapsed = time.monotonic() - self.since
        if elapsed < self.policy.read_timeout:
            return False
        slow = self.received < self.policy.slowest * elapsed
        self.since, self.received = time.monotonic(), 0
        return slow


@dataclass
class _Session:
    """One download: what is asked for, and what is known about it between attempts."""

    client: httpx.Client
    order: Order
    url: str
    credential: Credential | None
    former: Shelved | None

    def attempt(self) -> Shelved:
        """One request and its transfer. Raises _Again where another attempt makes sense."""
        slot = self.order.slot
        part = slot.resumable()
        try:
            with self._open(part) as response:
                if response.status_code == 304 and self.former is not None:
                    slot.forget()
                    return self.former
                begin = self._begin(response, part)
                total = _announced(response, begin)
                self._check_announced(total)
                self._receive(response, begin, total)
            return slot.keep(slot.partial, _strong_etag(response.headers))
        except httpx.HTTPError as error:
            raise self._failed(error) from None

    def _failed(self, error: httpx.HTTPError) -> Exception:
        """What a failed request or a broken transfer means: try again, or an error."""
        fault = network_fault(error, self.order.what, str(error.request.url))
        if fault is None:
            return AnswerUnusable(
                f"{self.order.what}: no proper HTTP answer: {error}",
                remedy="open the address in a browser and see what answers there",
            )
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & {"ConnectError", "ConnectTimeout", "ProxyError"}:
            return fault if isinstance(fault, TlsFailed | SourceForbidden) else _Again(fault)
        return self._broken(fault) if isinstance(fault, TransferBroken) else fault

    def _broken(self, fault: TransferBroken) -> Exception:
        """Go on where that is safe: something to resume, or nothing lost."""
        slot = self.order.slot
        if slot.resumable() is not None or not slot.partial.exists() or slot.partial.stat().st_size == 0:
            return _Again(fault)
        slot.forget()  # without a strong ETag nobody knows whether the rest would be of the same file
        return fault

    @contextmanager
    def _open(self, part: Resumable | None) -> Iterator[httpx.Response]:
        """The answer at the end of all redirects, its body still to be read."""
        url = httpx.URL(self.url)
        self._check_scheme(url, None)
        seen: list[httpx.URL] = []
        while True:
            seen.append(url)
            request = self.client.build_request("GET", url, headers=self._headers(url, part))
            response = self.client.send(request, stream=True)
            try:
                if response.status_code not in _REDIRECTS:
                    yield response
                    return
                url = self._next(response, seen)
            finally:
                response.close()

    def _headers(self, url: httpx.URL, part: Resumable | None) -> dict[str, str]:
        headers = {}
        if part is not None:
            headers = {"range": f"bytes={part.size}-", "if-range": part.etag}
        elif self.former is not None and self.former.etag is not None:
            headers = {"if-none-match": self.former.etag}
        if self.credential is not None and url.host in self.credential.hosts:
            headers["authorization"] = self.credential.value
        return headers

    def _next(self, response: httpx.Response, seen: list[httpx.URL]) -> httpx.URL:
        location = response.headers.get("location")
        if not location:
            raise self._refused("a redirect leads nowhere (no Location header)")
        try:
            url = response.url.join(location)
        except httpx.InvalidURL:
            raise self._refused(f"a redirect leads to {location[:200]!r}, which is no URL") from None
        self._check_scheme(url, response.url)
        if url.userinfo:
            raise self._refused(f"a redirect leads to {url.host} with a login in the address")
        if url in seen:
            raise self._refused(f"the redirects go in a circle, back to {_plain(url)}")
        if len(seen) > self.order.policy.most_redirects:
            raise self._refused(f"more than {self.order.policy.most_redirects} redirects, last to {_plain(url)}")
        return url

    def _check_scheme(self, url: httpx.URL, came_from: httpx.URL | None) -> None:
        plain_allowed = url.scheme == "http" and url.host in self.order.policy.plain_http_hosts
        if url.host and (url.scheme == "https" or plain_allowed):
            return
        if came_from is None:
            raise _unusable(self.order.source, f"only https is used, not {url.scheme or 'no scheme'}")
        raise self._refused(f"{came_from.host} redirects to {_plain(url)}, which is not https")

    def _refused(self, reason: str) -> RedirectRefused:
        return RedirectRefused(
            f"{self.order.what}: {reason}", remedy="put the final https address of the file into model.yaml"
        )

    def _begin(self, response: httpx.Response, part: Resumable | None) -> int:
        """Offset at which this answer's body starts; prepares the partial file for it."""
        slot, status = self.order.slot, response.status_code
        if status in (200, 206) and response.headers.get("content-encoding", "identity") != "identity":
            raise AnswerUnusable(
                f"{self.order.what}: {response.url.host} compresses what was to be sent as it is",
                remedy="use another address of the file, or pack it into an archive and name its member in `file`",
            )
        etag = _strong_etag(response.headers)
        if status == 200:
            slot.start(etag)
            return 0
        if part is not None and status == 206 and _range_start(response.headers) == part.size and etag == part.etag:
            return part.size
        if part is not None and status in (206, 304, 412, 416):
            slot.forget()  # what is there belongs to another version, or the server counts differently: start anew
            fault = TransferBroken(
                f"{self.order.what}: the server cannot go on with an unfinished download",
                remedy="run the same command again; it starts from the beginning",
            )
            raise _Again(fault, wait=0.0)
        headers = _lower(response.headers)
        error = status_fault(status, headers, self.order.what, str(response.url))
        if is_rate_limit(status, headers) or status >= 500:
            raise _Again(error, wait=retry_after(headers))
        raise error

    def _check_announced(self, total: int | None) -> None:
        """Refuse by the announced size what would be refused after all of it came."""
        source, policy = self.order.source, self.order.policy
        if total is None:
            return
        if source.size is not None and archive_member(source) is None and total != source.size:
            self.order.slot.forget()
            raise ContentMismatch(
                f"{self.order.what}: the server announces {total} bytes, model.yaml pins {source.size}",
                remedy="find out why the file changed; run qnn-forge pin if the new one is wanted",
                details=(f"expected size   {source.size}", f"announced size  {total}"),
            )
        if total > download_limit(source, policy):
            self.order.slot.forget()
            raise self._too_big(f"the server announces {total} bytes")

    def _too_big(self, what_came: str) -> SourceTooBig:
        limit = download_limit(self.order.source, self.order.policy)
        return SourceTooBig(
            f"{self.order.what}: {what_came}, at most {limit} are accepted",
            remedy="correct the address; for a file that is meant to be so big run qnn-forge pin --max-gb N",
        )

    def _receive(self, response: httpx.Response, begin: int, total: int | None) -> None:
        order, pace, count = self.order, _Pace(self.order.policy), begin
        limit = download_limit(order.source, order.policy)
        with order.slot.partial.open("ab") as stream:
            order.progress.advance(order.source.name, count, total)
            for chunk in response.iter_raw():
                count += len(chunk)
                if count > limit:
                    break
                stream.write(chunk)
                stream.flush()  # so that a kill loses nothing that came
                order.progress.advance(order.source.name, count, total)
                if pace.too_slow(len(chunk)):
                    raise SourceTimedOut(
                        f"{order.what}: {response.url.host} sends less than {order.policy.slowest} bytes per second",
                        remedy=RUN_AGAIN,
                    )
        if count > limit:
            order.slot.forget()
            raise self._too_big("more bytes came")
        if total is not None and count != total:  # the server may send less of a range than asked for
            raise self._broken(TransferBroken(f"{order.what}: {count} of {total} bytes came", remedy=RUN_AGAIN))


def _announced(response: httpx.Response, begin: int) -> int | None:
    """Total bytes of the file by the answer's headers, or None."""
    if response.status_code == 206:
        return _number(response.headers.get("content-range", "").rpartition("/")[2])
    length = _number(response.headers.get("content-length", ""))
    return None if length is None else begin + length


def _range_start(headers: httpx.Headers) -> int | None:
    unit, _, rest = headers.get("content-range", "").partition(" ")
    return _number(rest.partition("-")[0]) if unit == "bytes" else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _strong_etag(headers: httpx.Headers) -> str | None:
    """The ETag if it promises byte-for-byte sameness; the weak kind (W/) does not."""
    etag = str(headers.get("etag", ""))
    return etag if etag.startswith('"') and etag.endswith('"') and len(etag) > 2 else None


def _lower(headers: httpx.Headers) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _plain(url: httpx.URL) -> str:
    """A URL without its query, which may hold a signature."""
    return str(url.copy_with(query=None))[:200]


def _unusable(source: Source, reason: str) -> AddressUnusable:
    return AddressUnusable(
        f"{describe(source)}: the address cannot be used: {reason}",
        remedy="give an address of the form https://host/path/file",
    )
