"""Hard families with every member in exact fractions, to check the bounds that rely on them."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.planning.people_bounds import block_family, free_family, high_low_family
from sfumato.randomness import exp_bounds


@dataclass(frozen=True)
class ExplicitFamily:
    """A centre, pairs of symbols that move in opposite directions, and the size of each step.

    `bounds` is the package's description of the family. `paper_limit` is the paper's limit of χ²
    with corrected constants, or infinity where the paper has none.
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
        """The distance as a share of the largest possible one."""
        return self.distance / self.bounds.max_alpha

    @property
    def limit(self):
        return self.bounds.max_chi_square * self.ratio**2

    def at(self, distance):
        """Return the family at a smaller distance from its centre."""
        assert 0 < distance <= self.bounds.max_alpha
        ratio = Fraction(distance) / self.distance
        return replace(
            self,
            distance=Fraction(distance),
            steps=tuple(step * ratio for step in self.steps),
            separations=tuple(separation * ratio for separation in self.separations),
            paper_limit=self.paper_limit * ratio**2,
        )

    def member(self, number):
        """Return the distribution whose signs are the bits of `number`."""
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


def explicit_families(context):
    """Return every family of a context, in the order of `hard_families`."""
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
    """Return the family in which each free symbol moves against the first sensitive one."""
    t = free.size
    k = sensitive.size + t
    alpha = Fraction(1, k)
    low = inverse_odds(epsilon)
    return ExplicitFamily(
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
    """Return the family of pairs inside blocks, centred at the uniform distribution."""
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
    return ExplicitFamily(
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
    """Return the family of pairs of free symbols."""
    family = pairs(size, [free], [math.inf])
    return replace(family, bounds=free_family(free.size, epsilon), paper_limit=math.inf)


def chi_square(mechanism, family):
    """Return ``χ²(Q|P) = Σ_i γ_i² Σ_y (Q(y|plus_i) − Q(y|minus_i))²/q_0(y)``, exactly.

    Signs are independent with mean 0, so the mixed terms vanish and no sum over members is needed.
    """
    rows = [mechanism.exact_row(x) for x in range(mechanism.inputs)]
    total = Fraction(0)
    for y in range(mechanism.outputs):
        q = sum(share * row[y] for share, row in zip(family.centre, rows, strict=True) if share)
        if q:
            for step, up, down in zip(family.steps, family.plus, family.minus, strict=True):
                total += step**2 * (rows[up][y] - rows[down][y]) ** 2 / q
    return total


def subset_lemma_gap(mechanism, x, x2):
    """Return by how much the subset lemma fails for x and x2; 0 if it holds for all sets.

    The lemma (in the proof of Claim 1) says ``Q(M|x2) ≤ 1 − (1 − Q(M|x))/e`` for every set M of
    reports, e = exp(E[x, x2]). The worst M contains the reports for which row x2 exceeds row x
    divided by e, so the lemma fails by ``Σ_y max(Q(y|x)/e − Q(y|x2), 0)``.
    """
    low = inverse_odds(mechanism.context.exact_epsilon(x, x2))
    rows = zip(mechanism.integer_row(x), mechanism.integer_row(x2), strict=True)
    missing = sum(max(low * first - second, Fraction(0)) for first, second in rows)
    return Fraction(missing) / mechanism.denominator


def inverse_odds(epsilon):
    """Return ``1/e^ε``, rounded down; 0 if ε is infinite."""
    return 1 / exp_bounds(epsilon)[1] if isinstance(epsilon, Fraction) else Fraction(0)
