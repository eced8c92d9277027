"""Files of a Hugging Face repository at one commit, through huggingface_hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from qnn.errors.sources import (
    AddressUnusable,
    AnswerUnusable,
    ContentMismatch,
    HostUnreachable,
    SourceError,
    SourceForbidden,
    SourceNotFound,
    SourceTooBig,
    TransferBroken,
)
from qnn.model.spec import Source
from qnn.sources.faults import network_fault, status_fault
from qnn.sources.protocol import Order, Progress, describe, download_limit
from qnn.sources.shelf import Shelved

_LOCATOR = re.compile(r"(?P<repo>[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+)@(?P<revision>[0-9a-f]{40})")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class HubFetcher:
    """`huggingface: owner/repo@<40 hex digits>` with `file`, a path in the repository.

    HF_ENDPOINT, HF_TOKEN and the other settings of huggingface_hub work as everywhere.
    """

    def address(self, source: Source) -> str:
        """Repository, commit and path. Raises AddressUnusable for anything but a full commit and a plain path."""
        repo, revision, path = _parse(source)
        return f"huggingface:{repo}@{revision}/{path}"

    def obtain(self, order: Order) -> Shelved:
        """The file at that commit, from the slot if it is there: a commit does not change."""
        found = order.slot.find()
        if found is not None:
            return found
        from huggingface_hub import constants  # noqa: PLC0415
        from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

        endpoint = order.policy.hub_endpoint or str(constants.ENDPOINT)
        client_error: type[Exception] = HfHubHTTPError.__mro__[1]  # HTTPError of the client it is built upon
        with order.slot.workshop() as folder:
            try:
                return order.slot.keep(_download(order, endpoint, folder))
            except (client_error, OSError, RuntimeError, ValueError) as error:
                fault = _fault(error, order, endpoint)
                if fault is None:
                    raise
                raise fault from None


def _download(order: Order, endpoint: str, folder: Path) -> Path:
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url  # noqa: PLC0415
    from huggingface_hub.utils import logging  # noqa: PLC0415

    logging.set_verbosity_error()  # its warnings would land between our lines; every failure reaches us as an exception
    repo, revision, path = _parse(order.source)
    url = hf_hub_url(repo, path, revision=revision, endpoint=endpoint)
    metadata = get_hf_file_metadata(url, timeout=order.policy.read_timeout, endpoint=endpoint)
    _check(order, revision, metadata)
    downloaded = hf_hub_download(
        repo,
        path,
        revision=revision,
        endpoint=endpoint,
        cache_dir=folder,
        etag_timeout=order.policy.read_timeout,
        library_name="qnn-forge",
        tqdm_class=_meter(order.source.name, order.progress, _budget(order, metadata.size)),
    )
    return Path(downloaded).resolve()


def _check(order: Order, revision: str, metadata: Any) -> None:
    """Refuse by what the Hub says of the file what would be refused after its download."""
    source = order.source
    if metadata.commit_hash != revision:
        raise AnswerUnusable(
            f"{order.what}: the Hub answers for commit {metadata.commit_hash} instead",
            remedy="check HF_ENDPOINT, and that the revision is a commit of this repository",
        )
    size, limit = metadata.size, download_limit(source, order.policy)
    # Of files in large-file storage the ETag is the sha256 of the content.
    sha256 = metadata.etag if metadata.etag and _SHA256.fullmatch(metadata.etag) else None
    if (source.sha256 and sha256 and sha256 != source.sha256) or (source.size and size and size != source.size):
        raise ContentMismatch(
            f"{order.what}: the Hub holds another file than model.yaml pins",
            remedy="check the commit and the path; run qnn-forge pin if this file is wanted",
            details=(
                f"expected sha256 {source.sha256}, {source.size} bytes",
                f"the Hub's sha256 {sha256 or '(not told)'}, {size} bytes",
            ),
        )
    if size is not None and size > limit:
        raise SourceTooBig(
            f"{order.what}: the Hub announces {size} bytes, at most {limit} are accepted",
            remedy="for a file that is meant to be so big run qnn-forge pin --max-gb N",
        )


def _budget(order: Order, size: int | None) -> int:
    """Most bytes that may come over the network: huggingface_hub resumes a broken transfer for ever if some arrive."""
    return 3 * (size if size is not None else download_limit(order.source, order.policy))


def _meter(name: str, progress: Progress, budget: int) -> type:
    """A class with the part of tqdm's interface that huggingface_hub uses; it reports instead of drawing."""

    class Meter:
        def __init__(self, *_: object, total: float | None = None, initial: float = 0, **__: object) -> None:
            self.total = total
            self.n = initial
            self.received = 0.0

        def update(self, count: float | None = 1) -> None:
            self.n += count or 0
            self.received += max(0, count or 0)
            progress.advance(name, int(self.n), None if self.total is None else int(self.total))
            if self.received > budget:
                raise TransferBroken(
                    f'source "{name}": the connection to the Hub keeps breaking', remedy="run the same command again"
                )

        def __enter__(self) -> Meter:
            return self

        def __exit__(self, *_: object) -> None:
            self.close()

        def close(self) -> None:
            """Nothing is drawn."""

        def refresh(self, *_: object, **__: object) -> None:
            """Nothing is drawn."""

        def set_description(self, *_: object, **__: object) -> None:
            """Nothing is drawn."""

        def set_postfix_str(self, *_: object, **__: object) -> None:
            """Nothing is drawn."""

    return Meter


