"""Rate limits per client: against accidents and simple floods, not against a determined attacker.

Clients are distinguished by a keyed hash of their address. The key lives in memory and changes
every hour. Nothing is written down, so it cannot be found out later who sent what.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from fastapi import Request

from sfumato.aggregator.http.problems import Problem
from sfumato.randomness import fresh_key

__all__ = ["ClientLimits", "admit"]

_MAX_CLIENTS = 100_000
_KEY_SECONDS = 3600.0


class ClientLimits:
    """A token bucket for each client, filled at ``per_minute``; 0 means no limit.

    >>> limits = ClientLimits(per_minute=60, clock=lambda: 0.0)
    >>> [limits.seconds_to_wait("198.51.100.7") for _ in range(61)][-2:]
    [0.0, 1.0]
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate = per_minute / 60
        self._size = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._new_key()

    def seconds_to_wait(self, address: str) -> float:
        """Count a request. Return 0 if the client may make it, else how long it must wait."""
        if self._size == 0:
            return 0.0
        now = self._clock()
        if now - self._key_created > _KEY_SECONDS:
            self._new_key()
        client = hashlib.blake2b(address.encode(), key=self._key, digest_size=16).digest()
        tokens, since = self._buckets.pop(client, (self._size, now))
        tokens = min(self._size, tokens + (now - since) * self._rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self._rate

    def _new_key(self) -> None:
        """Forget all clients."""
        self._key = fresh_key()
        self._key_created = self._clock()
        self._buckets.clear()


async def admit(request: Request) -> None:
    """Refuse a client that makes too many requests."""
    limits: ClientLimits = request.app.state.aggregator.limits
    wait = limits.seconds_to_wait(request.client.host if request.client else "")
    if wait:
        raise Problem(
            "too-many-requests",
            "Wait as long as Retry-After says, then try again.",
            headers={"Retry-After": str(int(wait) + 1)},
        )
