"""Totals: the share of a region, a category, a block, or any weighted sum of shares, with its interval.

The scores of a total are ``s(y) = Σ_x w_x A[x, y]``, one fast transform, and the total is their mean. So its error is
known as that of a symbol is, with all covariances in it: adding up the intervals of symbols would not do.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains import Label
from sfumato.errors import InvalidContext
from sfumato.estimation.uncertainty.intervals import share_bounds, tail_of
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.tally import Tally

__all__ = ["Total", "label_weights", "symbol_weights", "total_of"]


@dataclass(frozen=True)
class Total:
    """The unbiased estimate of a weighted sum of shares, and an interval that covers it with probability ``level``."""

    estimate: float
    standard_error: float
    low: float
    high: float
    level: float


def total_of(mechanism: Mechanism, tally: Tally, weights: Floats, level: float) -> Total:
    """The total ``Σ_x w_x p_x``, which lies between the least and the largest weight.

    The share of a block that is sent in clear is a plain count, and its interval a binomial one.
    """
    n, f = tally.reports, tally.counts / tally.reports
    tail, scores = tail_of(level), mechanism.scores.totals(weights)
    least, span = float(weights.min()), float(np.ptp(weights))
    estimate = float(f @ scores)
    if span == 0:  # all shares add up to 1, whatever the reports say
        return Total(least, 0.0, least, least, level)
    if n == 1:  # one report has no spread to judge it by
        return Total(estimate, math.inf, least, least + span, level)
    error = math.sqrt(float(f @ (scores - estimate) ** 2) / (n - 1))
    # As a share between the least weight and the largest; a report that says s says (s − least)/span of that share.
    ends = share_bounds(ScoreMoments.of_total((scores - least) / span, f), n, tail)
    low, high = (least + span * float(end[0]) for end in ends)
    return Total(estimate, error, low, high, level)


def label_weights(mechanism: Mechanism, labels: Iterable[Label] | Label) -> Floats:
    """1 for the symbols of these labels, 0 for all others. A label by itself is a group of one."""
    listed = [labels] if isinstance(labels, str | int) else list(labels)
    if not listed:
        raise InvalidContext("labels must name at least one label; found none.")
    weights = np.zeros(mechanism.inputs)
    weights[mechanism.context.domain.label_symbols(listed, "labels")] = 1.0
    return weights


def symbol_weights(mechanism: Mechanism, weights: Mapping[Label, float] | ArrayLike) -> Floats:
    """One finite weight per symbol, in domain order; labels that a mapping leaves out have weight 0."""
    if isinstance(weights, Mapping):
        found = np.zeros(mechanism.inputs)
        found[mechanism.context.domain.label_symbols(weights.keys(), "weights")] = list(
            weights.values()
        )
    else:
        found = np.asarray(weights, dtype=np.float64)
    if found.shape != (mechanism.inputs,) or not np.isfinite(found).all():
        raise InvalidContext(
            f"weights must be {mechanism.inputs} finite numbers, one per symbol, or a mapping from labels to numbers; "
            f"found shape {found.shape}."
        )
    return found
