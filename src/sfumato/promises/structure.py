"""Structural certificates, for channels that are too large to enumerate.

In the row of a symbol, ``high`` or ``low`` words map to each report in the symbol's own range, and
``cover`` words map to each report in another range. The c leftover words map to one report that is
shared with other symbols. A symbol may also have a report that only it produces (see
``RowClass``). So for every report y:

    x, x2 with the same range:     Q(y|x)/Q(y|x2) ≤ (high + c)/(low + c) ≤ high/low
    x, x2 with different ranges:   ≤ high/cover on x's range, cover/low on x2's range, 1 elsewhere

For a symbol with a report that only it produces, no finite ε can be promised. So a context is
satisfied if these few odds are within the promises for the pairs they represent (see the proof
pages). The method ``row_classes`` of a mechanism returns its claims about this structure. The
claims are re-checked here: on all rows if there are at most 1000 symbols, and otherwise on 1000
random rows.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context, ExactMatrix, GroupedContext
from sfumato.errors import NoClosedForm
from sfumato.foundation.arrays import Booleans, Symbols
from sfumato.mechanisms import Mechanism, RowClass
from sfumato.promises.enumeration import (
    TightestCase,
    UnlabelledViolation,
    broken_promise_error,
    require_row,
)
from sfumato.randomness import Epsilon, SystemWords, within_odds

RANDOM_ROW_COUNT = 1000
"""The number of random rows to re-check; all rows are re-checked if there are no more than this."""

_INDEX_TYPE = np.uint32  # large enough to index the levels of any mechanism

_Odds = tuple[int, int]
"""The word counts of a report under x and x2."""

_Pair = tuple[int, int, Fraction]
"""Two symbols x and x2, and the promised ``E[x, x2]``."""


def check_structure(
    mechanism: Mechanism, context: Context, classes: tuple[RowClass, ...]
) -> tuple[TightestCase | None, int]:
    """Return the tightest case, and the number of rows that were re-checked.

    Raises ``PrivacyViolation`` if a promise is broken or a claim is false, and ``NoClosedForm`` if
    the claims are not enough for a proof. For two symbols with the same range, the case has the
    odds ``high : low`` of their class, because leftover words can only make the actual odds
    smaller.
    """
    if not classes:
        raise NoClosedForm("this mechanism claims no structure and is too large to enumerate.")
    ranges = _Ranges.from_claims(mechanism, classes)
    rows = _choose_rows(mechanism.inputs)
    _check_claims(mechanism, ranges, rows)
    terms = context.terms or (context,)
    groups = [term.groups for term in terms if term.groups is not None]
    if len(groups) == len(terms):
        pairs = _group_pairs(_GroupPromises.from_terms(groups, context.size), ranges)
    else:
        pairs = _matrix_pairs(context.exact_matrix(), ranges)
    tightest: TightestCase | None = None
    for pair in pairs:
        case = _check_pair(mechanism, context, pair, ranges)
        if tightest is None or case.slack < tightest.slack:
            tightest = case
    return tightest, rows.size


# --- claims about the rows ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ranges:
    """The claimed class and range of each symbol, and the level of each report outside the range.

    ``start_of`` is the first report of each symbol's range, or −1 for a symbol without a range. For
    symbols whose range does not contain y, report y has the level
    ``cover_levels[cover_index_of[y]]``.
    """

    classes: tuple[RowClass, ...]
    class_of: NDArray[np.int64]
    start_of: NDArray[np.int64]
    cover_levels: list[int]
    cover_index_of: NDArray[np.intp]

    @classmethod
    def from_claims(cls, mechanism: Mechanism, classes: tuple[RowClass, ...]) -> "_Ranges":
        """Combine the claims, and check that they are consistent.

        Each symbol must be in exactly one class, ranges must not overlap, and the claimed words of
        each row must add up to the denominator.
        """
        class_of = np.full(mechanism.inputs, -1, dtype=np.int64)
        start_of = np.full(mechanism.inputs, -1, dtype=np.int64)
        class_of_report = np.full(mechanism.outputs, -1, dtype=np.int64)
        cover_index_of = np.zeros(mechanism.outputs, dtype=np.intp)
        cover_levels = [0]
        for index, claim in enumerate(classes):
            class_of[claim.symbols] = index
            if not claim.symbols.size:
                raise _false_claim_error(0, 0)
            symbol = int(claim.symbols[0])
            has_start_per_symbol = claim.first_reports.shape == claim.symbols.shape
            if not has_start_per_symbol or not claim.is_consistent(mechanism.outputs):
                raise _false_claim_error(symbol, 0)
            if not claim.outputs:
                continue
            start_of[claim.symbols] = claim.first_reports
            starts = np.unique(claim.first_reports)
            reports = starts[:, None] + np.arange(claim.outputs)
            has_overlap = np.unique(reports).size != reports.size
            if has_overlap or (class_of_report[reports] >= 0).any():
                raise _false_claim_error(symbol, int(claim.first_reports[0]))
            class_of_report[reports] = index
            shared_leftover = claim.leftover if claim.cover else 0
            cover_levels += [claim.cover, claim.cover + shared_leftover]
            cover_index_of[reports] = len(cover_levels) - 2
            cover_index_of[starts] = len(cover_levels) - 1
        symbol_count = sum(claim.symbols.size for claim in classes)
        if (class_of < 0).any() or symbol_count != mechanism.inputs:
            raise _false_claim_error(int(np.argmin(class_of)), 0)
        counts = np.bincount(cover_index_of, minlength=len(cover_levels)).tolist()
        total_cover = sum(map(mul, cover_levels, counts))
        for claim in classes:
            other_cover = total_cover - claim.cover_words
            if other_cover + claim.words_in_range + claim.own_words != mechanism.denominator:
                raise _false_claim_error(int(claim.symbols[0]), int(claim.first_reports[0]))
        return cls(classes, class_of, start_of, cover_levels, cover_index_of)

    def claim_of(self, x: int) -> RowClass:
        """Return the claim about the row of x."""
        return self.classes[self.class_of[x]]

    def symbols_by_class(self) -> list[Symbols]:
        """Return the symbols of each class."""
        class_count = int(self.class_of.max()) + 1
        return [np.flatnonzero(self.class_of == index) for index in range(class_count)]


def _choose_rows(inputs: int) -> Symbols:
    if inputs <= RANDOM_ROW_COUNT:
        return np.arange(inputs)
    words = SystemWords().take(inputs)[:, 0]
    return np.sort(np.argpartition(words, RANDOM_ROW_COUNT)[:RANDOM_ROW_COUNT])


def _check_claims(mechanism: Mechanism, ranges: _Ranges, rows: Symbols) -> None:
    """Raise ``PrivacyViolation`` unless each of ``rows`` matches the claim about its class."""
    # Replace the large integers with indices, which are faster to compare.
    distinct_levels = dict.fromkeys(ranges.cover_levels)
    index_of = {level: index for index, level in enumerate(distinct_levels)}
    other_index = len(index_of)  # stands for every level that is not a cover level
    cover_indices = np.array([index_of[level] for level in ranges.cover_levels])
    cover_row = cover_indices[ranges.cover_index_of].astype(_INDEX_TYPE)
    for x in rows.tolist():
        levels, level_indices = require_row(mechanism, x)
        indices = [index_of.get(level, other_index) for level in levels]
        row = np.array(indices, dtype=_INDEX_TYPE).take(level_indices)
        differing_reports = np.flatnonzero(row != cover_row)
        start = max(int(ranges.start_of[x]), 0)
        if not ranges.claim_of(x).matches(levels, level_indices, start, differing_reports):
            raise _false_claim_error(x, start)


def _false_claim_error(x: int, output: int) -> UnlabelledViolation:
    return UnlabelledViolation(
        "the mechanism's claims about the row of {x} are false or inconsistent, so they "
        "prove nothing. The mechanism must not be used.",
        x=x,
        x2=x,
        output=output,
    )


# --- grouped promises -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _GroupPromises:
    """The promises of a grouped context, or of a sum of grouped contexts.

    The ε promised for symbol x is at least ``epsilons[inside[x]]`` against symbols in its group,
    and at least ``epsilons[outward[x]]`` against all others.
    """

    epsilons: list[Epsilon]
    inside: NDArray[np.int64]
    outward: NDArray[np.int64]
    group_of: Symbols

    @classmethod
    def from_terms(cls, terms: list[GroupedContext], k: int) -> "_GroupPromises":
        """Return the promises of a sum of terms over k symbols.

        Terms that promise the same ε inside and outward do not affect the groups. Two symbols in
        different groups are separated by at least one of the remaining terms. Their promise is at
        least the minimum over the terms that may separate them.
        """
        # A cell is a set of symbols that are in the same group in every term.
        columns = [np.zeros(k, dtype=np.int64)]
        for term in terms:
            columns.append(term.group_of)
        table = np.column_stack(columns)
        cells, cell_of = np.unique(table, axis=0, return_inverse=True)
        index_of_promise: dict[tuple[Epsilon, Epsilon], int] = {}
        promise_index_of_cell = np.empty(len(cells), dtype=np.int64)
        for i, (_, *cell) in enumerate(cells.tolist()):
            promise = _promise_of_cell(terms, cell)
            promise_index_of_cell[i] = index_of_promise.setdefault(promise, len(index_of_promise))
        group_of = np.zeros(k, dtype=np.int64)
        distinguishing_groups = [term.group_of for term in terms if term.inside != term.outward]
        if distinguishing_groups:
            keys = np.column_stack(distinguishing_groups)
            _, group = np.unique(keys, axis=0, return_inverse=True)
            group_of = group.reshape(k)
        promise_index_of_symbol = promise_index_of_cell[cell_of.reshape(k)]
        inside = [epsilon for epsilon, _ in index_of_promise]
        outward = [epsilon for _, epsilon in index_of_promise]
        return cls(
            [*inside, *outward],
            promise_index_of_symbol,
            promise_index_of_symbol + len(inside),
            group_of,
        )


def _promise_of_cell(terms: list[GroupedContext], cell: list[int]) -> tuple[Epsilon, Epsilon]:
    """Return a cell's ε inside its group, and a lower bound on its ε against symbols outside."""
    inside: list[Epsilon] = []
    outward: list[Epsilon] = []
    for term, g in zip(terms, cell, strict=True):
        inside.append(term.inside[g])
        outward.append(term.outward[g])
    minima = list(map(min, inside, outward))
    total_inside = sum(inside, Fraction(0))
    outward_totals = []
    for i, term in enumerate(terms):
        if term.inside != term.outward or len(terms) == 1:
            other_minima = minima[:i] + minima[i + 1 :]
            outward_totals.append(sum(other_minima, outward[i]))
    return total_inside, min(outward_totals, default=total_inside)


