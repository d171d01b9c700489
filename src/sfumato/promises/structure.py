"""Certificates by structure, for channels that are too large to enumerate.

The argument (spelt out on the proof pages): let x and x2 share a range of outputs, with the same ``low`` and
the same leftover words ``c`` on its first output. If x holds at most ``high`` on the range and nothing outside
it, and x2 at least ``low`` on it, then ``Q(y|x)/Q(y|x2) ≤ (high + c)/(low + c) ≤ high/low`` for every y.

So a context is kept when (1) every two symbols with a finite promise share a range, (2) the symbol that owes
the promise has no report of its own, and (3) ``high ≤ e^ε low``. What the rows hold is claimed as data
(``RowClass``) and re-checked here, on all rows of up to 1000 symbols and on 1000 random rows of larger domains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Symbols
from sfumato.contexts import Blocks, Context, ContextSum, HighLow, Uniform
from sfumato.errors import NoClosedForm, PrivacyViolation
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.row_class import RowClass
from sfumato.promises.tightest import Tightest, violation
from sfumato.randomness.odds import within_odds
from sfumato.randomness.words import SystemWords

__all__ = ["RANDOM_ROWS", "tightest_by_structure"]

RANDOM_ROWS = 1000


def tightest_by_structure(
    mechanism: Mechanism, context: Context, classes: tuple[RowClass, ...]
) -> tuple[Tightest | None, int]:
    """The tightest place and the number of rows that were looked at; raises ``PrivacyViolation``.

    The odds of the place are those of its class, ``high : low``: leftover words can only make the real ones smaller.
    """
    if not classes:
        raise NoClosedForm("this mechanism has no structure to argue from and is too large to enumerate.")
    rows = _rows_to_check(mechanism.inputs)
    _check_claims(mechanism, classes, rows)
    promise = _promise(context)
    _demand_shared_ranges(mechanism, context, classes, promise)
    places = [
        _tightest(mechanism, context, claim, int(owing[0]), epsilon, promise)
        for claim in classes
        for number, epsilon in enumerate(promise.epsilons)
        if (owing := claim.symbols[promise.owed[claim.symbols] == number]).size
    ]
    return min(places, key=lambda place: float(place.promised) - place.realised, default=None), rows.size


@dataclass(frozen=True)
class _Promise:
    """Symbol x owes ``epsilons[owed[x]]`` (nothing if −1) to other symbols of its group."""

    epsilons: list[Fraction]
    owed: NDArray[np.int64]
    group_of: Symbols


def _rows_to_check(inputs: int) -> Symbols:
    if inputs <= RANDOM_ROWS:
        return np.arange(inputs)
    drawn = SystemWords().take(inputs)[:, 0]
    return np.sort(np.argpartition(drawn, RANDOM_ROWS)[:RANDOM_ROWS])


def _check_claims(mechanism: Mechanism, classes: tuple[RowClass, ...], rows: Symbols) -> None:
    """Every symbol is in one class, every class makes a channel, and the rows looked at are as their class says."""
    class_of = np.full(mechanism.inputs, -1, dtype=np.int64)
    first_of = np.zeros(mechanism.inputs, dtype=np.int64)
    for number, claim in enumerate(classes):
        class_of[claim.symbols], first_of[claim.symbols] = number, claim.first
    covered = sum(claim.symbols.size for claim in classes) == mechanism.inputs
    if (class_of < 0).any() or not covered:
        raise _unfounded(int(np.argmin(class_of)), 0)
    for claim in classes:
        if claim.symbols.size and not claim.is_channel(mechanism.denominator, mechanism.outputs):
            raise _unfounded(int(claim.symbols[0]), 0)
    for x in rows.tolist():
        levels, which = mechanism.levels(x)
        if not classes[class_of[x]].describes(levels, which, int(first_of[x])):
            raise _unfounded(x, int(first_of[x]))


def _unfounded(x: int, first: int) -> PrivacyViolation:
    message = (
        f"the row of symbol {x} is not what the mechanism claims of it, so nothing can be argued from the claim. "
        "The mechanism must not be used."
    )
    return PrivacyViolation(message, x=x, x2=x, output=first)


def _promise(context: Context) -> _Promise:
    """A context as one ε per symbol, owed to others of a group.

    Structured contexts, and sums of them, have one ε. For a written-out matrix it is each row's least finite entry,
    and the group everybody who can be reached over finite entries: two symbols that favour different outputs of a
    code are as far apart as any two, so nothing is asked for that the matrix does not need.
    """
    terms = context.terms if isinstance(context, ContextSum) else (context,)
    structured = [term for term in terms if isinstance(term, Uniform | HighLow | Blocks)]
    if len(structured) == len(terms):
        return _structured_promise(structured)
    exact = context.exact_matrix()
    least = exact.off_diagonal().min(axis=1)
    values, owed = np.unique(np.where(least >= exact.infinite, -1, least), return_inverse=True)
    epsilons = [Fraction(int(value), exact.denominator) for value in values.tolist() if value >= 0]
    return _Promise(epsilons, owed - int(values[0] < 0), _components(exact.off_diagonal() < exact.infinite))


def _structured_promise(terms: Sequence[Uniform | HighLow | Blocks]) -> _Promise:
    """A pair is promised something exactly where every term promises something; then the ε add up."""
    k = terms[0].size
    owes, groups, total = np.ones(k, dtype=np.bool_), np.zeros((k, 0), dtype=np.int64), Fraction(0)
    for term in terms:
        if isinstance(term, HighLow):
            owes = owes & term.is_sensitive
        if isinstance(term, Blocks):
            groups = np.column_stack([groups, term.block_of])
        if isinstance(term.exact_inside, float):
            return _Promise([], np.full(k, -1), np.zeros(k, dtype=np.int64))
        total += term.exact_inside
    group_of = np.zeros(k, dtype=np.int64)
    if groups.shape[1]:
        group_of = np.unique(groups, axis=0, return_inverse=True)[1].reshape(k)
    owes = owes & (np.bincount(group_of)[group_of] > 1)
    return _Promise([total], np.where(owes, 0, -1), group_of)


def _components(linked: Booleans) -> Symbols:
    from scipy.sparse.csgraph import connected_components

    _, group_of = connected_components(linked, directed=True, connection="weak")
    return group_of.astype(np.int64)


def _demand_shared_ranges(
    mechanism: Mechanism, context: Context, classes: tuple[RowClass, ...], promise: _Promise
) -> None:
    """Premise (1): a group in which somebody owes a promise has one range, one ``low``, one leftover."""
    shape_of: dict[tuple[int, int, int], int] = {}
    range_of = np.zeros((mechanism.inputs, 2), dtype=np.int64)
    for claim in classes:
        shape = shape_of.setdefault((claim.outputs, claim.low, claim.leftover), len(shape_of))
        range_of[claim.symbols] = np.stack([claim.first, np.full(claim.first.size, shape)], axis=1)
    owing, group_of = np.flatnonzero(promise.owed >= 0), promise.group_of
    leader = np.arange(mechanism.inputs)
    leader[group_of[owing]] = owing
    apart = (range_of != range_of[leader[group_of]]).any(axis=1) & np.isin(group_of, group_of[owing])
    # Ranges are equal or not, so somewhere on the way between two that differ a promise joins two that differ.
    for x in owing[np.isin(group_of[owing], group_of[apart])].tolist():
        for x2 in np.flatnonzero((group_of == group_of[x]) & (range_of != range_of[x]).any(axis=1)).tolist():
            epsilon = context.exact_epsilon(x, x2)
            if isinstance(epsilon, Fraction):
                raise violation(_witness(mechanism, x, x2, epsilon))


def _tightest(
    mechanism: Mechanism, context: Context, claim: RowClass, x: int, epsilon: Fraction, promise: _Promise
) -> Tightest:
    """Premises (2) and (3) for the symbols of a class that owe ε, shown at one of them."""
    peers = (x2 for x2 in np.flatnonzero(promise.group_of == promise.group_of[x]).tolist() if x2 != x)
    x2 = next(x2 for x2 in peers if context.exact_epsilon(x, x2) == epsilon)
    place = _witness(mechanism, x, x2, epsilon)
    if claim.own or not within_odds(claim.high, claim.low, epsilon):
        raise violation(place)
    return replace(place, high=claim.high, low=claim.low)


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
