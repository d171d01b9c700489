"""Predictions: how far an estimate from n people will be from the truth, before anybody is asked.

Two estimates are read from one tally, and a plan keeps them apart.

*Unbiased.* Exact variances ``σ_x²/n`` come from the mechanism, and for many people the errors are normal. All
predictions are then a number over ``√n``, and people for an error follow by a square.

*Decoded* (the picture that a survey reports). No formula: histograms of reports are drawn from ``Q p`` and decoded.

Each prediction has two figures. ``mean`` is the error on average: ``E|…|`` of a share or a total, E TV, and for l2
the root of the mean square. ``error`` is kept with probability ``confidence``: for a share or a total the half width
of its interval, for TV and l2 a quantile.
"""

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from sfumato.estimation.decoders import decoder_named
from sfumato.estimation.decoders.histograms import drawn_histogram
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism
from sfumato.planning.hardest import (
    hardest_for_l2,
    hardest_for_tv,
    worst_symbol_variance,
    worst_total_variance,
)
from sfumato.tally import Tally

__all__ = [
    "DECODED_MEASURES",
    "MEASURES",
    "MOST_PEOPLE",
    "Aim",
    "DecodedForecast",
    "Figures",
    "UnbiasedForecast",
]

MEASURES = ("tv", "symbol", "total", "l2")
"""Total variation; the share that is known worst; a weighted total of shares; Euclidean distance."""

DECODED_MEASURES = ("tv", "l2")
"""Where the decoded picture is predicted too. Intervals of shares and totals belong to the unbiased estimate."""

MOST_PEOPLE = 10**12
"""Goals that need more people than this are infeasible: it is more than a hundred times those alive."""

_HALF_NORMAL = math.sqrt(2 / math.pi)  # E|Z| of a standard normal Z
_WRITTEN = 256  # symbols up to which covariances are written out
_FEWEST_DRAWS, _MOST_DRAWS = 4, 1000
_DRAWN = 2**19  # entries of histograms that one prediction may draw, but for the fewest draws
_PRECISION = 0.015  # of the mean over draws
_STEPS = 12


@dataclass(frozen=True, eq=False)
class Aim:
    """What is asked of an estimate: which error, how surely, for which p (``None``: the hardest), of which total."""

    measure: str
    confidence: float
    p: Floats | None = None
    weights: Floats | None = None


@dataclass(frozen=True)
class Figures:
    """What a number of people buys: the error on average, and the error that is kept with the confidence asked for."""

    people: int
    mean: float
    error: float


@dataclass(frozen=True)
class UnbiasedForecast:
    """The unbiased estimate: both figures are those of one person over ``√n``."""

    mean: float
    error: float

    @classmethod
    def of(cls, mechanism: Mechanism, aim: Aim) -> "UnbiasedForecast":
        """From exact variances, with normal errors.

        A share, a total: ``mean = σ √(2/π)`` and ``error = z σ`` with the two-sided normal quantile z.
        TV: ``mean = ½ √(2/π) Σ_x σ_x``. Without the factor ``√(2/π) ≈ 0.8`` it bounds E TV for every n (Jensen).
        l2: ``mean² = risk``. The quantiles of TV and l2 are those of a gamma variable of the same mean and variance.
        """
        if aim.measure in ("symbol", "total"):
            sigma = math.sqrt(max(_variance(mechanism, aim), 0.0))
            return cls(_HALF_NORMAL * sigma, NormalDist().inv_cdf((1 + aim.confidence) / 2) * sigma)
        p = aim.p
        if p is None:
            p = hardest_for_tv(mechanism) if aim.measure == "tv" else hardest_for_l2(mechanism)
        covariances = _covariances(mechanism, p)
        if aim.measure == "tv":
            mean, variance = _tv_moments(covariances)
            return cls(mean, _quantile(mean, variance, aim.confidence))
        risk = float(np.trace(covariances) if covariances.ndim == 2 else covariances.sum())
        variance = 2 * float((covariances**2).sum())  # of ‖Z‖², Z normal with these covariances
        return cls(math.sqrt(risk), math.sqrt(_quantile(risk, variance, aim.confidence)))

    def at(self, people: int) -> Figures:
        """The figures for ``people``."""
        root = math.sqrt(people)
        return Figures(people, self.mean / root, self.error / root)

    def people_for(self, error: float) -> int | None:
        """The least number of people whose ``error`` is at most this; ``None`` beyond ``MOST_PEOPLE``."""
        needed = (self.error / error) ** 2
        if needed > MOST_PEOPLE:
            return None
        return max(
            math.ceil(needed * (1 - 1e-12)), 1
        )  # a hair below, so that a round trip comes back


