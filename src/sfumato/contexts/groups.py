"""Groups: what the structured contexts have in common, as plain data that frames and proofs can be built on."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, lcm

import numpy as np

from sfumato.contexts.exact import ExactMatrix
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.randomness.odds import Epsilon

__all__ = ["Groups", "numbered_by_first"]


@dataclass(frozen=True, eq=False)
class Groups:
    """A privacy matrix with one promise inside each group and one from each group to all others.

        E[x, x2] = inside[g]     for x ≠ x2 in one group g
                   outward[g]    for x in g and x2 in another group

    Groups are numbered in the order of their first symbols. A group of one symbol has no pair inside it, and
    what ``inside`` says of it means nothing; likewise ``outward`` where there is one group.

    >>> Groups(np.array([0, 0, 1]), (Fraction(1), Fraction(2)), (Fraction(3), inf)).exact_matrix().floats()
    array([[ 0.,  1.,  3.],
           [ 1.,  0.,  3.],
           [inf, inf,  0.]])
    """

    group_of: Symbols
    inside: tuple[Epsilon, ...]
    outward: tuple[Epsilon, ...]

    @classmethod
    def of_rows(cls, class_of: Symbols, epsilons: Sequence[Epsilon]) -> "Groups":
        """Symbols that owe all others one ε, by classes of symbols; classes of equal ε become one group."""
        values = {epsilon: number for number, epsilon in enumerate(dict.fromkeys(epsilons))}
        group_of, order = numbered_by_first(
            np.array([values[epsilon] for epsilon in epsilons])[class_of]
        )
        owed = tuple(list(values)[number] for number in order.tolist())
        return cls(group_of, owed, owed)

    @cached_property
    def sizes(self) -> Symbols:
        """The number of symbols in each group (k_j)."""
        return np.bincount(self.group_of, minlength=len(self.inside))

    @cached_property
    def exact_smallest(self) -> Epsilon:
        """The least promise to any pair; ``inf`` if there is none."""
        pairs = [
            epsilon
            for epsilon, size in zip(self.inside, self.sizes.tolist(), strict=True)
            if size > 1
        ]
        return min([*pairs, *(self.outward if len(self.inside) > 1 else ())], default=inf)

    @cached_property
    def largest_finite(self) -> Fraction:
        """The largest finite promise to any pair; 0 if no pair has one."""
        return max(self._finite_promises, default=Fraction(0))

    @property
    def _finite_promises(self) -> list[Fraction]:
        """The finite promises of all pairs that exist."""
        crowded = self.sizes > 1
        promises = [epsilon for g, epsilon in enumerate(self.inside) if crowded[g]]
        if len(self.inside) > 1:
            promises.extend(self.outward)
        return [epsilon for epsilon in promises if isinstance(epsilon, Fraction)]

    @cached_property
    def leaves_open(self) -> bool:
        """Whether some pair has no promise."""
        several = len(self.inside) > 1
        crowded = self.sizes > 1
        open_inside = any(epsilon == inf and crowded[g] for g, epsilon in enumerate(self.inside))
        return open_inside or (several and inf in self.outward)

    def unprotected(self) -> Symbols:
        """The symbols that have no promise against any other."""
        several = len(self.inside) > 1
        free_inside = (self._inside == inf) | (self.sizes == 1)
        free_outward = (self._outward == inf) | (not several)
        any_pair = several | (self.sizes > 1)
        return np.flatnonzero((free_inside & free_outward & any_pair)[self.group_of])

    @cached_property
    def partly_open(self) -> bool:
        """Whether some symbol has a promise against one symbol and none against another."""
        if len(self.inside) == 1:
            return False
        return any(
            size > 1 and (inside == inf) != (outward == inf)
            for size, inside, outward in zip(
                self.sizes.tolist(), self.inside, self.outward, strict=True
            )
        )

    @cached_property
    def owing(self) -> list[int]:
        """The groups that owe a promise to other groups."""
        return [g for g, outward in enumerate(self.outward) if isinstance(outward, Fraction)]

    def owed(self, g: int) -> tuple[Fraction, Fraction]:
        """What a group that owes something promises inside and out of it, as far as it matters.

        Inside a group of one there is nothing to promise; more than 2·outward is kept by a detour anyway.
        """
        outward = Fraction(self.outward[g])
        return Fraction(min(self.inside[g], 2 * outward)) if self.sizes[g] > 1 else outward, outward

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """``E[x, x2]`` exactly."""
        if x == x2:
            return Fraction(0)
        g = int(self.group_of[x])
        return self.inside[g] if g == self.group_of[x2] else self.outward[g]

    def epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        """``E[x, x2]`` in floats, for pairs that differ; what it says on the diagonal means nothing."""
        g = self.group_of[x]
        return np.where(g == self.group_of[x2], self._inside[g], self._outward[g])

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly: the caller sees to it that there is room."""
        finite = [
            epsilon for epsilon in (*self.inside, *self.outward) if isinstance(epsilon, Fraction)
        ]
        N = lcm(*(epsilon.denominator for epsilon in finite))
        g, same = self.group_of, np.equal.outer(self.group_of, self.group_of)
        numerators = np.where(
            same, self._over(N, self.inside)[g, None], self._over(N, self.outward)[g, None]
        )
        np.fill_diagonal(numerators, 0)
        return ExactMatrix.holding(numerators[numerators >= 0], N, numerators >= 0)

    @staticmethod
    def _over(denominator: int, epsilons: tuple[Epsilon, ...]) -> Symbols:
        """Numerators over one denominator, −1 for inf; Python integers where 64 bits are too few."""
        numerators = [
            -1 if isinstance(epsilon, float) else int(epsilon * denominator) for epsilon in epsilons
        ]
        return np.array(numerators, dtype=np.int64 if max(numerators) < 2**62 else object)

    @cached_property
    def _inside(self) -> Floats:
        return np.fromiter(map(float, self.inside), np.float64, len(self.inside))

    @cached_property
    def _outward(self) -> Floats:
        return np.fromiter(map(float, self.outward), np.float64, len(self.outward))


def numbered_by_first(labels: Symbols) -> tuple[Symbols, Symbols]:
    """Integers renumbered 0, 1, … in the order in which they first occur; and what each number stands for.

    >>> numbered_by_first(np.array([7, 3, 7, 5]))
    (array([0, 1, 0, 2]), array([7, 3, 5]))
    """
    values, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    return number[inverse.reshape(-1)], values[order]
