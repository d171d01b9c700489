"""Hard families written out, member by member and in fractions, to check the bounds that rest on
them.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.planning.people_bounds import block_family, free_family, high_low_family
from sfumato.randomness import exp_bounds


@dataclass(frozen=True)
class WrittenFamily:
    """A centre, pairs of symbols that move against each other, and by how much.

    ``bounds`` is what the package knows of the family. ``paper_limit`` is the limit of χ² as the
    paper has it, its constants corrected; ``inf`` where it has none.
    """

    bounds: object
    distance: Fraction
    centre: tuple
    plus: np.ndarray
    minus: np.ndarray
    steps: tuple
    separations: tuple
    paper_limit: object

    @property
    def dimension(self):
        return len(self.steps)

    @property
    def ratio(self):
        """How much closer to its centre it is than at its widest."""
        return self.distance / self.bounds.distance

    @property
    def limit(self):
        return self.bounds.limit * self.ratio**2

    def at(self, distance):
        """The family drawn closer to its centre."""
        assert 0 < distance <= self.bounds.distance
        ratio = Fraction(distance) / self.distance
        return replace(
            self,
            distance=Fraction(distance),
            steps=tuple(step * ratio for step in self.steps),
            separations=tuple(separation * ratio for separation in self.separations),
            paper_limit=self.paper_limit * ratio**2,
        )

    def member(self, number):
        """The distribution whose signs are the bits of ``number``."""
        p = list(self.centre)
        for sign, step, up, down in zip(
            self.signs(number), self.steps, self.plus, self.minus, strict=True
        ):
            p[up] += sign * step
            p[down] -= sign * step
        return p

    def members(self):
        return [self.member(number) for number in range(1 << self.dimension)]

    def signs(self, number):
        return [1 - 2 * (number >> i & 1) for i in range(self.dimension)]


def written_families(context):
    """Every family of a context, in the order of ``hard_families``."""
    groups = context.groups
    members = [np.flatnonzero(groups.group_of == g) for g in range(len(groups.inside))]
    is_free = [outward == math.inf for outward in groups.outward]
    if len(members) != 2 or is_free[0] == is_free[1]:
        return [pairs(context.size, members, groups.inside)] if max(groups.sizes) > 1 else []
    free = is_free.index(True)
    families = [star(members[1 - free], members[free], groups.inside[1 - free])]
    if len(members[1 - free]) > 1:
        families.append(pairs(context.size, [members[1 - free]], [groups.inside[1 - free]]))
    if len(members[free]) > 1:
        families.append(free_pairs(context.size, members[free], groups.inside[1 - free]))
    return families


def star(sensitive, free, epsilon):
    """Each free symbol moves against the first sensitive one."""
    t = free.size
    k = sensitive.size + t
    alpha = Fraction(1, k)
    low = inverse_odds(epsilon)
    return WrittenFamily(
        bounds=high_low_family(sensitive.size, t, epsilon),
        distance=alpha,
        centre=(Fraction(1, k),) * k,
        plus=free,
        minus=np.full(t, sensitive[0]),
        steps=(alpha / t,) * t,
        separations=(alpha / (2 * t),) * t,
        paper_limit=k * alpha**2 / t**2 * (1 / low - 1 + (1 - low) * (k - 1)),
    )


def pairs(size, blocks, epsilons):
    """Pairs inside blocks, around the uniform distribution on them."""
    k = sum(block.size for block in blocks)
    moving = [block.size // 2 * 2 for block in blocks]
    squares = sum(m * m for m in moving)
    alpha = Fraction(squares, 2 * k * max(moving))
    centre = [Fraction(0)] * size
    for x in np.concatenate(blocks):
        centre[x] = Fraction(1, k)
    steps = []
    for m in moving:
        steps += [2 * m * alpha / squares] * (m // 2)
    low = min(inverse_odds(epsilon) for epsilon in epsilons)
    return WrittenFamily(
        bounds=block_family([(b.size, e) for b, e in zip(blocks, epsilons, strict=True)]),
        distance=alpha,
        centre=tuple(centre),
        plus=np.concatenate([block[:m:2] for block, m in zip(blocks, moving, strict=True)]),
        minus=np.concatenate([block[1:m:2] for block, m in zip(blocks, moving, strict=True)]),
        steps=tuple(steps),
        separations=tuple(steps),
        paper_limit=2 * k * alpha**2 * (1 / low - 1) ** 2 / squares if low else math.inf,
    )


def free_pairs(size, free, epsilon):
    """Pairs of free symbols; nobody is sensitive."""
    family = pairs(size, [free], [math.inf])
    return replace(family, bounds=free_family(free.size, epsilon), paper_limit=math.inf)


def chi_square(mechanism, family):
    """``χ²(Q|P) = Σ_i γ_i² Σ_y (Q(y|plus_i) − Q(y|minus_i))²/q_0(y)``, exactly.

    Signs are independent with mean 0, so the mixed terms vanish and no member need be visited.
    """
    rows = [mechanism.exact_row(x) for x in range(mechanism.inputs)]
    total = Fraction(0)
    for y in range(mechanism.outputs):
        q = sum(share * row[y] for share, row in zip(family.centre, rows, strict=True) if share)
        if q:
            for step, up, down in zip(family.steps, family.plus, family.minus, strict=True):
                total += step**2 * (rows[up][y] - rows[down][y]) ** 2 / q
    return total


def uncovered(mechanism, x, x2):
    """By how much the subset lemma fails for x and x2; 0 where it holds for all sets of reports.

    The lemma (in the proof of Claim 1) says ``Q(M|x2) ≤ 1 − (1 − Q(M|x))/e`` for every set M of
    reports, e = exp(E[x, x2]). The worst M holds the reports on which row x2 lies above row x over
    e, so it fails by ``Σ_y max(Q(y|x)/e − Q(y|x2), 0)``.
    """
    low = inverse_odds(mechanism.context.exact_epsilon(x, x2))
    rows = zip(mechanism.integer_row(x), mechanism.integer_row(x2), strict=True)
    missing = sum(max(low * first - second, Fraction(0)) for first, second in rows)
    return Fraction(missing) / mechanism.denominator


def inverse_odds(epsilon):
    """``1/e^ε``, rounded down; 0 at ε = inf."""
    return 1 / exp_bounds(epsilon)[1] if isinstance(epsilon, Fraction) else Fraction(0)
