"""Decoders: from a tally to a vector of frequencies. Everything here is free of privacy cost."""

from collections.abc import Callable, Mapping

from sfumato.arrays import Floats
from sfumato.errors import InvalidContext
from sfumato.mechanisms import Mechanism
from sfumato.simplex import project_groups
from sfumato.tally import Tally

__all__ = ["DECODERS", "Decoder", "decoder_named", "projection", "unbiased"]

Decoder = Callable[[Mechanism, Tally], Floats]


def unbiased(mechanism: Mechanism, tally: Tally) -> Floats:
    """The unbiased estimate as it is: right on average, entries may be negative."""
    return mechanism.unbiased(tally)


def projection(mechanism: Mechanism, tally: Tally) -> Floats:
    """The nearest distribution to the unbiased estimate, each block onto the share that was observed."""
    groups, shares = mechanism.observed_shares(tally)
    return project_groups(mechanism.unbiased(tally), groups, shares)


DECODERS: Mapping[str, Decoder] = {"projection": projection, "unbiased": unbiased}
"""The decoders by name."""


def decoder_named(name: str) -> Decoder:
    """The decoder of that name."""
    try:
        return DECODERS[name]
    except KeyError:
        raise InvalidContext(f"decoder must be one of {', '.join(DECODERS)}; found {name!r}.") from None
