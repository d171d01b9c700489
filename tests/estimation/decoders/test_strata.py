"""Strata of equal size, and predictions by neighbours that a cell's own value has no part in."""

import math

import numpy as np
import pytest

from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.errors import ContextMismatch
from sfumato.estimation.decoders.pools import Pools
from sfumato.estimation.decoders.strata import (
    WIDTHS,
    has_neighbours,
    predict_from_neighbours,
    stratify,
)

GRID = GridDomain(0, 12, 0, 15, 1, other="elsewhere")


def _pools(size, used):
    """Two groups, of which the symbols ``used`` are pooled: there errors drown drawing."""
    group_of = np.where(used, 0, 1)
    totals = np.array([0.7, 0.3])
    errors = np.where(used, 1.0, 0.0)
    return Pools(group_of, totals, np.zeros(size), errors, reports=1_000)


# --- strata --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "count"), [(1, 1), (999, 1), (1_000, 2), (3_700, 7), (6_000, 12), (43_750, 12)]
)
def test_strata_are_equally_large_and_in_order(size, count):
    covariate = np.random.default_rng(size).normal(size=size)
    found = stratify(covariate)
    sizes = np.bincount(found)
    assert sizes.size == count
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(found[np.argsort(covariate)]) >= 0).all()


def test_equal_values_stay_together():
    covariate = np.repeat([3.0, 1.0, 2.0], [100, 2_800, 300])
    found = stratify(covariate)
    for value in (1.0, 2.0, 3.0):
        assert np.unique(found[covariate == value]).size == 1
    assert stratify(np.full(5_000, 0.5)).tolist() == [0] * 5_000


def test_strata_are_numbered_without_gaps():
    """Most values are 0, as in a map of which most cells are empty: edges coincide, strata in
    between are empty.
    """
    covariate = np.concatenate([np.zeros(5_000), np.arange(1_000.0)])
    found = stratify(covariate)
    assert np.unique(found).tolist() == list(range(found.max() + 1))
    assert found.max() >= 1


def test_no_symbols_have_no_strata():
    assert stratify(np.empty(0)).shape == (0,)


# --- grids ---------------------------------------------------------------------------------------


def _naive_prediction(shares, used, means, width):
    """Every other cell within four widths, by rows and by columns, with a Gaussian weight."""
    reach, (rows, columns) = int(4 * width + 0.5), GRID.shape
    found = np.zeros(shares.size)
    for x in range(rows * columns):
        weights = weighed = 0.0
        for x2 in range(rows * columns):
            down, across = x // columns - x2 // columns, x % columns - x2 % columns
            if x2 != x and used[x2] and abs(down) <= reach and abs(across) <= reach:
                kernel = math.exp(-(down**2 + across**2) / (2 * width**2))
                weights += kernel
                weighed += kernel * shares[x2]
        found[x] = weighed / weights if weights else 0.0
    return found[used] / means[used]


def test_predictions_match_a_loop_over_pairs():
    rng = np.random.default_rng(1)
    used = rng.random(GRID.size) < 0.8
    used[-1] = True  # `other` is pooled, but is nobody's neighbour
    shares = rng.lognormal(0, 2, GRID.size)
    pools = _pools(GRID.size, used)
    found = dict(predict_from_neighbours(GRID, pools, shares, WIDTHS))
    assert tuple(found) == WIDTHS
    for width in WIDTHS:
        twin = _naive_prediction(shares, used, pools.means, width)
        assert found[width] == pytest.approx(twin, rel=1e-6, abs=1e-12)
        assert found[width][-1] == 0.0


@pytest.mark.parametrize("x", [0, 14, 95, 179])
def test_grid_prediction_leaves_out_the_cell_itself(x):
    rng = np.random.default_rng(2)
    used = np.ones(GRID.size, dtype=np.bool_)
    pools, shares = _pools(GRID.size, used), rng.random(GRID.size)
    changed = shares.copy()
    changed[x] = 1_000.0
    for (_, before), (_, after) in zip(
        predict_from_neighbours(GRID, pools, shares, WIDTHS),
        predict_from_neighbours(GRID, pools, changed, WIDTHS),
        strict=True,
    ):
        assert after[x] == pytest.approx(before[x], rel=1e-9)
        assert (
            abs(after[x + 1 if x % 15 == 0 else x - 1] - before[x + 1 if x % 15 == 0 else x - 1])
            > 1
        )


