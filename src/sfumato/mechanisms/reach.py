"""Reach: how far one forged report can move an estimate up or down, and the whole picture.

A report y adds ``A[x, y]`` to the estimate of symbol x. An honest person adds 1 on average to
their own symbol and 0 to every other. Let m of n reports be forged. Compare the estimate with the
one in which honest reports of those m people count as they would on average:

    n (p̂_x − without forgery) = Σ over the forged reports of A[x, y_i] − [x = x_i]

    up:     at most  m · max_y A[x, y]          (x_i ≠ x: the forger does not hold x)
    down:   at most  m · (1 − min_y A[x, y])    (x_i = x: the forger holds x)
    total:  at most  m · max_y ½ (1 + Σ_x |A[x, y]|)   in total variation, ½ Σ_x |…|

All three are attained if all m people send the one report that is best for it. The third is
attained because there is an x_i with ``A[x_i, y] ≤ 0``, and for it the sum
``½ Σ_x |A[x, y] − [x = x_i]|`` is ``½ (Σ_x |A[x, y]| + 1)``.
"""

from dataclasses import dataclass

from sfumato.foundation.arrays import Floats

__all__ = ["Reach"]


@dataclass(frozen=True, eq=False)
class Reach:
    """The extremes of the scores.

    ``highest`` and ``lowest`` are ``max_y A[x, y]`` and ``min_y A[x, y]`` for every x,
    ``heaviest`` is ``max_y Σ_x |A[x, y]|``.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> reach = PlainResponse(Uniform(["a", "b", "c"], 1.0)).scores.reach
    >>> reach.up.round(2), reach.down.round(2), round(reach.total_variation, 2)
    (array([3.22, 3.22, 3.22]), array([2.11, 2.11, 2.11]), 3.22)
    """

    highest: Floats
    lowest: Floats
    heaviest: float

    @property
    def up(self) -> Floats:
        """For each symbol, by how many people one forged report can raise its count."""
        return self.highest - self._certain

    @property
    def down(self) -> Floats:
        """For each symbol, by how many people one forged report can lower its count."""
        return 1 - self.lowest

    @property
    def total_variation(self) -> float:
        """By how many people one forged report can move the whole picture, ``½ Σ_x |…|``."""
        return (1 + self.heaviest) / 2 - self._certain

    @property
    def largest(self) -> float:
        """By how many people one forged report can move the count of any symbol, up or down."""
        return float(max(self.up.max(), self.down.max()))

    @property
    def _certain(self) -> float:
        """1 if there is a single symbol: everyone holds it, and no report can say otherwise."""
        return 1.0 if self.highest.size == 1 else 0.0
