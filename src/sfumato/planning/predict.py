"""Predict how far an estimate from n people will be from the truth, before anyone answers.

A tally can be read as two estimates, and a plan keeps them apart.

*Unbiased.* The mechanism gives exact variances ``σ_x²/n``, and for many people the errors are
normal. Every prediction is then a number over ``√n``, and people for an error follow by a square.

*Decoded* (the estimate that a survey reports). There is no formula, so histograms of reports are
drawn from ``Q p`` and decoded.

Each prediction has two figures. ``mean`` is the error on average: ``E|…|`` of a share or a total,
E TV, and for l2 the root of the mean square. ``error`` holds with probability ``confidence``: for a
share or a total it is the half width of the interval, for TV and l2 a quantile.
"""

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from sfumato.estimation import draw_tally
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import Mechanism
from sfumato.planning.hardest import (
    hardest_for_l2,
    hardest_for_tv,
    worst_symbol_variance,
    worst_total_variance,
)
from sfumato.planning.target import Target

__all__ = ["MAX_PEOPLE", "DecodedForecast", "Figures", "UnbiasedForecast"]

MAX_PEOPLE = 10**12
"""A goal that needs more people is infeasible: this is a hundred times the world population."""

_HALF_NORMAL = math.sqrt(2 / math.pi)  # E|Z| of a standard normal Z
_MAX_COVARIANCE_SIZE = 256  # symbols up to which covariances are written out
_MIN_DRAWS = 4
_MAX_DRAWS = 1000
_MAX_DRAWN_COUNTS = 2**19  # counts that one prediction may draw, beyond the minimum of draws
_PRECISION = 0.015  # of the mean over draws
_MAX_SECANT_STEPS = 12


@dataclass(frozen=True)
class Figures:
    """What a number of people buys.

    ``mean`` is the error on average, ``error`` the one that holds with the target's confidence.
    """

    people: int
    mean: float
    error: float

    @property
    def cost(self) -> float:
        """``error · √people``: what hardly changes with the number of people."""
        return self.error * math.sqrt(self.people)


@dataclass(frozen=True)
class UnbiasedForecast:
    """The errors of the unbiased estimate for one person; for n people, divide by ``√n``."""

    mean: float
    error: float

    @classmethod
    def of(cls, mechanism: Mechanism, target: Target) -> "UnbiasedForecast":
        """Predict from exact variances, with normal errors.

        A share, a total: ``mean = σ √(2/π)``, ``error = z σ`` with the two-sided normal quantile z.
        TV: ``mean = ½ √(2/π) Σ_x σ_x``. Without the factor ``√(2/π) ≈ 0.8`` this bounds E TV for
        every n (Jensen). l2: ``mean² = risk``. The quantiles of TV and l2 are those of a gamma
        variable with the same mean and variance.
        """
        if target.measure in ("symbol", "total"):
            sigma = math.sqrt(max(_variance(mechanism, target), 0.0))
            z = NormalDist().inv_cdf((1 + target.confidence) / 2)
            return cls(_HALF_NORMAL * sigma, z * sigma)
        if target.measure == "tv":
            p = hardest_for_tv(mechanism) if target.p is None else target.p
            mean, variance = _tv_moments(_covariances(mechanism, p))
            return cls(mean, _gamma_quantile(mean, variance, target.confidence))
        p = hardest_for_l2(mechanism) if target.p is None else target.p
        covariances = _covariances(mechanism, p)
        risk = float(np.trace(covariances) if covariances.ndim == 2 else covariances.sum())
        variance = 2 * float((covariances**2).sum())  # of ‖Z‖², Z normal with these covariances
        return cls(math.sqrt(risk), math.sqrt(_gamma_quantile(risk, variance, target.confidence)))

    def at(self, people: int) -> Figures:
        """Return the figures for ``people``."""
        root = math.sqrt(people)
        return Figures(people, self.mean / root, self.error / root)

    def people_for(self, error: float) -> int | None:
        """Return the fewest people with at most this ``error``; ``None`` above ``MAX_PEOPLE``."""
        people = (self.error / error) ** 2
        if people > MAX_PEOPLE:
            return None
        # Round a hair down first: the error of n people must need n people, despite rounding.
        return max(math.ceil(people * (1 - 1e-12)), 1)


