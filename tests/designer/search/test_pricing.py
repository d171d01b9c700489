"""Pricing: climbs and walks stay in the cone and never descend; the bound on φ is exact."""

from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sfumato.designer.search.polyhedron import Polyhedron
from sfumato.designer.search.pricing import Price, climb, walk
from sfumato.designer.search.rays import wider_rays
from support.matrices import (
    asymmetric,
    chain,
    closed,
    cross_section,
    free_rows,
    line,
    mixed,
    one_way,
    planar,
    star,
)

MATRICES = {
    "asymmetric": asymmetric(6, 1),
    "planar": planar(6, 2, 2.0),
    "line": line(6, 0.5),
    "mixed": mixed(6, 3),
    "tiny": asymmetric(6, 4) * 1e-3,
    "large": asymmetric(6, 5) * 6,
    "two free rows": free_rows(6, 6, 2),
    "one-way": one_way(6, 7),
    "chain": chain(6, 8),
    "star": star(6, 9),
}
FINITE = {name: E for name, E in MATRICES.items() if np.isfinite(closed(E)).all()}


def _section(E, seed=0):
    return cross_section(E, np.random.default_rng(seed).dirichlet(np.full(len(E), 3.0)))


def _price(section, seed):
    """Return φ like that of a mixture: S from the M of a channel, and ν to match."""
    random = np.random.default_rng(seed)
    rays = section.normalise(
        section.cone.lift(random.uniform(0, 1, (4 * section.size, section.size)) ** 4)
    )
    M = rays.T @ rays / len(rays)
    S = np.linalg.inv(M)
    nu = (S @ S).sum(axis=1) * section.size * random.uniform(0.5, 1.5, section.size)
    return Price(S, nu)


def _starts(section, seed, count=30):
    random = np.random.default_rng(seed)
    return section.normalise(
        section.cone.lower(random.uniform(0.01, 1, (count, section.size)) ** 3)
    )


def _orders(section, seed, count=30):
    random = np.random.default_rng(seed)
    return [random.permutation(section.size) for _ in range(count)]


def _check_members(section, columns):
    assert np.isfinite(columns).all()
    assert (columns >= 0).all()
    np.testing.assert_allclose(columns @ section.prior, 1, rtol=1e-12)
    for x in range(section.size):
        for x2 in range(section.size):
            if np.isfinite(section.cone.E[x, x2]):
                assert (
                    columns[:, x] <= np.exp(section.cone.E[x, x2]) * columns[:, x2] * (1 + 1e-13)
                ).all()


# --- members of the cone --------------------------------------------------------------------------


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_lower_is_the_largest_member_below_and_lift_the_least_above(E):
    section = _section(E)
    columns = np.random.default_rng(1).uniform(0, 1, (20, section.size))
    low = section.cone.lower(columns)
    high = section.cone.lift(columns)
    for members in (low, high):
        _check_members(section, section.normalise(members))
    # Both keep members and their order, so no member lies between.
    np.testing.assert_allclose(section.cone.lower(low), low, rtol=1e-13)
    np.testing.assert_allclose(section.cone.lift(high), high, rtol=1e-13)
    assert (low <= columns).all()
    assert (columns <= high).all()
    for x in range(section.size):
        least = np.min(
            [np.exp(section.cone.E[x, z]) * columns[:, z] for z in range(section.size)], axis=0
        )
        np.testing.assert_allclose(low[:, x], least, rtol=1e-13)


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_simplest_rays_are_members_that_distinguish_all_symbols(E):
    section = _section(E)
    rays = section.simplest_rays()
    _check_members(section, rays)
    assert np.linalg.matrix_rank(rays, tol=1e-12) == section.size
    assert (rays == 1).all(axis=1).sum() == 1


@pytest.mark.parametrize("k", [6, 9, 14])
@pytest.mark.parametrize("family", [asymmetric, one_way, star, chain, mixed])
def test_simplest_rays_can_be_mixed_to_a_channel(family, k):
    """A channel with a little of every ray exists; without it there is no first mixture."""
    from scipy.optimize import linprog

    section = cross_section(family(k, 7))
    rays = section.simplest_rays()
    least = linprog(
        np.append(np.zeros(len(rays)), -1.0),
        A_eq=np.column_stack([rays.T, np.zeros(k)]),
        b_eq=np.ones(k),
        A_ub=np.column_stack([-np.eye(len(rays)), np.ones(len(rays))]),
        b_ub=np.zeros(len(rays)),
    )
    assert least.success
    assert -least.fun > 1e-6


