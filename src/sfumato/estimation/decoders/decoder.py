"""Decoders: from a tally to a distribution. Everything here is free of privacy cost.

A decoder is an object with a name and a ``decode``; those with parameters are dataclasses. New ones are added to the
table of names in ``estimation/decoders.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sfumato.estimation.decoders.pools import pooled
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import nearest_in_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Decoded", "Decoder", "Projection", "Unbiased"]


@dataclass(frozen=True, eq=False)
class Decoded:
    """The decoded frequencies, and what the decoder has to say of how it found them (a gap, a choice, …)."""

    frequencies: Floats
    details: Mapping[str, object] = field(default_factory=dict)


class Decoder(Protocol):
    """Turns a tally into frequencies."""

    @property
    def name(self) -> str:
        """How results say which decoder it was."""
        ...

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """The frequencies that a tally speaks for."""
        ...


@dataclass(frozen=True)
class Unbiased:
    """The unbiased estimate as it is: right on average, entries may be negative."""

    name: str = "unbiased"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """``p̂``."""
        return Decoded(mechanism.scores.unbiased(tally))


@dataclass(frozen=True)
class Projection:
    """The nearest distribution to the unbiased estimate, each block onto the share that was observed.

    Nearest in units of the symbols' own errors, those that the mechanism would make if its groups were even inside:
    a symbol that is known well is moved less than one that is known badly. Where all symbols of a block are known
    equally well, this is Euclidean projection on the simplex, also known as Norm-Sub; ``simplex.py`` has the formula.
    """

    name: str = "projection"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """``p̂``, projected."""
        observed, shares = mechanism.scores.observed_shares(tally)
        pools = pooled(mechanism, tally)
        scales = pools.errors**2
        scales = (
            np.maximum(scales, 1e-12 * scales.max(initial=0.0))
            if scales.any()
            else np.ones_like(scales)
        )
        return Decoded(nearest_in_groups(pools.unbiased, observed, shares, scales))
