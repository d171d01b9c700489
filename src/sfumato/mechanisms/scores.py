"""Scores: what undoes a channel on average.

A report y adds the score ``A[x, y]`` to the estimate of symbol x. Scores satisfy
``Σ_y Q(y|x2) A[x, y] = [x = x2]`` exactly, so the mean score over n reports is an unbiased
estimate of the distribution:

    p̂_x = Σ_y f(y) A[x, y],   f(y) = the share of reports that are y
    n Var(p̂_x) = Σ_y q(y) A[x, y]² − p_x²,   q(y) = Σ_x p_x Q(y|x)

``DenseScores`` keeps A written out. ``CodedScores`` computes every sum by fast transforms.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidContext, InvalidSymbols, NotEnoughReports
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.simplex import project
from sfumato.mechanisms.reach import Reach
from sfumato.tally import Tally

if TYPE_CHECKING:
    from sfumato.mechanisms.mechanism import Mechanism

__all__ = ["MAX_TABLE", "Hits", "Scores", "float_vector", "people_count", "require_writable"]

MAX_TABLE = 2**24
"""The most entries of a channel or of scores that are written out (128 MiB)."""


class Scores(ABC):
    """The scores of a mechanism, with everything that is estimated from them.

    Arrays over symbols have length ``mechanism.inputs``, arrays over reports length
    ``mechanism.outputs``.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> scores = PlainResponse(Uniform(3, 1.0)).scores
    >>> round(scores.risk([0.5, 0.3, 0.2]), 2)
    7.88
    """

    def __init__(self, mechanism: "Mechanism") -> None:
        self.mechanism = mechanism

    # --- the scores themselves -------------------------------------------------------------------

    @abstractmethod
    def exact(self, y: int) -> list[Fraction]:
        """Return ``A[·, y]`` exactly: what one report y adds to the estimate of each symbol."""

    @abstractmethod
    def moments(self, frequencies: ArrayLike, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power`` for every x; ``power`` is 1, 2 or 3."""

    def mean(self, frequencies: ArrayLike) -> Floats:
        """Return ``Σ_y f(y) A[x, y]`` for every x: the unbiased estimate."""
        return self.moments(frequencies, 1)

    @abstractmethod
    def totals(self, weights: ArrayLike) -> Floats:
        """Return ``Σ_x weights_x A[x, y]`` for every y: what a report adds to a weighted total."""

    @abstractmethod
    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²`` for every y."""

    def matrix(self) -> Floats:
        """Return A written out, a row per symbol. Refuse if it does not fit."""
        require_writable(self.mechanism)
        return np.array([self.totals(unit) for unit in np.eye(self.mechanism.inputs)])

    # --- what one report can do ------------------------------------------------------------------

    @cached_property
    def reach(self) -> Reach:
        """How far one forged report can move each estimate: the extremes of the scores."""
        return self._reach()

    @abstractmethod
    def _reach(self) -> Reach:
        """Compute ``reach``."""

    @property
    def leverage(self) -> float:
        """How many honest people one fake report outweighs: the largest ``|A[x, y]|``.

        An honest report adds 1 on average to its own symbol and 0 to the others. A forged one can
        add this many to a symbol, or take this many from it. So m forged reports among n move an
        estimate by at most ``m (leverage + 1)/n`` from where m honest ones would have left it on
        average.
        """
        return float(max(self.reach.highest.max(), -self.reach.lowest.min()))

    # --- estimates from a tally ------------------------------------------------------------------

    def unbiased(self, tally: Tally) -> Floats:
        """Return the unbiased estimate ``p̂`` of the distribution; entries may be negative."""
        return self.mean(self._frequencies(tally))

    def standard_errors(self, tally: Tally) -> Floats:
        """Return the standard error of each entry of ``unbiased``; ``inf`` for a single report."""
        f = self._frequencies(tally)
        if tally.reports == 1:
            return np.full(self.mechanism.inputs, np.inf)
        spread = self.moments(f, 2) - self.mean(f) ** 2
        # (Σ_y f A² − p̂²)/(n − 1) is an exactly unbiased estimate of the variance.
        return np.sqrt(np.maximum(spread, 0.0) / (tally.reports - 1))

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Return the groups of symbols whose totals are observed without noise.

        The first array is the group of each symbol, the second the share of each group. By
        default there is one group, with share 1.
        """
        return np.zeros(self.mechanism.inputs, dtype=np.int64), np.ones(1)

    def hits(self, counts: NDArray[np.int64]) -> "Hits":
        """Return the binomial counts behind the estimates, for symbols that have them.

        ``counts`` holds the number of reports of each kind.
        """
        return Hits.none(self.mechanism.inputs)

    def _frequencies(self, tally: Tally) -> Floats:
        tally.require(self.mechanism.fingerprint, self.mechanism.outputs)
        if tally.reports == 0:
            raise NotEnoughReports("an estimate needs at least one report; this tally has none.")
        return tally.counts / tally.reports

    # --- errors for a known distribution ---------------------------------------------------------

    def variances(self, p: ArrayLike, n: int) -> Floats:
        """Return the exact variance of ``unbiased`` for ``n`` independent people drawn from p."""
        second = self.moments(self.mechanism.forward(p), 2)
        return (second - np.asarray(p, dtype=np.float64) ** 2) / people_count(n)

    def covariances(self, p: ArrayLike, n: int) -> Floats:
        """Return the exact covariance matrix of ``unbiased``; for small domains."""
        distribution = np.asarray(p, dtype=np.float64)
        A = self.matrix()
        # A diag(q) Aᵀ − p pᵀ
        second = (A * self.mechanism.forward(p)) @ A.T
        return (second - np.outer(distribution, distribution)) / people_count(n)

    def risk(self, p: ArrayLike) -> float:
        """Return ``n · E‖p̂ − p‖²`` for people drawn from p."""
        return float(self.variances(p, 1).sum())

    def worst_risk(self) -> float:
        """Return the largest ``risk(p)`` over all distributions p.

        ``risk(p) = ρ·p − ‖p‖²`` with ``ρ_x = Σ_y Q(y|x) Σ_x2 A[x2, y]²``. It is largest at the
        point of the simplex nearest to ``ρ/2``.
        """
        rho = self.mechanism.adjoint(self.squares())
        p = project(rho / 2)
        return float(rho @ p - p @ p)


