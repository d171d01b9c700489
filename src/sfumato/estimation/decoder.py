"""Decoders: from a tally to a distribution. Everything here is free of privacy cost.

A decoder is an object with a name and a ``decode``; those with parameters are dataclasses. New ones are added to the
table of names in ``estimation/decoders.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sfumato.arrays import Floats
from sfumato.mechanisms import Mechanism
from sfumato.simplex import project_groups
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
        return Decoded(mechanism.unbiased(tally))


@dataclass(frozen=True)
class Projection:
    """The nearest distribution to the unbiased estimate, each block onto the share that was observed.

    Euclidean projection on the simplex, also known as Norm-Sub; ``simplex.py`` has the formula.
    """

    name: str = "projection"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """``p̂``, projected."""
        groups, shares = mechanism.observed_shares(tally)
        return Decoded(project_groups(mechanism.unbiased(tally), groups, shares))
