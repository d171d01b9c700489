"""HTTP client for one aggregator, with retries where retrying is safe.

The sender chooses a batch's identifier, so it is safe to send the same bytes again: the aggregator
counts them once. After a lost connection, a timeout, or a status code for a busy or unavailable
aggregator, a request is retried with exponential backoff. The pauses are randomized, so clients do
not all retry at the same time. Every other reply is final.

Error messages never quote a reply, because it might contain what was sent.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.batches import (
    ARROW_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    Batch,
    is_fingerprint,
    to_arrow,
    to_json,
)
from sfumato.errors import (
    EntropyUnavailable,
    InvalidBatch,
    InvalidSetting,
    NotDelivered,
    ReportRejected,
    SfumatoError,
    WrongSurvey,
)
from sfumato.foundation.notebook import FieldsView
from sfumato.randomness import SystemWords
from sfumato.survey import Survey

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

__all__ = ["AggregatorClient", "BatchConflict", "ListedSurvey", "Receipt"]

_RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504, 507})
_BATCH_CONFLICT = "urn:sfumato:problem:batch-conflict"
_TOO_MANY_REPORTS = "urn:sfumato:problem:too-many-reports"

# In seconds.
_CONNECT_TIMEOUT = 10.0
_READ_TIMEOUT = 30.0
_REPLY_TIMEOUT = 120.0
_FIRST_PAUSE = 0.5
_MAX_PAUSE = 30.0

# In bytes.
_MAX_REPLY_SIZE = 2**20
_MAX_SURVEY_SIZE = 2**28


class BatchConflict(InvalidBatch):
    """The aggregator has counted different reports under this batch's identifier."""


@dataclass(frozen=True)
class Receipt(FieldsView):
    """An aggregator's confirmation that it has counted a batch."""

    survey: str
    batch: str
    reports: int

    @classmethod
    def for_batch(cls, batch: Batch) -> "Receipt":
        """Return the receipt that an aggregator should send for a batch."""
        return cls(batch.fingerprint, batch.id.hex(), batch.reports.size)


@dataclass(frozen=True)
class ListedSurvey(FieldsView):
    """A survey in an aggregator's list. Only the fingerprint can be verified."""

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

    def parse_json(self) -> dict[str, Any]:
        """Parse the body as a JSON object. Return an empty object if the body is anything else."""
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}


