"""The analysts' token: made once, shown once, kept as a hash."""

import base64
import contextlib
import hashlib
import hmac
from collections.abc import Callable
from time import monotonic

from sfumato.aggregator.store.store import Store
from sfumato.errors import StoreUnavailable
from sfumato.randomness import fresh_key

__all__ = ["Token"]

_FACT = "token_sha256"
_SECONDS = 5.0


class Token:
    """Who holds the token may ask for results. It has 256 random bits, so a plain hash of it can be kept."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = monotonic) -> None:
        self._store, self._clock = store, clock
        self._look()

    @property
    def exists(self) -> bool:
        """Whether there is one already."""
        return self._held != ""

    def make(self) -> str:
        """A new token, which from now on is the only one."""
        token = base64.urlsafe_b64encode(fresh_key()).decode("ascii").rstrip("=")
        self._store.set_fact(_FACT, _hash(token))
        self._look()
        return token

    def opens(self, token: str) -> bool:
        """Whether this is the token; how long the answer takes says nothing."""
        # Another aggregator on this store may have made a new one. Wrong guesses do not make us look more often.
        if self._clock() - self._looked > _SECONDS:
            with contextlib.suppress(
                StoreUnavailable
            ):  # then the one that was known goes on being it
                self._look()
        return hmac.compare_digest(_hash(token), self._held)

    def _look(self) -> None:
        self._looked = self._clock()  # first: a store that is away is not asked more often for it
        self._held = self._store.fact(_FACT) or ""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
