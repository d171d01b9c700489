"""All extreme rays, against a naive enumeration, their number and the limit."""

from math import comb, inf

import numpy as np
import pytest

from sfumato.designer.search.rays import wider_rays
from support.matrices import (
    asymmetric,
    chain,
    closed,
    equal,
    free_rows,
    line,
    mixed,
    naive_rays,
    one_way,
    planar,
    star,
    without,
)

APART = without(asymmetric(5, 3), np.not_equal.outer([0, 0, 0, 1, 1], [0, 0, 0, 1, 1]))
MATRICES = {
    "two": asymmetric(2, 1),
    "three": asymmetric(3, 2),
    "asymmetric": asymmetric(5, 3),
    "another": asymmetric(5, 4),
    "planar": planar(5, 1, 2.0),
    "line": line(5, 0.5),
    "equal": equal(4, 1.0),
    "mixed": mixed(5, 2),
    "tiny": asymmetric(5, 5) * 1e-5,
    "a free row": free_rows(5, 6, 1),
    "three free rows": free_rows(5, 7, 3),
    "one-way": one_way(5, 8),
    "chain": chain(5, 9),
    "star": star(5, 10),
    "star outwards": star(5, 11).T,
    "apart": APART,
    "one link": np.where(np.arange(25).reshape(5, 5) == 4, 1.0, APART),
}


def _far_from(rays, others):
    """Return the largest distance of a ray to the nearest of the others, relative to the spread."""
    either = np.vstack([rays, others])
    depth = max(-either[np.isfinite(either)].min(), 1e-300)
    farthest = 0.0
    for ray in rays:
        alike = others[(np.isfinite(others) == np.isfinite(ray)).all(axis=1)]
        finite = np.isfinite(ray)
        distance = (
            np.abs(alike[:, finite] - ray[finite]).max(axis=1)
            if finite.any()
            else np.zeros(len(alike))
        )
        farthest = max(farthest, float(distance.min(initial=inf)) / depth)
    return farthest


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_rays_match_a_naive_enumeration(E):
    E = closed(E)
    rays = wider_rays(E, 10**4)
    naive = naive_rays(E)
    assert _far_from(naive, rays) < 1e-5
    assert _far_from(rays, naive) < 1e-5


def test_missing_and_extra_rays_are_noticed():
    # Every detour is longer than this.
    E = without(asymmetric(5, 8, low=1.0, high=1.9), np.tri(5, k=-1, dtype=bool))
    rays = wider_rays(E, 10**4)
    naive = naive_rays(E)
    assert len(rays) == len(naive)
    assert all(_far_from(naive, np.delete(rays, gone, axis=0)) > 1e-3 for gone in range(len(rays)))
    assert _far_from(np.vstack([rays, rays[:1] * 0.99]), naive) > 1e-3


@pytest.mark.parametrize("k", range(2, 8))
def test_generic_matrices_have_max_rays(k):
    rays = wider_rays(closed(planar(k, k, 2.0)), 10**4)
    assert len(rays) == comb(2 * k - 2, k - 1)
    assert len(np.unique(rays, axis=0)) == len(rays)


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_wider_rays_returns_none_only_beyond_the_limit(E):
    E = closed(E)
    count = len(wider_rays(E, 10**4))
    assert len(wider_rays(E, count)) == count
    assert wider_rays(E, count - 1) is None


def test_star_has_a_ray_for_every_subset():
    """All promises are against the first symbol: a ray favours it with any set of the others."""
    E = closed(star(7, 1))
    rays = wider_rays(E, 1000)
    assert len(rays) == 2**6
    assert (rays[:, 0] > -inf).all()
    for ray in rays:
        reported = np.flatnonzero(np.isfinite(ray[1:])) + 1
        np.testing.assert_allclose(ray[reported] - ray[0], E[reported, 0], atol=1e-5)


def test_chain_has_a_ray_for_every_end():
    """``r_x ≤ e^ε r_{x+1}``: supports are ``x, x + 1, …``, each with one ray of equalities."""
    rays = np.unique(wider_rays(closed(chain(7, 2)), 1000).round(3), axis=0)
    assert len(rays) == 7
    assert sorted(np.isfinite(rays).sum(axis=1)) == list(range(1, 8))


def test_rays_are_deterministic():
    E = closed(planar(6, 3, 1.0))
    assert wider_rays(E, 10**4).tobytes() == wider_rays(E.copy(), 10**4).tobytes()
