"""pure-ldp: an object for the client and one for the server; symbols are numbered from 1."""

from collections.abc import Sequence
from typing import Any

from contestant import Contestant, Floats, PeerEstimates, Symbols
from pure_ldp.frequency_oracles.hadamard_response import (  # type: ignore[import-not-found]
    HadamardResponseClient,
    HadamardResponseServer,
)
from pure_ldp.frequency_oracles.local_hashing import (  # type: ignore[import-not-found]
    LHClient,
    LHServer,
)
from pure_ldp.frequency_oracles.unary_encoding import (  # type: ignore[import-not-found]
    UEClient,
    UEServer,
)


class PureLdp(Contestant):
    def __init__(self, client: Any, server: Any) -> None:
        self.client = client
        self.server = server

    def people(self, symbols: Symbols) -> list[int]:
        return (symbols + 1).tolist()

    def privatize(self, people: Sequence[Any]) -> list[Any]:
        privatise = self.client.privatise
        return [privatise(person) for person in people]

    def count(self, reports: Sequence[Any]) -> None:
        self.server.reset()
        self.server.aggregate_all(reports)

    def decode(self, counts: None) -> Floats:
        """Estimate all symbols at once. The library's `estimate_all` makes a call per symbol."""
        self.server.last_estimated = 0  # or it would return cached estimates
        self.server.check_and_update_estimates()
        return self.server.get_estimates

    def gather(self, reports: Sequence[Any]) -> None:
        self.server.aggregate_all(reports)

    def estimates(self) -> PeerEstimates:
        raw = self.decode(None) / self.server.n
        return PeerEstimates(raw, raw)


def contestant(mechanism: str, size: int, epsilon: float) -> Contestant:
    if mechanism == "Hadamard":
        server = HadamardResponseServer(epsilon, size)
        return PureLdp(HadamardResponseClient(epsilon, size, server.get_hash_funcs()), server)
    if mechanism == "OUE":
        return PureLdp(UEClient(epsilon, size, use_oue=True), UEServer(epsilon, size, use_oue=True))
    return PureLdp(LHClient(epsilon, size, use_olh=True), LHServer(epsilon, size, use_olh=True))
