"""Matrices with exact entries: integers over a common denominator.

If any entry is given as text or as a ``Fraction``, all entries are stored exactly; a float of any
width stands for the decimal it prints as. The same is true of an array of floats if every finite
entry is a short decimal (about 15 digits). Otherwise, all finite entries are rounded *down*,
towards privacy, to multiples of a power of two, which is 2^−41 or smaller if no finite entry
exceeds 40.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.foundation.canonical import decimal_text
from sfumato.foundation.numpy_values import require_unmasked, to_doubles
from sfumato.randomness import Epsilon, exact_number

__all__ = ["ExactMatrix"]

_MAX_INFINITY = 2**61  # 64-bit numerators are used only if `infinity` is below this
_MAX_DECIMAL_PLACES = 15
_SAMPLE_SIZE = 4096  # how many entries to try first when looking for short decimals
_PLAIN_NUMBERS = {int, float, np.float64, np.int64, np.int32}  # NumPy keeps their values
_MAX_SHORT_NUMERATOR = 2**52  # below this, different decimals n/10^places have different floats
Integers = NDArray[np.int64]  # or Python integers, if 64 bits are not enough


@dataclass(frozen=True)
class ExactMatrix:
    """A matrix whose entries are ``numerators / denominator``.

    The numerator ``infinity`` represents an infinite entry.
    """

    numerators: Integers
    denominator: int
    infinity: int

    @classmethod
    def parse(cls, entries: object, name: str) -> "ExactMatrix":
        """Parse a square matrix of non-negative numbers or inf, with zeros on its diagonal.

        ``entries`` is an array or nested lists. Error messages refer to the matrix as ``name``.
        """
        array = _square_array(entries, name)
        floats = _parse_floats(array, name)
        finite_mask = np.isfinite(floats)
        if array.dtype.kind == "O":
            finite_entries = array[finite_mask].tolist()
            fractions = [Fraction(exact_number(entry, name)) for entry in finite_entries]
            denominator = lcm(*(fraction.denominator for fraction in fractions))
            numerators = [int(fraction * denominator) for fraction in fractions]
            return cls.from_finite(numerators, denominator, finite_mask)
        size = len(floats)
        quotients = _as_decimals(floats[finite_mask], size)
        if quotients is None:
            quotients = _round_down(floats[finite_mask], size, name)
        return cls.from_finite(*quotients, finite_mask)

    @classmethod
    def from_finite(
        cls, numerators: Sequence[int] | Integers, denominator: int, finite_mask: Booleans
    ) -> "ExactMatrix":
        """Return the matrix with the given finite entries at ``finite_mask``, and inf elsewhere."""
        maximum = numerators.max() if isinstance(numerators, np.ndarray) else max(numerators)
        infinity = len(finite_mask) * int(maximum) + 1  # larger than any sum along a path
        dtype = np.int64 if infinity < _MAX_INFINITY else object
        all_numerators = np.full(finite_mask.shape, infinity, dtype=dtype)
        all_numerators[finite_mask] = numerators
        return cls(_freeze(all_numerators), denominator, infinity)

    @classmethod
    def block_diagonal(
        cls, parts: Sequence["ExactMatrix"], positions: Sequence[NDArray[np.int64]]
    ) -> "ExactMatrix":
        """Return the matrix with part j in rows and columns ``positions[j]``, and inf elsewhere."""
        size = sum(part.size for part in parts)
        denominator = lcm(*(part.denominator for part in parts))
        factors = [denominator // part.denominator for part in parts]
        scaled_infinities = []
        for part, factor in zip(parts, factors, strict=True):
            scaled_infinities.append(part.infinity * factor)
        dtype = np.int64 if max(scaled_infinities) < _MAX_INFINITY else object
        finite_mask = np.zeros((size, size), dtype=np.bool_)
        numerators = np.zeros((size, size), dtype=dtype)
        for part, factor, rows in zip(parts, factors, positions, strict=True):
            block = np.ix_(rows, rows)
            finite_mask[block] = part.numerators != part.infinity
            numerators[block] = part.numerators.astype(dtype) * factor
        return cls.from_finite(numerators[finite_mask], denominator, finite_mask)

    def submatrix(self, symbols: NDArray[np.int64]) -> "ExactMatrix":
        """Return the submatrix with the rows and columns of the given symbols."""
        entries = self.numerators[np.ix_(symbols, symbols)]
        return ExactMatrix(_freeze(entries), self.denominator, self.infinity)

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.numerators)

    def entry(self, x: int, x2: int) -> Epsilon:
        """Return the exact entry in row x and column x2."""
        return self.to_epsilon(int(self.numerators[x, x2]))

    def to_epsilon(self, numerator: int) -> Epsilon:
        """Return the exact value of an entry with the given numerator."""
        return inf if numerator == self.infinity else Fraction(numerator, self.denominator)

    def to_floats(self) -> Floats:
        """Return all entries, rounded to the nearest float."""
        floats = self.numerators / self.denominator
        # NumPy rounds large integers before it divides, which is harmless only if the denominator
        # is a power of two. Python rounds the quotient of any two integers correctly.
        has_large_integers = max(self.infinity, self.denominator) >= 2**53
        is_power_of_two = self.denominator & (self.denominator - 1) == 0
        if self.numerators.dtype == object or (has_large_integers and not is_power_of_two):
            rows = self.numerators.tolist()
            floats = np.array([[n / self.denominator for n in row] for row in rows])
        return np.where(self.numerators == self.infinity, inf, floats)

    def to_decimals(self) -> list[list[str]]:
        """Return all entries as text for records: exact decimals, fractions p/q, or "inf"."""
        texts = []
        for row in self.numerators.tolist():
            texts.append([decimal_text(self.to_epsilon(numerator)) for numerator in row])
        return texts

    def __add__(self, other: "ExactMatrix") -> "ExactMatrix":
        """Return the sum; an entry is infinite if it is infinite in either matrix."""
        finite_mask = self._finite_mask & other._finite_mask
        denominator = lcm(self.denominator, other.denominator)
        factor = denominator // self.denominator
        other_factor = denominator // other.denominator
        own_numerators = self.numerators[finite_mask].tolist()
        other_numerators = other.numerators[finite_mask].tolist()
        pairs = zip(own_numerators, other_numerators, strict=True)
        numerators = [n * factor + n2 * other_factor for n, n2 in pairs]
        return ExactMatrix.from_finite(numerators, denominator, finite_mask)

    def scale(self, factor: Fraction) -> "ExactMatrix":
        """Return the matrix multiplied by a positive factor."""
        finite_mask = self._finite_mask
        numerators = [n * factor.numerator for n in self.numerators[finite_mask].tolist()]
        denominator = self.denominator * factor.denominator
        return ExactMatrix.from_finite(numerators, denominator, finite_mask)

    @property
    def _finite_mask(self) -> Booleans:
        mask: Booleans = self.numerators != self.infinity
        return mask

    def numerators_off_diagonal(self) -> Integers:
        """Return the numerators, with 2 · ``infinity`` on the diagonal so that minima ignore it."""
        return self.numerators + 2 * self.infinity * np.eye(self.size, dtype=self.numerators.dtype)

    def minimum(self) -> Epsilon:
        """Return the smallest off-diagonal entry, or ``inf`` for a single symbol."""
        if self.size == 1:
            return inf
        x, x2 = divmod(int(self.numerators_off_diagonal().argmin()), self.size)
        return self.entry(x, x2)

    def largest_finite_entry(self) -> Fraction:
        """Return the largest finite entry; 0 if no off-diagonal entry is finite."""
        return Fraction(int(self.numerators[self._finite_mask].max()), self.denominator)

    def unprotected_symbols(self) -> NDArray[np.int64]:
        """Return the indices of rows whose off-diagonal entries are all infinite."""
        if self.size == 1:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self._finite_mask.sum(axis=1) == 1)

    def has_partly_protected_symbols(self) -> bool:
        """Return whether some row has both finite and infinite off-diagonal entries."""
        finite_count = self._finite_mask.sum(axis=1)
        return bool(((finite_count > 1) & (finite_count < self.size)).any())

    def closure(self) -> "ExactMatrix":
        """Return the matrix of shortest-path distances (Floyd 1962, Warshall 1962).

        If a distance is zero, the distance in the other direction is set to zero as well. This may
        create shorter paths, so both steps are repeated until nothing changes.
        """
        distances = self.numerators.copy()
        while True:
            for z in range(self.size):
                np.minimum(distances, distances[:, z, None] + distances[None, z, :], out=distances)
            is_one_way_zero = (distances == 0) != (distances == 0).T
            if not is_one_way_zero.any():
                return ExactMatrix(_freeze(distances), self.denominator, self.infinity)
            distances[is_one_way_zero] = 0


def _square_array(entries: object, name: str) -> NDArray[np.generic]:
    """Return the entries as an array of numbers, or of objects that are read one by one."""
    require_unmasked(entries, name)
    if isinstance(entries, Sequence) and not isinstance(entries, str | bytes):
        array = _array_of_rows(entries, name)
    else:
        array = np.asarray(entries)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise InvalidContext(f"{name} must be a square matrix; got shape {array.shape}.")
    if array.dtype.kind in "US" or array.dtype == np.longdouble:
        array = array.astype(object)
    if array.dtype.kind not in "iufO":
        raise InvalidContext(f"{name} must contain only numbers or inf.")
    return to_doubles(array, name) if array.dtype.kind == "f" else array


def _array_of_rows(rows: Sequence[Any], name: str) -> NDArray[np.generic]:
    """Return a list of rows as an array.

    NumPy would convert all entries to one type, and a narrow float next to a wider one would get
    digits that it does not print. So entries of several types are read before NumPy sees them.
    """
    read_rows: list[Any] = [_read_row(row, name) for row in rows]
    entry_types = set().union(*map(_entry_types, read_rows))
    if len(entry_types) > 1 and not entry_types <= _PLAIN_NUMBERS:
        read_rows = [_exact_entries(row, name) for row in read_rows]
    try:
        return np.asarray(read_rows)
    except ValueError:
        raise InvalidContext(
            f"{name} must be a square matrix; its rows differ in length."
        ) from None


def _read_row(row: object, name: str) -> object:
    """Return an array if the row can be converted to one without reading its entries."""
    require_unmasked(row, name)
    return np.asarray(row) if hasattr(row, "__array__") else row


def _entry_types(row: object) -> set[type]:
    """Return the types of a row's entries; a row that is a single entry has its own type."""
    if isinstance(row, np.ndarray):
        return {row.dtype.type}
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        return set(map(type, row))
    return {type(row)}


