"""Predict the error of an estimate from n people, before anyone answers.

A tally gives two estimates, and a plan treats them separately.

*The unbiased estimate.* Its exact variances ``σ_x²/n`` are known, and its errors are approximately
normal if there are many people. So every predicted error is a constant divided by ``√n``, and
solving for n gives the number of people needed for a given error.

*The decoded estimate*, which a survey reports. There is no formula for its error; see
``decoded_forecast.py``.

Each prediction has two figures. ``mean_error`` is the mean absolute error of a share or a total,
the mean TV, or the root mean square for l2. ``error`` is a value that the actual error does not
exceed with probability ``confidence``: the half-width of the interval for a share or a total, or a
quantile for TV and l2.

In a plan, "worst" refers to the distribution for which the mechanism has the largest error. Let A
be the scores of the mechanism, and ``M[x, x2] = Σ_y Q(y|x2) A[x, y]²``. Then the variance of one
entry of the unbiased estimate is given by

    n Var_x(p) = Σ_x2 M[x, x2] p_x2 − p_x²,

which is concave in p. Its square root and sums of such roots are concave too, so every local
maximum is global.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.simplex import project
from sfumato.mechanisms import Mechanism
from sfumato.planning.target import Target

__all__ = [
    "MAX_PEOPLE",
    "Figures",
    "UnbiasedForecast",
    "argmax_concave",
    "hardest_for_l2",
    "hardest_for_tv",
    "worst_symbol_variance",
    "worst_total_variance",
]

MAX_PEOPLE = 10**12
"""The largest number of people that a plan considers: over a hundred times the world population."""

_HALF_NORMAL_MEAN = math.sqrt(2 / math.pi)  # E|Z| of a standard normal Z
_MAX_COVARIANCE_SIZE = 256  # up to this many symbols, compute the full covariance matrix
_MAX_UNGROUPED_SIZE = 128  # up to this many symbols, each forms its own group
_MAX_UNGROUPED_SIZE_WITHOUT_CLASSES = 512  # the same, for mechanisms without row classes
_MAX_GROUPS = 16  # if there are more row classes, merge them
_MAX_ASCENT_STEPS = 500
_RELATIVE_GAP = 1e-3  # stop the ascent when the objective is this close to its maximum
_TINY = 1e-300  # avoids division by 0
_TERNARY_STEPS = 100  # each step shortens the interval by a third


@dataclass(frozen=True)
class Figures(FieldsView):
    """The predicted errors for a number of people.

    With the target's confidence, the actual error does not exceed ``error``.
    """

    people: int
    mean_error: float
    error: float

    @property
    def cost(self) -> float:
        """``error · √people``, which hardly changes with the number of people."""
        return self.error * math.sqrt(self.people)

    def to_dict(self) -> dict[str, float]:
        """Return the figures as ``sfumato plan --json`` prints them."""
        return {"people": self.people, "mean": self.mean_error, "error": self.error}


@dataclass(frozen=True)
class UnbiasedForecast:
    """The errors of the unbiased estimate for one person; for n people, divide them by ``√n``."""

    mean_error: float
    error: float

    @classmethod
    def for_target(cls, mechanism: Mechanism, target: Target) -> "UnbiasedForecast":
        """Predict errors from exact variances, assuming that the errors are normal.

        - For a share or a total, the mean error is ``σ √(2/π)``, and the error is ``z σ`` with the
          two-sided normal quantile z.
        - For TV, the mean error is ``½ √(2/π) Σ_x σ_x``. Without the factor ``√(2/π) ≈ 0.8``, this
          is an upper bound on the mean TV for every n (by Jensen's inequality).
        - For l2, the mean error is ``√risk``.

        The quantiles of TV and of l2² are those of a gamma variable with the same mean and
        variance.
        """
        if target.measure in ("symbol", "total"):
            sigma = math.sqrt(max(_variance(mechanism, target), 0.0))
            z = NormalDist().inv_cdf((1 + target.confidence) / 2)
            return cls(_HALF_NORMAL_MEAN * sigma, z * sigma)
        if target.measure == "tv":
            p = hardest_for_tv(mechanism) if target.p is None else target.p
            mean, variance = _tv_moments(_covariances(mechanism, p))
            return cls(mean, _gamma_quantile(mean, variance, target.confidence))
        p = hardest_for_l2(mechanism) if target.p is None else target.p
        covariances = _covariances(mechanism, p)
        risk = float(np.trace(covariances) if covariances.ndim == 2 else covariances.sum())
        # The variance of ‖Z‖² for a normal Z with these covariances.
        variance = 2 * float((covariances**2).sum())
        return cls(math.sqrt(risk), math.sqrt(_gamma_quantile(risk, variance, target.confidence)))

    def at(self, people: int) -> Figures:
        """Return the figures for this number of people."""
        root = math.sqrt(people)
        return Figures(people, self.mean_error / root, self.error / root)

    def people_for(self, error: float) -> int | None:
        """Return the smallest number of people whose predicted error is at most ``error``.

        Return ``None`` if that number exceeds ``MAX_PEOPLE``.
        """
        people = (self.error / error) ** 2
        if people > MAX_PEOPLE:
            return None
        # Subtract a little before rounding up, so that float error alone never adds a person.
        return max(math.ceil(people * (1 - 1e-12)), 1)


def _variance(mechanism: Mechanism, target: Target) -> float:
    """Return the variance of the least certain share, or of the total, for one person."""
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
    """Return the covariance matrix of the unbiased estimate for one person.

    In large domains, return only the variances. There, TV and l2 add up many entries and hardly
    vary. So their quantiles are close to their means, and treating the entries as uncorrelated
    makes little difference.
    """
    k = mechanism.inputs
    if k <= _MAX_COVARIANCE_SIZE and k * mechanism.outputs <= _MAX_COVARIANCE_SIZE * 8192:
        return mechanism.scores.covariances(p, 1)
    return np.maximum(mechanism.scores.variances(p, 1), 0.0)


def _tv_moments(covariances: Floats) -> tuple[float, float]:
    """Return the mean and variance of ``½ Σ|Z_x|`` for a normal Z with these covariances.

    ``E|Z_x Z_x2| = (2/π) σ_x σ_x2 (√(1 − ρ²) + ρ arcsin ρ)``, where ρ is the correlation.
    """
    if covariances.ndim == 1:
        mean = _HALF_NORMAL_MEAN * float(np.sqrt(covariances).sum()) / 2
        variance = (1 - 2 / math.pi) * float(covariances.sum()) / 4
        return mean, variance
    sigma = np.sqrt(np.maximum(np.diag(covariances), 0.0))
    scale = np.outer(sigma, sigma)
    rho = np.divide(covariances, scale, out=np.zeros_like(scale), where=scale > 0)
    rho = np.clip(rho, -1, 1)
    products = 2 / math.pi * scale * (np.sqrt(1 - rho**2) + rho * np.arcsin(rho))
    mean = _HALF_NORMAL_MEAN * float(sigma.sum()) / 2
    return mean, max(float(products.sum()) / 4 - mean**2, 0.0)


def _gamma_quantile(mean: float, variance: float, confidence: float) -> float:
    """Approximate the quantile of a gamma variable (Wilson and Hilferty, 1931).

    The cube root of a gamma variable is nearly normal. The approximation is accurate for the square
    of a normal variable and for a sum of many such squares. For ``|Z|`` with a standard normal Z,
    it gives a 95% quantile of 1.97 instead of 1.96.
    """
    if mean <= 0 or variance <= 0:
        return mean
    v = variance / (9 * mean**2)
    root = 1 - v + NormalDist().inv_cdf(confidence) * math.sqrt(v)
    return mean * float(max(root, 0.0)) ** 3


# --- the hardest distribution --------------------------------------------------------------------


def hardest_for_l2(mechanism: Mechanism) -> Floats:
    """Return the p that maximizes the risk.

    The risk is ``ρ·p − ‖p‖²`` with ``ρ_x = Σ_y Q(y|x) Σ_x2 A[x2, y]²``, so this p is the
    distribution nearest to ``ρ/2``.
    """
    rho = mechanism.adjoint(mechanism.scores.squares())
    return project(rho / 2)


def hardest_for_tv(mechanism: Mechanism) -> Floats:
    """Return a p whose ``Σ_x √Var_x(p)`` is close to the maximum.

    The search considers only p with fixed proportions within groups of symbols. In small domains,
    each symbol is its own group. In large domains, a group consists of symbols with similar rows (a
    row class of the mechanism). By symmetry, there is a hardest p that is constant on each row
    class, up to the padding of codes. Blocks of the same size get equal shares. Blocks of different
    sizes in one group get shares in proportion to the squares of their sizes, which is optimal for
    blocks.

    The method is multiplicative ascent. It stops after 500 steps, or when the gradient shows that
    no other p in the search is better by more than 0.1%.
    """
    weights, group_of = _group_symbols(mechanism)
    group_count = int(group_of.max()) + 1
    proportions = weights / np.bincount(group_of, weights=weights)[group_of]
    # moments[h, x]: the second moment of the score for symbol x if all people are in group h
    moments = np.empty((group_count, mechanism.inputs))
    for h in range(group_count):
        q = mechanism.forward(proportions * (group_of == h))
        moments[h] = mechanism.scores.moments(q, 2)
    even = np.full(mechanism.inputs, 1 / mechanism.inputs)
    shares = np.bincount(group_of, weights=even)
    for _ in range(_MAX_ASCENT_STEPS):
        p = shares[group_of] * proportions
        roots = np.sqrt(np.maximum(shares @ moments - p**2, _TINY))
        gradient = moments @ (0.5 / roots)
        gradient = gradient - np.bincount(group_of, weights=p * proportions / roots)
        if gradient.max() - shares @ gradient <= _RELATIVE_GAP * roots.sum():
            break
        shares = shares * np.maximum(gradient, _TINY)
        shares = shares / shares.sum()
    return shares[group_of] * proportions


def worst_symbol_variance(mechanism: Mechanism) -> float:
    """Return the largest ``n Var_x(p)`` over x and p.

    For a given x, the maximum is exact: put a share t on x, and the remainder on the symbol that
    adds the most noise to x, which is the x2 with the largest ``m = M[x, x2]``. The variance is
    ``t M[x, x] + (1 − t) m − t²``, which is largest at ``t = (M[x, x] − m)/2``. In small domains,
    try every x. In large domains, try two symbols from each group of similar rows: those whose
    scores have the largest second moment for a typical p.
    """
    return max(_worst_variance_of_symbol(mechanism, x) for x in _candidate_symbols(mechanism))


def worst_total_variance(mechanism: Mechanism, weights: Floats) -> float:
    """Return the largest ``n Var(Σ_x w_x p̂_x)`` over p, exactly.

    The variance is ``M·p − (w·p)²`` with ``M_x = Σ_y Q(y|x) (Σ_x2 w_x2 A[x2, y])²``. Because
    ``t² = max_s (2st − s²)``, the maximum over p is the minimum over s of
    ``max_x (M_x − 2 s w_x) + s²``, which is convex in s.
    """
    M = mechanism.adjoint(mechanism.scores.totals(weights) ** 2)

    def negative_dual(s: float) -> float:
        return -float((M - 2 * s * weights).max()) - s * s

    best_s = argmax_concave(negative_dual, float(weights.min()), float(weights.max()))
    return -negative_dual(best_s)


def argmax_concave(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the approximate maximizer of a concave function on [low, high]."""
    for _ in range(_TERNARY_STEPS):
        third = (high - low) / 3
        left = low + third
        right = high - third
        if function(left) < function(right):
            low = left
        else:
            high = right
    return (low + high) / 2


def _worst_variance_of_symbol(mechanism: Mechanism, x: int) -> float:
    unit = np.zeros(mechanism.inputs)
    unit[x] = 1.0
    M = mechanism.adjoint(mechanism.scores.totals(unit) ** 2)
    x_moment = float(M[x])
    if mechanism.inputs == 1:
        return x_moment - 1
    M[x] = -np.inf
    m = float(M.max())
    t = min(max((x_moment - m) / 2, 0.0), 1.0)
    return t * x_moment + (1 - t) * m - t * t


def _candidate_symbols(mechanism: Mechanism) -> list[int]:
    """Return the symbols to try in the search for the largest variance."""
    if mechanism.inputs <= _MAX_UNGROUPED_SIZE:
        return list(range(mechanism.inputs))
    weights, group_of = _group_symbols(mechanism)
    moments = mechanism.scores.moments(mechanism.forward(weights / weights.sum()), 2)
    order = np.lexsort((-moments, group_of))
    rank = np.arange(order.size) - np.searchsorted(group_of[order], group_of[order])
    return order[rank < 2].tolist()


def _group_symbols(mechanism: Mechanism) -> tuple[Floats, Symbols]:
    """Return the weight of each symbol within its group, and the index of that group."""
    k = mechanism.inputs
    classes = mechanism.row_classes()
    if k <= _MAX_UNGROUPED_SIZE or (not classes and k <= _MAX_UNGROUPED_SIZE_WITHOUT_CLASSES):
        return np.ones(k), np.arange(k)
    weights = np.ones(k)
    group_of = np.zeros(k, dtype=np.int64)
    for i, rows in enumerate(classes):
        _, block_of, sizes = np.unique(rows.first_reports, return_inverse=True, return_counts=True)
        weights[rows.symbols] = sizes[block_of]  # rows that start at the same report form a block
        group_of[rows.symbols] = i
    if len(classes) > _MAX_GROUPS:
        mean_weights = np.bincount(group_of, weights=weights) / np.bincount(group_of)
        rank = np.argsort(np.argsort(mean_weights))
        group_of = (rank * _MAX_GROUPS // mean_weights.size)[group_of]
    return weights, group_of
