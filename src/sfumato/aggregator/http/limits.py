"""How many requests one client may make: against accidents and simple floods, not against a determined attacker.

Clients are told apart by a keyed hash of their address under a key that lives in memory and changes every hour.
Nothing is written down, and nobody can tell later who sent.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from sfumato.randomness import fresh_key

__all__ = ["ClientLimits"]

_MOST_CLIENTS = 100_000
_KEY_SECONDS = 3600.0


class ClientLimits:
    """A bucket of tokens for each client, filled at ``per_minute``; 0 means no limit.

    >>> limits = ClientLimits(per_minute=60, clock=lambda: 0.0)
    >>> [limits.seconds_to_wait("198.51.100.7") for _ in range(61)][-2:]
    [0.0, 1.0]
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._size, self._clock = per_minute / 60, float(per_minute), clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._new_key()

    def seconds_to_wait(self, address: str) -> float:
        """0 if the client may go on, which it is then taken to do; otherwise for how long it must wait."""
        if self._size == 0:
            return 0.0
        now = self._clock()
        if now - self._key_made > _KEY_SECONDS:
            self._new_key()
        client = hashlib.blake2b(address.encode(), key=self._key, digest_size=16).digest()
        tokens, since = self._buckets.pop(client, (self._size, now))
        tokens = min(self._size, tokens + (now - since) * self._rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self._rate

    def _new_key(self) -> None:
        """Forget everybody."""
        self._key, self._key_made = fresh_key(), self._clock()
        self._buckets.clear()
