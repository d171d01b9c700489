"""Smooth curves: what they can be, their posterior, and their evidence, against brute force."""

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.domains.layout import Circle, Line, Nested, Plane
from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.estimation.decoders.curve_basis import (
    MergedShares,
    make_closed_basis,
    make_open_basis,
)
from sfumato.estimation.decoders.curve_model import CurveModel, has_curves
from sfumato.estimation.decoders.curve_posterior import CurvePosterior
from sfumato.estimation.decoders.seeded_variates import SeededVariates


def _positions(size):
    return (np.arange(size) + 0.5) / size


def _merged(size, s=0.3, seed=0):
    """Return noisy shares of a bell, unmerged up to 1,024 cells."""
    x = _positions(size)
    density = 0.3 + np.exp(-0.5 * ((x - 0.4) / 0.15) ** 2)
    errors = s * np.random.default_rng(seed).uniform(0.7, 1.4, size)
    y = density / density.mean() + errors * np.random.default_rng(seed + 1).normal(size=size)
    return MergedShares.merge(y, errors, x), y, errors


def _fit(basis, tau):
    return CurvePosterior.fit(basis, tau, np.zeros(basis.size), SeededVariates("test"))


# --- bases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [12, 40])
def test_open_basis_contains_all_cubics(size):
    """But for a constant, which does not change a distribution."""
    shares, _, _ = _merged(200)
    basis = make_open_basis("position", shares, size)
    assert basis.size == size - 1
    columns = np.column_stack([np.ones(200), basis.design])
    x = _positions(200)
    for power in (1, 2, 3):
        coefficients = np.linalg.lstsq(columns, x**power, rcond=None)[0]
        assert columns @ coefficients == pytest.approx(x**power, abs=1e-9)
    step = (x > 0.5).astype(np.float64)
    coefficients = np.linalg.lstsq(columns, step, rcond=None)[0]
    assert np.abs(columns @ coefficients - step).max() > 0.2


def test_first_direction_of_an_open_basis_is_a_slope():
    shares, _, _ = _merged(200)
    basis = make_open_basis("position", shares, 12)
    slope = basis.design[:, 0]
    assert (np.diff(slope) > 0).all()
    inside = slice(60, 140)
    assert np.ptp(np.diff(slope[inside])) < 1e-12
    assert basis.unit_scales[0] == 1
    assert np.ptp(basis.unit_scales[1:]) == 0


def test_bends_are_second_differences():
    """Inside, a bend is straight but around one knot, where its second derivative is."""
    shares, _, _ = _merged(900)
    basis = make_open_basis("position", shares, 12)
    inside = slice(200, 700)
    for direction in range(5, 7):
        bend = np.diff(basis.design[inside, direction], 2) * 900**2
        centre = int(bend.argmax())
        is_far = np.abs(np.arange(bend.size) - centre) > 205
        assert bend[centre] > 10
        assert np.abs(bend[is_far]).max() < 1e-4


@pytest.mark.parametrize("size", [12, 40])
def test_closed_basis_has_no_end(size):
    """Moving the cells by one knot around the circle moves the directions."""
    shares, _, _ = _merged(size * 5)
    basis = make_closed_basis("circle", shares, size)
    rolled = np.roll(np.roll(basis.design, 5, axis=0), 1, axis=1)
    assert rolled == pytest.approx(basis.design, abs=1e-9)


def test_open_basis_has_ends():
    shares, _, _ = _merged(60)
    design = make_open_basis("position", shares, 12).design[:, 1:]
    rolled = np.roll(np.roll(design, 5, axis=0), 1, axis=1)
    assert np.abs(rolled - design).max() > 0.1


def test_intensities_are_a_distribution():
    shares, _, _ = _merged(3_000)
    basis = make_open_basis("position", shares, 12)
    f = np.random.default_rng(0).normal(0, 30, (4, shares.counts.size))
    p = basis.intensities(f)
    assert p @ shares.counts == pytest.approx(np.ones(4))
    assert np.log(p[0, 0] / p[0, 9]) == pytest.approx(f[0, 0] - f[0, 9])


# --- merged cells ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 1_024, 3_000])
def test_merging_keeps_the_density_of_all_shares(size):
    """For shares that are equal within the merged cells: ``Σ log Normal(y; θ, s²)``."""
    shares, y, s = _merged(size)
    assert shares.counts.sum() == size
    assert shares.counts.size == min(size, 1_024)
    p = np.random.default_rng(2).dirichlet(np.full(shares.counts.size, 5.0)) / shares.counts
    theta = np.repeat(p, shares.counts.astype(np.int64)) * size
    basis = make_open_basis("position", shares, 5)
    log_density = float(basis.log_density(p)) + shares.constant
    assert log_density == pytest.approx(norm.logpdf(y, theta, s).sum(), rel=1e-9)


def test_merging_in_the_logarithm_keeps_the_first_cells():
    size = 3_000
    position = np.log1p(np.arange(size)) / np.log(size)
    shares = MergedShares.merge(np.ones(size), np.ones(size), position)
    assert shares.counts[:20].tolist() == [1] * 20
    assert shares.counts[-1] > 5
    assert shares.counts.sum() == size
    assert (np.diff(shares.centres) > 0).all()


# --- the posterior --------------------------------------------------------------------------------


def _brute_force(basis, tau, draws=400_000):
    """Return the log evidence and the mean curve, from draws of the prior."""
    rng = np.random.default_rng(5)
    c = rng.normal(size=(draws, basis.size)) * tau * basis.unit_scales
    p = basis.intensities(c @ basis.design.T)
    log_densities = basis.log_density(p)
    weights = np.exp(log_densities - log_densities.max())
    assert weights.sum() ** 2 / (weights**2).sum() > 1_000  # enough draws count
    log_evidence = log_densities.max() + np.log(weights.mean()) + basis.shares.constant
    return log_evidence, weights @ p / weights.sum()


