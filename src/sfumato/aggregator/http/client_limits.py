"""Limits on the requests of each client, in one process or over several.

Clients are identified by a keyed hash of their IPv4 address, or of the first 64 bits of their IPv6
address, which is what one subscriber gets. The key is kept in memory and changes every hour.
The log contains none of this, so it cannot reveal later who sent what.
"""

import hashlib
import ipaddress
from collections.abc import Callable
from time import monotonic

from sfumato.aggregator.http.buckets import HASH_BYTES, Buckets, LocalBuckets

__all__ = ["ClientLimits"]


class ClientLimits:
    """A token bucket for each client, with ``per_minute`` new tokens a minute; 0 means no limit.

    >>> limits = ClientLimits(per_minute=60, clock=lambda: 0.0)
    >>> [limits.seconds_to_wait("198.51.100.7") for _ in range(61)][-2:]
    [0.0, 1.0]
    """

    def __init__(
        self,
        per_minute: int,
        buckets: Buckets | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._tokens_per_second = per_minute / 60
        self._capacity = float(per_minute)
        self._clock = clock
        self._buckets = LocalBuckets() if buckets is None else buckets

    def seconds_to_wait(self, address: str) -> float:
        """Take a token. Return 0 if there is one, otherwise the seconds to wait for it."""
        if self._capacity == 0:
            return 0.0
        address = _client_network(address)
        with self._buckets.lock:
            now = self._clock()
            client = self._client_hash(address, now)
            tokens = self._refill(client, now)
            is_allowed = tokens >= 1
            self._buckets.write(client, tokens - 1 if is_allowed else tokens, now)
        return 0.0 if is_allowed else (1 - tokens) / self._tokens_per_second

    def charge(self, address: str, cost: int) -> None:
        """Take ``cost`` tokens. If there are fewer, the client's next requests must wait longer."""
        if self._capacity == 0:
            return
        address = _client_network(address)
        with self._buckets.lock:
            now = self._clock()
            client = self._client_hash(address, now)
            self._buckets.write(client, self._refill(client, now) - cost, now)

    def _client_hash(self, network: str, now: float) -> bytes:
        """Return the key of a client's bucket."""
        key = self._buckets.current_key(now)
        return hashlib.blake2b(network.encode(), key=key, digest_size=HASH_BYTES).digest()

    def _refill(self, client: bytes, now: float) -> float:
        """Return the tokens of a client, including those of the time since its last request."""
        bucket = self._buckets.read(client)
        if bucket is None:
            return self._capacity
        tokens, updated_at = bucket
        return min(self._capacity, tokens + (now - updated_at) * self._tokens_per_second)


def _client_network(address: str) -> str:
    """Return what identifies a client: an IPv4 address, or the /64 network of an IPv6 address.

    >>> _client_network("2001:db8:0:7:1:2:3:4"), _client_network("::ffff:198.51.100.7")
    ('2001:db8:0:7::', '198.51.100.7')
    """
    if ":" not in address:  # nearly all addresses are of IPv4, and parsing takes long
        return address
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # for example, a Unix socket
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(parsed) >> 64 << 64))
