"""Cells that lie somewhere, on every mechanism: what moves, what stays, and which totals hold."""

import numpy as np
import pytest

from sfumato.codes import HadamardCode
from sfumato.contexts import Blocks, HighLow, Tiers, Uniform
from sfumato.domains import Domain, GridDomain, IntegerDomain
from sfumato.domains.layout import Line
from sfumato.estimation.decoders import auto
from sfumato.estimation.decoders.auto import Auto
from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.estimation.decoders.decoder import Pools
from sfumato.mechanisms import (
    BlockResponse,
    GroupResponse,
    HighLowResponse,
    PlainResponse,
)
from sfumato.tally import Tally
from support.mechanism_examples import ALL_REPRESENTATIVES


def _draw_tally(mechanism, p, reports, seed=0):
    q = np.maximum(mechanism.forward(p), 0)
    return Tally(
        np.random.default_rng(seed).multinomial(reports, q / q.sum()), mechanism.fingerprint
    )


def _smooth(size):
    x = (np.arange(size) + 0.5) / size
    p = 0.1 + np.exp(-0.5 * ((x - 0.3) / 0.1) ** 2)
    return p / p.sum()


def _shares(mechanism, tally):
    pools = Pools.from_tally(mechanism, tally)
    domain = mechanism.context.domain
    own_errors = mechanism.scores.standard_errors(tally)
    return pools, CellShares.from_pools(domain.layout, domain.cells, pools, own_errors)


def _check_distribution(mechanism, tally, frequencies):
    groups, shares = mechanism.scores.observed_shares(tally)
    assert np.isfinite(frequencies).all()
    assert (frequencies >= 0).all()
    assert frequencies.sum() == pytest.approx(1, abs=1e-12)
    totals = np.bincount(groups, frequencies, minlength=shares.size)
    assert totals == pytest.approx(shares, abs=1e-12)


# --- every mechanism ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", ALL_REPRESENTATIVES, ids=lambda mechanism: f"{mechanism.kind}-{mechanism.inputs}"
)
def test_models_keep_the_observed_shares(mechanism, monkeypatch):
    """However few the cells are; usually, few cells are not worth models."""
    monkeypatch.setattr(auto, "_MIN_CELLS", 2)
    p = np.random.default_rng(0).dirichlet(np.full(mechanism.inputs, 0.2))
    is_last = np.arange(mechanism.outputs) == mechanism.outputs - 1
    tallies = [
        _draw_tally(mechanism, p, 2, 0),
        _draw_tally(mechanism, p, 2_000, 1),
        Tally(1_000 * is_last, mechanism.fingerprint),
    ]
    for tally in tallies:
        result = Auto().decode(mechanism, tally)
        _check_distribution(mechanism, tally, result.frequencies)
        again = Auto().decode(mechanism, tally)
        assert again.frequencies.tolist() == result.frequencies.tolist()
        assert again.details == result.details