def test_isolated_cell_is_predicted_as_zero():
    used = np.zeros(GRID.size, dtype=np.bool_)
    used[[0, 179]] = True  # opposite corners
    found = dict(predict_from_neighbours(GRID, _pools(GRID.size, used), np.ones(GRID.size), WIDTHS))
    assert found[0.7] == pytest.approx([0, 0], abs=1e-3)


@pytest.mark.parametrize(
    "box", [(0, 1, 0, 1), (0, 1, 0, 5), (0, 2, 0, 2)], ids=["one cell", "one row", "two by two"]
)
def test_tiny_grids_are_no_trouble(box):
    domain = GridDomain(*box, 1)
    used = np.ones(domain.size, dtype=np.bool_)
    for _, predicted in predict_from_neighbours(
        domain, _pools(domain.size, used), np.ones(domain.size), WIDTHS
    ):
        assert np.isfinite(predicted).all()


# --- H3 ------------------------------------------------------------------------------------------


def _h3_domain(**given):
    pytest.importorskip("h3")
    return H3Domain.box(7, south=40.70, north=40.82, west=-74.02, east=-73.92, **given)


def _sphere(domain):
    latitude, longitude = (np.radians(angles) for angles in domain.centres())
    return np.column_stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )


def test_h3_cells_are_predicted_by_cells_near_them():
    """Against all pairs: a Gaussian of the distance, up to two and a half widths, in steps from
    cell to cell.
    """
    domain = _h3_domain(other="elsewhere")
    rng = np.random.default_rng(3)
    used = rng.random(domain.size) < 0.8
    shares, points = rng.random(domain.size), _sphere(domain)
    pools = _pools(domain.size, used)
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    spacing = float(np.median(np.sort(apart, axis=1)[:, 1]))
    found = dict(predict_from_neighbours(domain, pools, shares, WIDTHS))
    assert tuple(found) == WIDTHS
    for width in WIDTHS:
        twin = np.zeros(domain.size)
        for x in range(domain.cells):
            near = [
                x2
                for x2 in range(domain.cells)
                if x2 != x and used[x2] and apart[x, x2] <= 2.5 * width * spacing
            ]
            kernel = np.exp(-0.5 * (apart[x, near] / (width * spacing)) ** 2)
            twin[x] = kernel @ shares[near] / kernel.sum() if near else 0.0
        assert found[width] == pytest.approx(twin[used] / pools.means[used], rel=1e-6)


def test_h3_prediction_leaves_out_the_cell_itself():
    domain = _h3_domain()
    used = np.ones(domain.size, dtype=np.bool_)
    pools, shares = _pools(domain.size, used), np.random.default_rng(4).random(domain.size)
    changed = shares.copy()
    changed[7] = 1e6
    for (_, before), (_, after) in zip(
        predict_from_neighbours(domain, pools, shares, WIDTHS),
        predict_from_neighbours(domain, pools, changed, WIDTHS),
        strict=True,
    ):
        assert after[7] == before[7]
        assert (after != before).any()


def test_h3_skips_widths_with_too_many_pairs():
    domain = _h3_domain()
    pools = _pools(domain.size, np.ones(domain.size, dtype=np.bool_))
    found = predict_from_neighbours(domain, pools, np.ones(domain.size), (0.7, 1e4))
    assert [width for width, _ in found] == [0.7]


# --- other domains -------------------------------------------------------------------------------


def test_only_maps_have_neighbours():
    plain = Domain(["a", "b"])
    assert has_neighbours(GRID)
    assert not has_neighbours(plain)
    with pytest.raises(ContextMismatch, match="no neighbours"):
        list(
            predict_from_neighbours(
                plain, _pools(2, np.ones(2, dtype=np.bool_)), np.ones(2), WIDTHS
            )
        )
