"""The courier: speaks to an aggregator over HTTP, and asks again where asking again is safe.

A batch has an identifier that its sender made, so the same bytes may be sent as often as it takes: the aggregator
counts them once. Lost connections, time-outs and the statuses of an aggregator that is busy or down are tried again,
later and later, with some chance in it so that a crowd does not come back all at once. Everything else is final.

What an aggregator answers is never repeated in an error: it might hold what was sent.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from sfumato.batches import ARROW, JSON, Batch, arrow_bytes, json_bytes
from sfumato.batches.batch import is_fingerprint
from sfumato.errors import (
    EntropyUnavailable,
    InvalidBatch,
    NotDelivered,
    ReportRejected,
    SfumatoError,
    WrongSurvey,
)
from sfumato.randomness import SystemWords
from sfumato.survey import Survey

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

__all__ = ["Conflict", "Courier", "ListedSurvey", "Receipt"]

_AGAIN = frozenset({408, 429, 502, 503, 504, 507})
_CONNECT_SECONDS, _SILENT_SECONDS, _LONGEST_ANSWER = 10.0, 30.0, 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_SMALL, _LARGE = 2**20, 2**28  # bytes of a receipt or a problem; of a survey
_CONFLICT = "urn:sfumato:problem:batch-conflict"


class Conflict(InvalidBatch):
    """The aggregator counted other reports under this batch's identifier before."""


@dataclass(frozen=True)
class Receipt:
    """What an aggregator says of a batch that it counted, now or before."""

    survey: str
    batch: str
    reports: int

    @classmethod
    def of(cls, batch: Batch) -> "Receipt":
        """The receipt that a batch must get."""
        return cls(batch.fingerprint, batch.id.hex(), int(batch.reports.size))


@dataclass(frozen=True)
class ListedSurvey:
    """A survey as an aggregator lists it. Only the fingerprint proves anything."""

    fingerprint: str
    name: str
    title: str
    open: bool


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes
    retry_after: float


class Courier:
    """The way to one aggregator.

    ``patience`` is for how many seconds an exchange is tried again; 0 is one try. ``pause`` waits between tries; if it
    answers something true, there is no other try. No redirect is followed and no proxy is asked.

    >>> Courier("https://surveys.example.org/lunch/")
    Courier('https://surveys.example.org/lunch')
    """

    def __init__(
        self, url: str, *, patience: float = 60.0, pause: Callable[[float], object] = time.sleep
    ) -> None:
        import urllib3

        self.url = _checked_url(url)
        self._patience, self._pause = patience, pause
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=_SILENT_SECONDS)
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=8, retries=False, timeout=timeout)

    def surveys(self) -> tuple[ListedSurvey, ...]:
        """The surveys that the aggregator serves."""
        answer = self._exchange(
            "GET", "/v1/surveys", lambda found: found.status == 200, limit=_LARGE
        )
        try:
            listed = json.loads(answer.body)["surveys"]
            return tuple(
                ListedSurvey(
                    str(one["fingerprint"]), str(one["name"]), str(one["title"]), bool(one["open"])
                )
                for one in listed
            )
        except (ValueError, LookupError, TypeError, RecursionError):
            raise NotDelivered(
                f"{self.url} answers, but not with a list of surveys. Check the URL."
            ) from None

    def survey(self, fingerprint: str) -> Survey:
        """The survey of this fingerprint; ``WrongSurvey`` if the aggregator hands out another one.

        The fingerprint must come from somebody you trust: one that the aggregator itself names proves nothing.
        """
        if not is_fingerprint(fingerprint):
            raise WrongSurvey(
                "a fingerprint has 64 hexadecimal digits, in lower case. Ask the survey's author for it."
            )
        answer = self._exchange(
            "GET", f"/v1/surveys/{fingerprint}", lambda found: found.status == 200, limit=_LARGE
        )
        return Survey.of_resolved(answer.body, fingerprint=fingerprint)

    def deliver(self, batch: Batch, *, arrow: bool = False) -> Receipt:
        """Have a batch counted, once, however often it must be sent; in JSON or, for bulk, as Arrow.

        ``NotDelivered`` where the aggregator cannot be reached or takes nothing in now: the batch may be sent again.
        """
        body, media = (arrow_bytes(batch), ARROW) if arrow else (json_bytes(batch), JSON)
        expected = Receipt.of(batch)
        path = f"/v1/surveys/{batch.fingerprint}/batches"
        self._exchange(
            "POST", path, lambda found: _is_receipt(found, expected), body=body, media=media
        )
        return expected

    def _exchange(
        self,
        method: str,
        path: str,
        good: Callable[[_Answer], bool],
        *,
        body: bytes | None = None,
        media: str = "",
        limit: int = _SMALL,
    ) -> _Answer:
        """Ask until there is a good answer or a final one; the same bytes every time."""
        import urllib3

        headers = {"Accept": "application/json", **({"Content-Type": media} if media else {})}
        until = time.monotonic() + self._patience
        for tries in count():
            try:
                answer = self._once(method, path, body, headers, limit)
            except (urllib3.exceptions.HTTPError, OSError) as problem:
                why, wait = f"it cannot be reached ({type(problem).__name__})", 0.0
            else:
                if good(answer):
                    return answer
                if answer.status not in _AGAIN and not 200 <= answer.status < 300:
                    raise self._refusal(answer)
                why, wait = f"it answered {answer.status}", answer.retry_after
                if 200 <= answer.status < 300:  # a hotel's log-in page, say
                    why += " with something that is no answer of an aggregator"
            wait = max(wait, _backoff(tries))
            if time.monotonic() + wait > until or self._pause(wait):
                raise NotDelivered(
                    f"no good answer came from {self.url}: {why}. It is safe to try again later."
                )
        raise AssertionError("unreachable")  # pragma: no cover

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], limit: int
    ) -> _Answer:
        response = self._pool.request(
            method,
            self.url + path,
            body=body,
            headers=headers,
            redirect=False,
            preload_content=False,
        )
        try:
            content = _content(response, limit)
            return _Answer(
                response.status, content, _retry_after(response.headers.get("Retry-After"))
            )
        finally:
            response.close()  # costs a connection unless all was read; never a hanging one
            response.release_conn()

    def _refusal(self, answer: _Answer) -> SfumatoError:
        """The error for a status that no further try would change."""
        problem = _problem(answer.body)
        if answer.status == 409 and problem.get("type") == _CONFLICT:
            return Conflict(
                "the aggregator counted other reports under this batch's identifier before."
            )
        if answer.status == 422:
            index = problem.get("index")
            where = index if type(index) is int and index >= 0 else 0
            return ReportRejected(
                f"the aggregator refuses the batch: see its report at index {where}.", index=where
            )
        if answer.status in (404, 410):
            what = (
                "does not know this survey; check the URL"
                if answer.status == 404
                else "has closed this survey"
            )
            return WrongSurvey(f"{self.url} {what}. Nothing was counted by this exchange.")
        if answer.status in (400, 413, 415):
            return InvalidBatch(
                f"{self.url} does not take this for a batch (status {answer.status}); its version may differ."
            )
        if answer.status == 403:
            return NotDelivered(
                f"{self.url} does not take answers to this survey yet. Try again when it has opened."
            )
        return NotDelivered(
            f"{self.url} answered {answer.status}, as no aggregator does. Check the URL."
        )

    def __repr__(self) -> str:
        return f"Courier({self.url!r})"


