"""Certificates by structure, for channels that are too large to enumerate.

A row holds ``high`` or ``low`` on its own range of reports, the ``cover`` on the ranges of others,
perhaps a report of its own, and the same leftover words c on a report that it shares with others
(``RowClass``). So for every y

    x, x2 with one range:    Q(y|x)/Q(y|x2) ≤ (high + c)/(low + c) ≤ high/low
    x, x2 with two ranges:   at most high/cover on x's range, cover/low on x2's range, else 1

and a symbol with a report of its own can promise nothing. So a context is kept when these few odds
keep what it promises to the pairs they stand for (the proof pages have the argument). What rows
hold is claimed as data and re-checked here: on all rows of up to 1000 symbols, and on 1000 random
rows of larger domains.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context, ExactMatrix, GroupedContext
from sfumato.errors import NoClosedForm, PrivacyViolation
from sfumato.foundation.arrays import Booleans, Symbols
from sfumato.mechanisms import Mechanism, RowClass
from sfumato.promises.enumeration import Tightest, broken_promise, require_row
from sfumato.randomness import Epsilon, SystemWords, within_odds

RANDOM_ROWS = 1000
"""How many rows of a larger domain are re-checked."""

_SMALL = np.uint32  # more numbers than any mechanism has levels

_Odds = list[tuple[int, int]]
_Pair = tuple[int, int, Fraction]
"""Two symbols, and what the first promises the second."""


def tightest_by_structure(
    mechanism: Mechanism, context: Context, classes: tuple[RowClass, ...]
) -> tuple[Tightest | None, int]:
    """Return the tightest place, and how many rows were re-checked.

    Raises ``PrivacyViolation`` if a promise is broken or a claim is false. The odds of a place
    inside a range are those of its class, ``high : low``: leftover words can only make the real
    ones smaller.
    """
    if not classes:
        raise NoClosedForm("this mechanism claims no structure, and is too large to enumerate.")
    ranges = _Ranges.from_claims(mechanism, classes)
    rows = _choose_rows(mechanism.inputs)
    _check_claims(mechanism, ranges, rows)
    terms = context.terms or (context,)
    groups = [term.groups for term in terms if term.groups is not None]
    if len(groups) == len(terms):
        pairs = _pairs_of_groups(_GroupPromises.from_terms(groups, context.size), ranges)
    else:
        pairs = _pairs_of_matrix(context.exact_matrix(), ranges)
    tightest: Tightest | None = None
    for pair in pairs:
        place = _check_pair(mechanism, context, pair, ranges)
        if tightest is None or place.slack < tightest.slack:
            tightest = place
    return tightest, rows.size


# --- the rows are as claimed ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Ranges:
    """Which claim holds for each symbol, where its range starts, and what others hold there.

    ``first_of`` is −1 for a symbol without a range. Report y has the level
    ``cover_levels[cover[y]]`` for symbols of other ranges.
    """

    classes: tuple[RowClass, ...]
    class_of: NDArray[np.int64]
    first_of: NDArray[np.int64]
    cover_levels: list[int]
    cover: NDArray[np.intp]

    @classmethod
    def from_claims(cls, mechanism: Mechanism, classes: tuple[RowClass, ...]) -> "_Ranges":
        """Lay out the claims; each symbol must be in one class, and ranges must not overlap."""
        class_of = np.full(mechanism.inputs, -1, dtype=np.int64)
        first_of = np.full(mechanism.inputs, -1, dtype=np.int64)
        owner = np.full(mechanism.outputs, -1, dtype=np.int64)
        cover = np.zeros(mechanism.outputs, dtype=np.intp)
        cover_levels = [0]
        for number, claim in enumerate(classes):
            class_of[claim.symbols] = number
            if not claim.symbols.size:
                raise _false_claim(0, 0)
            symbol = int(claim.symbols[0])
            has_firsts = claim.first_reports.shape == claim.symbols.shape
            if not has_firsts or not claim.is_sound(mechanism.outputs):
                raise _false_claim(symbol, 0)
            if not claim.outputs:
                continue
            first_of[claim.symbols] = claim.first_reports
            starts = np.unique(claim.first_reports)
            reports = starts[:, None] + np.arange(claim.outputs)
            overlaps = np.unique(reports).size != reports.size
            if overlaps or (owner[reports] >= 0).any():
                raise _false_claim(symbol, int(claim.first_reports[0]))
            owner[reports] = number
            shared_leftover = claim.leftover if claim.cover else 0
            cover_levels += [claim.cover, claim.cover + shared_leftover]
            cover[reports] = len(cover_levels) - 2
            cover[starts] = len(cover_levels) - 1
        symbols = sum(claim.symbols.size for claim in classes)
        if (class_of < 0).any() or symbols != mechanism.inputs:
            raise _false_claim(int(np.argmin(class_of)), 0)
        counts = np.bincount(cover, minlength=len(cover_levels)).tolist()
        all_cover = sum(map(mul, cover_levels, counts))
        for claim in classes:
            if (
                all_cover - claim.cover_words + claim.words + claim.own_words
                != mechanism.denominator
            ):
                raise _false_claim(int(claim.symbols[0]), int(claim.first_reports[0]))
        return cls(classes, class_of, first_of, cover_levels, cover)

    def claim_of(self, x: int) -> RowClass:
        """Return the claim about the row of x."""
        return self.classes[self.class_of[x]]

    def symbols_by_class(self) -> list[Symbols]:
        """Return the symbols of each class."""
        count = int(self.class_of.max()) + 1
        return [np.flatnonzero(self.class_of == number) for number in range(count)]


def _choose_rows(inputs: int) -> Symbols:
    if inputs <= RANDOM_ROWS:
        return np.arange(inputs)
    words = SystemWords().take(inputs)[:, 0]
    return np.sort(np.argpartition(words, RANDOM_ROWS)[:RANDOM_ROWS])


def _check_claims(mechanism: Mechanism, ranges: _Ranges, rows: Symbols) -> None:
    """Raise unless each of these rows is as its class says."""
    # Equal integers get equal numbers, so that a row is compared with the cover in small numbers.
    distinct = dict.fromkeys(ranges.cover_levels)
    number_of = {level: number for number, level in enumerate(distinct)}
    not_cover = len(number_of)
    cover_numbers = np.array([number_of[level] for level in ranges.cover_levels])
    cover = cover_numbers[ranges.cover].astype(_SMALL)
    for x in rows.tolist():
        levels, which = require_row(mechanism, x)
        numbers = [number_of.get(level, not_cover) for level in levels]
        row = np.array(numbers, dtype=_SMALL).take(which)
        differs = np.flatnonzero(row != cover)
        first = max(int(ranges.first_of[x]), 0)
        if not ranges.claim_of(x).matches(levels, which, first, differs):
            raise _false_claim(x, first)


def _false_claim(x: int, first: int) -> PrivacyViolation:
    return PrivacyViolation(
        f"the row of symbol {x} is not what the mechanism claims, so the claim proves nothing. "
        "The mechanism must not be used.",
        x=x,
        x2=x,
        output=first,
    )


# --- what is promised -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _GroupPromises:
    """The promise of a context of groups, or of a sum of them.

    Symbol x owes at least ``epsilons[inside[x]]`` to its group and ``epsilons[outward[x]]`` to all
    others.
    """

    epsilons: list[Epsilon]
    inside: NDArray[np.int64]
    outward: NDArray[np.int64]
    group_of: Symbols

    @classmethod
    def from_terms(cls, terms: list[GroupedContext], k: int) -> "_GroupPromises":
        """Add up ε over terms.

        A term that promises the same inside a group and outward needs no groups. Two symbols of
        different groups are in different groups of at least one term, and owe no less than the
        least that this leaves.
        """
        columns = [np.zeros(k, dtype=np.int64)]
        for term in terms:
            columns.append(term.group_of)
        table = np.column_stack(columns)
        cells, cell_of = np.unique(table, axis=0, return_inverse=True)
        number_of: dict[tuple[Epsilon, Epsilon], int] = {}
        number_of_cell = np.empty(len(cells), dtype=np.int64)
        for i, (_, *cell) in enumerate(cells.tolist()):
            promise = _promise_of_cell(terms, cell)
            number_of_cell[i] = number_of.setdefault(promise, len(number_of))
        group_of = np.zeros(k, dtype=np.int64)
        separate = [term.group_of for term in terms if term.inside != term.outward]
        if separate:
            keys = np.column_stack(separate)
            _, number = np.unique(keys, axis=0, return_inverse=True)
            group_of = number.reshape(k)
        number = number_of_cell[cell_of.reshape(k)]
        inside = [epsilon for epsilon, _ in number_of]
        outward = [epsilon for _, epsilon in number_of]
        return cls([*inside, *outward], number, number + len(inside), group_of)


def _promise_of_cell(terms: list[GroupedContext], cell: list[int]) -> tuple[Epsilon, Epsilon]:
    """Return what symbols of one cell owe inside their groups, and at least outward."""
    inside: list[Epsilon] = []
    outward: list[Epsilon] = []
    for term, g in zip(terms, cell, strict=True):
        inside.append(term.inside[g])
        outward.append(term.outward[g])
    least = list(map(min, inside, outward))
    total_inside = sum(inside, Fraction(0))
    total_outward = []
    for i, term in enumerate(terms):
        if term.inside != term.outward or len(terms) == 1:
            others = least[:i] + least[i + 1 :]
            total_outward.append(sum(others, outward[i]))
    return total_inside, min(total_outward, default=total_inside)


# --- the promises are kept ------------------------------------------------------------------------


def _pairs_of_matrix(exact: ExactMatrix, ranges: _Ranges) -> Iterator[_Pair]:
    """For every two classes, same range or not, yield the pair with the strongest promise."""
    E = exact.numerators_off_diagonal()
    has_range = ranges.first_of >= 0
    same_first = ranges.first_of[:, None] == ranges.first_of[None, :]
    shared = same_first & has_range
    members = ranges.symbols_by_class()
    for rows, columns, same_range in itertools.product(members, members, (True, False)):
        block = np.ix_(rows, columns)
        promises = np.where(shared[block] == same_range, E[block], exact.infinite)
        least = int(promises.argmin())
        i, j = np.unravel_index(least, promises.shape)
        if promises[i, j] < exact.infinite:
            promised = Fraction(int(promises[i, j]), exact.denominator)
            yield int(rows[i]), int(columns[j]), promised


def _pairs_of_groups(owed: _GroupPromises, ranges: _Ranges) -> Iterator[_Pair]:
    """For every two classes, same group or not, same range or not, yield one pair.

    Its ε is what such pairs are promised at least.
    """
    kinds = np.column_stack([owed.inside, owed.outward, ranges.class_of])
    members = ranges.symbols_by_class()
    # A symbol without a range shares it with no other: give it a range of its own.
    alone = -1 - np.arange(ranges.first_of.size)
    range_of = np.where(ranges.first_of >= 0, ranges.first_of, alone)
    always = np.ones(range_of.size, dtype=np.bool_)
    has_several_ranges = _spans(owed.group_of, range_of)
    has_several_groups = _spans(range_of, owed.group_of)
    # Whether there is a pair with the same group or not, and the same range or not.
    exists = {
        (True, True): always,
        (True, False): has_several_ranges,
        (False, True): has_several_groups,
        (False, False): always,
    }
    for inside, outward, number in np.unique(kinds, axis=0).tolist():
        is_kind = (kinds == [inside, outward, number]).all(axis=1)
        symbols = np.flatnonzero(is_kind)
        # Classes never share a range, so symbols of one range are of one class.
        others = [(members[number], True)]
        for symbols2 in members:
            others.append((symbols2, False))
        for same_group, kind in ((True, inside), (False, outward)):
            promised = owed.epsilons[kind]
            if not isinstance(promised, Fraction):
                continue
            for candidates, same_range in others:
                if not exists[same_group, same_range][symbols].any():
                    continue
                pair = _first_pair(
                    symbols, candidates, owed.group_of, ranges.first_of, same_group, same_range
                )
                if pair is not None:
                    yield *pair, promised


def _spans(outer: Symbols, inner: Symbols) -> Booleans:
    """Return for each symbol whether those with its ``outer`` have several ``inner`` numbers."""
    _, cell = np.unique(outer, return_inverse=True)
    cell = cell.reshape(-1)
    pairs = np.unique(np.column_stack([cell, inner]), axis=0)
    return (np.bincount(pairs[:, 0]) > 1)[cell]


def _first_pair(
    symbols: Symbols,
    others: Symbols,
    group_of: Symbols,
    first_of: Symbols,
    same_group: bool,
    same_range: bool,
) -> tuple[int, int] | None:
    """Return x among symbols and x2 ≠ x among others whose group and range are the same or not.

    One x per group and range suffices.
    """
    cells = np.column_stack([group_of[symbols], first_of[symbols]])
    _, leaders = np.unique(cells, axis=0, return_index=True)
    for x in symbols[leaders].tolist():
        shares_group = group_of[others] == group_of[x]
        # A symbol without a range shares it with no other.
        shares_range = (first_of[others] == first_of[x]) & (first_of[others] >= 0)
        fits = (shares_group == same_group) & (shares_range == same_range) & (others != x)
        candidates = others[fits]
        if candidates.size:
            return x, int(candidates[0])
    return None


def _largest_odds(ranges: _Ranges, x: int, x2: int) -> _Odds:
    """Return the odds that any report can have for the class of x over the class of x2."""
    claim = ranges.claim_of(x)
    other = ranges.claim_of(x2)
    if claim.own_words:
        return [(claim.own_words, 0)]
    if ranges.first_of[x] == ranges.first_of[x2]:
        return [(claim.high, claim.low)]
    # Leftover words are shared with strangers where there is cover; elsewhere x alone has them.
    top = claim.high if claim.cover else claim.high + claim.leftover
    odds = [(top, claim.cover)]
    if other.outputs:
        odds.append((other.cover, other.low))
    return odds


def _check_pair(mechanism: Mechanism, context: Context, pair: _Pair, ranges: _Ranges) -> Tightest:
    """Return the place of a pair whose odds keep the promise; raise otherwise."""
    x, x2, promised = pair
    epsilon = context.exact_epsilon(x, x2)
    witness = _witness(mechanism, x, x2, promised if isinstance(epsilon, float) else epsilon)
    odds = _largest_odds(ranges, x, x2)
    if all(within_odds(high, low, promised) for high, low in odds):
        high, low = max(odds, key=_ratio)
        return replace(witness, high=high, low=low, promised=promised)
    if isinstance(epsilon, float) or within_odds(witness.high, witness.low, epsilon):
        raise NoClosedForm(
            "this mechanism has too many rows to enumerate, and too little structure for a proof."
        )
    raise broken_promise(witness)


def _ratio(odds: tuple[int, int]) -> Fraction:
    high, low = odds
    return Fraction(high, max(low, 1))


def _witness(mechanism: Mechanism, x: int, x2: int, epsilon: Fraction) -> Tightest:
    """Return the report that favours x over x2 most."""
    levels, which = mechanism.compact_row(x)
    levels2, which2 = mechanism.compact_row(x2)
    pairs, outputs = np.unique(which * len(levels2) + which2, return_index=True)
    places = []
    for pair, output in zip(pairs.tolist(), outputs.tolist(), strict=True):
        i, i2 = divmod(pair, len(levels2))
        place = Tightest(x, x2, output, levels[i], levels2[i2], epsilon)
        places.append(place)
    return max(places, key=_odds_order)


def _odds_order(place: Tightest) -> tuple[bool, Fraction]:
    is_infinite = place.high > 0 and place.low == 0
    return is_infinite, Fraction(place.high, max(place.low, 1))
