"""How far the decoded picture may be from the truth: a parametric bootstrap.

A decoded picture has no standard errors of its own: a decoder cuts, shrinks and smooths. So the whole way is walked
again. Reports are drawn from ``q = Qᵀ p̂``, as if the picture p̂ were the truth, and decoded; the pictures that come out
lie as far from p̂ as p̂ lies from the truth, in so far as the picture and the truth are equally hard to see.

That is the limit of the method. A decoder that keeps noise (a projection with few reports per symbol) makes p̂ rougher
than the truth, and one that smooths makes it smoother. The mean error is then off by some 10 or 20 %, and the interval,
which is narrow in large domains, misses: ``docs/uncertainty.md`` has figures. Intervals that hold whatever the truth is
belong to the unbiased estimate.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.estimation.decoders.decoder import Decoder
from sfumato.estimation.decoders.histograms import draw_histogram
from sfumato.estimation.uncertainty.intervals import checked_level
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Bootstrap", "bootstrap_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """What repeating the survey in the picture's own world says of the decoded picture.

    ``errors`` are the total variation errors ``½ Σ|p̂* − p̂|`` of the runs, with their ``mean`` and an interval
    ``low`` to ``high`` that holds a share ``level`` of them: of the errors in that world, not of those that the real
    truth allows. ``standard_errors`` are those of the decoded frequencies, ``biases`` how far the decoder moves them
    on average.
    """

    runs: int
    mean: float
    low: float
    high: float
    level: float
    errors: Floats
    standard_errors: Floats
    biases: Floats

    def __repr__(self) -> str:
        return (
            f"Bootstrap(total variation {self.mean:.4f}, {100 * self.level:.4g} % interval {self.low:.4f} to "
            f"{self.high:.4f}, {self.runs} runs)"
        )


def bootstrap_of(
    mechanism: Mechanism,
    decoder: Decoder,
    tally: Tally,
    frequencies: Floats,
    *,
    runs: int,
    seed: int,
    level: float,
) -> Bootstrap:
    """Draw and decode ``runs`` tallies of as many reports from the channel's image of ``frequencies``.

    A picture with negative entries is no truth to draw from; it is projected first.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 2:
        raise InvalidContext(f"runs must be a whole number of at least 2; found {runs!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InvalidContext(f"seed must be a whole number; found {type(seed).__name__}.")
    tail = (1 - checked_level(level)) / 2
    p = _distribution(mechanism, tally, frequencies)
    q, key = mechanism.forward(p), hashlib.sha256(f"sfumato/bootstrap/{seed}".encode()).digest()
    errors, total, squares = np.empty(runs), np.zeros(p.size), np.zeros(p.size)
    for run in range(runs):
        counts = draw_histogram(q, tally.reports, draw=run, key=key)
        if not counts.any():  # of one or two people nobody may have come
            counts[int(np.argmax(q))] = 1
        moved = decoder.decode(mechanism, Tally(counts, mechanism.fingerprint)).frequencies - p
        errors[run] = np.abs(moved).sum() / 2
        total += moved
        squares += moved**2
    spread = np.maximum(squares - total**2 / runs, 0.0) / (runs - 1)
    low, high = np.quantile(errors, [tail, 1 - tail]).tolist()
    return Bootstrap(
        runs, float(errors.mean()), low, high, level, errors, np.sqrt(spread), total / runs
    )


def _distribution(mechanism: Mechanism, tally: Tally, frequencies: Floats) -> Floats:
    if (frequencies >= 0).all() and abs(float(frequencies.sum()) - 1) < 1e-9:
        return frequencies
    groups, shares = mechanism.scores.observed_shares(tally)
    return project_groups(frequencies, groups, shares)
