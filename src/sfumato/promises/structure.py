"""Certificates by structure, for channels that are too large to enumerate.

A row holds ``high`` or ``low`` on its own range of reports, the ``cover`` on the ranges of others, perhaps a report
of its own, and the same leftover words c on a report that it shares with others (``RowClass``). So for every y

    x, x2 with one range:       Q(y|x)/Q(y|x2) ≤ (high + c)/(low + c) ≤ high/low
    x, x2 with two ranges:      at most high/cover on x's range, cover/low on x2's range, 1 on the others

and a symbol with a report of its own can promise nothing. So a context is kept when these few odds keep what it
promises to the pairs they stand for (spelt out on the proof pages). What the rows hold is claimed as data and
re-checked here, on all rows of up to 1000 symbols and on 1000 random rows of larger domains.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context, ExactMatrix, GroupedContext
from sfumato.errors import NoClosedForm, PrivacyViolation
from sfumato.foundation.arrays import Booleans, Symbols
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.row_class import RowClass
from sfumato.promises.tightest import Tightest, no_channel, sums_to, violation
from sfumato.randomness import Epsilon, SystemWords, within_odds

__all__ = ["RANDOM_ROWS", "tightest_by_structure"]

RANDOM_ROWS = 1000
_SMALL = np.uint32  # more numbers than any mechanism has levels


def tightest_by_structure(
    mechanism: Mechanism, context: Context, classes: tuple[RowClass, ...]
) -> tuple[Tightest | None, int]:
    """The tightest place and the number of rows that were looked at; raises ``PrivacyViolation``.

    The odds of a place inside a range are those of its class, ``high : low``: leftover words can only make the real
    ones smaller.
    """
    if not classes:
        raise NoClosedForm(
            "this mechanism has no structure to argue from and is too large to enumerate."
        )
    ranges = _ranges(mechanism, classes)
    rows = _rows_to_check(mechanism.inputs)
    _check_claims(mechanism, classes, ranges, rows)
    owed = _owed(context.terms)
    pairs = (
        _pairs_of_matrix(context.exact_matrix(), ranges)
        if owed is None
        else _pairs_of_groups(owed, ranges)
    )
    places = [
        _kept(mechanism, context, x, x2, promised, _odds(classes, ranges, x, x2))
        for x, x2, promised in pairs
    ]
    return min(
        places, key=lambda place: float(place.promised) - place.realised, default=None
    ), rows.size


# --- the rows are as claimed ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ranges:
    """Which class each symbol is in, where its range starts (−1: it has none), and what others hold on all ranges."""

    class_of: NDArray[np.int64]
    first_of: NDArray[np.int64]
    cover_levels: list[int]
    cover: NDArray[np.intp]


def _ranges(mechanism: Mechanism, classes: tuple[RowClass, ...]) -> _Ranges:
    """Lay the claims side by side; every symbol must be in one class, and ranges must not overlap."""
    class_of = np.full(mechanism.inputs, -1, dtype=np.int64)
    first_of = np.full(mechanism.inputs, -1, dtype=np.int64)
    owner = np.full(mechanism.outputs, -1, dtype=np.int64)
    cover_levels, cover = [0], np.zeros(mechanism.outputs, dtype=np.intp)
    for number, claim in enumerate(classes):
        class_of[claim.symbols] = number
        if (
            not claim.symbols.size
            or claim.first.shape != claim.symbols.shape
            or not claim.is_sound(mechanism.outputs)
        ):
            raise _unfounded(int(claim.symbols[0]) if claim.symbols.size else 0, 0)
        if not claim.outputs:
            continue
        first_of[claim.symbols] = claim.first
        starts = np.unique(claim.first)
        reports = starts[:, None] + np.arange(claim.outputs)
        if (owner[reports] >= 0).any() or np.unique(reports).size != reports.size:
            raise _unfounded(int(claim.symbols[0]), int(claim.first[0]))
        owner[reports] = number
        cover_levels += [claim.cover, claim.cover + (claim.leftover if claim.cover else 0)]
        cover[reports] = len(cover_levels) - 2
        cover[starts] = len(cover_levels) - 1
    if (class_of < 0).any() or sum(claim.symbols.size for claim in classes) != mechanism.inputs:
        raise _unfounded(int(np.argmin(class_of)), 0)
    counts = np.bincount(cover, minlength=len(cover_levels)).tolist()
    everywhere = sum(level * count for level, count in zip(cover_levels, counts, strict=True))
    for claim in classes:
        if everywhere - claim.covered + claim.words + claim.own != mechanism.denominator:
            raise _unfounded(int(claim.symbols[0]), int(claim.first[0]))
    return _Ranges(class_of, first_of, cover_levels, cover)


def _rows_to_check(inputs: int) -> Symbols:
    if inputs <= RANDOM_ROWS:
        return np.arange(inputs)
    drawn = SystemWords().take(inputs)[:, 0]
    return np.sort(np.argpartition(drawn, RANDOM_ROWS)[:RANDOM_ROWS])


def _check_claims(
    mechanism: Mechanism, classes: tuple[RowClass, ...], ranges: _Ranges, rows: Symbols
) -> None:
    """The rows looked at are as their class says."""
    # Equal integers get equal numbers, so that a row is compared with the cover in small numbers.
    number_of = {level: number for number, level in enumerate(dict.fromkeys(ranges.cover_levels))}
    no_cover = len(number_of)
    cover = np.array([number_of[level] for level in ranges.cover_levels])[ranges.cover].astype(
        _SMALL
    )
    for x in rows.tolist():
        levels, which = mechanism.compact_row(x)
        if not sums_to(levels, which, mechanism.denominator):
            raise no_channel(x)
        numbers = np.array([number_of.get(level, no_cover) for level in levels], dtype=_SMALL)
        strange = np.flatnonzero(numbers.take(which) != cover)
        claim, first = classes[ranges.class_of[x]], max(int(ranges.first_of[x]), 0)
        if not claim.describes(levels, which, first, strange):
            raise _unfounded(x, first)


def _unfounded(x: int, first: int) -> PrivacyViolation:
    message = (
        f"the row of symbol {x} is not what the mechanism claims of it, so nothing can be argued from the claim. "
        "The mechanism must not be used."
    )
    return PrivacyViolation(message, x=x, x2=x, output=first)


# --- what is promised -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Owed:
    """Symbol x owes at least ``epsilons[inside[x]]`` to its group and ``epsilons[outward[x]]`` to all others."""

    epsilons: list[Epsilon]
    inside: NDArray[np.int64]
    outward: NDArray[np.int64]
    group_of: Symbols


def _owed(terms: Sequence[Context]) -> _Owed | None:
    """The promise of a context of groups, or of a sum of them."""
    groups = [term.groups for term in terms if term.groups is not None]
    return _owed_by_groups(groups, terms[0].size) if len(groups) == len(terms) else None


def _owed_by_groups(terms: list[GroupedContext], k: int) -> _Owed:
    """ε add up over terms. Terms that promise the same inside a group and out of it need no groups.

    Two symbols of different groups are so by at least one term, and owe no less than the least that this leaves.
    """
    splitting = [term for term in terms if term.inside != term.outward]
    number: dict[tuple[Epsilon, Epsilon], int] = {}
    cells = np.column_stack([np.zeros(k, dtype=np.int64), *(term.group_of for term in terms)])
    distinct, cell_of = np.unique(cells, axis=0, return_inverse=True)
    which = np.empty(len(distinct), dtype=np.int64)
    for i, (_, *cell) in enumerate(distinct.tolist()):
        pair = _owed_in_cell(terms, cell)
        which[i] = number.setdefault(pair, len(number))
    pairs = list(number)
    group_of = np.zeros(k, dtype=np.int64)
    if splitting:
        keys = np.column_stack([term.group_of for term in splitting])
        group_of = np.unique(keys, axis=0, return_inverse=True)[1].reshape(k)
    mine = which[cell_of.reshape(k)]
    return _Owed(
        [*(a for a, _ in pairs), *(b for _, b in pairs)], mine, mine + len(pairs), group_of
    )


def _owed_in_cell(terms: list[GroupedContext], cell: list[int]) -> tuple[Epsilon, Epsilon]:
    inside = [term.inside[g] for term, g in zip(terms, cell, strict=True)]
    outward = [term.outward[g] for term, g in zip(terms, cell, strict=True)]
    least = [min(a, b) for a, b in zip(inside, outward, strict=True)]
    leaving = [
        sum(least[:i] + least[i + 1 :], outward[i])
        for i, term in enumerate(terms)
        if term.inside != term.outward or len(terms) == 1
    ]
    return sum(inside, Fraction(0)), min(leaving, default=sum(inside, Fraction(0)))


# --- the promises are kept ------------------------------------------------------------------------------------------


def _pairs_of_matrix(exact: ExactMatrix, ranges: _Ranges) -> Iterator[tuple[int, int, Fraction]]:
    """For every two classes, same range or not: the pair to which the matrix promises most."""
    E = exact.off_diagonal()
    shared = (ranges.first_of[:, None] == ranges.first_of[None, :]) & (ranges.first_of >= 0)
    numbers = range(int(ranges.class_of.max()) + 1)
    for a, b, same_range in itertools.product(numbers, numbers, (True, False)):
        rows, columns = np.flatnonzero(ranges.class_of == a), np.flatnonzero(ranges.class_of == b)
        part = np.where(
            shared[np.ix_(rows, columns)] == same_range, E[np.ix_(rows, columns)], exact.infinite
        )
        i, j = np.unravel_index(int(part.argmin()), part.shape)
        if part[i, j] < exact.infinite:
            yield int(rows[i]), int(columns[j]), Fraction(int(part[i, j]), exact.denominator)


def _pairs_of_groups(owed: _Owed, ranges: _Ranges) -> Iterator[tuple[int, int, Fraction]]:
    """For every two classes, same group or not, same range or not: one pair, with what it is promised at least."""
    kinds = np.column_stack([owed.inside, owed.outward, ranges.class_of])
    members = [
        np.flatnonzero(ranges.class_of == number)
        for number in range(int(ranges.class_of.max()) + 1)
    ]
    # Symbols without a range have nothing that anybody else could share: each stands for a range of its own.
    range_of = np.where(ranges.first_of >= 0, ranges.first_of, -1 - np.arange(ranges.first_of.size))
    scattered, crowded = _spans(owed.group_of, range_of), _spans(range_of, owed.group_of)
    exists = {
        (True, True): np.ones_like(scattered),
        (True, False): scattered,  # groups with several ranges
        (False, True): crowded,  # ranges with several groups
        (False, False): np.ones_like(scattered),
    }
    for inside, outward, number in np.unique(kinds, axis=0).tolist():
        symbols = np.flatnonzero((kinds == [inside, outward, number]).all(axis=1))
        for same_group, promised in (
            (True, owed.epsilons[inside]),
            (False, owed.epsilons[outward]),
        ):
            if not isinstance(promised, Fraction):
                continue
            # Classes never share a range, so symbols of one range are of one class.
            wanted = [(number, True), *((other, False) for other in range(len(members)))]
            for other, same_range in wanted:
                if not exists[same_group, same_range][symbols].any():
                    continue
                pair = _first_pair(
                    symbols, members[other], owed.group_of, ranges.first_of, same_group, same_range
                )
                if pair is not None:
                    yield *pair, promised


def _spans(outer: Symbols, inner: Symbols) -> Booleans:
    """For each symbol, whether those with its ``outer`` number have several ``inner`` numbers."""
    _, cell = np.unique(outer, return_inverse=True)
    pairs = np.unique(np.column_stack([cell.reshape(-1), inner]), axis=0)
    return (np.bincount(pairs[:, 0]) > 1)[cell.reshape(-1)]


def _first_pair(
    symbols: Symbols,
    others: Symbols,
    group_of: Symbols,
    first_of: Symbols,
    same_group: bool,
    same_range: bool,
) -> tuple[int, int] | None:
    """Some x among symbols and x2 ≠ x among others with group and range the same, or not; one x per cell suffices."""
    _, leaders = np.unique(
        np.column_stack([group_of[symbols], first_of[symbols]]), axis=0, return_index=True
    )
    for x in symbols[leaders].tolist():
        alike = (group_of[others] == group_of[x]) == same_group
        # Symbols without a range have nothing that anybody else could share.
        shared = (first_of[others] == first_of[x]) & (first_of[others] >= 0)
        fitting = others[alike & (shared == same_range) & (others != x)]
        if fitting.size:
            return x, int(fitting[0])
    return None


def _odds(classes: tuple[RowClass, ...], ranges: _Ranges, x: int, x2: int) -> list[tuple[int, int]]:
    """The odds that any report can have for the class of x over the class of x2."""
    claim, other = classes[ranges.class_of[x]], classes[ranges.class_of[x2]]
    if claim.own:
        return [(claim.own, 0)]
    if ranges.first_of[x] == ranges.first_of[x2]:
        return [(claim.high, claim.low)]
    # Leftover words are shared with strangers where there is cover; elsewhere x alone has them.
    top = claim.high if claim.cover else claim.high + claim.leftover
    return [(top, claim.cover)] + ([(other.cover, other.low)] if other.outputs else [])


def _kept(
    mechanism: Mechanism,
    context: Context,
    x: int,
    x2: int,
    promised: Fraction,
    odds: list[tuple[int, int]],
) -> Tightest:
    epsilon = context.exact_epsilon(x, x2)
    place = _witness(mechanism, x, x2, promised if isinstance(epsilon, float) else epsilon)
    if all(within_odds(high, low, promised) for high, low in odds):
        high, low = max(odds, key=lambda pair: Fraction(pair[0], max(pair[1], 1)))
        return replace(place, high=high, low=low, promised=promised)
    if isinstance(epsilon, float) or within_odds(place.high, place.low, epsilon):
        raise NoClosedForm(
            "the rows of this mechanism are too many to enumerate, and too unlike to argue from."
        )
    raise violation(place)


def _witness(mechanism: Mechanism, x: int, x2: int, epsilon: Fraction) -> Tightest:
    """The report that speaks most for x over x2."""
    (levels, which), (levels2, which2) = mechanism.compact_row(x), mechanism.compact_row(x2)
    pairs, where = np.unique(which * len(levels2) + which2, return_index=True)
    candidates = [
        Tightest(x, x2, output, levels[pair // len(levels2)], levels2[pair % len(levels2)], epsilon)
        for pair, output in zip(pairs.tolist(), where.tolist(), strict=True)
    ]
    return max(candidates, key=lambda place: (place.high > 0 and place.low == 0, _ratio(place)))


def _ratio(place: Tightest) -> Fraction:
    return Fraction(place.high, max(place.low, 1))
