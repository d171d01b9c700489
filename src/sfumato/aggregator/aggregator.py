"""What the routes of an aggregator share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.catalogue import Catalogue, Served
from sfumato.aggregator.estimates import Estimates
from sfumato.aggregator.http.body import Room
from sfumato.aggregator.http.limits import ClientLimits
from sfumato.aggregator.http.problems import Problem
from sfumato.aggregator.http.readiness import Readiness
from sfumato.aggregator.http.token import Token
from sfumato.aggregator.metrics import Metrics
from sfumato.aggregator.store.store import Store
from sfumato.aggregator.writer import Writer

__all__ = ["Aggregator", "Fingerprint", "Settings"]

Fingerprint = Annotated[
    str,
    Path(description="The survey's fingerprint.", json_schema_extra={"pattern": "^[0-9a-f]{64}$"}),
]

_bearer = HTTPBearer(
    auto_error=False, description="The token that the aggregator printed at its first start."
)


_MOST_BYTES = 2**28


@dataclass(frozen=True)
class Settings:
    """What an operator may choose."""

    requests_per_minute: int = 6000
    body_seconds: float = 30.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Aggregator:
    """Receives and counts. Trusted with nothing but reports that are private already."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self.metrics = Metrics(lambda: self.writer.waiting)
        self.writer = Writer(store, observe=self.metrics.committed)
        self.readiness = Readiness(store, self.writer)
        self.catalogue = Catalogue(store)
        self.estimates = Estimates(store)
        self.room = Room(_MOST_BYTES)
        self.limits = ClientLimits(settings.requests_per_minute)
        self.token = Token(store)

    async def served(self, fingerprint: str) -> Served:
        """The survey that a request names."""
        found = self.catalogue.known(fingerprint) or await run_in_threadpool(
            self.catalogue.find, fingerprint
        )
        if found is None:
            raise Problem(
                "unknown-survey",
                "The address names no survey of this aggregator. Look at /v1/surveys.",
            )
        return found

    def admit(self, request: Request) -> None:
        """Refuse a client that asks too often."""
        wait = self.limits.seconds_to_wait(request.client.host if request.client else "")
        if wait:
            retry = {"Retry-After": str(int(wait) + 1)}
            raise Problem(
                "too-many-requests", "Wait as long as Retry-After says, then go on.", headers=retry
            )

    def demand_token(
        self, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None
    ) -> None:
        """Refuse whoever does not hold the analysts' token."""
        if credentials is None or not self.token.opens(credentials.credentials):
            raise Problem(
                "not-authorised",
                "Send the token that the aggregator printed at its first start, as Authorization: Bearer ….",
                headers={"WWW-Authenticate": "Bearer"},
            )
