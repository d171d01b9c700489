"""Certificates by structure, for channels that are too large to enumerate.

The argument (spelt out on the proof pages): let x and x2 share a range of outputs, with the same ``low`` and
the same leftover words ``c`` on its first output. If x holds at most ``high`` on the range and nothing outside
it, and x2 at least ``low`` on it, then ``Q(y|x)/Q(y|x2) ≤ (high + c)/(low + c) ≤ high/low`` for every y.

So a context is kept when (1) every two symbols with a finite promise share a range, (2) the symbol that owes
the promise has no report of its own, and (3) ``high ≤ e^ε low``. What the rows hold is claimed as data
(``RowClass``) and re-checked here, on all rows of up to 512 symbols and on 1000 random rows of larger domains.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Symbols
from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.errors import NoClosedForm, PrivacyViolation
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.row_class import RowClass
from sfumato.promises.tightest import Tightest, violation
from sfumato.randomness.odds import within_odds
from sfumato.randomness.words import SystemWords

__all__ = ["ALL_ROWS", "RANDOM_ROWS", "tightest_by_structure"]

ALL_ROWS = 512
RANDOM_ROWS = 1000


def tightest_by_structure(
    mechanism: Mechanism, context: Context, classes: tuple[RowClass, ...]
) -> tuple[Tightest | None, int]:
    """The tightest place and the number of rows that were looked at; raises ``PrivacyViolation``."""
    if not classes:
        raise NoClosedForm("this mechanism has no structure to argue from and is too large to enumerate.")
    rows = _rows_to_check(mechanism.inputs)
    _check_rows(mechanism, classes, rows)
    promise = _promise(context)
    _demand_shared_ranges(mechanism, classes, promise)
    places = [
        place
        for claim in classes
        for number, epsilon in enumerate(promise.epsilons)
        if (
            place := _tightest(mechanism, claim, claim.symbols[promise.owed[claim.symbols] == number], epsilon, promise)
        )
    ]
    return min(places, key=lambda place: float(place.promised) - place.realised, default=None), rows.size


@dataclass(frozen=True)
class _Promise:
    """Symbol x owes ``epsilons[owed[x]]`` (nothing if −1) to the other symbols of its group."""

    epsilons: list[Fraction]
    owed: NDArray[np.int64]
    group_of: Symbols


def _rows_to_check(inputs: int) -> Symbols:
    if inputs <= ALL_ROWS:
        return np.arange(inputs)
    return (SystemWords().take(RANDOM_ROWS)[:, 0] % np.uint64(inputs)).astype(np.int64)


def _check_rows(mechanism: Mechanism, classes: tuple[RowClass, ...], rows: Symbols) -> None:
    class_of = np.full(mechanism.inputs, -1, dtype=np.int64)
    first_of = np.zeros(mechanism.inputs, dtype=np.int64)
    for number, claim in enumerate(classes):
        class_of[claim.symbols], first_of[claim.symbols] = number, claim.first
    for x in rows.tolist():
        levels, which = mechanism.levels(x)
        claim = classes[class_of[x]]
        if class_of[x] < 0 or not claim.describes(levels, which, int(first_of[x])):
            raise PrivacyViolation(
                f"the row of symbol {x} is not what the mechanism claims of it, so nothing can be argued from the "
                "claim. The mechanism must not be used.",
                x=x,
                x2=x,
                output=int(first_of[x]),
            )


def _promise(context: Context) -> _Promise:
    """A context as one ε per symbol, owed to a group.

    For a written-out matrix: each row's least finite entry, owed to everybody who can be reached over finite
    entries. That is no more than it promises wherever two symbols of a code are as far apart as any two.
    """
    one_group = np.zeros(context.size, dtype=np.int64)
    if isinstance(context, Uniform | HighLow | Blocks):
        group_of = context.block_of if isinstance(context, Blocks) else one_group
        owes = context.is_sensitive if isinstance(context, HighLow) else np.ones(context.size, dtype=np.bool_)
        owes = owes & (np.bincount(group_of)[group_of] > 1)
        epsilon = context.exact_inside
        finite = isinstance(epsilon, Fraction)
        return _Promise([Fraction(epsilon)] if finite else [], np.where(owes & finite, 0, -1), group_of)
    exact = context.exact_matrix()
    off_diagonal = exact.numerators + np.where(np.eye(context.size, dtype=np.bool_), exact.infinite, 0)
    least = off_diagonal.min(axis=1)
    values, owed = np.unique(np.where(least >= exact.infinite, -1, least), return_inverse=True)
    epsilons = [Fraction(int(value), exact.denominator) for value in values.tolist() if value >= 0]
    return _Promise(epsilons, owed - int(values[0] < 0), _components(off_diagonal < exact.infinite))


def _components(linked: Booleans) -> Symbols:
    from scipy.sparse.csgraph import connected_components

    _, group_of = connected_components(linked, directed=True, connection="weak")
    return group_of.astype(np.int64)


def _demand_shared_ranges(mechanism: Mechanism, classes: tuple[RowClass, ...], promise: _Promise) -> None:
    """Premise (1): a group in which somebody owes a promise has one range, one ``low``, one leftover."""
    shape_of: dict[tuple[int, int, int], int] = {}
    range_of = np.zeros((mechanism.inputs, 2), dtype=np.int64)
    for claim in classes:
        shape = shape_of.setdefault((claim.outputs, claim.low, claim.leftover), len(shape_of))
        range_of[claim.symbols] = np.stack([claim.first, np.full(claim.first.size, shape)], axis=1)
    owing, group_of = np.flatnonzero(promise.owed >= 0), promise.group_of
    leader = np.arange(mechanism.inputs)
    leader[group_of[owing]] = owing
    apart = np.flatnonzero((range_of != range_of[leader[group_of]]).any(axis=1) & np.isin(group_of, group_of[owing]))
    if apart.size:
        x = int(leader[group_of[apart[0]]])
        raise violation(_witness(mechanism, x, int(apart[0]), promise.epsilons[promise.owed[x]]))


def _tightest(
    mechanism: Mechanism, claim: RowClass, owing: Symbols, epsilon: Fraction, promise: _Promise
) -> Tightest | None:
    """Premises (2) and (3) for the symbols of a class that owe ε."""
    if owing.size == 0:
        return None
    x = int(owing[0])
    place = _witness(mechanism, x, _peer(promise.group_of, x), epsilon)
    if claim.own or not within_odds(claim.high, claim.low, epsilon):
        raise violation(place)
    return place


def _peer(group_of: NDArray[np.int64], x: int) -> int:
    """The first other symbol of x's group."""
    return next(x2 for x2 in np.flatnonzero(group_of == group_of[x])[:2].tolist() if x2 != x)


def _witness(mechanism: Mechanism, x: int, x2: int, epsilon: Fraction) -> Tightest:
    """The report that speaks most for x over x2."""
    (levels, which), (levels2, which2) = mechanism.levels(x), mechanism.levels(x2)
    pairs, where = np.unique(which * len(levels2) + which2, return_index=True)
    candidates = [
        Tightest(x, x2, output, levels[pair // len(levels2)], levels2[pair % len(levels2)], epsilon)
        for pair, output in zip(pairs.tolist(), where.tolist(), strict=True)
    ]
    return max(candidates, key=lambda place: (place.high > 0 and place.low == 0, _ratio(place)))


def _ratio(place: Tightest) -> Fraction:
    return Fraction(place.high, max(place.low, 1))
