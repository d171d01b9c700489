"""Decoders: from a tally to a distribution. Decoding costs no privacy.

A decoder is an object with a ``name`` and a ``decode``; those with parameters are dataclasses. To
add one, list it in ``estimation/decoders/__init__.py`` and in ``foundation/decoder_names.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sfumato.estimation.decoders.pools import Pools
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import nearest_in_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Decoded", "Decoder", "Projection", "Unbiased"]

_MIN_SCALE = 1e-12  # of the largest scale, so that no symbol is fixed by a scale of 0


@dataclass(frozen=True, eq=False)
class Decoded:
    """Decoded frequencies, and ``details`` on how the decoder arrived at them (such as a gap)."""

    frequencies: Floats
    details: Mapping[str, object] = field(default_factory=dict)


class Decoder(Protocol):
    """Turns a tally into frequencies."""

    @property
    def name(self) -> str:
        """The name that results show."""
        ...

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return the frequencies that explain a tally of this mechanism's reports."""
        ...


@dataclass(frozen=True)
class Unbiased:
    """The unbiased estimate as it is: right on average, entries may be negative."""

    name: str = "unbiased"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return ``p̂``."""
        return Decoded(mechanism.scores.unbiased(tally))


@dataclass(frozen=True)
class Projection:
    """The nearest distribution to the unbiased estimate, each block on its observed share.

    Distances are in units of the symbols' own errors, those that the mechanism would make if its
    groups were even inside: a symbol that is known well moves less than one that is known badly. If
    all symbols of a block are known equally well, this is Euclidean projection on the simplex, also
    known as Norm-Sub; ``simplex.py`` has the formula.
    """

    name: str = "projection"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return ``p̂``, projected."""
        observed, shares = mechanism.scores.observed_shares(tally)
        pools = Pools.from_tally(mechanism, tally)
        scales = pools.errors**2
        if not scales.any():
            scales = np.ones_like(scales)
        scales = np.maximum(scales, _MIN_SCALE * scales.max())
        return Decoded(nearest_in_groups(pools.unbiased, observed, shares, scales))
