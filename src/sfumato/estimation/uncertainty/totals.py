"""Totals: the share of a region or a block, or any weighted sum of shares, with its interval.

The scores of a total are ``s(y) = Σ_x w_x A[x, y]``, one fast transform, and the total is their
mean. So its error is known as that of a symbol is, with all covariances in it: adding up the
intervals of symbols would not do.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains import Label
from sfumato.errors import InvalidArgument
from sfumato.estimation.uncertainty.intervals import share_bounds, tail_probability
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.tally import Tally

__all__ = ["Total", "label_weights", "symbol_weights"]


@dataclass(frozen=True)
class Total:
    """The unbiased estimate of a weighted sum of shares, with an interval at ``level``."""

    estimate: float
    standard_error: float
    low: float
    high: float
    level: float

    @classmethod
    def from_tally(
        cls, mechanism: Mechanism, tally: Tally, weights: Floats, level: float
    ) -> "Total":
        """Estimate ``Σ_x w_x p_x``, which lies between the least and the largest weight.

        The share of a block that is sent in clear is a plain count, and its interval a binomial
        one.
        """
        n = tally.reports
        f = tally.counts / n
        tail = tail_probability(level)
        scores = mechanism.scores.totals(weights)
        least = float(weights.min())
        span = float(np.ptp(weights))
        estimate = float(f @ scores)
        if span == 0:  # all shares add up to 1 for any reports
            return cls(least, 0.0, least, least, level)
        if n == 1:  # one report has no spread to judge it by
            return cls(estimate, math.inf, least, least + span, level)
        error = math.sqrt(float(f @ (scores - estimate) ** 2) / (n - 1))
        # Rescale to a share between the least weight (0) and the largest (1).
        moments = ScoreMoments.of_total((scores - least) / span, f)
        low, high = share_bounds(moments, n, tail)
        return cls(
            estimate, error, least + span * float(low[0]), least + span * float(high[0]), level
        )


def label_weights(mechanism: Mechanism, labels: Iterable[Label] | Label) -> Floats:
    """Return weight 1 for the symbols of these labels (or this label) and 0 for all others."""
    label_list = [labels] if isinstance(labels, str | int) else list(labels)
    if not label_list:
        raise InvalidArgument("labels must list at least one label; got none.")
    weights = np.zeros(mechanism.inputs)
    weights[mechanism.context.domain.label_symbols(label_list, "labels")] = 1.0
    return weights


def symbol_weights(mechanism: Mechanism, weights: Mapping[Label, float] | ArrayLike) -> Floats:
    """Return one finite weight per symbol, in domain order; labels missing in a mapping get 0."""
    if isinstance(weights, Mapping):
        by_symbol = np.zeros(mechanism.inputs)
        symbols = mechanism.context.domain.label_symbols(weights.keys(), "weights")
        by_symbol[symbols] = list(weights.values())
    else:
        by_symbol = np.asarray(weights, dtype=np.float64)
    if by_symbol.shape != (mechanism.inputs,) or not np.isfinite(by_symbol).all():
        raise InvalidArgument(
            f"weights must be {mechanism.inputs} finite numbers, one per symbol, or a mapping from "
            f"labels to numbers; got shape {by_symbol.shape}."
        )
    return by_symbol