def _exact_entries(row: object, name: str) -> object:
    if isinstance(row, str | bytes) or not isinstance(row, Iterable):
        return row  # the array will not have the shape of a matrix
    return [exact_number(entry, f"an entry of {name}") for entry in row]


def _parse_floats(array: NDArray[np.generic], name: str) -> Floats:
    """Return the entries as floats; raise ``InvalidContext`` if one is invalid."""
    if array.dtype.kind == "O":
        rows = array.tolist()
        floats = np.array([[float(exact_number(entry, name)) for entry in row] for row in rows])
    else:
        floats = array.astype(np.float64)
    checks = ((np.isnan(floats), "numbers"), (floats < 0, "non-negative numbers"))
    for is_invalid, requirement in checks:
        if is_invalid.any():
            x, x2 = np.argwhere(is_invalid)[0]
            raise InvalidContext(
                f"{name} must contain {requirement} or inf; entry [{x}, {x2}] is {floats[x, x2]:g}."
            )
    if floats.diagonal().any():
        x = int(np.flatnonzero(floats.diagonal())[0])
        raise InvalidContext(
            f"{name} must be zero on its diagonal; entry [{x}, {x}] is {floats[x, x]:g}. "
            "Set it to 0."
        )
    return floats


def _as_decimals(entries: Floats, size: int) -> tuple[Integers, int] | None:
    """Return the entries as numerators over a power of ten.

    Returns ``None`` if some entry is not a short decimal.
    """
    sample = entries[:_SAMPLE_SIZE]  # enough to reject most matrices with other floats
    for decimal_places in range(_MAX_DECIMAL_PLACES + 1):
        power = 10.0**decimal_places
        if (np.rint(sample * power) / power != sample).any():
            continue
        numerators = np.rint(entries * power)
        if numerators.max() >= min(_MAX_SHORT_NUMERATOR, _MAX_INFINITY // size):
            return None
        # Division rounds correctly, so equality means that an entry is the float nearest to its
        # decimal.
        if (numerators / power == entries).all():
            return numerators.astype(np.int64), 10**decimal_places
    return None


def _round_down(entries: Floats, size: int, name: str) -> tuple[Integers, int]:
    """Return the entries as numerators over a power of two, rounded down.

    The power is small enough for sums of numerators along a path to fit in 64 bits.
    """
    magnitude = int(np.floor(np.log2(max(entries.max(), 1.0))))
    spare_bits = 59 - size.bit_length() - magnitude
    if spare_bits < 8:
        max_exponent = 52 - size.bit_length()
        raise InvalidContext(
            f"finite entries of {name} must be below 2^{max_exponent}. Use inf, or rescale them."
        )
    shift = min(52, 53 - magnitude, spare_bits)
    # A float may exceed its printed decimal by half a unit in the last place. Subtracting 1
    # compensates for that.
    numerators = np.floor(np.ldexp(entries, shift)).astype(np.int64) - (entries > 0)
    if (numerators[entries > 0] <= 0).any():
        raise InvalidContext(
            f"{name} has an entry too small to represent. Use 0, or at least "
            f"{2.0 ** (2 - shift):.1g}."
        )
    return numerators, 2**shift


def _freeze(array: Integers) -> Integers:
    array.flags.writeable = False
    return array
