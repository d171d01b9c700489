"""HTTP client for one aggregator, with retries where retrying is safe.

A batch has an identifier that its sender chose, so it is safe to send the same bytes again: the
aggregator counts them once. Lost connections, timeouts and the statuses of an aggregator that is
busy or down are retried with growing pauses. The pauses are randomised so that many clients do not
come back all at once. Every other reply is final.

Errors never repeat a reply: it might contain what was sent.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.batches import ARROW, JSON, Batch, is_fingerprint, to_arrow, to_json
from sfumato.errors import (
    EntropyUnavailable,
    InvalidBatch,
    InvalidSetting,
    NotDelivered,
    ReportRejected,
    SfumatoError,
    WrongSurvey,
)
from sfumato.randomness import SystemWords
from sfumato.survey import Survey

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

__all__ = ["AggregatorClient", "BatchConflict", "ListedSurvey", "Receipt"]

_RETRY_STATUSES = frozenset({408, 429, 502, 503, 504, 507})
_CONFLICT = "urn:sfumato:problem:batch-conflict"

# Seconds.
_CONNECT_TIMEOUT = 10.0
_READ_TIMEOUT = 30.0
_MAX_REPLY_SECONDS = 120.0
_FIRST_PAUSE = 0.5
_MAX_PAUSE = 30.0

# Bytes.
_MAX_REPLY = 2**20
_MAX_SURVEY = 2**28


class BatchConflict(InvalidBatch):
    """The aggregator has counted other reports under this batch's identifier."""


@dataclass(frozen=True)
class Receipt:
    """An aggregator's confirmation that it counted a batch, now or before."""

    survey: str
    batch: str
    reports: int

    @classmethod
    def for_batch(cls, batch: Batch) -> "Receipt":
        """Return the receipt to expect for a batch."""
        return cls(batch.fingerprint, batch.id.hex(), batch.reports.size)


@dataclass(frozen=True)
class ListedSurvey:
    """A survey in an aggregator's list. Only the fingerprint proves anything."""

    fingerprint: str
    name: str
    title: str
    open: bool


@dataclass(frozen=True)
class _Reply:
    status: int
    body: bytes
    retry_after: float

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json_object(self) -> dict[str, Any]:
        """Return the body as a JSON object; an empty one if it is something else."""
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}


