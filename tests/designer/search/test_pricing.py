"""Pricing: climbs and walks stay in the cone and never go down, and the bound on φ is one to the last digit."""

from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sfumato.designer.search.cone import RayCone
from sfumato.designer.search.polyhedron import Polyhedron
from sfumato.designer.search.pricing import Price, climbed, walked
from sfumato.designer.search.rays import wider_rays
from support.matrices import (
    asymmetric,
    chain,
    closed,
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


def _cone(E, seed=0):
    return RayCone(closed(E), np.random.default_rng(seed).dirichlet(np.full(len(E), 3.0)))


def _price(cone, seed):
    """A φ such as mixtures have: S from some channel's M, and ν for which the column of ones has none."""
    random = np.random.default_rng(seed)
    rays = cone.normalised(cone.raised(random.uniform(0, 1, (4 * cone.size, cone.size)) ** 4))
    M = rays.T @ rays / len(rays)
    S = np.linalg.inv(M)
    nu = (S @ S).sum(axis=1) * cone.size * random.uniform(0.5, 1.5, cone.size)
    return Price(S, nu)


def _starts(cone, seed, count=30):
    random = np.random.default_rng(seed)
    return cone.normalised(cone.lowered(random.uniform(0.01, 1, (count, cone.size)) ** 3))


def _orders(cone, seed, count=30):
    random = np.random.default_rng(seed)
    return [random.permutation(cone.size) for _ in range(count)]


def _demand_members(cone, columns):
    assert np.isfinite(columns).all()
    assert (columns >= 0).all()
    np.testing.assert_allclose(columns @ cone.crowd, 1, rtol=1e-12)
    for x in range(cone.size):
        for x2 in range(cone.size):
            if np.isfinite(cone.E[x, x2]):
                assert (columns[:, x] <= np.exp(cone.E[x, x2]) * columns[:, x2] * (1 + 1e-13)).all()


# --- members of the cone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_lowered_is_the_largest_member_below_and_raised_the_least_above(E):
    cone = _cone(E)
    columns = np.random.default_rng(1).uniform(0, 1, (20, cone.size))
    low, high = cone.lowered(columns), cone.raised(columns)
    for found in (low, high):
        _demand_members(cone, cone.normalised(found))
    # Members stay as they are, and both keep order: so nothing between a column and its lowered one is a member.
    np.testing.assert_allclose(cone.lowered(low), low, rtol=1e-13)
    np.testing.assert_allclose(cone.raised(high), high, rtol=1e-13)
    assert (low <= columns).all()
    assert (columns <= high).all()
    for x in range(cone.size):
        least = np.min([np.exp(cone.E[x, z]) * columns[:, z] for z in range(cone.size)], axis=0)
        np.testing.assert_allclose(low[:, x], least, rtol=1e-13)


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_the_simplest_rays_are_members_that_tell_all_symbols_apart(E):
    cone = _cone(E)
    rays = cone.simplest_rays()
    _demand_members(cone, rays)
    assert np.linalg.matrix_rank(rays, tol=1e-12) == cone.size
    assert (rays == 1).all(axis=1).sum() == 1


@pytest.mark.parametrize("k", [6, 9, 14])
@pytest.mark.parametrize("family", [asymmetric, one_way, star, chain, mixed])
def test_a_channel_can_be_made_of_the_simplest_rays(family, k):
    """One with a little of every ray: else the first mixture has nowhere to be."""
    from scipy.optimize import linprog

    cone = RayCone(closed(family(k, 7)), np.full(k, 1 / k))
    rays = cone.simplest_rays()
    least = linprog(
        np.append(np.zeros(len(rays)), -1.0),
        A_eq=np.column_stack([rays.T, np.zeros(k)]),
        b_eq=np.ones(k),
        A_ub=np.column_stack([-np.eye(len(rays)), np.ones(len(rays))]),
        b_ub=np.zeros(len(rays)),
    )
    assert least.success
    assert -least.fun > 1e-6


# --- climbing and walking --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_climbs_stay_in_the_cone_and_never_go_down(E):
    cone = _cone(E)
    with threadpool_limits(1):
        for seed in range(5):
            price, starts = _price(cone, seed), _starts(cone, seed)
            before = price(starts)
            ends = climbed(cone, price, starts.copy(), _orders(cone, seed))
            _demand_members(cone, ends)
            size = ((ends @ price.roots.T) ** 2).sum(axis=1) + np.abs(ends) @ np.abs(price.nu)
            assert (price(ends) >= before - 1e-9 * size).all()


@pytest.mark.parametrize("E", FINITE.values(), ids=FINITE)
def test_walks_stay_in_the_cone_and_never_go_down(E):
    cone = _cone(E)
    around = Polyhedron.around(cone.E)
    vertices = cone.normalised(cone.lowered(np.exp(wider_rays(cone.E, 10**5)[::17])))
    with threadpool_limits(1):
        for seed in range(5):
            price = _price(cone, seed)
            ends = walked(cone, price, vertices, around)
            _demand_members(cone, ends)
            size = ((ends @ price.roots.T) ** 2).sum(axis=1) + np.abs(ends) @ np.abs(price.nu)
            assert (price(ends) >= price(vertices) - 1e-5 * size).all()


@pytest.mark.parametrize("E", FINITE.values(), ids=FINITE)
def test_together_they_find_the_largest_value(E):
    """From thirty starts; nothing is proved by it, but one miss in twenty would be worth a look."""
    cone = _cone(E)
    around, misses = Polyhedron.around(cone.E), 0
    wider = np.exp(wider_rays(cone.E, 10**5))
    rays = cone.normalised(cone.lowered(wider))
    with threadpool_limits(1):
        for seed in range(20):
            price = _price(cone, seed)
            ends = climbed(cone, price, _starts(cone, seed), _orders(cone, seed))
            found = price(np.vstack([ends, walked(cone, price, ends, around)])).max()
            largest = price(rays).max()
            assert found <= price.at_most(cone.normalised(wider))
            misses += found < largest - 1e-5 * abs(largest)
    assert misses <= 1


def test_a_climb_alone_can_be_stuck_where_a_walk_is_not():
    """Else walking would be a waste."""
    cone = _cone(MATRICES["planar"])
    around, ahead = Polyhedron.around(cone.E), 0
    with threadpool_limits(1):
        for seed in range(5):
            price = _price(cone, seed)
            ends = climbed(cone, price, _starts(cone, seed), _orders(cone, seed))
            ahead += int(
                (price(walked(cone, price, ends, around)) > price(ends) * (1 + 1e-3)).sum()
            )
    assert ahead > 0


# --- the bound on φ --------------------------------------------------------------------------------------------------


def _exact(price, columns):
    """The largest φ of these very columns, in fractions."""
    S, nu = (
        [[Fraction(s) for s in row] for row in price.roots.tolist()],
        [Fraction(n) for n in price.nu.tolist()],
    )
    largest = None
    for column in columns.tolist():
        r = [Fraction(c) for c in column]
        squares = sum(sum(s * c for s, c in zip(row, r, strict=True)) ** 2 for row in S)
        phi = squares - sum(n * c for n, c in zip(nu, r, strict=True))
        largest = phi if largest is None else max(largest, phi)
    return largest


def _cancelling(k, seed):
    """φ whose terms are ten digits larger than their sum."""
    random = np.random.default_rng(seed)
    S = random.normal(size=(k, k)) * 1e5
    S -= S.mean(axis=1, keepdims=True)
    return Price(S, random.normal(size=k))


def test_the_bound_is_above_the_exact_maximum_where_floats_are_not():
    below = 0
    for seed in range(20):
        columns = 1 + np.random.default_rng(100 + seed).normal(size=(12, 8)) * 1e-9
        price = _cancelling(8, seed)
        exact = _exact(price, columns)
        assert Fraction(price.at_most(columns)) >= exact
        below += Fraction(float(price(columns).max())) < exact
    assert below > 0


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_the_bound_is_hardly_above(E):
    cone = _cone(E)
    rays = cone.normalised(np.exp(wider_rays(cone.E, 10**5)[:40]))
    for seed in range(3):
        price = _price(cone, seed)
        exact = _exact(price, rays)
        size = float(
            ((np.abs(rays) @ np.abs(price.roots).T) ** 2).sum(axis=1).max()
            + (rays @ np.abs(price.nu)).max()
        )
        assert 0 <= Fraction(price.at_most(rays)) - exact <= Fraction(1e-12 * size)
