"""Shapes without order: given ones, learnt ones, and groups with means of their own."""

import numpy as np
import pytest

from sfumato.domains.layout import Line
from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.estimation.decoders.group_means import cost_of_means, group_means
from sfumato.estimation.decoders.rooted_cells import RootedCells
from sfumato.estimation.decoders.unordered_shapes import learn_shapes, make_given_shapes


def _cell_shares(theta, s, group_of=None, movable_mask=None, seed=0):
    k = theta.size
    group_of = np.zeros(k, dtype=np.int64) if group_of is None else group_of
    movable_mask = np.ones(k, dtype=np.bool_) if movable_mask is None else movable_mask
    return CellShares(
        layout=Line(k),
        y=theta + s * np.random.default_rng(seed).normal(size=k),
        s=np.full(k, s),
        symbols=np.arange(k),
        mean_share=1 / k,
        group_of=group_of,
        totals=np.bincount(group_of, theta * movable_mask).astype(np.float64),
        movable_mask=movable_mask,
    )


def _two_points(k=1_000):
    """Return intensities of 0 and, in a quarter of the cells, 4."""
    return 4.0 * (np.random.default_rng(1).permutation(k) < k // 4)


def _cells(shares):
    return RootedCells.below(shares, np.ones(shares.size))


def _log_weight(shapes):
    return float(np.logaddexp.reduce([shape.log_weight for shape in shapes]))


# --- shapes ---------------------------------------------------------------------------------------


def test_given_shapes_have_their_density_as_evidence():
    cells = _cells(_cell_shares(_two_points(), 0.5))
    shapes = make_given_shapes(cells, belief=0.3)
    for shape in shapes:
        assert shape.prediction.sum() == pytest.approx(1, rel=1e-5)
        assert shape.prediction @ cells.scale.values == pytest.approx(1, rel=5e-3)
        log_belief = np.log(0.3 / len(shapes))
        assert shape.log_weight == pytest.approx(cells.log_density(shape.prediction) + log_belief)


def test_learnt_shape_is_nearly_as_likely_as_the_true_one():
    cells = _cells(_cell_shares(_two_points(), 0.5))
    (shape,) = learn_shapes(cells, belief=0.3)
    truth = 0.75 * cells.scale.at(0.0) + 0.25 * cells.scale.at(4.0)
    evidence = shape.log_weight - np.log(0.3)
    assert evidence > _log_weight(make_given_shapes(cells, belief=1.0)) + 20
    assert abs(evidence - cells.log_density(truth)) < 20
    assert shape.prediction.sum() == pytest.approx(1, rel=1e-4)
    is_large = cells.scale.values > 2
    assert shape.prediction[is_large].sum() == pytest.approx(0.25, abs=0.02)


def test_shape_is_not_learnt_from_the_cells_that_it_predicts():
    """Sixty cells teach a shape that is less likely than the truth, by some nats on average.

    Under a shape learnt from themselves, they would be more likely than under the truth.
    """
    losses = []
    for seed in range(20):
        cells = _cells(_cell_shares(_two_points(60), 0.5, seed=seed))
        truth = 0.75 * cells.scale.at(0.0) + 0.25 * cells.scale.at(4.0)
        (shape,) = learn_shapes(cells, belief=1.0)
        losses.append(cells.log_density(truth) - shape.log_weight)
    assert 2 < np.mean(losses) < 6


def test_fixed_cells_teach_nothing():
    movable_mask = np.arange(1_000) < 900
    shares = _cell_shares(_two_points(), 0.5, movable_mask=movable_mask)
    assert learn_shapes(_cells(shares), belief=0.3) == []


# --- groups ---------------------------------------------------------------------------------------


def test_means_of_groups_are_their_totals_per_cell():
    group_of = np.array([0, 0, 1, 1, 1, 2])
    movable_mask = np.array([True, True, True, True, False, False])
    theta = np.array([1.0, 3.0, 0.5, 0.1, 7.0, 2.0])
    shares = _cell_shares(theta, 0.1, group_of, movable_mask)
    assert group_means(shares) == pytest.approx([2, 2, 0.3, 0.3, 1, 1])


def test_empty_groups_have_a_positive_mean():
    shares = _cell_shares(np.array([0.0, 0.0, 2.0, 2.0]), 0.1, np.array([0, 0, 1, 1]))
    means = group_means(shares)
    assert (means > 0).all()
    assert means[:2].max() < 0.01


def test_known_means_cost_evidence_if_others_would_have_to_find_them_out():
    """Better known means cost more; means that cells cannot tell cost nothing beyond exp(−m)."""
    group_of = np.arange(100) // 25
    theta = np.repeat([0.2, 0.6, 1.2, 2.0], 25)
    costs = []
    for s in (0.1, 1.0, 10.0):
        shares = _cell_shares(theta, s, group_of)
        costs.append(cost_of_means(shares, group_means(shares)))
    # Formula: Σ log(exp(−m) √(2π) s/5), each at most 0; a mean of 25 cells has the error s/5.
    m = np.array([0.2, 0.6, 1.2, 2.0])
    expected = [
        np.minimum(np.log(np.sqrt(2 * np.pi) * s / 5) - m, 0).sum() for s in (0.1, 1.0, 10.0)
    ]
    assert costs == pytest.approx(expected, abs=1e-6)
    assert costs == sorted(costs)