# --- pairs to check -------------------------------------------------------------------------------


def _matrix_pairs(entries: ExactMatrix, ranges: _Ranges) -> Iterator[_Pair]:
    """Yield the pair with the strongest promise for each combination of two classes.

    Pairs in the same range and pairs in different ranges are treated separately.
    """
    numerators = entries.numerators_off_diagonal()
    has_range = ranges.start_of >= 0
    is_same_start = ranges.start_of[:, None] == ranges.start_of[None, :]
    shares_range = is_same_start & has_range
    members = ranges.symbols_by_class()
    for rows, columns, same_range in itertools.product(members, members, (True, False)):
        block = np.ix_(rows, columns)
        is_selected = shares_range[block] == same_range
        promises = np.where(is_selected, numerators[block], entries.infinity)
        strongest_index = int(promises.argmin())
        i, j = np.unravel_index(strongest_index, promises.shape)
        if promises[i, j] < entries.infinity:
            promised = Fraction(int(promises[i, j]), entries.denominator)
            yield int(rows[i]), int(columns[j]), promised


def _group_pairs(promises: _GroupPromises, ranges: _Ranges) -> Iterator[_Pair]:
    """Yield one pair for each possible combination of classes, groups and ranges.

    A combination specifies the promises and the class of the first symbol, the class of the second
    symbol, and whether the two symbols share a group and whether they share a range. The ε of the
    pair is a lower bound on the promise for all pairs in its combination.
    """
    kinds = np.column_stack([promises.inside, promises.outward, ranges.class_of])
    members = ranges.symbols_by_class()
    # Give each symbol without a range a unique range, which no other symbol shares.
    unique_ranges = -1 - np.arange(ranges.start_of.size)
    range_of = np.where(ranges.start_of >= 0, ranges.start_of, unique_ranges)
    all_true = np.ones(range_of.size, dtype=np.bool_)
    has_several_ranges = _has_several(promises.group_of, range_of)
    has_several_groups = _has_several(range_of, promises.group_of)
    # For each (same_group, same_range), whether each symbol may be in such a pair.
    may_exist = {
        (True, True): all_true,
        (True, False): has_several_ranges,
        (False, True): has_several_groups,
        (False, False): all_true,
    }
    for inside, outward, class_index in np.unique(kinds, axis=0).tolist():
        is_kind = (kinds == [inside, outward, class_index]).all(axis=1)
        symbols = np.flatnonzero(is_kind)
        # Classes never share a range, so symbols with the same range are in the same class.
        partner_choices = [(members[class_index], True)]
        for symbols2 in members:
            partner_choices.append((symbols2, False))
        for same_group, promise_index in ((True, inside), (False, outward)):
            promised = promises.epsilons[promise_index]
            if not isinstance(promised, Fraction):
                continue
            for partners, same_range in partner_choices:
                if not may_exist[same_group, same_range][symbols].any():
                    continue
                pair = _first_pair(
                    symbols, partners, promises.group_of, ranges.start_of, same_group, same_range
                )
                if pair is not None:
                    yield *pair, promised


