"""Projection on the simplex, against a slow and obvious twin."""

import numpy as np
import pytest

from sfumato.foundation.simplex import project, project_groups

SIZES = [1, 2, 3, 5, 17, 200]


def _vectors(size: int) -> list[np.ndarray]:
    """Typical estimates, ties, all negative, all equal, already on the simplex, far away."""
    rng = np.random.default_rng(size)
    return [
        rng.normal(1 / size, 0.3, size),
        rng.normal(0, 10, size),
        np.round(rng.normal(0, 1, size)),
        -rng.random(size) - 1,
        np.full(size, 0.25),
        np.zeros(size),
        rng.dirichlet(np.ones(size)),
        np.where(np.arange(size) == size // 2, 1000.0, -1000.0),
    ]


def _naive_project(v: np.ndarray, total: float) -> np.ndarray:
    """Bisect for the θ at which Σ max(v − θ, 0) falls to the total."""
    low = v.min() - total - 1
    high = v.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(v - middle, 0).sum() > total:
            low = middle
        else:
            high = middle
    return np.maximum(v - high, 0)


def _naive_project_groups(v: np.ndarray, group_of: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Group by group."""
    projected = np.empty_like(v)
    for group in np.unique(group_of):
        projected[group_of == group] = _naive_project(v[group_of == group], totals[group])
    return projected


@pytest.mark.parametrize("total", [1.0, 0.25, 7.5])
@pytest.mark.parametrize("size", SIZES)
def test_projection_matches_bisection(size, total):
    for v in _vectors(size):
        scale = max(1.0, np.abs(v).max())
        assert np.allclose(project(v, total), _naive_project(v, total), rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("size", SIZES)
def test_projection_meets_the_optimality_conditions(size):
    """p ≥ 0, Σp = 1; v − p is one θ where p > 0, and v ≤ θ where p = 0 (Karush, Kuhn, Tucker)."""
    for v in _vectors(size):
        p = project(v)
        tolerance = 1e-12 * max(1.0, np.abs(v).max())
        assert (p >= 0).all()
        assert abs(p.sum() - 1) <= tolerance * size
        theta = (v - p)[p > 0]
        assert np.ptp(theta) <= tolerance
        assert (v[p == 0] <= theta.min() + tolerance).all()


def test_no_point_of_the_simplex_is_nearer():
    rng = np.random.default_rng(1)
    for v in _vectors(5):
        p = project(v)
        others = rng.dirichlet(np.ones(5), size=500)
        nearest = ((others - v) ** 2).sum(axis=1).min()
        assert ((p - v) ** 2).sum() <= nearest + 1e-12 * max(1.0, (v**2).sum())


@pytest.mark.parametrize("size", SIZES)
def test_a_distribution_is_its_own_projection(size):
    p = np.random.default_rng(size).dirichlet(np.ones(size))
    assert np.allclose(project(p), p, rtol=0, atol=1e-15)


def test_projecting_twice_changes_nothing():
    for v in _vectors(17):
        assert np.allclose(project(project(v)), project(v), rtol=0, atol=1e-14)


@pytest.mark.parametrize("value", [-5.0, 0.0, 0.3, 5.0])
def test_single_entry_gets_the_total(value):
    assert project([value], 0.75).tolist() == [pytest.approx(0.75, abs=1e-15)]


@pytest.mark.parametrize("v", [[1.0, -2.0, 3.0], [0.0, 0.0], [-1.0, -1.0]])
def test_a_total_of_zero_leaves_nothing(v):
    assert project(v, 0.0).tolist() == [0.0] * len(v)


def test_integers_are_projected_as_numbers():
    assert project([2, 0, 0]).tolist() == [1.0, 0.0, 0.0]


def test_input_is_not_changed():
    v = np.array([3.0, -1.0, 2.0])
    project(v)
    assert v.tolist() == [3.0, -1.0, 2.0]


def test_equal_entries_stay_equal():
    assert project([0.7, 0.7, 0.7, -3.0]).tolist() == pytest.approx(
        [1 / 3, 1 / 3, 1 / 3, 0.0], abs=1e-15
    )


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("size", SIZES)
def test_groups_are_projected_as_if_each_were_alone(size, groups):
    """More groups than entries leaves groups that do not occur."""
    rng = np.random.default_rng(100 * size + groups)
    totals = rng.random(groups) * (rng.random(groups) < 0.8)  # some totals are 0
    for v in _vectors(size):
        group_of = rng.integers(0, groups, size)
        expected = _naive_project_groups(v, group_of, totals)
        tolerance = 1e-12 * max(1.0, np.abs(v).max())
        assert np.allclose(project_groups(v, group_of, totals), expected, rtol=0, atol=tolerance)


def test_every_group_meets_its_own_total():
    rng = np.random.default_rng(7)
    group_of = np.repeat(np.arange(50), 4)
    totals = rng.dirichlet(np.ones(50))
    p = project_groups(rng.normal(0, 1, 200), group_of, totals)
    assert np.allclose(np.bincount(group_of, weights=p), totals, rtol=0, atol=1e-14)


def test_groups_may_be_interleaved():
    v = np.array([3.0, 1.0, 1.0, -1.0])
    group_of = np.array([1, 0, 1, 0])
    totals = np.array([0.5, 2.0])
    assert project_groups(v, group_of, totals).tolist() == [2.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_empty_groups_are_ignored(absent):
    present = [group for group in range(3) if group != absent]
    totals = np.full(3, 99.0)
    totals[present] = [0.25, 0.75]
    p = project_groups(np.array([0.9, 0.2, 0.4, 0.1]), np.repeat(present, 2), totals)
    assert p.tolist() == pytest.approx([0.25, 0.0, 0.525, 0.225], abs=1e-15)


def test_large_entries_do_not_affect_other_groups():
    """Sums of one group must not swallow the digits of the next."""
    v = np.array([1e9, 1 / 3, 0.3, 0.9])
    group_of = np.array([0, 0, 1, 1])
    assert project_groups(v, group_of, np.ones(2))[2:].tolist() == pytest.approx(
        [0.2, 0.8], abs=1e-12
    )
