"""A written-out matrix of exact entries: integers over one denominator, closed in integers.

A matrix whose finite entries are short decimals (about 15 digits) is held as just those decimals; fractions,
and decimals given as text, are held as they are. Other floats are rounded *down*, towards privacy, to a
multiple of a power of two below 2^−40.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.randomness.odds import Epsilon, exact_number

__all__ = ["ExactMatrix"]

_LARGEST = 2**61  # infinity stays below it, so that 64 bits can hold the sum of two
_MOST_PLACES = 15
_SAMPLED = 4096
_SHORT = 2**52  # decimals n/10^places with n below it and floats correspond one to one
Integers = NDArray[np.int64]  # or of Python integers, where 64 bits are too few


@dataclass(frozen=True)
class ExactMatrix:
    """``entry[x, x2] = numerators[x, x2] / denominator``, or inf where the numerator is ``infinite``."""

    numerators: Integers
    denominator: int
    infinite: int

    @classmethod
    def parsed(cls, entries: object, name: str) -> "ExactMatrix":
        """A square matrix of non-negative numbers, zero on its diagonal, from an array or nested lists."""
        array = _square(entries, name)
        floats = _floats(array, name)
        finite = np.isfinite(floats)
        if array.dtype.kind == "O":
            exact = [Fraction(exact_number(entry, name)) for entry in array[finite].tolist()]
            denominator = lcm(*(entry.denominator for entry in exact))
            return cls.holding([int(entry * denominator) for entry in exact], denominator, finite)
        held = _decimals(floats[finite], len(floats)) or _rounded_down(
            floats[finite], len(floats), name
        )
        return cls.holding(*held, finite)

    @classmethod
    def holding(
        cls, numerators: Sequence[int] | Integers, denominator: int, finite: Booleans
    ) -> "ExactMatrix":
        """``numerators / denominator`` where ``finite``, inf elsewhere."""
        largest = numerators.max() if isinstance(numerators, np.ndarray) else max(numerators)
        infinite = len(finite) * int(largest) + 1  # above every sum along a path
        held = np.full(finite.shape, infinite, dtype=np.int64 if infinite < _LARGEST else object)
        held[finite] = numerators
        return cls(_frozen(held), denominator, infinite)

    @classmethod
    def side_by_side(
        cls, parts: Sequence["ExactMatrix"], places: Sequence[NDArray[np.int64]]
    ) -> "ExactMatrix":
        """Part j at the rows and columns ``places[j]``, inf between parts."""
        size, denominator = (
            sum(part.size for part in parts),
            lcm(*(part.denominator for part in parts)),
        )
        factors = [denominator // part.denominator for part in parts]
        wide = any(
            part.infinite * factor >= _LARGEST for part, factor in zip(parts, factors, strict=True)
        )
        finite = np.zeros((size, size), dtype=np.bool_)
        held = np.zeros((size, size), dtype=object if wide else np.int64)
        for part, factor, rows in zip(parts, factors, places, strict=True):
            square = np.ix_(rows, rows)
            finite[square] = part.numerators != part.infinite
            held[square] = part.numerators.astype(held.dtype) * factor
        return cls.holding(held[finite], denominator, finite)

    def part(self, symbols: NDArray[np.int64]) -> "ExactMatrix":
        """The entries between these symbols alone."""
        return ExactMatrix(
            _frozen(self.numerators[np.ix_(symbols, symbols)]), self.denominator, self.infinite
        )

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.numerators)

    def entry(self, x: int, x2: int) -> Epsilon:
        """One entry, exactly."""
        numerator = int(self.numerators[x, x2])
        return inf if numerator == self.infinite else Fraction(numerator, self.denominator)

    def floats(self) -> Floats:
        """All entries, rounded to the nearest float."""
        quotients = self.numerators / self.denominator
        # NumPy rounds long integers before it divides, which only powers of two forgive; Python does not.
        long = max(self.infinite, self.denominator) >= 2**53
        if self.numerators.dtype == object or (long and self.denominator & (self.denominator - 1)):
            quotients = np.array(
                [[n / self.denominator for n in row] for row in self.numerators.tolist()]
            )
        return np.where(self.numerators == self.infinite, inf, quotients)

    def __add__(self, other: "ExactMatrix") -> "ExactMatrix":
        """The sum of two matrices, entry by entry."""
        finite = (self.numerators != self.infinite) & (other.numerators != other.infinite)
        denominator = lcm(self.denominator, other.denominator)
        mine, theirs = denominator // self.denominator, denominator // other.denominator
        pairs = zip(
            self.numerators[finite].tolist(), other.numerators[finite].tolist(), strict=True
        )
        return ExactMatrix.holding([n * mine + n2 * theirs for n, n2 in pairs], denominator, finite)

    def times(self, factor: Fraction) -> "ExactMatrix":
        """Every entry times a positive factor."""
        finite = self.numerators != self.infinite
        scaled = [n * factor.numerator for n in self.numerators[finite].tolist()]
        return ExactMatrix.holding(scaled, self.denominator * factor.denominator, finite)

    def off_diagonal(self) -> Integers:
        """The numerators, with more than infinity on the diagonal: for looking for the least entry."""
        return self.numerators + 2 * self.infinite * np.eye(self.size, dtype=self.numerators.dtype)

    def smallest(self) -> Epsilon:
        """The least entry off the diagonal; ``inf`` if there is none."""
        if self.size == 1:
            return inf
        return self.entry(*divmod(int(self.off_diagonal().argmin()), self.size))

    def largest_finite(self) -> Fraction:
        """The largest finite entry; 0 if there is none off the diagonal."""
        finite = self.numerators[self.numerators != self.infinite]
        return Fraction(int(finite.max()), self.denominator)

    def leaves_open(self) -> bool:
        """Whether some entry is infinite."""
        return bool((self.numerators == self.infinite).any())

    def unprotected(self) -> NDArray[np.int64]:
        """The rows whose entries are all infinite, the diagonal apart."""
        if self.size == 1:
            return np.zeros(0, dtype=np.int64)
        finite = (self.numerators != self.infinite).sum(axis=1)
        return np.flatnonzero(finite == 1)

    def partly_open(self) -> bool:
        """Whether some row has finite and infinite entries off the diagonal."""
        finite = (self.numerators != self.infinite).sum(axis=1)
        return bool(((finite > 1) & (finite < self.size)).any())

    def closed(self) -> "ExactMatrix":
        """Shortest paths (Floyd 1962, Warshall 1962), with zeros made mutual, until nothing changes."""
        N = self.numerators.copy()
        while True:
            for z in range(self.size):
                np.minimum(N, N[:, z, None] + N[None, z, :], out=N)
            one_way = (N == 0) != (N == 0).T
            if not one_way.any():
                return ExactMatrix(_frozen(N), self.denominator, self.infinite)
            N[one_way] = 0


def _square(entries: object, name: str) -> NDArray[np.generic]:
    try:
        array = np.asarray(entries)
    except ValueError:
        raise InvalidContext(
            f"{name} must be a square matrix; its rows differ in length."
        ) from None
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise InvalidContext(f"{name} must be a square matrix; found shape {array.shape}.")
    if array.dtype.kind in "US":
        array = array.astype(object)
    if array.dtype.kind not in "iufO":
        raise InvalidContext(f"{name} must hold numbers, or inf; found another type of entry.")
    return array


def _floats(array: NDArray[np.generic], name: str) -> Floats:
    if array.dtype.kind == "O":
        floats = np.array(
            [[float(exact_number(entry, name)) for entry in row] for row in array.tolist()]
        )
    else:
        floats = array.astype(np.float64)
    for wrong, what in ((np.isnan(floats), "numbers"), (floats < 0, "non-negative numbers")):
        if wrong.any():
            x, x2 = np.argwhere(wrong)[0]
            raise InvalidContext(
                f"{name} must hold {what}, or inf; entry [{x}, {x2}] is {floats[x, x2]:g}."
            )
    if floats.diagonal().any():
        x = int(np.flatnonzero(floats.diagonal())[0])
        raise InvalidContext(
            f"{name} must be zero on its diagonal; entry [{x}, {x}] is {floats[x, x]:g}. Pass 0.0 there."
        )
    return floats


def _decimals(entries: Floats, size: int) -> tuple[Integers, int] | None:
    """The entries as decimals, if they all are short ones."""
    for places in range(_MOST_PLACES + 1):
        some = entries[:_SAMPLED]  # most matrices that are no decimals give themselves away at once
        if (np.rint(some * 10.0**places) / 10.0**places != some).any():
            continue
        scaled = np.rint(entries * 10.0**places)
        if scaled.max() >= min(_SHORT, _LARGEST // size):
            return None
        # Correctly rounded: equal exactly when the entry is the float nearest to this decimal.
        if (scaled / 10.0**places == entries).all():
            return scaled.astype(np.int64), 10**places
    return None


def _rounded_down(entries: Floats, size: int, name: str) -> tuple[Integers, int]:
    """The entries rounded down to a power of two that lets 64 bits hold every path."""
    magnitude = int(np.floor(np.log2(max(entries.max(), 1.0))))
    room = 59 - size.bit_length() - magnitude
    if room < 8:
        raise InvalidContext(
            f"finite entries of {name} must stay below 2^{52 - size.bit_length()}. Use inf, or rescale."
        )
    # A float may lie half a unit in its last place above the decimal it prints as: one step down covers that.
    shift = min(52, 53 - magnitude, room)
    numerators = np.floor(np.ldexp(entries, shift)).astype(np.int64) - (entries > 0)
    if (numerators[entries > 0] <= 0).any():
        raise InvalidContext(
            f"{name} holds an entry too small to be held; pass 0, or at least {2.0**-shift:.1g}."
        )
    return numerators, 2**shift


def _frozen(array: Integers) -> Integers:
    array.flags.writeable = False
    return array