def _has_several(outer: Symbols, inner: Symbols) -> Booleans:
    """Return, for each symbol, whether symbols with the same ``outer`` differ in ``inner``."""
    _, cell = np.unique(outer, return_inverse=True)
    cell = cell.reshape(-1)
    pairs = np.unique(np.column_stack([cell, inner]), axis=0)
    return (np.bincount(pairs[:, 0]) > 1)[cell]


def _first_pair(
    symbols: Symbols,
    partners: Symbols,
    group_of: Symbols,
    start_of: Symbols,
    same_group: bool,
    same_range: bool,
) -> tuple[int, int] | None:
    """Return x from ``symbols`` and x2 ≠ x from ``partners``, or ``None`` if no pair qualifies.

    The pair must share a group if and only if ``same_group``, and a range if and only if
    ``same_range``. It is enough to try one x for each combination of group and range.
    """
    cells = np.column_stack([group_of[symbols], start_of[symbols]])
    _, representatives = np.unique(cells, axis=0, return_index=True)
    for x in symbols[representatives].tolist():
        shares_group = group_of[partners] == group_of[x]
        # A symbol without a range does not share one with any other symbol.
        shares_range = (start_of[partners] == start_of[x]) & (start_of[partners] >= 0)
        matches = (shares_group == same_group) & (shares_range == same_range) & (partners != x)
        candidates = partners[matches]
        if candidates.size:
            return x, int(candidates[0])
    return None