@dataclass(frozen=True, eq=False)
class DecodedForecast:
    """The error of the decoded estimate, from histograms drawn from ``Q p`` and decoded."""

    mechanism: Mechanism
    measure: str
    confidence: float
    p: Floats
    decoder: str
    _cache: dict[int, Figures] = field(default_factory=dict, repr=False)

    def at(self, people: int) -> Figures:
        """Return the figures for ``people``.

        The mean is right to about 1.5 %, if half a million drawn counts are enough for that.
        """
        if people not in self._cache:
            self._cache[people] = self._predict(people)
        return self._cache[people]

    def people_for(self, error: float, start: int) -> int | None:
        """Return about the fewest people whose ``error`` is at most this, to three digits.

        Return ``None`` if ``MAX_PEOPLE`` are too few. The search takes secants on the logarithms of
        people and error, beginning at ``start`` (what the unbiased estimate needs).
        """
        if self.at(MAX_PEOPLE).error > error:
            return None
        guess = float(start)
        slope = -0.5  # error falls with the root of people
        too_few = 1.0
        enough = float(MAX_PEOPLE)
        last: tuple[float, float] | None = None
        for _ in range(_MAX_SECANT_STEPS):
            log_people = math.log(guess)
            log_excess = math.log(max(self.at(round(guess)).error, 1e-300) / error)
            if log_excess <= 0:
                enough = guess
            else:
                too_few = guess
            if abs(log_excess) < _PRECISION or enough <= too_few * 1.01:
                break
            if last is not None and log_people != last[0]:
                secant = (log_excess - last[1]) / (log_people - last[0])
                slope = min(max(secant, -1.0), -0.05)
            last = log_people, log_excess
            next_log = log_people - log_excess / slope
            if math.log(too_few) < next_log < math.log(enough):
                guess = math.exp(next_log)
            else:
                # A secant that leaves the bracket could cycle; bisection cannot.
                guess = min(max(math.sqrt(too_few * enough), 1.0), MAX_PEOPLE)
        if self.at(round(guess)).error > error * (1 + 2 * _PRECISION):
            guess = enough
        return _round_up_to_three_digits(guess)

    def _predict(self, people: int) -> Figures:
        errors = self._draw_errors(people)
        if self.measure == "l2":
            squares = errors**2
            mean_square = float(squares.mean())
            quantile = self._quantile(squares)
            return Figures(people, math.sqrt(mean_square), math.sqrt(quantile))
        return Figures(people, float(errors.mean()), self._quantile(errors))

    def _quantile(self, sample: Floats) -> float:
        variance = float(sample.var(ddof=1))
        return _gamma_quantile(float(sample.mean()), variance, self.confidence)

    def _draw_errors(self, people: int) -> Floats:
        decoder = get_decoder(self.decoder)
        q = self.mechanism.forward(self.p)
        draws = min(max(_MAX_DRAWN_COUNTS // self.mechanism.outputs, _MIN_DRAWS), _MAX_DRAWS)
        errors: list[float] = []
        for draw in range(draws):
            tally = draw_tally(self.mechanism, q, people, draw)
            frequencies = decoder.decode(self.mechanism, tally).frequencies
            if self.measure == "tv":
                errors.append(total_variation(frequencies, self.p))
            else:
                errors.append(float(np.linalg.norm(frequencies - self.p)))
            tolerance = _PRECISION * np.mean(errors) * math.sqrt(len(errors))
            if len(errors) >= _MIN_DRAWS and np.std(errors) <= tolerance:
                break
        return np.array(errors)


def _variance(mechanism: Mechanism, target: Target) -> float:
    """``n Var`` of the least certain share, or of the total."""
    p = target.p
    weights = target.weights
    if weights is None:
        if p is None:
            return worst_symbol_variance(mechanism)
        return float(mechanism.scores.variances(p, 1).max())
    if p is None:
        return worst_total_variance(mechanism, weights)
    scores = mechanism.scores.totals(weights)
    return float(mechanism.forward(p) @ scores**2 - (weights @ p) ** 2)


def _covariances(mechanism: Mechanism, p: Floats) -> Floats:
    """Return the covariance matrix for one person, or in large domains the variances alone.

    In large domains TV and l2 add up many entries and hardly vary, so their quantile is close to
    their mean even if the entries are taken as uncorrelated.
    """
    k = mechanism.inputs
    if k <= _MAX_COVARIANCE_SIZE and k * mechanism.outputs <= _MAX_COVARIANCE_SIZE * 8192:
        return mechanism.scores.covariances(p, 1)
    return np.maximum(mechanism.scores.variances(p, 1), 0.0)


def _tv_moments(covariances: Floats) -> tuple[float, float]:
    """Return the mean and variance of ``½ Σ|Z_x|`` for a normal Z with these covariances.

    ``E|Z_x Z_x2| = (2/π) σ_x σ_x2 (√(1 − ρ²) + ρ arcsin ρ)``.
    """
    if covariances.ndim == 1:
        mean = _HALF_NORMAL * float(np.sqrt(covariances).sum()) / 2
        variance = (1 - 2 / math.pi) * float(covariances.sum()) / 4
        return mean, variance
    sigma = np.sqrt(np.maximum(np.diag(covariances), 0.0))
    scale = np.outer(sigma, sigma)
    rho = np.divide(covariances, scale, out=np.zeros_like(scale), where=scale > 0)
    rho = np.clip(rho, -1, 1)
    products = 2 / math.pi * scale * (np.sqrt(1 - rho**2) + rho * np.arcsin(rho))
    mean = _HALF_NORMAL * float(sigma.sum()) / 2
    return mean, max(float(products.sum()) / 4 - mean**2, 0.0)


def _gamma_quantile(mean: float, variance: float, confidence: float) -> float:
    """Return the quantile of a gamma variable, by Wilson and Hilferty (1931).

    Its cube root is nearly normal. This is right for the square of a normal and for a sum of many;
    for ``|Z|`` it gives 1.97 instead of 1.96.
    """
    if mean <= 0 or variance <= 0:
        return mean
    v = variance / (9 * mean**2)
    root = 1 - v + NormalDist().inv_cdf(confidence) * math.sqrt(v)
    return mean * float(max(root, 0.0)) ** 3


def _round_up_to_three_digits(number: float) -> int:
    unit = 10 ** max(math.floor(math.log10(max(number, 1.0))) - 2, 0)
    return max(math.ceil(number / unit), 1) * unit