class AggregatorClient:
    """HTTP client for one aggregator. It follows no redirects and uses no proxy.

    ``patience``: seconds to keep retrying; 0 means a single attempt.

    ``pause``: called between attempts with the number of seconds to wait. If it returns a true
    value, the client stops retrying.

    ``key``: a bulk sender's key, which an aggregator requires for uploads with many reports.

    >>> AggregatorClient("https://surveys.example.org/lunch/")
    AggregatorClient('https://surveys.example.org/lunch')
    """

    def __init__(
        self,
        url: str,
        *,
        patience: float = 60.0,
        pause: Callable[[float], object] = time.sleep,
        key: str | None = None,
    ) -> None:
        import urllib3

        self.url = _normalize_url(url)
        self._patience = patience
        self._pause = pause
        self._authorization = {} if key is None else {"Authorization": f"Bearer {key}"}
        timeout = urllib3.Timeout(connect=_CONNECT_TIMEOUT, read=_READ_TIMEOUT)
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=8, retries=False, timeout=timeout)

    def list_surveys(self) -> tuple[ListedSurvey, ...]:
        """List the surveys on this aggregator."""
        reply = self._get("/v1/surveys")
        try:
            return tuple(map(_parse_listing, reply.parse_json()["surveys"]))
        except (LookupError, TypeError):
            raise InvalidSetting(
                f"{self.url} did not return a list of surveys. Is this an aggregator's URL?"
            ) from None

    def fetch_survey(self, fingerprint: str) -> Survey:
        """Fetch a survey. Raise ``WrongSurvey`` if it does not have this fingerprint.

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
        """Send a batch, retrying until it is counted. With ``arrow``, send compact Arrow data.

        Raise ``NotDelivered`` if the aggregator is unreachable or does not accept the batch now.
        You can send the same batch again later.
        """
        body = to_arrow(batch) if arrow else to_json(batch)
        headers = {
            "Accept": JSON_MEDIA_TYPE,
            "Content-Type": ARROW_MEDIA_TYPE if arrow else JSON_MEDIA_TYPE,
            **self._authorization,
        }
        expected = Receipt.for_batch(batch)
        path = f"/v1/surveys/{batch.fingerprint}/batches"
        self._request(
            "POST", path, headers, lambda reply: _is_expected_receipt(reply, expected), body=body
        )
        return expected

    def _get(self, path: str) -> _Reply:
        return self._request(
            "GET",
            path,
            {"Accept": JSON_MEDIA_TYPE},
            lambda reply: reply.status == 200,
            max_size=_MAX_SURVEY_SIZE,
        )

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        is_acceptable: Callable[[_Reply], bool],
        *,
        body: bytes | None = None,
        max_size: int = _MAX_REPLY_SIZE,
    ) -> _Reply:
        """Repeat a request until the reply is acceptable or final."""
        import urllib3

        deadline = time.monotonic() + self._patience
        attempt = 0
        while True:
            wait = 0.0
            try:
                reply = self._attempt(method, path, headers, body, max_size)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                reason = f"it cannot be reached ({type(error).__name__})"
            else:
                if is_acceptable(reply):
                    return reply
                if not reply.is_success and reply.status not in _RETRY_STATUSES:
                    raise self._error_for(reply)
                reason = f"it returned status {reply.status}"
                if reply.is_success:  # perhaps from a captive portal
                    reason += ", but the reply is not from an aggregator"
                wait = reply.retry_after
            wait = max(wait, _backoff(attempt))
            if time.monotonic() + wait > deadline or self._pause(wait):
                raise NotDelivered(
                    f"no valid reply from {self.url}: {reason}. It is safe to try again later."
                )
            attempt += 1

    def _attempt(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, max_size: int
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
            content = _read_body(response, max_size)
            retry_after = _parse_retry_after(response.headers.get("Retry-After"))
            return _Reply(response.status, content, retry_after)
        finally:
            response.close()  # drops the connection if the body is not fully read; never blocks
            response.release_conn()

    def _error_for(self, reply: _Reply) -> SfumatoError:
        """Return the error for a reply that is neither acceptable nor worth retrying."""
        status = reply.status
        problem = reply.parse_json()
        if status == 409 and problem.get("type") == _BATCH_CONFLICT:
            return BatchConflict(
                "the aggregator has counted different reports under this batch's identifier."
            )
        if status == 422:
            index = problem.get("index")
            if type(index) is not int or index < 0:
                index = 0
            return ReportRejected(
                f"the aggregator rejected the report at index {index} of the batch.", index=index
            )
        if status == 404:
            return WrongSurvey(
                f"{self.url} does not have this survey. Check the URL. "
                "Nothing was counted by this request."
            )
        if status == 410:
            return WrongSurvey(
                f"{self.url} has closed this survey. Nothing was counted by this request."
            )
        if status in (400, 413, 415):
            return InvalidBatch(
                f"{self.url} did not accept this batch (status {status}). "
                "It may run a different version of Sfumato."
            )
        if status == 401:
            return NotDelivered(
                f"{self.url} does not know this sender's key. Ask its operator for a new one."
            )
        if status == 403 and problem.get("type") == _TOO_MANY_REPORTS:
            return NotDelivered(
                f"{self.url} accepts uploads with this many reports only with a sender's key. "
                "Ask its operator for one (sfumato store add-sender)."
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


def _is_expected_receipt(reply: _Reply, expected: Receipt) -> bool:
    """Whether the reply is the expected receipt. Status 200 alone proves nothing."""
    return reply.status in (200, 201) and reply.parse_json() == asdict(expected)


def _read_body(response: "BaseHTTPResponse", max_size: int) -> bytes:
    """Read a reply. Raise ``OSError`` if it exceeds ``max_size`` bytes or takes too long."""
    deadline = time.monotonic() + _REPLY_TIMEOUT
    body = bytearray()
    while chunk := response.read1(2**16, decode_content=False):
        body += chunk
        if len(body) > max_size or time.monotonic() > deadline:
            raise OSError("the reply is too long or too slow")
    return bytes(body)


def _parse_retry_after(retry_after: str | None) -> float:
    """Return the seconds in a Retry-After header, or 0 if it is missing or malformed."""
    import urllib3

    if not retry_after:
        return 0.0
    try:
        return max(0.0, urllib3.Retry().parse_retry_after(retry_after))
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0.0


def _backoff(attempt: int) -> float:
    """Return a random pause: 50% to 100% of 0.5, 1, 2, 4, … seconds, capped at 30."""
    try:
        jitter = int(SystemWords().take(1)[0, 0]) / 2**64
    except EntropyUnavailable:  # harmless: the reports are already randomized
        jitter = 1.0
    full_pause = min(_FIRST_PAUSE * 2.0 ** min(attempt, 16), _MAX_PAUSE)
    return full_pause * (1 + jitter) / 2


def _normalize_url(url: str) -> str:
    import urllib3

    try:
        parts = urllib3.util.parse_url(url)
    except urllib3.exceptions.LocationParseError:
        raise InvalidSetting(
            "the aggregator's URL is malformed. Use a URL such as https://surveys.example.org."
        ) from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise InvalidSetting(
            "the aggregator's URL must start with https:// (or http://) and include a host."
        )
    if parts.auth or parts.query or parts.fragment:
        raise InvalidSetting(
            "the aggregator's URL must not contain a user name, a query or a fragment."
        )
    return parts.url.rstrip("/")