@dataclass(frozen=True, eq=False)
class DecodedForecast:
    """The decoded picture: the mean and a quantile over histograms that are drawn from ``Q p`` and decoded."""

    mechanism: Mechanism
    measure: str
    confidence: float
    p: Floats
    decoder: str
    _known: dict[int, Figures] = field(default_factory=dict, repr=False)

    def at(self, people: int) -> Figures:
        """The figures for ``people``: the mean to about 1.5 % where half a million drawn counts are enough for that."""
        if people not in self._known:
            errors = self._drawn_errors(people)
            mean, variance = float(errors.mean()), float(errors.var(ddof=1))
            if self.measure == "l2":
                squares = errors**2
                known, spread = float(squares.mean()), float(squares.var(ddof=1))
                figures = Figures(
                    people, math.sqrt(known), math.sqrt(_quantile(known, spread, self.confidence))
                )
            else:
                figures = Figures(people, mean, _quantile(mean, variance, self.confidence))
            self._known[people] = figures
        return self._known[people]

    def people_for(self, error: float, start: int) -> int | None:
        """About the least number of people whose ``error`` is at most this, to three digits; ``None`` beyond reach.

        Secants on logarithms of people and error, from ``start`` (what the unbiased estimate needs).
        """
        if self.at(MOST_PEOPLE).error > error:
            return None
        guess, slope = float(start), -0.5
        below, above = 1.0, float(MOST_PEOPLE)  # too few, enough
        last: tuple[float, float] | None = None
        for _ in range(_STEPS):
            here = math.log(guess), math.log(max(self.at(round(guess)).error, 1e-300) / error)
            below, above = (below, guess) if here[1] <= 0 else (guess, above)
            if abs(here[1]) < _PRECISION or above <= below * 1.01:
                break
            if last is not None and here[0] != last[0]:
                slope = min(max((here[1] - last[1]) / (here[0] - last[0]), -1.0), -0.05)
            last, wanted = here, here[0] - here[1] / slope
            inside = math.log(below) < wanted < math.log(above)
            # A secant that leaves the bracket would go round in circles; the middle never does.
            guess = (
                math.exp(wanted) if inside else min(max(math.sqrt(below * above), 1.0), MOST_PEOPLE)
            )
        if self.at(round(guess)).error > error * (1 + 2 * _PRECISION):
            guess = above
        return _three_digits(guess)

    def _drawn_errors(self, people: int) -> Floats:
        mechanism, decoder, p = self.mechanism, decoder_named(self.decoder), self.p
        q = mechanism.forward(p)
        most = min(max(_DRAWN // mechanism.outputs, _FEWEST_DRAWS), _MOST_DRAWS)
        errors: list[float] = []
        while len(errors) < most:
            counts = drawn_histogram(q, people, draw=len(errors))
            if not counts.any():  # of one or two people nobody may have come
                counts[int(np.argmax(q))] = 1
            found = decoder.decode(mechanism, Tally(counts, mechanism.fingerprint)).frequencies - p
            errors.append(
                float(np.abs(found).sum() / 2 if self.measure == "tv" else np.linalg.norm(found))
            )
            if len(errors) >= _FEWEST_DRAWS and np.std(errors) <= _PRECISION * np.mean(
                errors
            ) * math.sqrt(len(errors)):
                break
        return np.array(errors)


def _variance(mechanism: Mechanism, aim: Aim) -> float:
    """``n Var`` of the share that is known worst, or of the total."""
    if aim.weights is None:
        return (
            worst_symbol_variance(mechanism)
            if aim.p is None
            else float(mechanism.variances(aim.p, 1).max())
        )
    if aim.p is None:
        return worst_total_variance(mechanism, aim.weights)
    scores = mechanism.total_scores(aim.weights)
    return float(mechanism.forward(aim.p) @ scores**2 - (aim.weights @ aim.p) ** 2)


def _covariances(mechanism: Mechanism, p: Floats) -> Floats:
    """For one person: the covariance matrix; in large domains the variances alone, as if entries were uncorrelated.

    There TV and l2 are sums over so many entries that they hardly vary, and their quantile is close to their mean.
    """
    k = mechanism.inputs
    if k <= _WRITTEN and k * mechanism.outputs <= _WRITTEN * 8192:
        return mechanism.covariances(p, 1)
    return np.maximum(mechanism.variances(p, 1), 0.0)


def _tv_moments(covariances: Floats) -> tuple[float, float]:
    """Mean and variance of ``½ Σ|Z_x|``, Z normal: ``E|Z_x Z_x2| = (2/π) σ_x σ_x2 (√(1 − ρ²) + ρ arcsin ρ)``."""
    if covariances.ndim == 1:
        return _HALF_NORMAL * float(np.sqrt(covariances).sum()) / 2, (1 - 2 / math.pi) * float(
            covariances.sum()
        ) / 4
    sigma = np.sqrt(np.maximum(np.diag(covariances), 0.0))
    scale = np.outer(sigma, sigma)
    rho = np.clip(np.divide(covariances, scale, out=np.zeros_like(scale), where=scale > 0), -1, 1)
    products = 2 / math.pi * scale * (np.sqrt(1 - rho**2) + rho * np.arcsin(rho))
    mean = _HALF_NORMAL * float(sigma.sum()) / 2
    return mean, max(float(products.sum()) / 4 - mean**2, 0.0)


def _quantile(mean: float, variance: float, confidence: float) -> float:
    """The quantile of a gamma variable, by Wilson and Hilferty (1931): its cube root is nearly normal.

    Right for a square of a normal and for a sum of many; for ``|Z|`` it gives 1.97 in place of 1.96.
    """
    if mean <= 0 or variance <= 0:
        return mean
    v = variance / (9 * mean**2)
    return mean * float(max(1 - v + NormalDist().inv_cdf(confidence) * math.sqrt(v), 0.0)) ** 3


def _three_digits(number: float) -> int:
    unit = 10 ** max(math.floor(math.log10(max(number, 1.0))) - 2, 0)
    return max(math.ceil(number / unit), 1) * unit