def _candidate_odds(ranges: _Ranges, x: int, x2: int) -> list[_Odds]:
    """Return candidates for the largest odds of x against x2, according to the claims."""
    claim = ranges.claim_of(x)
    claim2 = ranges.claim_of(x2)
    if claim.own_words:
        return [(claim.own_words, 0)]
    if ranges.start_of[x] == ranges.start_of[x2]:
        return [(claim.high, claim.low)]
    # With cover, symbols with other ranges share the leftover words. Without it, only x has them.
    max_words = claim.high if claim.cover else claim.high + claim.leftover
    odds = [(max_words, claim.cover)]
    if claim2.outputs:
        odds.append((claim2.cover, claim2.low))
    return odds


def _check_pair(
    mechanism: Mechanism, context: Context, pair: _Pair, ranges: _Ranges
) -> TightestCase:
    """Return the tightest case for a pair.

    Raises ``PrivacyViolation`` if the promise is broken, and ``NoClosedForm`` if the claims do not
    show that it is kept.
    """
    x, x2, promised = pair
    epsilon = context.exact_epsilon(x, x2)
    witness = _find_witness(mechanism, x, x2, promised if isinstance(epsilon, float) else epsilon)
    odds = _candidate_odds(ranges, x, x2)
    if all(within_odds(high, low, promised) for high, low in odds):
        high, low = max(odds, key=_odds_ratio)
        return replace(witness, high=high, low=low, promised=promised)
    if isinstance(epsilon, float) or within_odds(witness.high, witness.low, epsilon):
        raise NoClosedForm(
            "this mechanism is too large to enumerate and has too little structure for a proof."
        )
    raise broken_promise_error(witness)


def _odds_ratio(odds: _Odds) -> Fraction:
    high, low = odds
    return Fraction(high, max(low, 1))


def _find_witness(mechanism: Mechanism, x: int, x2: int, epsilon: Fraction) -> TightestCase:
    """Return the case for the report that favours x over x2 the most."""
    levels, level_indices = mechanism.compact_row(x)
    levels2, level_indices2 = mechanism.compact_row(x2)
    pair_indices = level_indices * len(levels2) + level_indices2
    pairs, outputs = np.unique(pair_indices, return_index=True)
    cases = []
    for pair, output in zip(pairs.tolist(), outputs.tolist(), strict=True):
        i, i2 = divmod(pair, len(levels2))
        case = TightestCase(x, x2, output, levels[i], levels2[i2], epsilon)
        cases.append(case)
    return max(cases, key=_odds_sort_key)


def _odds_sort_key(case: TightestCase) -> tuple[bool, Fraction]:
    is_infinite = case.high > 0 and case.low == 0
    return is_infinite, Fraction(case.high, max(case.low, 1))
