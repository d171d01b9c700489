"""Scores, which undo a channel on average.

A report y adds the score ``A[x, y]`` to the estimate of symbol x. Scores satisfy
``Σ_y Q(y|x2) A[x, y] = [x = x2]`` exactly, so the mean score over n reports is an unbiased
estimate of the distribution:

    p̂_x = Σ_y f(y) A[x, y],   f(y) = the share of reports equal to y
    n Var(p̂_x) = Σ_y q(y) A[x, y]² − p_x²,   q(y) = Σ_x p_x Q(y|x)

``DenseScores`` stores A as a matrix. ``CodedScores`` computes every sum by fast transforms.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidContext, InvalidSymbols, NotEnoughReports
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.foundation.simplex import project
from sfumato.tally import Tally

if TYPE_CHECKING:
    from sfumato.mechanisms.mechanism import Mechanism

__all__ = [
    "MAX_MATRIX_ENTRIES",
    "Hits",
    "Reach",
    "ScoreMoments",
    "Scores",
    "float_vector",
    "require_matrix_size",
    "require_people",
]

MAX_MATRIX_ENTRIES = 2**24
"""The maximum number of entries in a channel or score matrix (128 MiB of floats)."""


@dataclass(frozen=True, eq=False)
class Reach(FieldsView):
    """The maximum effect of one forged report on an estimate, derived from the extreme scores.

    ``highest`` and ``lowest`` are ``max_y A[x, y]`` and ``min_y A[x, y]`` for every x, and
    ``max_absolute_sum`` is ``max_y Σ_x |A[x, y]|``.

    On average, an honest person adds 1 to their own symbol and 0 to every other symbol. Suppose
    that m of n reports are forged. Compare the estimate with its average if those m people, with
    symbols x_i, had reported honestly::

        n (p̂_x − honest average) = Σ over the forged reports y_i of A[x, y_i] − [x = x_i]

        up:     at most  m · max_y A[x, y]          (x_i ≠ x: the forger's symbol is not x)
        down:   at most  m · (1 − min_y A[x, y])    (x_i = x: the forger's symbol is x)
        total:  at most  m · max_y ½ (1 + Σ_x |A[x, y]|)   in total variation, ½ Σ_x |…|

    The forgers attain each bound if all m send the report that maximises it. The third bound is
    attained because some x_i has ``A[x_i, y] ≤ 0``, which makes
    ``½ Σ_x |A[x, y] − [x = x_i]|`` equal to ``½ (Σ_x |A[x, y]| + 1)``.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> reach = PlainResponse(Uniform(["a", "b", "c"], 1.0)).scores.reach
    >>> reach.up.round(2), reach.down.round(2), round(reach.total_variation, 2)
    (array([3.22, 3.22, 3.22]), array([2.11, 2.11, 2.11]), 3.22)
    """

    highest: Floats
    lowest: Floats
    max_absolute_sum: float

    @property
    def up(self) -> Floats:
        """The largest number by which one forged report can raise each symbol's estimated count."""
        return self.highest - self._certain_share

    @property
    def down(self) -> Floats:
        """The largest number by which one forged report can lower each symbol's estimated count."""
        return 1 - self.lowest

    @property
    def total_variation(self) -> float:
        """The largest number of people by which one forged report can move the whole estimate.

        It is measured in total variation.
        """
        return (1 + self.max_absolute_sum) / 2 - self._certain_share

    @property
    def max_shift(self) -> float:
        """The largest number by which one forged report can change any symbol's estimated count."""
        return float(max(self.up.max(), self.down.max()))

    @property
    def _certain_share(self) -> float:
        """1 if there is a single symbol, which everyone must have; otherwise 0."""
        return 1.0 if self.highest.size == 1 else 0.0


class Scores(ABC):
    """The scores of a mechanism, and the estimates and errors computed from them.

    Arrays over symbols have length ``mechanism.inputs``; arrays over reports have length
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
    def exact_column(self, y: int) -> list[Fraction]:
        """Return ``A[·, y]`` exactly: the amount that a report y adds to each symbol's estimate."""

    @abstractmethod
    def moments(self, frequencies: ArrayLike, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power`` for every x; ``power`` is 1 to 4."""

    def mean(self, frequencies: ArrayLike) -> Floats:
        """Return ``Σ_y f(y) A[x, y]`` for every x: the unbiased estimate."""
        return self.moments(frequencies, 1)

    @abstractmethod
    def totals(self, weights: ArrayLike) -> Floats:
        """Return each report's contribution to a weighted total, ``Σ_x weights_x A[x, y]``."""

    @abstractmethod
    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²`` for every y."""

    def matrix(self) -> Floats:
        """Return A as a matrix, one row per symbol; raise ``InvalidContext`` if it is too large."""
        require_matrix_size(self.mechanism)
        return np.array([self.totals(unit) for unit in np.eye(self.mechanism.inputs)])

    # --- forged reports --------------------------------------------------------------------------

    @cached_property
    def reach(self) -> Reach:
        """The maximum effect of one forged report on each estimate."""
        return self._compute_reach()

    @abstractmethod
    def _compute_reach(self) -> Reach:
        """Compute ``reach``."""

    @property
    def leverage(self) -> float:
        """How many honest people one forged report can outweigh: the largest ``|A[x, y]|``.

        On average, an honest report adds 1 to its own symbol and 0 to the others. A forged report
        can add or subtract up to ``leverage``. So m forged reports among n change an estimate by
        at most ``m (leverage + 1)/n``, compared with m honest reports on average.
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
        score_variances = self.moments(f, 2) - self.mean(f) ** 2
        # (Σ_y f A² − p̂²)/(n − 1) is an exactly unbiased estimate of the variance.
        return np.sqrt(np.maximum(score_variances, 0.0) / (tally.reports - 1))

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Return groups of symbols whose total shares are observed without noise.

        The first array contains the group of each symbol, the second the share of each group. By
        default there is one group, with share 1.
        """
        return np.zeros(self.mechanism.inputs, dtype=np.int64), np.ones(1)

    def hits(self, counts: NDArray[np.int64]) -> "Hits":
        """Return the binomial counts behind the estimates, for symbols that have them.

        ``counts[y]`` is the number of reports equal to y.
        """
        return Hits.unknown(self.mechanism.inputs)

    def _frequencies(self, tally: Tally) -> Floats:
        tally.require(self.mechanism.fingerprint, self.mechanism.outputs)
        if tally.reports == 0:
            raise NotEnoughReports("an estimate needs at least one report; this tally has none.")
        return tally.counts / tally.reports

    # --- errors for a known distribution ---------------------------------------------------------

    def variances(self, p: ArrayLike, n: int) -> Floats:
        """Return the exact variances of ``unbiased`` for ``n`` independent people drawn from p."""
        second_moments = self.moments(self.mechanism.forward(p), 2)
        return (second_moments - np.asarray(p, dtype=np.float64) ** 2) / require_people(n)

    def covariances(self, p: ArrayLike, n: int) -> Floats:
        """Return the exact covariance matrix of ``unbiased`` for ``n`` people drawn from p.

        Raise ``InvalidContext`` if the score matrix is too large.
        """
        distribution = np.asarray(p, dtype=np.float64)
        A = self.matrix()
        # A diag(q) Aᵀ − p pᵀ
        second_moments = (A * self.mechanism.forward(p)) @ A.T
        return (second_moments - np.outer(distribution, distribution)) / require_people(n)

    def risk(self, p: ArrayLike) -> float:
        """Return ``n · E‖p̂ − p‖²`` for people drawn from p."""
        return float(self.variances(p, 1).sum())

    def worst_risk(self) -> float:
        """Return the largest ``risk(p)`` over all distributions p.

        ``risk(p) = ρ·p − ‖p‖²`` with ``ρ_x = Σ_y Q(y|x) Σ_x2 A[x2, y]²``. Its maximum is at the
        point of the simplex closest to ``ρ/2``.
        """
        rho = self.mechanism.adjoint(self.squares())
        p = project(rho / 2)
        return float(rho @ p - p @ p)


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """``Σ_y f(y) A^i`` for i = 1, 2, 3, 4, and the extremes of A, for each symbol or total.

    They are used to compute confidence intervals. The unbiased estimate for symbol x is the mean of
    the scores ``A[x, Y]`` over n reports, and the first two moments give its standard error. The
    third measures the skewness of the scores. A symbol with its own report has a score of 1/β on a
    few reports and 0 on all others, so its estimate is as far from normal as a small count. The
    fourth says how well the first three are known.
    """

    first: Floats
    second: Floats
    third: Floats
    fourth: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def for_symbols(cls, scores: Scores, frequencies: Floats) -> "ScoreMoments":
        """Return the moments for every symbol, given the frequency of each report."""
        return cls(
            scores.mean(frequencies),
            scores.moments(frequencies, 2),
            scores.moments(frequencies, 3),
            scores.moments(frequencies, 4),
            scores.reach.lowest,
            scores.reach.highest,
        )

    @classmethod
    def for_total(cls, totals: Floats, frequencies: Floats) -> "ScoreMoments":
        """Return the moments for one total, given each report's contribution to it.

        >>> ScoreMoments.for_total(np.array([0.0, 2.0]), np.array([0.75, 0.25])).second
        array([1.])
        """
        return cls(
            np.array([frequencies @ totals]),
            np.array([frequencies @ totals**2]),
            np.array([frequencies @ totals**3]),
            np.array([frequencies @ totals**4]),
            np.array([totals.min()]),
            np.array([totals.max()]),
        )

    def select(self, symbols: slice | NDArray[np.intp]) -> "ScoreMoments":
        """Return the moments for some of the symbols."""
        return ScoreMoments(
            self.first[symbols],
            self.second[symbols],
            self.third[symbols],
            self.fourth[symbols],
            self.lowest[symbols],
            self.highest[symbols],
        )

    def with_report(self, score: Floats, report_counts: Floats) -> "ScoreMoments":
        """Return the moments after adding a report with this score to ``report_counts`` reports."""
        n = report_counts
        return replace(
            self,
            first=(n * self.first + score) / (n + 1),
            second=(n * self.second + score**2) / (n + 1),
            third=(n * self.third + score**3) / (n + 1),
            fourth=(n * self.fourth + score**4) / (n + 1),
        )

    def within_share(self, share: Floats) -> "ScoreMoments":
        """Return the moments over a share of the reports; all others must have a score of 0."""
        return replace(
            self,
            first=self.first / share,
            second=self.second / share,
            third=self.third / share,
            fourth=self.fourth / share,
        )


@dataclass(frozen=True, eq=False)
class Hits:
    """A binomial count for each symbol, independent of the other symbols' shares.

    Of the ``trials`` reports from symbol x's block, ``hits`` are in S_x. Each is in S_x with
    probability ``base + contrast · θ_x``, where θ_x is the symbol's share of its block. Entries
    where ``known_mask`` is false are undefined.
    """

    hits: Floats
    trials: Floats
    base: Floats
    contrast: Floats
    known_mask: Booleans

    @classmethod
    def unknown(cls, size: int) -> "Hits":
        """Return undefined counts for ``size`` symbols, to be filled in later."""
        return cls(
            hits=np.zeros(size),
            trials=np.zeros(size),
            base=np.zeros(size),
            contrast=np.ones(size),
            known_mask=np.zeros(size, dtype=np.bool_),
        )

    def fill(self, symbols: Symbols, part: "Hits") -> None:
        """Fill in the counts for some of the symbols."""
        self.hits[symbols] = part.hits
        self.trials[symbols] = part.trials
        self.base[symbols] = part.base
        self.contrast[symbols] = part.contrast
        self.known_mask[symbols] = part.known_mask


def require_matrix_size(mechanism: "Mechanism") -> None:
    """Raise ``InvalidContext`` if the channel is too large to store as a matrix."""
    if mechanism.inputs * mechanism.outputs > MAX_MATRIX_ENTRIES:
        raise InvalidContext(
            f"a matrix can have at most {MAX_MATRIX_ENTRIES} entries; this one would have "
            f"{mechanism.inputs} × {mechanism.outputs}. "
            "Use forward, adjoint, exact_row or scores.mean."
        )


def require_people(n: int) -> int:
    """Return ``n``; raise ``NotEnoughReports`` unless it is a positive integer."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise NotEnoughReports(f"n must be a positive integer; got {n!r}.")
    return int(n)


def float_vector(values: ArrayLike, size: int, name: str) -> Floats:
    """Return ``values`` as floats; raise ``InvalidSymbols`` unless they have shape ``(size,)``."""
    require_unmasked(values, name, InvalidSymbols)
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise InvalidSymbols(f"{name} must have {size} entries; got shape {array.shape}.")
    return array
