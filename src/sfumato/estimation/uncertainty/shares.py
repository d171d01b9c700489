"""Totals of several shares, and shares within a block or any other part of the domain.

*Totals.* A weighted sum of shares is the mean of the scores ``s(y) = Σ_x w_x A[x, y]``, which are
computed by one fast transform. So the error of a total is known as precisely as that of a single
symbol. It includes all covariances; the sum of the symbols' intervals would not.

*Shares of a block.* If a block is reported without noise, its reports form a separate sample. For a
balanced code with sets S_x, the number of these reports in S_x is binomial. It does not matter how
the other people in the block are distributed, because they all hit S_x with the same probability:

    N(S_x) given N_j  ~  Binomial(N_j, q + ℓ [0 ∈ S_x] + Δ θ_x),      θ_x = p_x / p_j

So the interval of Clopper and Pearson for the success probability gives an exact interval for θ_x,
for any number of reports. For unbalanced codes, and for other mechanisms, the interval of
``intervals.py`` is applied to the block's reports.

*Shares of any part.* If the part is randomized, both p_x and the part's total are estimates.
``shares_within`` then finds the θ for which ``p̂_x − θ p̂_part`` is no further from 0 than chance
allows (Fieller 1954). For unrandomized symbols, whose estimates are counts, it treats the ratio as
a mean of scores, which is nearly correct. If the part may be empty, every interval is [0, 1].
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import Label
from sfumato.errors import InvalidArgument
from sfumato.estimation.estimate_table import MAX_SYMBOLS_SHOWN, arrow_labels
from sfumato.estimation.uncertainty.intervals import (
    Bounds,
    adjust_near_boundary,
    clopper_pearson,
    noisy_near_boundary,
    share_bounds,
    tail_probability,
)
from sfumato.foundation.arrays import Arrow, Booleans, Floats
from sfumato.foundation.formatting import align_table, format_percent, printable
from sfumato.foundation.frames import ArrowTable
from sfumato.foundation.notebook import facts_html, table_html
from sfumato.foundation.numpy_values import is_collection, require_unmasked
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.tally import Tally

__all__ = ["Shares", "Total", "block_shares", "label_weights", "shares_within", "symbol_weights"]

_SHARES_HEADER = ["label", "share", "low", "high", "exact"]


@dataclass(frozen=True, repr=False)
class Total:
    """The unbiased estimate of a weighted sum of shares, with an interval at ``level``."""

    estimate: float
    standard_error: float
    low: float
    high: float
    level: float

    def __repr__(self) -> str:
        return f"Total({self._summary()})"

    def _repr_html_(self) -> str:
        """Return the total as HTML, for notebooks."""
        return facts_html("Total", {"unbiased estimate": self._summary()})

    def _summary(self) -> str:
        return (
            f"{self.estimate:.4g}, {format_percent(self.level)} interval {self.low:.4g} to "
            f"{self.high:.4g}"
        )

    @classmethod
    def from_tally(
        cls, mechanism: Mechanism, tally: Tally, weights: Floats, level: float
    ) -> "Total":
        """Estimate ``Σ_x w_x p_x``, which lies between the smallest and the largest weight.

        If a block is reported without noise, its share is a plain count with a binomial interval.
        """
        n = tally.reports
        f = tally.counts / n
        tail = tail_probability(level)
        scores = mechanism.scores.totals(weights)
        smallest = float(weights.min())
        span = float(np.ptp(weights))
        estimate = float(f @ scores)
        if span == 0:  # the shares of all symbols add up to 1
            return cls(smallest, 0.0, smallest, smallest, level)
        if n == 1:  # a single report does not reveal any spread
            return cls(estimate, math.inf, smallest, smallest + span, level)
        standard_error = math.sqrt(float(f @ (scores - estimate) ** 2) / (n - 1))
        # Rescale the smallest weight to 0 and the largest to 1.
        moments = ScoreMoments.for_total((scores - smallest) / span, f)
        low, high = share_bounds(moments, n, tail)
        low = smallest + span * low
        high = smallest + span * high
        return cls(estimate, standard_error, float(low[0]), float(high[0]), level)


def label_weights(mechanism: Mechanism, labels: Iterable[Label] | Label) -> Floats:
    """Return a weight for each symbol: 1 for the given labels, and 0 for all others."""
    label_list = [labels] if isinstance(labels, str | int) else labels
    if not is_collection(label_list):
        raise InvalidArgument("labels must be a label or a list of labels.")
    label_list = list(label_list)
    if not label_list:
        raise InvalidArgument("labels must contain at least one label; got none.")
    weights = np.zeros(mechanism.inputs)
    weights[mechanism.context.domain.label_symbols(label_list, "labels")] = 1.0
    return weights


def symbol_weights(mechanism: Mechanism, weights: Mapping[Label, float] | ArrayLike) -> Floats:
    """Return one finite weight per symbol, in domain order; labels missing from a mapping get 0."""
    if isinstance(weights, Mapping):
        by_symbol = np.zeros(mechanism.inputs)
        symbols = mechanism.context.domain.label_symbols(weights.keys(), "weights")
        by_symbol[symbols] = list(weights.values())
    else:
        require_unmasked(weights, "weights", InvalidArgument)
        by_symbol = np.asarray(weights, dtype=np.float64)
    if by_symbol.shape != (mechanism.inputs,) or not np.isfinite(by_symbol).all():
        raise InvalidArgument(
            f"weights must be {mechanism.inputs} finite numbers, one per symbol, or a mapping from "
            "labels to finite numbers."
        )
    return by_symbol


@dataclass(frozen=True, eq=False, repr=False)
class Shares(ArrowTable):
    """The share of each label in its block or in another part of the domain.

    ``low``, ``high``: an interval at ``level`` for each share.
    ``exact``: whether each interval has a coverage of at least ``level`` for any number of reports.
    """

    labels: Sequence[Label]
    estimates: Floats
    low: Floats
    high: Floats
    exact: Booleans
    level: float

    def to_arrow(self) -> Arrow:
        """Return a ``pyarrow.Table`` with the columns label, estimate, low, high and exact."""
        import pyarrow as pa

        columns = {
            "label": arrow_labels(self.labels),
            "estimate": self.estimates,
            "low": self.low,
            "high": self.high,
            "exact": self.exact,
        }
        return pa.table(columns)

    def __repr__(self) -> str:
        lines = align_table([_SHARES_HEADER, *self._rows()])
        if len(self.labels) > MAX_SYMBOLS_SHOWN:
            lines.append(f"… {len(self.labels) - MAX_SYMBOLS_SHOWN:,} more")
        return "\n".join([f"Shares, {format_percent(self.level)} intervals", *lines])

    def _repr_html_(self) -> str:
        """Return the first shares as an HTML table, for notebooks."""
        note = f"with {format_percent(self.level)} intervals"
        if len(self.labels) > MAX_SYMBOLS_SHOWN:
            note += f"; the first {MAX_SYMBOLS_SHOWN} of {len(self.labels):,} labels"
        return table_html("Shares", _SHARES_HEADER, self._rows(), note)

    def _rows(self) -> list[list[str]]:
        """Return the first rows as text."""
        rows = []
        for x, label in enumerate(self.labels[:MAX_SYMBOLS_SHOWN]):
            figures = (self.estimates[x], self.low[x], self.high[x])
            cells = [f"{figure:.4f}" for figure in figures]
            rows.append([printable(str(label)), *cells, "yes" if self.exact[x] else "no"])
        return rows


def block_shares(mechanism: Mechanism, tally: Tally, level: float) -> Shares:
    """Return each symbol's share of its block.

    Blocks are known only if they are reported without noise; otherwise, all symbols form a single
    block.
    """
    tail = tail_probability(level)
    group_of, totals = mechanism.scores.observed_shares(tally)
    block_share_of = totals[group_of]
    has_reports = block_share_of > 0
    moments = ScoreMoments.for_symbols(mechanism.scores, tally.counts / tally.reports)
    moments = moments.within_share(np.where(has_reports, block_share_of, 1.0))
    block_report_counts = np.maximum(np.rint(block_share_of * tally.reports), 1)
    low, high = share_bounds(moments, block_report_counts, tail)
    exact_mask = _write_exact_bounds(mechanism, tally.counts, tail, low, high)
    # Nothing is known about a block without reports.
    low = np.where(has_reports, np.clip(low, 0, 1), 0.0)
    high = np.where(has_reports, np.clip(high, 0, 1), 1.0)
    estimates = np.where(has_reports, moments.first, np.nan)
    # A symbol that is alone in its block has all of the block's share.
    alone_mask = np.bincount(group_of)[group_of] == 1
    low[alone_mask] = 1.0
    high[alone_mask] = 1.0
    estimates[alone_mask] = 1.0
    labels = mechanism.context.domain.labels
    return Shares(labels, estimates, low, high, exact_mask | alone_mask | ~has_reports, level)


def shares_within(mechanism: Mechanism, tally: Tally, part_mask: Booleans, level: float) -> Shares:
    """Return each symbol's share of the total of a part of the domain.

    ``part_mask``: a mask of the symbols in the part. If its total may be 0, every interval is
    [0, 1].
    """
    tail = tail_probability(level)
    ratios = _Ratios(mechanism, tally, part_mask)
    size = int(part_mask.sum())
    low = np.zeros(size)
    high = np.ones(size)
    estimates = ratios.estimates
    if size == 1:
        low = np.ones(1)
        estimates = np.ones(1)
    elif tally.reports > 1 and ratios.are_bounded(tail):
        low, high = ratios.bounds(tail)
    labels = mechanism.context.domain.labels
    part_labels = [labels[x] for x in np.flatnonzero(part_mask).tolist()]
    return Shares(part_labels, estimates, low, high, np.full(size, size == 1), level)


def _write_exact_bounds(
    mechanism: Mechanism, counts: NDArray[np.int64], tail: float, low: Floats, high: Floats
) -> Booleans:
    """Write exact bounds to ``low`` and ``high``; return a mask of the symbols that have them."""
    binomial = mechanism.scores.hits(counts)
    mask = binomial.known_mask
    pi_low, pi_high = clopper_pearson(binomial.hits[mask], binomial.trials[mask], tail)
    base = binomial.base[mask]
    contrast = binomial.contrast[mask]
    low[mask] = (pi_low - base) / contrast
    high[mask] = (pi_high - base) / contrast
    return mask


class _Ratios:
    """The ratios ``θ_x = p̂_x / p̂_part`` for the symbols of a part.

    A denotes the scores of x, and τ those of the part.
    """

    def __init__(self, mechanism: Mechanism, tally: Tally, part_mask: Booleans) -> None:
        self.scores = mechanism.scores
        self.part_mask = part_mask
        self.n = tally.reports
        self.f = tally.counts / tally.reports
        self.tau = self.scores.totals(part_mask.astype(np.float64))
        self.total = float(self.f @ self.tau)
        self.estimates = np.full(int(part_mask.sum()), np.nan)
        if self.total > 0:
            self.estimates = self.scores.mean(self.f)[part_mask] / self.total

    def are_bounded(self, tail: float) -> bool:
        """Return whether the part's total is significantly above 0, so that ratios have bounds."""
        if self.total <= 0:
            return False
        variance = float(self.f @ (self.tau - self.total) ** 2)
        relative_error = math.sqrt(variance / self.n) / max(self.total, 1e-300)
        return relative_error * -NormalDist().inv_cdf(tail) < 1

    def bounds(self, tail: float) -> Bounds:
        """Return Fieller's bounds for noisy symbols, and bounds on a mean of scores for the others.

        The estimates of the others are counts, and bounds on a mean of scores account for the
        skewness of counts.
        """
        moments = self._linear_moments()
        near_zero, near_one = noisy_near_boundary(moments, self.n)
        fieller_low, fieller_high = self._fieller_bounds(tail)
        fieller_low, fieller_high = adjust_near_boundary(
            self.estimates, fieller_low, fieller_high, tail, near_zero, near_one
        )
        count_low, count_high = share_bounds(moments, self.n, tail)
        low = np.where(near_zero, fieller_low, count_low)
        high = np.where(near_zero, fieller_high, count_high)
        return low, high

    def _linear_moments(self) -> ScoreMoments:
        """Return the moments of the scores ``θ̂ + (A − θ̂ τ)/p̂_part``.

        Their mean is θ̂, up to second-order terms in the error of the total.
        """
        f = self.f
        tau = self.tau
        part_mask = self.part_mask
        theta = self.estimates
        A = ScoreMoments.for_symbols(self.scores, f)
        # Σ_y f (A − θ̂ τ)^i for i = 2, 3, 4, expanded
        second = A.second[part_mask] - 2 * theta * self.scores.mean(f * tau)[part_mask]
        second = second + theta**2 * float(f @ tau**2)
        third = A.third[part_mask] - 3 * theta * self.scores.moments(f * tau, 2)[part_mask]
        third = third + 3 * theta**2 * self.scores.mean(f * tau**2)[part_mask]
        third = third - theta**3 * float(f @ tau**3)
        fourth = A.fourth[part_mask] - 4 * theta * self.scores.moments(f * tau, 3)[part_mask]
        fourth = fourth + 6 * theta**2 * self.scores.moments(f * tau**2, 2)[part_mask]
        fourth = fourth - 4 * theta**3 * self.scores.mean(f * tau**3)[part_mask]
        fourth = fourth + theta**4 * float(f @ tau**4)
        # (A − θ̂ τ)/p̂_part has mean 0; shift it by θ̂.
        second = second / self.total**2
        third = third / self.total**3
        fourth = fourth / self.total**4
        lowest, highest = np.sort([theta * tau.min(), theta * tau.max()], axis=0)  # of θ̂ τ
        return ScoreMoments(
            theta,
            second + theta**2,
            third + 3 * theta * second + theta**3,
            fourth + 4 * theta * third + 6 * theta**2 * second + theta**4,
            theta + (A.lowest[part_mask] - highest) / self.total,
            theta + (A.highest[part_mask] - lowest) / self.total,
        )

    def _fieller_bounds(self, tail: float) -> Bounds:
        """Solve ``(1 + t)(x − θ total)² ≤ t · mean square of A − θ τ`` for θ, with t = z²/n."""
        t = NormalDist().inv_cdf(tail) ** 2 / self.n
        x = self.estimates * self.total
        a = (1 + t) * self.total**2 - t * float(self.f @ self.tau**2)
        b = (1 + t) * x * self.total - t * self.scores.mean(self.f * self.tau)[self.part_mask]
        c = (1 + t) * x**2 - t * self.scores.moments(self.f, 2)[self.part_mask]
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        return (b - root) / a, (b + root) / a