@pytest.mark.parametrize("tau", [0.1, 1.0, 3.2, 10.0])
@pytest.mark.parametrize("s", [0.3, 2.0])
@pytest.mark.parametrize("make_basis", [make_open_basis, make_closed_basis])
def test_evidence_matches_draws_from_the_prior(make_basis, s, tau):
    shares, _, _ = _merged(10, s=s)
    basis = make_basis("test", shares, 5)
    curve = _fit(basis, tau)
    log_evidence, mean = _brute_force(basis, tau)
    assert curve.log_evidence == pytest.approx(log_evidence, abs=0.2)
    assert np.abs(curve.mean() - mean).sum() < 0.05


def test_test_detects_a_missing_determinant():
    """Occam's factor: without it, the most likely curve would be too good."""
    shares, _, _ = _merged(10)
    basis = make_open_basis("test", shares, 5)
    log_evidence, _ = _brute_force(basis, 3.2)
    at_mode = float(basis.log_density(_fit(basis, 3.2).mean())) + shares.constant
    assert at_mode > log_evidence + 0.5


def test_flat_curves_have_the_density_of_even_shares():
    """The evidence is in the unit of the shares, as that of the other models."""
    shares, y, s = _merged(50, s=2.0)
    basis = make_open_basis("test", shares, 12)
    assert _fit(basis, 1e-4).log_evidence == pytest.approx(norm.logpdf(y, 1, s).sum(), abs=1e-3)


def test_many_reports_leave_one_curve():
    x = _positions(100)
    p = np.exp(1.5 * x - 3 * (x - 0.4) ** 2)
    p /= p.sum()
    shares = MergedShares.merge(100 * p, np.full(100, 0.005), x)
    for tau in (3.2, 31.6):
        curve = _fit(make_open_basis("test", shares, 12), tau)
        assert np.abs(curve.mean() - p).sum() < 0.002
        deviations = curve.intensities().std(axis=0)
        assert deviations.max() < 0.005 / 100


def test_knowing_the_curve_beforehand_is_worth_something():
    shares, _, _ = _merged(100, s=0.5)
    curve = _fit(make_open_basis("test", shares, 12), 10.0)
    assert -30 < curve.cost_of_mean() < -1


def test_posterior_is_reproducible():
    shares, _, _ = _merged(60)
    basis = make_open_basis("test", shares, 12)
    first, second = (_fit(basis, 10.0) for _ in range(2))
    assert first.draws.tolist() == second.draws.tolist()
    assert first.log_evidence == second.log_evidence


# --- the model ------------------------------------------------------------------------------------


def _cell_shares(layout, p, s, seed=0):
    k = layout.size
    y = p * k + s * np.random.default_rng(seed).normal(size=k)
    return CellShares(
        layout=layout,
        y=y,
        s=np.full(k, s),
        symbols=np.arange(k),
        mean_share=1 / k,
        group_of=np.zeros(k, dtype=np.int64),
        totals=np.array([float(k)]),
        movable_mask=np.ones(k, dtype=np.bool_),
    )


def _smooth(size):
    x = _positions(size)
    p = 0.2 + np.exp(-0.5 * ((x - 0.3) / 0.1) ** 2)
    return p / p.sum()


def _decode(shares):
    model = CurveModel("smooth curve", shares, belief=1.0)
    return shares.best_intensities(model.decode().posterior)


def test_lines_and_circles_have_curves():
    assert has_curves(Line(20))
    assert has_curves(Circle(20))
    assert not has_curves(Plane(4, 5))
    assert not has_curves(Nested(20, ()))


@pytest.mark.parametrize("layout", [Line(100), Circle(100), Line(3_000), Line(9_000)], ids=repr)
def test_curves_are_much_better_than_single_shares(layout):
    p = _smooth(layout.size)
    shares = _cell_shares(layout, p, 1.0)
    theta = _decode(shares)
    assert theta.sum() == pytest.approx(layout.size, rel=1e-4)
    assert (theta >= 0).all()
    assert np.abs(theta / layout.size - p).sum() < 0.3 * np.abs(shares.y / layout.size - p).sum()


def test_circles_use_what_lies_across_their_end():
    """A bell around the first cell: on a line, its halves do not help each other."""
    p = np.roll(_smooth(60), -18)
    near_end = np.r_[0:6, 54:60]
    errors = []
    for layout in (Line(60), Circle(60)):
        decoded = [_decode(_cell_shares(layout, p, 1.0, seed)) for seed in range(6)]
        errors.append(np.mean([np.abs(theta / 60 - p)[near_end].sum() for theta in decoded]))
    assert errors[1] < 0.8 * errors[0]


def test_evidence_prefers_curves_where_they_are_true():
    p = _smooth(100)
    smooth, shuffled = (
        CurveModel("smooth curve", _cell_shares(Line(100), each, 0.2), belief=1.0).log_weight
        for each in (p, np.random.default_rng(0).permutation(p))
    )
    assert smooth > shuffled + 50


def test_stiff_curves_are_roots():
    shares = _cell_shares(Line(100), _smooth(100), 0.5)
    curves = list(CurveModel("smooth curve", shares, belief=1.0).stiff_curves())
    assert {curve.title for curve in curves} == {"position", "logarithm of position"}
    for curve in curves:
        assert curve.intensities.shape == (100,)
        assert curve.intensities.mean() == pytest.approx(1)
        assert curve.intensities.min() > 0
        assert curve.cost < 0
