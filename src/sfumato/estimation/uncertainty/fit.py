"""Goodness of fit: whether these reports can have come from this mechanism at all.

A broken client, a wrong version or a forger sends reports with a distribution that no crowd can produce. Four things
are looked at, none of which depends on what people hold:

*Impossible reports.* Reports that no symbol sends.

*Residuals.* ``r = f − Qᵀ A f`` has mean 0 whatever p is, since A undoes Q. With ``P = I − Qᵀ A`` and weights
``W = 1/q̂`` the statistic is Pearson's, ``T = n Σ_y W r²``, on the outputs − inputs dimensions that the symbols leave
free. It is a quadratic form in means of independent reports, so that, with ``M = √W P D Pᵀ √W``:

    mean  tr M at D = diag f        (T less this is a U-statistic: exactly centred, however few reports a cell has)
    variance  2 tr M² at D = diag q̂
    third cumulant  8 (tr M²)²/tr M + (4/n) Σ_y q̂² ρ³,   ρ = the diagonal of Pᵀ W P

the last term being the chance that two of few reports coincide. p-values are those of a gamma variable with these three
moments: chi-square where cells are full, and still right where most are empty. No cells need to be merged. Fewer than
a hundred reports are not tested in this way.

*Noise.* Reports that are drawn evenly, without looking at a value, pull in one direction of the residuals; that
direction is tested by itself, since among thousands of others it would be lost.

*Impossible shares.* An unbiased share, of a symbol or of a group, that lies below 0 by more than chance allows; or
above 1, which leaves less than nothing for the others: their share is a mean of the scores ``1 − A``.

The p-value is the smallest of theirs times their number (Bonferroni).
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from sfumato.estimation.uncertainty.intervals import chance_below
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.randomness import words_from
from sfumato.tally import Tally

__all__ = ["IMPOSSIBLE", "Fit", "FitWarning", "fit_of"]

IMPOSSIBLE = 1e-6
"""Below this p-value the reports are said to be of another origin."""

_DOUBTFUL = 1e-3
_KEY = hashlib.sha256(b"sfumato/fit").digest()
_WRITTEN, _LARGE = (
    256,
    2**17,
)  # outputs up to which traces are exact, and above which few directions must do
_PROBES, _FEW_PROBES = (
    16,
    4,
)  # random directions that estimate traces; what they do not know enters the variance
_FEWEST = 100  # reports below which the tail of the statistic is not known to one in a million
_MOST_GROUPS = 64
_EVEN = 0.1  # the least share of an even crowd in q̂, so that no expected count is nought


class FitWarning(UserWarning):
    """The reports cannot have come from the mechanism that they are read with."""


@dataclass(frozen=True)
class Fit:
    """How well the reports fit the mechanism: a p-value, and what it means in words.

    ``statistic`` is Pearson's on the residuals, ``degrees_of_freedom`` the number of outputs less that of inputs;
    ``tests`` holds the p-value of each test, before it is multiplied by their number.
    """

    p_value: float
    statistic: float
    degrees_of_freedom: int
    impossible: int
    verdict: str
    tests: Mapping[str, float] = field(repr=False)

    @property
    def possible(self) -> bool:
        """Whether the reports can have come from the mechanism, beyond reasonable doubt."""
        return self.p_value >= IMPOSSIBLE


def fit_of(mechanism: Mechanism, tally: Tally) -> Fit:
    """Test a tally against all distributions at once.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> honest = mechanism.forward([0.5, 0.3, 0.2]) * 100_000
    >>> fit_of(mechanism, Tally(honest.round().astype(int), mechanism.fingerprint)).verdict
    'The reports fit the mechanism.'
    >>> forged = Tally(np.array([0, 50_000, 50_000, 0]), mechanism.fingerprint)
    >>> fit_of(mechanism, forged).possible
    False
    """
    n, f = tally.reports, tally.counts / tally.reports
    sent = mechanism.forward(np.full(mechanism.inputs, 1 / mechanism.inputs)) > 0
    impossible = int(tally.counts[~sent].sum())
    degrees = int(sent.sum()) - mechanism.inputs
    tests, statistic = {}, 0.0
    if impossible:
        tests["impossible reports"] = 0.0
    if degrees > 0 and n >= _FEWEST:
        residuals = _Residuals(mechanism, tally, sent)
        statistic, tests["residuals"] = residuals.statistic()
        tests["noise"] = residuals.noise()
    if mechanism.inputs > 1:
        tests["impossible shares"] = _impossible_shares(mechanism, f, n)
    p_value = min([1.0, *(len(tests) * chance for chance in tests.values())])
    return Fit(
        p_value, statistic, degrees, impossible, _verdict(p_value, tests, impossible, n), tests
    )


def _verdict(p_value: float, tests: Mapping[str, float], impossible: int, n: int) -> str:
    if not tests:
        return "There is nothing that the reports could contradict."
    if impossible:
        return f"Reports cannot have come from this mechanism: {impossible} of {n} are reports that no symbol sends."
    if p_value >= _DOUBTFUL:
        return "The reports fit the mechanism."
    why = _WORDS[min(tests, key=lambda name: tests[name])]
    if p_value >= IMPOSSIBLE:
        return f"The fit is doubtful (p = {p_value:.1g}): {why}."
    return f"Reports cannot have come from this mechanism (p = {p_value:.1g}): {why}."


_WORDS = {
    "residuals": "no distribution of symbols gives such a histogram",
    "noise": "part of the reports look as if drawn evenly, without a value behind them",
    "impossible shares": "some share would have to be far below nought, or far above one",
}


class _Residuals:
    """``P = I − Qᵀ A`` at work on one tally, with the weights of Pearson's statistic."""

    def __init__(self, mechanism: Mechanism, tally: Tally, sent: Booleans) -> None:
        self.mechanism, self.reports, self.sent = mechanism, tally.reports, sent
        self.f = tally.counts / tally.reports
        self.q = _expected(mechanism, tally)
        weights = np.zeros(self.q.size)
        np.divide(1.0, self.q, out=weights, where=sent & (self.q > 0))
        self.root = np.sqrt(weights)

    def of(self, u: Floats) -> Floats:
        """``P u``."""
        return u - self.mechanism.forward(self.mechanism.scores.mean(u))

    def back(self, v: Floats) -> Floats:
        """``Pᵀ v``: a function of the report with mean 0 whatever the symbol."""
        return v - self.mechanism.scores.totals(self.mechanism.adjoint(v))

    def statistic(self) -> tuple[float, float]:
        """Pearson's statistic, and the probability of one as large."""
        from scipy.special import gammaincc

        n, f, q = self.reports, self.f, self.q
        T = n * float(((self.root * self.of(f)) ** 2).sum())
        rho, squares, probes = np.zeros(q.size), 0.0, 0
        for g in _probes(q.size):
            h = self.back(self.root * g)
            rho += h**2
            squares += float(((self.root * self.of(q * h)) ** 2).sum())
            probes += 1
        exact = q.size <= _WRITTEN
        rho, squares = (rho, squares) if exact else (rho / probes, squares / probes)
        mean, expected_mean = float(f @ rho), float(q @ rho)
        if expected_mean <= 1e-9:  # all reports are from blocks that leave no dimension free
            return T, 1.0
        variance = 2 * squares * (1.0 if exact else 1 + 1 / probes)
        cumulant = 8 * squares**2 / expected_mean + 4 / n * float(q**2 @ rho**3)
        skewness = cumulant / variance**1.5
        z = (T - mean) / np.sqrt(variance)
        shape = 4 / skewness**2
        return T, float(gammaincc(shape, max(shape + 2 * z / skewness, 0.0)))

    def noise(self) -> float:
        """How probable so strong a pull towards evenly drawn reports is."""
        even = self.sent / self.sent.sum()
        v = self.back(self.root**2 * self.of(even))
        if float(np.abs(v).max()) <= 1e-9 * float(self.root.max()) ** 2:
            return 1.0  # even reports are what some crowd would send
        return float(chance_below(ScoreMoments.of_total(-v, self.f), self.reports, 0.0)[0])


