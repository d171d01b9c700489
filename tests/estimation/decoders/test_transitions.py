"""Transitions: every row is a distribution with the mean of its parent."""

import numpy as np
import pytest

from sfumato.estimation.decoders.intensities import IntensityScale
from sfumato.estimation.decoders.transitions import PeaksAboveDust, Roughness, Transitions

SCALES = {
    "narrow": IntensityScale(np.geomspace(0.05, 2.0, 40)),
    "wide": IntensityScale(np.geomspace(0.05, 4_000.0, 40)),
    "few bins": IntensityScale(np.geomspace(0.5, 4.0, 4)),
}
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
SPREADS = [1e-4, 0.03, 0.3, 0.95, 3.0, 50.0]
PEAKS = [(0.8, 0.15), (0.95, 0.15), (0.95, 0.0), (0.99, 0.0)]


def _check_transitions(T, values):
    assert np.isfinite(T).all()
    assert (T >= 0).all()
    assert T.sum(axis=1) == pytest.approx(np.ones(values.size), abs=1e-5)
    means = T.astype(np.float64) @ values
    assert means[:-1] == pytest.approx(values[:-1], rel=2e-3)
    assert means[-1] == pytest.approx(values[-1], rel=0.1)  # no state is larger
    assert T[0].tolist() == [1.0] + [0.0] * (values.size - 1)  # what is empty stays empty


@every_scale
@pytest.mark.parametrize("spread", SPREADS)
def test_spreads_keep_the_mean(scale, spread):
    _check_transitions(Transitions(scale).with_edges(spread), scale.values)


@every_scale
@pytest.mark.parametrize(("dust_share", "dust"), PEAKS)
def test_peaks_keep_the_mean(scale, dust_share, dust):
    _check_transitions(Transitions(scale).peaks(dust_share, dust), scale.values)


def test_check_detects_transitions_with_another_mean():
    scale = SCALES["narrow"]
    T = Transitions(scale).with_edges(0.3)
    with pytest.raises(AssertionError):
        _check_transitions(T.T / T.T.sum(axis=1, keepdims=True), scale.values)
    untilted = T * (scale.values + 1) ** 0.1
    with pytest.raises(AssertionError):
        _check_transitions(untilted / untilted.sum(axis=1, keepdims=True), scale.values)


def _log_deviations(T, scale, parent):
    """Return the standard deviation of the log intensity of children that are not empty."""
    logs = np.log(scale.values[1:])
    weights = T[parent, 1:] / T[parent, 1:].sum()
    return float(np.sqrt(weights @ (logs - weights @ logs) ** 2))


def test_spread_is_that_of_a_laplace_factor():
    """For a parent in the middle; the variance of Laplace(b) is 2b²."""
    scale = SCALES["wide"]
    parent = 20
    deviations = [
        _log_deviations(Transitions(scale)._laplace(b), scale, parent) for b in (0.1, 0.2, 0.4)
    ]
    assert deviations == pytest.approx(np.sqrt(2) * np.array([0.1, 0.2, 0.4]), rel=0.35)
    assert deviations == sorted(deviations)


def test_small_parents_have_more_empty_children():
    T = Transitions(SCALES["wide"]).with_edges(0.65)
    assert (np.diff(T[1:, 0]) < 1e-6).all()
    assert T[1, 0] > 10 * T[-1, 0]


def test_most_children_of_a_dusty_parent_are_dust():
    scale = SCALES["wide"]
    T = Transitions(scale).peaks(0.95, 0.15)
    parent = 20
    is_dust = scale.values < 0.5 * scale.values[parent]
    assert T[parent, is_dust].sum() == pytest.approx(0.95, abs=0.1)


def test_matrices_are_computed_once():
    transitions = Transitions(SCALES["narrow"])
    assert transitions.with_edges(0.3) is transitions.with_edges(0.301)
    assert transitions.with_edges(0.3) is not transitions.with_edges(0.4)
    assert transitions.peaks(0.8, 0.15) is transitions.peaks(0.8, 0.15)


def test_transitions_of_recent_scales_are_kept():
    scale = IntensityScale(np.geomspace(0.05, 2.0, 40))
    kept = Transitions.on(scale)
    assert kept.scale is scale
    assert Transitions.on(scale) is kept
    assert Transitions.on(IntensityScale(np.geomspace(0.05, 3.0, 40))) is not kept


# --- shapes ---------------------------------------------------------------------------------------


def test_roughness_depends_on_the_level():
    assert [Roughness(0.3).at(level) for level in range(3)] == [0.3] * 3
    rough_close_up = [Roughness(2.0, -1.0).at(level) for level in range(3)]
    assert rough_close_up == pytest.approx([2, 2 / np.e, 2 / np.e**2])
    smooth_close_up = [Roughness(0.5, 0.7, smooth_levels=2).at(level) for level in range(4)]
    assert smooth_close_up == pytest.approx([0.5 * np.exp(-1.4), 0.5 * np.exp(-0.7), 0.5, 0.5])


def test_shapes_have_a_matrix_for_every_level():
    transitions = Transitions(SCALES["narrow"])
    rough = Roughness(2.0, -1.0)
    matrices = rough.matrices(transitions, 5)
    assert len(matrices) == 5
    for level, T in enumerate(matrices):
        assert T is transitions.with_edges(rough.at(level))
    peaks = PeaksAboveDust(0.8, 0.15, spread=0.4).matrices(transitions, 5)
    assert len(peaks) == 5
    assert peaks[0] is transitions.peaks(0.8, 0.15)
    assert all(T is transitions.with_edges(0.4) for T in peaks[1:])