class AggregatorClient:
    """HTTP client for one aggregator. It follows no redirects and uses no proxy.

    ``patience``: seconds to keep retrying; 0 means a single attempt.

    ``pause``: called with the seconds to wait between attempts. Return a true value to stop
    retrying.

    >>> AggregatorClient("https://surveys.example.org/lunch/")
    AggregatorClient('https://surveys.example.org/lunch')
    """

    def __init__(
        self, url: str, *, patience: float = 60.0, pause: Callable[[float], object] = time.sleep
    ) -> None:
        import urllib3

        self.url = _normalize_url(url)
        self._patience = patience
        self._pause = pause
        timeout = urllib3.Timeout(connect=_CONNECT_TIMEOUT, read=_READ_TIMEOUT)
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=8, retries=False, timeout=timeout)

    def surveys(self) -> tuple[ListedSurvey, ...]:
        """List the surveys on this aggregator."""
        reply = self._get("/v1/surveys")
        try:
            return tuple(map(_parse_listing, reply.json_object()["surveys"]))
        except (LookupError, TypeError):
            raise InvalidSetting(
                f"{self.url} did not return a list of surveys. Is this an aggregator's URL?"
            ) from None

    def survey(self, fingerprint: str) -> Survey:
        """Return the survey with this fingerprint; ``WrongSurvey`` if the aggregator sends another.

        Get the fingerprint from a source you trust, not from the aggregator itself.
        """
        if not is_fingerprint(fingerprint):
            raise WrongSurvey(
                "a fingerprint must be 64 lowercase hexadecimal digits. "
                "Ask the survey's author for it."
            )
        reply = self._get(f"/v1/surveys/{fingerprint}")
        return Survey.from_resolved(reply.body, fingerprint=fingerprint)

    def deliver(self, batch: Batch, *, arrow: bool = False) -> Receipt:
        """Send a batch until it is counted: as JSON, or as Arrow for bulk uploads.

        ``NotDelivered`` if the aggregator is unreachable or does not accept it now. You may send
        the same batch again later.
        """
        body = to_arrow(batch) if arrow else to_json(batch)
        headers = {"Accept": JSON, "Content-Type": ARROW if arrow else JSON}
        expected = Receipt.for_batch(batch)
        path = f"/v1/surveys/{batch.fingerprint}/batches"
        self._request("POST", path, headers, lambda reply: _is_receipt(reply, expected), body=body)
        return expected

    def _get(self, path: str) -> _Reply:
        return self._request(
            "GET", path, {"Accept": JSON}, lambda reply: reply.status == 200, limit=_MAX_SURVEY
        )

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        accepts: Callable[[_Reply], bool],
        *,
        body: bytes | None = None,
        limit: int = _MAX_REPLY,
    ) -> _Reply:
        """Repeat a request until the reply is acceptable or final."""
        import urllib3

        deadline = time.monotonic() + self._patience
        attempt = 0
        while True:
            wait = 0.0
            try:
                reply = self._attempt(method, path, headers, body, limit)
            except (urllib3.exceptions.HTTPError, OSError) as problem:
                reason = f"it cannot be reached ({type(problem).__name__})"
            else:
                if accepts(reply):
                    return reply
                if not reply.is_success and reply.status not in _RETRY_STATUSES:
                    raise self._rejection(reply)
                reason = f"it returned status {reply.status}"
                if reply.is_success:  # from the log-in page of a hotel, say
                    reason += ", but its reply is not an aggregator's"
                wait = reply.retry_after
            wait = max(wait, _backoff(attempt))
            if time.monotonic() + wait > deadline or self._pause(wait):
                raise NotDelivered(
                    f"no valid reply from {self.url}: {reason}. It is safe to try again later."
                )
            attempt += 1

    def _attempt(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, limit: int
    ) -> _Reply:
        response = self._pool.request(
            method,
            self.url + path,
            body=body,
            headers=headers,
            redirect=False,
            preload_content=False,
        )
        try:
            content = _read_body(response, limit)
            retry_after = _seconds_to_wait(response.headers.get("Retry-After"))
            return _Reply(response.status, content, retry_after)
        finally:
            response.close()  # loses the connection unless all was read, but never hangs
            response.release_conn()

    def _rejection(self, reply: _Reply) -> SfumatoError:
        """Return the error for a status that retrying would not change."""
        status = reply.status
        problem = reply.json_object()
        if status == 409 and problem.get("type") == _CONFLICT:
            return BatchConflict(
                "the aggregator has counted other reports under this batch's identifier."
            )
        if status == 422:
            index = problem.get("index")
            if type(index) is not int or index < 0:
                index = 0
            return ReportRejected(
                f"the aggregator rejected the batch: see its report at index {index}.", index=index
            )
        if status == 404:
            return WrongSurvey(
                f"{self.url} does not have this survey. Check the URL. "
                "This request counted nothing."
            )
        if status == 410:
            return WrongSurvey(f"{self.url} has closed this survey. This request counted nothing.")
        if status in (400, 413, 415):
            return InvalidBatch(
                f"{self.url} does not accept this as a batch (status {status}); "
                "its version may differ."
            )
        if status == 403:
            return NotDelivered(
                f"{self.url} does not accept answers to this survey yet. "
                "Try again after it has opened."
            )
        return NotDelivered(
            f"unexpected status {status} from {self.url}. Is this an aggregator's URL?"
        )

    def __repr__(self) -> str:
        return f"AggregatorClient({self.url!r})"


def _parse_listing(fields: Mapping[str, Any]) -> ListedSurvey:
    return ListedSurvey(
        fingerprint=str(fields["fingerprint"]),
        name=str(fields["name"]),
        title=str(fields["title"]),
        open=bool(fields["open"]),
    )


def _is_receipt(reply: _Reply, expected: Receipt) -> bool:
    """Whether the reply is the batch's receipt: any server can return status 200."""
    return reply.status in (200, 201) and reply.json_object() == asdict(expected)


def _read_body(response: "BaseHTTPResponse", limit: int) -> bytes:
    """Read at most ``limit`` bytes from a server that may be slow or never stop."""
    deadline = time.monotonic() + _MAX_REPLY_SECONDS
    body = bytearray()
    while part := response.read1(2**16, decode_content=False):
        body += part
        if len(body) > limit or time.monotonic() > deadline:
            raise OSError("the reply is too long or too slow")
    return bytes(body)


def _seconds_to_wait(retry_after: str | None) -> float:
    """Parse a Retry-After header, a number or a date; 0 if it is missing or malformed."""
    import urllib3

    if not retry_after:
        return 0.0
    try:
        return max(0.0, urllib3.Retry().parse_retry_after(retry_after))
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0.0


def _backoff(attempt: int) -> float:
    """Return a random pause: between half and all of 0.5, 1, 2, … seconds, at most 30."""
    try:
        chance = int(SystemWords().take(1)[0, 0]) / 2**64
    except EntropyUnavailable:  # harmless: the reports are randomised already
        chance = 1.0
    longest = min(_FIRST_PAUSE * 2.0 ** min(attempt, 16), _MAX_PAUSE)
    return longest * (1 + chance) / 2


def _normalize_url(url: str) -> str:
    import urllib3

    try:
        parts = urllib3.util.parse_url(url)
    except urllib3.exceptions.LocationParseError:
        raise InvalidSetting(
            "the aggregator's URL is malformed. Write e.g. https://surveys.example.org."
        ) from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise InvalidSetting(
            "the aggregator's URL must start with https:// (or http://) and name a host."
        )
    if parts.auth or parts.query or parts.fragment:
        raise InvalidSetting("the aggregator's URL must not contain a user name, a ? or a #.")
    return parts.url.rstrip("/")