def _expected(mechanism: Mechanism, tally: Tally) -> Floats:
    """q̂: what a crowd like the projected estimate would report, mixed with an even one in each block.

    Weights must hardly depend on the reports that they weigh, so with few reports the crowd is an even one.
    """
    groups, shares = mechanism.scores.observed_shares(tally)
    p = project_groups(mechanism.scores.unbiased(tally), groups, shares)
    even = (shares / np.bincount(groups, minlength=shares.size))[groups]
    mixed = min(max(math.sqrt(mechanism.inputs / tally.reports), _EVEN), 1.0)
    return np.maximum(mechanism.forward((1 - mixed) * p + mixed * even), 0.0)


def _probes(size: int) -> Iterator[Floats]:
    """All unit vectors where they are few, else random signs: ``Σ_g (v·g)²`` is ‖v‖², or that on average."""
    if size <= _WRITTEN:
        yield from np.eye(size)
        return
    for probe in range(_PROBES if size <= _LARGE else _FEW_PROBES):
        bits = words_from(_KEY, probe * size, size)[:, 0] >> np.uint64(63)
        yield 2.0 * bits.astype(np.float64) - 1


def _impossible_shares(mechanism: Mechanism, f: Floats, n: int) -> float:
    """The smallest probability of a share as low or as high as estimated, over symbols and groups, times their number.

    Each is tested on both sides, and the number counts both.
    """
    if n == 1:
        return 1.0
    shares = [ScoreMoments.of_symbols(mechanism.scores, f), *_shares_of_groups(mechanism, f)]
    chances = [
        chance_below(either, n, 0.0)
        for share in shares
        for either in (share, _of_the_others(share))
    ]
    found = np.concatenate(chances)
    return min(1.0, float(found.min()) * found.size)


def _shares_of_groups(mechanism: Mechanism, f: Floats) -> Iterator[ScoreMoments]:
    groups = mechanism.context.groups
    if groups is None or not 1 < groups.sizes.size <= _MOST_GROUPS:
        return
    for g in range(groups.sizes.size):
        yield ScoreMoments.of_total(
            mechanism.scores.totals((groups.group_of == g).astype(np.float64)), f
        )


def _of_the_others(share: ScoreMoments) -> ScoreMoments:
    """The moments of ``1 − A``, by expanding its powers."""
    m1, m2, m3 = share.first, share.second, share.third
    return ScoreMoments(
        1 - m1, 1 - 2 * m1 + m2, 1 - 3 * m1 + 3 * m2 - m3, 1 - share.highest, 1 - share.lowest
    )