# --- climbing and walking -------------------------------------------------------------------------


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_climb_stays_in_the_cone_and_never_descends(E):
    section = _section(E)
    with threadpool_limits(1):
        for seed in range(5):
            price = _price(section, seed)
            starts = _starts(section, seed)
            before = price(starts)
            ends = climb(section, price, starts.copy(), _orders(section, seed))
            _check_members(section, ends)
            squares = (ends @ price.weighted_inverse.T) ** 2
            size = squares.sum(axis=1) + np.abs(ends) @ np.abs(price.nu)
            assert (price(ends) >= before - 1e-9 * size).all()


@pytest.mark.parametrize("E", FINITE.values(), ids=FINITE)
def test_walk_stays_in_the_cone_and_never_descends(E):
    section = _section(E)
    around = Polyhedron.enclosing(section.cone.E)
    vertices = section.normalise(
        section.cone.lower(np.exp(wider_rays(section.cone.E, 10**5)[::17]))
    )
    with threadpool_limits(1):
        for seed in range(5):
            price = _price(section, seed)
            ends = walk(section, price, vertices, around)
            _check_members(section, ends)
            squares = (ends @ price.weighted_inverse.T) ** 2
            size = squares.sum(axis=1) + np.abs(ends) @ np.abs(price.nu)
            assert (price(ends) >= price(vertices) - 1e-5 * size).all()


@pytest.mark.parametrize("E", FINITE.values(), ids=FINITE)
def test_climb_and_walk_together_find_the_maximum(E):
    """Thirty starts prove nothing, but more than one miss in twenty would be suspicious."""
    section = _section(E)
    around = Polyhedron.enclosing(section.cone.E)
    misses = 0
    wider = np.exp(wider_rays(section.cone.E, 10**5))
    rays = section.normalise(section.cone.lower(wider))
    with threadpool_limits(1):
        for seed in range(20):
            price = _price(section, seed)
            ends = climb(section, price, _starts(section, seed), _orders(section, seed))
            best = price(np.vstack([ends, walk(section, price, ends, around)])).max()
            largest = price(rays).max()
            assert best <= price.upper_bound(section.normalise(wider))
            misses += best < largest - 1e-5 * abs(largest)
    assert misses <= 1


def test_walk_continues_where_climb_is_stuck():
    """Otherwise walks would be useless."""
    section = _section(MATRICES["planar"])
    around = Polyhedron.enclosing(section.cone.E)
    ahead = 0
    with threadpool_limits(1):
        for seed in range(5):
            price = _price(section, seed)
            ends = climb(section, price, _starts(section, seed), _orders(section, seed))
            ahead += int(
                (price(walk(section, price, ends, around)) > price(ends) * (1 + 1e-3)).sum()
            )
    assert ahead > 0


# --- the bound on φ -------------------------------------------------------------------------------


def _exact(price, columns):
    """Return the largest φ of these columns, in fractions."""
    S = [[Fraction(s) for s in row] for row in price.weighted_inverse.tolist()]
    nu = [Fraction(n) for n in price.nu.tolist()]
    largest = None
    for column in columns.tolist():
        r = [Fraction(c) for c in column]
        squares = sum(sum(s * c for s, c in zip(row, r, strict=True)) ** 2 for row in S)
        phi = squares - sum(n * c for n, c in zip(nu, r, strict=True))
        largest = phi if largest is None else max(largest, phi)
    return largest


def _cancelling(k, seed):
    """Return φ whose terms are ten digits larger than their sum."""
    random = np.random.default_rng(seed)
    S = random.normal(size=(k, k)) * 1e5
    S -= S.mean(axis=1, keepdims=True)
    return Price(S, random.normal(size=k))


def test_upper_bound_exceeds_the_exact_maximum_despite_rounding():
    below = 0
    for seed in range(20):
        columns = 1 + np.random.default_rng(100 + seed).normal(size=(12, 8)) * 1e-9
        price = _cancelling(8, seed)
        exact = _exact(price, columns)
        assert Fraction(price.upper_bound(columns)) >= exact
        below += Fraction(float(price(columns).max())) < exact
    assert below > 0


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_upper_bound_is_tight(E):
    section = _section(E)
    rays = section.normalise(np.exp(wider_rays(section.cone.E, 10**5)[:40]))
    for seed in range(3):
        price = _price(section, seed)
        exact = _exact(price, rays)
        size = float(
            ((np.abs(rays) @ np.abs(price.weighted_inverse).T) ** 2).sum(axis=1).max()
            + (rays @ np.abs(price.nu)).max()
        )
        assert 0 <= Fraction(price.upper_bound(rays)) - exact <= Fraction(1e-12 * size)
