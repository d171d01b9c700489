"""The analyst token: created once, shown once, stored as a hash."""

import contextlib
import hmac
from collections.abc import Callable
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sfumato.aggregator.http.limits import admit
from sfumato.aggregator.http.problems import Problem
from sfumato.aggregator.store import Store, create_secret, secret_hash
from sfumato.errors import StoreUnavailable

__all__ = ["Token", "bearer_token", "not_authorised", "require_token"]

_SETTING_NAME = "token_sha256"
_REFRESH_INTERVAL = 5.0  # seconds

_bearer = HTTPBearer(
    auto_error=False, description="The token that the aggregator printed on its first run."
)


class Token:
    """The token that gives access to results. It has 256 random bits, so a plain hash is safe."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self.refresh()

    @property
    def exists(self) -> bool:
        """Whether a token has been created."""
        return self._hash != ""

    def create(self) -> str:
        """Create and return a new token, which replaces the old one."""
        token = create_secret()
        self._store.set_setting(_SETTING_NAME, secret_hash(token))
        self.refresh()
        return token

    @property
    def is_outdated(self) -> bool:
        """Whether the token was last read so long ago that another one may have replaced it."""
        return self._clock() - self._refreshed_at > _REFRESH_INTERVAL

    def matches(self, token: str) -> bool:
        """Whether ``token`` is the analyst token, compared in constant time."""
        # Another aggregator may have replaced the token. Wrong guesses cause no extra reads.
        if self.is_outdated:
            with contextlib.suppress(StoreUnavailable):  # keep the last known token
                self.refresh()
        return self.equals(token)

    def equals(self, token: str) -> bool:
        """Whether ``token`` is the last known analyst token, without reading the store."""
        return hmac.compare_digest(secret_hash(token), self._hash)

    def refresh(self) -> None:
        """Read the hash of the token from the store."""
        self._refreshed_at = self._clock()  # even if the read fails, do not retry at once
        self._hash = self._store.get_setting(_SETTING_NAME) or ""


async def require_token(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None,
) -> None:
    """Reject requests without the analyst token."""
    aggregator = request.app.state.aggregator
    if credentials is None or not await aggregator.matches_token(credentials.credentials):
        # A valid token is not limited: operators must reach a survey that is flooded.
        await admit(request)
        raise not_authorised(
            "Send the token that the aggregator printed on its first run, "
            "as Authorization: Bearer …."
        )


def bearer_token(request: Request) -> str:
    """Return the token or key in a request's Authorization header, or "" without one."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def not_authorised(detail: str) -> Problem:
    """Return the problem for a request without a valid token or key."""
    return Problem("not-authorised", detail, headers={"WWW-Authenticate": "Bearer"})