@dataclass(frozen=True, eq=False)
class Hits:
    """Counts that are binomial, one for each symbol, independent of what other people hold.

    Of ``trials`` reports of symbol x's block, ``hits`` lie in S_x. Each lies there with
    probability ``base + contrast · θ_x``, θ_x the symbol's share of its block. Entries where
    ``known`` is false are undefined.
    """

    hits: Floats
    trials: Floats
    base: Floats
    contrast: Floats
    known: Booleans

    @classmethod
    def none(cls, size: int) -> "Hits":
        """Return no counts for ``size`` symbols: arrays to be filled."""
        return cls(
            hits=np.zeros(size),
            trials=np.zeros(size),
            base=np.zeros(size),
            contrast=np.ones(size),
            known=np.zeros(size, dtype=np.bool_),
        )

    def fill(self, symbols: Symbols, part: "Hits") -> None:
        """Write the counts of some symbols."""
        self.hits[symbols] = part.hits
        self.trials[symbols] = part.trials
        self.base[symbols] = part.base
        self.contrast[symbols] = part.contrast
        self.known[symbols] = part.known


def require_writable(mechanism: "Mechanism") -> None:
    """Refuse a channel that is too large to be written out."""
    if mechanism.inputs * mechanism.outputs > MAX_TABLE:
        raise InvalidContext(
            f"a channel can be written out up to {MAX_TABLE} entries; this one has "
            f"{mechanism.inputs} × {mechanism.outputs}. "
            "Use forward, adjoint, exact_row or scores.mean."
        )


def people_count(n: int) -> int:
    """Return the number of people, at least 1."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise NotEnoughReports(f"n must be an integer of at least 1; got {n!r}.")
    return int(n)


def float_vector(values: ArrayLike, size: int, name: str) -> Floats:
    """Return ``values`` as a vector of ``size`` floats."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise InvalidSymbols(f"{name} must have {size} entries; got shape {array.shape}.")
    return array