def _fault(error: Exception, order: Order, endpoint: str) -> SourceError | None:
    """The error to show for what huggingface_hub raised; None for faults of this machine, as a full disk."""
    from huggingface_hub import errors  # noqa: PLC0415

    if isinstance(error, errors.LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        return _fault(error.__cause__, order, endpoint)  # "not in the cache either" hides why it was not fetched
    if isinstance(error, errors.HfHubHTTPError):
        return _answer_fault(error, order)
    if isinstance(error, errors.OfflineModeIsEnabled):
        return HostUnreachable(
            f"{order.what}: HF_HUB_OFFLINE is set, and the file is not in the downloads folder",
            remedy="unset HF_HUB_OFFLINE for the first build",
        )
    if isinstance(error, OSError) and error.errno is not None:
        return None
    return network_fault(error, order.what, endpoint) or _odd_fault(error, order)


def _answer_fault(error: Any, order: Order) -> SourceError:
    """The error for an answer of the Hub that is no success."""
    from huggingface_hub import errors  # noqa: PLC0415

    if isinstance(error, errors.GatedRepoError):
        return SourceForbidden(
            f"{order.what}: the repository is gated",
            remedy="accept its terms on its web page, and provide the token of that account in HF_TOKEN",
        )
    missing = (
        (errors.RepositoryNotFoundError, "repository (or it is private, and there is no token for it)"),
        (errors.RevisionNotFoundError, "commit in the repository"),
        (errors.RemoteEntryNotFoundError, "file at this commit"),
    )
    for kind, thing in missing:
        if isinstance(error, kind):
            return SourceNotFound(
                f"{order.what}, file {order.source.member!r}: there is no such {thing}",
                remedy="correct the address in model.yaml; private repositories need HF_TOKEN",
            )
    headers = {name.lower(): value for name, value in error.response.headers.items()}
    return status_fault(error.response.status_code, headers, order.what, str(error.response.url))


def _odd_fault(error: Exception, order: Order) -> SourceError:
    if "consistency check failed" in str(error).lower():
        return TransferBroken(
            f"{order.what}: fewer or more bytes came than announced", remedy="run the same command again"
        )
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return AnswerUnusable(
        f"{order.what}: huggingface_hub could not use the answer: {reason}",
        remedy="check HF_ENDPOINT and the proxy settings",
    )


def _parse(source: Source) -> tuple[str, str, str]:
    found = _LOCATOR.fullmatch(source.locator)
    path = source.member or ""
    if found is None or {"", ".", ".."} & set(path.split("/")) or "\\" in path:
        raise AddressUnusable(
            f"{describe(source)}, file {path!r}: the address is not a repository at a full commit with a file in it",
            remedy="write owner/repo@ and the 40 digits of a commit, and under `file` a path in the repository",
        )
    return found["repo"], found["revision"], path