LARGE = {
    "uniform": PlainResponse(Uniform(IntegerDomain(200), 1)),
    "blocks": BlockResponse(Blocks(np.arange(200) // 25, 1, domain=IntegerDomain(200))),
    "scattered blocks": BlockResponse(Blocks(np.arange(200) % 8, 1, domain=IntegerDomain(200))),
    "tiers": GroupResponse(
        Tiers(np.arange(200) // 50, [0.5, 1, 1.5, 2], domain=IntegerDomain(200)), HadamardCode
    ),
    "high-low": HighLowResponse(HighLow(IntegerDomain(200), range(150), 1)),
}


@pytest.mark.parametrize("name", LARGE)
def test_ordered_cells_are_decoded_better_than_unordered_ones(name):
    mechanism = LARGE[name]
    p = _smooth(200)
    tally = _draw_tally(mechanism, p, 20_000)
    result = Auto().decode(mechanism, tally)
    _check_distribution(mechanism, tally, result.frequencies)
    assert set(result.details) == {"models"}
    unordered = Auto(covariate=np.zeros(200)).decode(mechanism, tally)
    assert set(unordered.details) == {"chosen", "share", "strata"}
    error, unordered_error = (np.abs(each.frequencies - p).sum() for each in (result, unordered))
    assert error < 0.8 * unordered_error


# --- what may move --------------------------------------------------------------------------------


def test_symbols_in_clear_keep_their_counts():
    """They are cells of the layout, and neighbours of cells that move."""
    mechanism = LARGE["high-low"]
    tally = _draw_tally(mechanism, _smooth(200), 20_000)
    result = Auto().decode(mechanism, tally).frequencies
    unbiased = mechanism.scores.unbiased(tally)
    moved = np.abs(result - np.maximum(unbiased, 0))
    assert moved[150:].sum() < 0.01
    assert moved[:150].sum() > 0.1


@pytest.mark.parametrize("rare_share", [0.01, 0.02, 0.1])
def test_rare_symbols_in_clear_do_not_decide_between_models(rare_share):
    """They are known better than the scale of intensities can say, below its lowest bin."""
    mechanism = HighLowResponse(HighLow(IntegerDomain(60), range(30), 1))
    p = np.repeat([1, rare_share], 30)
    p = p / p.sum()
    tally = _draw_tally(mechanism, p, 1_000_000)
    result = Auto().decode(mechanism, tally)
    assert result.details["models"] == {"neighbours": 1}
    assert np.abs(result.frequencies - p).sum() < 0.05


def test_other_keeps_its_share():
    grid = GridDomain(0, 8, 0, 10, 1, other="elsewhere")
    mechanism = PlainResponse(Uniform(grid, 1))
    p = np.append(0.7 * _smooth(80), 0.3)
    tally = _draw_tally(mechanism, p, 50_000)
    result = Auto().decode(mechanism, tally)
    assert set(result.details) == {"models"}
    unbiased = mechanism.scores.unbiased(tally)
    assert result.frequencies[-1] == pytest.approx(unbiased[-1], abs=1e-4)
    assert np.abs(result.frequencies - p).sum() < 0.6 * np.abs(unbiased - p).sum()


def test_cells_are_in_the_order_of_the_layout():
    """The label for other answers comes first, so that cell x is symbol x + 1."""
    mechanism = PlainResponse(Uniform(Domain(["other", *range(60)], other="other"), 1))
    p = np.append(0.2, 0.8 * _smooth(60))
    tally = _draw_tally(mechanism, p, 100_000)
    pools, shares = _shares(mechanism, tally)
    assert shares.symbols.tolist() == list(range(1, 61))
    assert shares.y * shares.mean_share == pytest.approx(pools.unbiased[1:])
    theta = np.arange(60) / np.arange(60).mean()
    assert shares.frequencies(pools, theta)[1:] == pytest.approx(theta * shares.mean_share)
    result = Auto().decode(mechanism, tally)
    assert set(result.details) == {"models"}
    assert np.abs(result.frequencies - p).sum() < 0.5 * np.abs(pools.unbiased - p).sum()


# --- intensities ----------------------------------------------------------------------------------


def test_intensities_are_shares_in_units_of_the_mean_share():
    mechanism = LARGE["uniform"]
    tally = _draw_tally(mechanism, _smooth(200), 20_000)
    pools, shares = _shares(mechanism, tally)
    assert shares.layout == Line(200)
    assert shares.mean_share == pytest.approx(1 / 200)
    assert shares.y == pytest.approx(200 * mechanism.scores.unbiased(tally))
    assert shares.s == pytest.approx(200 * pools.errors)
    assert shares.totals == pytest.approx([200])
    assert shares.movable_mask.all()


def test_totals_are_those_of_the_cells_that_move():
    mechanism = LARGE["high-low"]
    tally = _draw_tally(mechanism, _smooth(200), 20_000)
    pools, shares = _shares(mechanism, tally)
    assert shares.movable_mask.tolist() == [True] * 150 + [False] * 50
    moving = shares.group_of[0]
    still = shares.group_of[-1]
    assert shares.totals[moving] * shares.mean_share == pytest.approx(pools.totals[moving])
    assert shares.totals[still] == pytest.approx(0, abs=1e-3)
    errors = mechanism.scores.standard_errors(tally)
    assert shares.s[150:] == pytest.approx(np.maximum(errors[150:] / shares.mean_share, 1e-4))


def test_other_is_no_cell():
    grid = GridDomain(0, 8, 0, 10, 1, other="elsewhere")
    mechanism = PlainResponse(Uniform(grid, 1))
    tally = _draw_tally(mechanism, np.append(0.7 * _smooth(80), 0.3), 50_000)
    pools, shares = _shares(mechanism, tally)
    assert shares.size == 80
    remaining = 1 - max(pools.unbiased[-1], 0)
    assert shares.mean_share == pytest.approx(remaining / 80)
    assert shares.totals == pytest.approx([80])


def test_frequencies_meet_the_totals_whatever_the_model_says():
    mechanism = LARGE["scattered blocks"]
    tally = _draw_tally(mechanism, _smooth(200), 20_000)
    pools, shares = _shares(mechanism, tally)
    theta = np.random.default_rng(0).gamma(1, 1, 200)
    _check_distribution(mechanism, tally, shares.frequencies(pools, theta))


def test_equal_frequencies_have_equal_intensities():
    mechanism = LARGE["uniform"]
    tally = _draw_tally(mechanism, _smooth(200), 20_000)
    pools, shares = _shares(mechanism, tally)
    assert shares.frequencies(pools, np.ones(200)) == pytest.approx(np.full(200, 1 / 200))


def test_errors_may_be_replaced():
    mechanism = LARGE["uniform"]
    _, shares = _shares(mechanism, _draw_tally(mechanism, _smooth(200), 20_000))
    wider = shares.with_errors(2 * shares.s)
    assert wider.s.tolist() == (2 * shares.s).tolist()
    assert wider.y is shares.y