def _is_receipt(answer: _Answer, expected: Receipt) -> bool:
    """Whether this is the receipt of the batch: anybody can answer 200."""
    if answer.status not in (200, 201):
        return False
    return _problem(answer.body) == {
        "survey": expected.survey,
        "batch": expected.batch,
        "reports": expected.reports,
    }


def _problem(body: bytes) -> dict[str, Any]:
    """A JSON object; an empty one if the body is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _content(response: "BaseHTTPResponse", limit: int) -> bytes:
    """What was answered, up to a limit, of a server that may be slow or endless."""
    until, parts, size = time.monotonic() + _LONGEST_ANSWER, [], 0
    while part := response.read1(2**16, decode_content=False):
        parts.append(part)
        size += len(part)
        if size > limit or time.monotonic() > until:
            raise OSError("an answer without end")
    return b"".join(parts)


def _retry_after(text: str | None) -> float:
    """The seconds that the aggregator asks for, as a number or a date; 0 if it asks for none that can be read."""
    import urllib3

    try:
        return max(0.0, urllib3.Retry().parse_retry_after(text)) if text else 0.0
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0.0


def _backoff(tries: int) -> float:
    """Between half of and all of 0.5, 1, 2, … seconds, at most 30; all of it where there is no randomness."""
    try:
        chance = int(SystemWords().take(1)[0, 0]) / 2**64
    except EntropyUnavailable:  # what is sent was randomised before
        chance = 1.0
    return min(_FIRST_PAUSE * 2.0 ** min(tries, 16), _LONGEST_PAUSE) * (1 + chance) / 2


def _checked_url(url: str) -> str:
    import urllib3

    try:
        parts = urllib3.util.parse_url(url)
    except urllib3.exceptions.LocationParseError:
        raise NotDelivered(
            "the aggregator's URL cannot be read. Write e.g. https://surveys.example.org."
        ) from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise NotDelivered(
            "the aggregator's URL must begin with https:// (or http://) and name a host."
        )
    if parts.auth or parts.query or parts.fragment:
        raise NotDelivered("the aggregator's URL must hold no user name, no ? and no #.")
    return parts.url.rstrip("/")
