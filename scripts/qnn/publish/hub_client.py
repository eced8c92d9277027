"""huggingface_hub made to say what went wrong in our words, and to wait no longer than it should.

The library repeats requests by itself and then sleeps for as long as a server says; a hook on its HTTP client sees
every answer first and leaves the waiting to qnn.publish.patience.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import qnn
from qnn.errors.publish import (
    AnswerNotUnderstood,
    PublishedMeanwhile,
    PublishError,
    TargetFault,
    TargetForbidden,
    TargetLimited,
    TargetMissing,
)
from qnn.publish.patience import Again, Patience
from qnn.sources.faults import network_fault, retry_after

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_T = TypeVar("_T")
_RUN_AGAIN = "run the same command later; it goes on from where it stood"


@dataclass(frozen=True)
class HubClient:
    """Asks the Hub; HF_ENDPOINT, HF_TOKEN and the other settings of huggingface_hub work as everywhere.

    `endpoint` is another Hub than the one of HF_ENDPOINT.
    """

    patience: Patience = field(default_factory=Patience)
    endpoint: str | None = None

    @property
    def address(self) -> str:
        """The Hub's own address, without a slash at the end."""
        from huggingface_hub import constants  # noqa: PLC0415

        return str(self.endpoint or constants.ENDPOINT).rstrip("/")

    def ask(self, what: str, request: Callable[[HfApi], _T]) -> _T:
        """What `request` returns; it may be made several times. Raises PublishError; `what` names it in messages.

        Faults of this machine, as a file that cannot be read, go through.
        """
        api = _api(self.address)

        def attempt() -> _T:
            with _watched(what):
                try:
                    return request(api)
                except Exception as error:  # noqa: BLE001 - the library raises anything; what is not the Hub's goes on
                    raise _translated(error, what, str(api.endpoint)) from None

        return self.patience.persevere(attempt)


def _api(endpoint: str) -> HfApi:
    from huggingface_hub import HfApi  # noqa: PLC0415 - half a second
    from huggingface_hub.utils import disable_progress_bars, logging  # noqa: PLC0415

    disable_progress_bars()
    logging.set_verbosity_error()
    return HfApi(endpoint, library_name="qnn-forge", library_version=qnn.__version__)


@contextmanager
def _watched(what: str) -> Iterator[None]:
    """Answers that ask to come again become Again before the library sleeps on them."""
    from huggingface_hub.utils import get_session  # noqa: PLC0415

    def look(response: Any) -> None:
        headers = {str(name).lower(): str(value) for name, value in response.headers.items()}
        if response.status_code == 429:
            wait = _asked_to_wait(headers)
            until = "" if wait is None else f" (it asks to wait {wait:.0f} s)"
            raise Again(TargetLimited(f"{what}: the Hub answers 429{until}", remedy=_RUN_AGAIN), wait)
        if response.status_code >= 500:
            raise Again(
                TargetFault(f"{what}: the Hub answers {response.status_code}", remedy=_RUN_AGAIN), retry_after(headers)
            )

    client = get_session()
    before = client.event_hooks
    client.event_hooks = {**before, "response": [*before.get("response", []), look]}
    try:
        yield
    finally:
        client.event_hooks = before


def _asked_to_wait(headers: Mapping[str, str]) -> float | None:
    from huggingface_hub.utils import parse_ratelimit_headers  # noqa: PLC0415

    wait = retry_after(headers)
    if wait is not None:
        return wait
    told = parse_ratelimit_headers(headers)
    return None if told is None else float(told.reset_in_seconds)


def _translated(error: Exception, what: str, endpoint: str) -> Exception:
    """The error to show for what huggingface_hub raised, or the same error when it is none of the Hub's."""
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    causes = list(_causes(error))
    for cause in causes:  # an upload in a thread is wrapped in a RuntimeError
        if isinstance(cause, Again | PublishError):
            return cause
    for cause in causes:
        if isinstance(cause, HfHubHTTPError):
            return _refusal(cause, what)
    fault = network_fault(error, what, endpoint)
    if fault is not None:
        return Again(TargetFault(fault.message, remedy=_RUN_AGAIN))
    if isinstance(error, OSError) and error.errno is not None:
        return error
    if isinstance(error, ValueError | RuntimeError | LookupError | TypeError):
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        return AnswerNotUnderstood(
            f"{what}: huggingface_hub could not use the Hub's answer: {reason}", remedy="check HF_ENDPOINT"
        )
    return error


def _refusal(error: Any, what: str) -> PublishError:
    status = error.response.status_code
    headers = {str(name).lower(): str(value) for name, value in error.response.headers.items()}
    said = headers.get("x-error-message", "")[:200]
    answer = f"{what}: the Hub answers {status}" + (f": {said}" if said else "")
    if status in (401, 403):
        return TargetForbidden(answer, remedy="give a token that may write to the repository (HF_TOKEN)")
    if status == 404:
        return TargetMissing(answer, remedy="make the repository first, or correct its name; HF_TOKEN must see it")
    if status in (409, 412):
        return PublishedMeanwhile(answer, remedy="run the same command again; it looks at what is there now")
    return AnswerNotUnderstood(answer, remedy="check HF_ENDPOINT, and the message of the Hub")


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
