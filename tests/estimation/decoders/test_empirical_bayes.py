"""Empirical Bayes: quantiles are optimal; covariates and neighbours help or do no harm."""

import itertools
import math

import numpy as np
import pytest

from sfumato.contexts import Blocks, HighLow, Uniform
from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.errors import ContextMismatch, InvalidArgument
from sfumato.estimation.decoders import empirical_bayes
from sfumato.estimation.decoders.decoder import Pools, Projection
from sfumato.estimation.decoders.empirical_bayes import (
    DEFAULT_WIDTHS,
    EmpiricalBayes,
    SpatialBayes,
    has_neighbours,
    predict_from_neighbours,
    stratify,
)
from sfumato.estimation.decoders.prior import Posterior, Prior
from sfumato.mechanisms import BlockResponse, HighLowResponse, PlainResponse
from sfumato.tally import Tally


def _draw_tally(mechanism, p, reports, seed=0):
    q = np.maximum(mechanism.forward(p), 0)
    return Tally(
        np.random.default_rng(seed).multinomial(reports, q / q.sum()), mechanism.fingerprint
    )


def _error(decoder, mechanism, p, reports, seeds=range(3)):
    results = [
        decoder.decode(mechanism, _draw_tally(mechanism, p, reports, seed)).frequencies
        for seed in seeds
    ]
    return float(np.mean([np.abs(each - p).sum() / 2 for each in results]))


# --- the quantile rule ----------------------------------------------------------------------------

VALUES = np.concatenate([[0.0], np.geomspace(0.01, 5, 150)])
PRIORS = {
    "smooth": np.exp(-VALUES),
    "sparse": np.where(VALUES == 0, 1.0, 2e-3),
    "two heaps": np.exp(-0.5 * ((VALUES - 0.2) / 0.1) ** 2)
    + 0.4 * np.exp(-0.5 * ((VALUES - 3) / 0.3) ** 2),
}


def _case(name, k, seed, groups=1):
    rng = np.random.default_rng(seed)
    group_of = np.sort(np.arange(k) % groups)
    totals = rng.dirichlet(np.full(groups, 5.0))
    means = (totals / np.bincount(group_of))[group_of]
    s = rng.uniform(0.3, 1.5, k)
    u = rng.choice(VALUES, k, p=PRIORS[name] / PRIORS[name].sum()) + s * rng.normal(size=k)
    pools = Pools(group_of, totals, u * means, s * means, report_count=10**9)
    prior = Prior(VALUES, PRIORS[name] / PRIORS[name].sum(), 0.0)
    strata = [empirical_bayes._Stratum(np.arange(k), prior)]
    return pools, empirical_bayes._Model(strata)


def _losses(pools, x, tried):
    """Return ``½ E|a − p_x|`` for each a, by Bayes' rule for one symbol."""
    mean = pools.means[x]
    s = pools.errors[x] / mean
    weights = PRIORS[_losses.name] * np.exp(-0.5 * ((pools.unbiased[x] / mean - VALUES) / s) ** 2)
    return np.abs(np.asarray(tried)[:, None] - mean * VALUES) @ (weights / weights.sum()) / 2


def _brute_force(pools, steps):
    """Return the least expected total variation of all allocations of the total in equal steps."""
    total = pools.totals[0]
    k = pools.unbiased.size
    losses = [_losses(pools, x, np.linspace(0, total, steps + 1)) for x in range(k)]
    return min(
        sum(losses[x][units] for x, units in enumerate((*parts, steps - sum(parts))))
        for parts in itertools.product(range(steps + 1), repeat=k - 1)
        if sum(parts) <= steps
    )


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize(("k", "steps"), [(3, 120), (4, 40)])
def test_level_quantiles_minimise_the_expected_error(name, k, steps):
    _losses.name = name
    for seed in range(5):
        pools, model = _case(name, k, seed)
        assert pools.pooling_mask.all()
        result = model.estimate_frequencies(pools)
        assert result.sum() == pytest.approx(1, abs=1e-12)
        ours = sum(float(_losses(pools, x, [result[x]])[0]) for x in range(k))
        assert ours < _brute_force(pools, steps) + 1e-3


@pytest.mark.parametrize("name", PRIORS)
def test_test_detects_posterior_means(name):
    """Means minimise squares, not absolute values: they must lose by more than a thousandth."""
    _losses.name = name
    lost = []
    for seed in range(5):
        pools, model = _case(name, 4, seed)
        means = model.posterior_means(pools) * pools.means
        means /= means.sum()
        ours = model.estimate_frequencies(pools)
        errors = [
            sum(float(_losses(pools, x, [each[x]])[0]) for x in range(4)) for each in (means, ours)
        ]
        lost.append(errors[0] - errors[1])
    assert max(lost) > 1e-3


def test_groups_have_their_own_level_and_total():
    pools, model = _case("smooth", 600, 0, groups=3)
    result = model.estimate_frequencies(pools)
    assert np.bincount(pools.group_of, result) == pytest.approx(pools.totals, abs=1e-12)
    theta = model._level_quantiles(pools)
    assert np.bincount(pools.group_of, theta * pools.means) == pytest.approx(pools.totals, rel=1e-3)
    cumulative = Posterior(model.strata[0].prior, pools.u, pools.s).cumulative()
    levels = np.array([np.interp(theta[x], VALUES, cumulative[x]) for x in range(600)])
    inside = (theta > 0) & (theta < VALUES[-1])
    for group in range(3):
        assert np.ptp(levels[inside & (pools.group_of == group)]) < 1e-3


def test_equal_symbols_may_share_a_posterior(monkeypatch):
    pools, model = _case("smooth", 2_000, 0)
    exact = model.estimate_frequencies(pools)
    monkeypatch.setattr(empirical_bayes, "_MAX_SEPARATE_POSTERIORS", 100)
    assert np.abs(model.estimate_frequencies(pools) - exact).sum() < 0.01
    assert empirical_bayes._posterior_table(pools, model.strata[0])[0].shape[0] < 2_000


# --- the crowd ------------------------------------------------------------------------------------

PLAIN = PlainResponse(Uniform(600, 1))
ZIPF = 1 / np.arange(1, 601) / sum(1 / np.arange(1, 601))


@pytest.mark.parametrize(
    ("p", "gain"), [(np.full(600, 1 / 600), 0.25), (ZIPF, 0.8)], ids=["even", "Zipf"]
)  # measured: 0.08 and 0.69 of the projection's error
def test_shrinking_is_worth_it(p, gain):
    ours, projected = (
        _error(decoder, PLAIN, p, 60_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < gain * projected


def test_unrandomized_symbols_keep_their_counts():
    mechanism = HighLowResponse(HighLow(500, range(400), 1.0))
    p = np.random.default_rng(0).dirichlet(np.full(500, 0.5))
    tally = _draw_tally(mechanism, p, 200_000)
    result = EmpiricalBayes().decode(mechanism, tally).frequencies
    unbiased = mechanism.scores.unbiased(tally)
    clear = slice(400, 500)
    hidden = slice(0, 400)
    moved = result[clear] - np.maximum(unbiased[clear], 0)
    assert np.abs(moved).sum() < 0.02
    assert np.abs(result[hidden] - np.maximum(unbiased[hidden], 0)).sum() > 0.1


def test_blocks_of_any_size_are_pooled_in_units_of_their_means():
    """Half of each block's symbols have no people; large and small blocks share this knowledge."""
    mechanism = BlockResponse(Blocks(np.repeat([0, 1], [300, 300]), 1))
    inside = np.tile([0.0, 2.0], 150) / 300
    p = np.concatenate([0.9 * inside, 0.1 * inside])
    ours, projected = (
        _error(decoder, mechanism, p, 100_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < 0.9 * projected


# --- known weaknesses -----------------------------------------------------------------------------


def test_groups_with_uneven_errors_are_decoded():
    """In padded blocks of 5 at ε = 3, one symbol is known slightly better than the others."""
    mechanism = BlockResponse(Blocks(np.arange(600) // 5, 3.0))
    ours, projected = (
        _error(decoder, mechanism, ZIPF, 300_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < 0.8 * projected


def test_many_reports_are_not_rounded_to_a_coarse_grid():
    """In nearly even blocks that are known to 1 %, pooling must not make things worse."""
    mechanism = BlockResponse(Blocks(np.arange(600) // 10, 1.0))
    p = 0.95 ** np.arange(600) / sum(0.95 ** np.arange(600))
    ours, projected = (
        _error(decoder, mechanism, p, 5_000_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < 1.1 * projected


def test_two_symbols_and_two_heaps_get_the_best_allocation():
    _losses.name = "two heaps"
    for seed in range(8):
        pools, model = _case("two heaps", 2, seed)
        result = model.estimate_frequencies(pools)
        assert (
            sum(float(_losses(pools, x, [result[x]])[0]) for x in range(2))
            < _brute_force(pools, 400) + 1e-3
        )


# --- covariates -----------------------------------------------------------------------------------

LARGE = PlainResponse(Uniform(2_000, 1))
SKEWED = np.random.default_rng(5).permutation(np.random.default_rng(5).lognormal(0, 1.5, 2_000))
SKEWED = SKEWED / SKEWED.sum()


def test_informative_covariates_help_and_others_do_not_hurt():
    plain, told, noise = (
        _error(EmpiricalBayes(covariate), LARGE, SKEWED, 200_000)
        for covariate in (None, SKEWED, np.random.default_rng(6).normal(size=2_000))
    )
    assert told < 0.8 * plain
    assert noise < 1.08 * plain


def test_only_the_order_of_a_covariate_matters():
    tally = _draw_tally(LARGE, SKEWED, 50_000)
    results = [
        EmpiricalBayes(x).decode(LARGE, tally)
        for x in (SKEWED, np.log(SKEWED), (1e6 * SKEWED).tolist())
    ]
    assert (
        results[0].frequencies.tolist()
        == results[1].frequencies.tolist()
        == results[2].frequencies.tolist()
    )
    assert results[0].details == {"strata": 4}


def test_constant_covariate_changes_nothing():
    tally = _draw_tally(LARGE, SKEWED, 50_000)
    result = EmpiricalBayes(np.ones(2_000)).decode(LARGE, tally).frequencies
    assert result.tolist() == EmpiricalBayes().decode(LARGE, tally).frequencies.tolist()


@pytest.mark.parametrize(
    "covariate",
    [
        np.ones(1_999),
        np.ones((2_000, 1)),
        np.full(2_000, np.nan),
        np.append(np.ones(1_999), np.inf),
        1.0,
    ],
    ids=["short", "a column", "nan", "infinite", "one number"],
)
def test_invalid_covariates_are_rejected(covariate):
    with pytest.raises(InvalidArgument, match="one finite number for each of the 2000 symbols"):
        EmpiricalBayes(covariate).decode(LARGE, _draw_tally(LARGE, SKEWED, 100))


# --- maps -----------------------------------------------------------------------------------------

GRID = GridDomain(0, 40, 0, 50, 1)
MAP = PlainResponse(Uniform(GRID, 1))


def _smooth_map():
    y, x = np.mgrid[:40, :50]
    towns = [(8, 10, 3.0, 3.0), (25, 35, 5.0, 5.0), (33, 8, 2.0, 1.0)]
    density = 0.05 + sum(
        height * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * width**2))
        for row, column, width, height in towns
    )
    return (density / density.sum()).ravel()


def test_neighbours_help_on_smooth_maps():
    p = _smooth_map()
    spatial, plain = (
        _error(decoder, MAP, p, 1_000_000, [0, 1]) for decoder in (SpatialBayes(), EmpiricalBayes())
    )
    assert spatial < 0.7 * plain  # measured: 0.55
    assert (
        SpatialBayes().decode(MAP, _draw_tally(MAP, p, 1_000_000)).details["widths"].get(0.0, 0.0)
        < 0.2
    )


def test_shuffled_maps_ignore_neighbours():
    p = np.random.default_rng(7).permutation(_smooth_map())
    tally = _draw_tally(MAP, p, 1_000_000)
    result, plain = (decoder.decode(MAP, tally) for decoder in (SpatialBayes(), EmpiricalBayes()))
    widths = result.details["widths"]
    assert sum(widths.values()) == pytest.approx(1, abs=0.002)
    assert widths[0.0] > 0.4  # and no single width has as much
    assert widths[0.0] == max(widths.values())
    assert np.abs(result.frequencies - p).sum() < 1.05 * np.abs(plain.frequencies - p).sum()


@pytest.mark.parametrize("reports", [1, 2, 50])
def test_sparse_maps_decode_to_a_distribution(reports):
    for context in (Uniform(GRID, 1), Blocks(np.arange(2_000) // 7, 2.0, domain=GRID)):
        mechanism = (
            PlainResponse(context) if isinstance(context, Uniform) else BlockResponse(context)
        )
        tally = _draw_tally(mechanism, _smooth_map(), reports)
        result = SpatialBayes().decode(mechanism, tally).frequencies
        groups, shares = mechanism.scores.observed_shares(tally)
        assert (result >= 0).all()
        assert np.bincount(groups, result, minlength=shares.size) == pytest.approx(
            shares, abs=1e-12
        )


# --- strata ---------------------------------------------------------------------------------------

SMALL_GRID = GridDomain(0, 12, 0, 15, 1, other="elsewhere")


def _pools(size, used):
    """Return two groups in which the symbols `used` are pooled: their noise dominates."""
    group_of = np.where(used, 0, 1)
    totals = np.array([0.7, 0.3])
    errors = np.where(used, 1.0, 0.0)
    return Pools(group_of, totals, np.zeros(size), errors, report_count=1_000)


@pytest.mark.parametrize(
    ("size", "count"), [(1, 1), (999, 1), (1_000, 2), (3_700, 7), (6_000, 12), (43_750, 12)]
)
def test_strata_are_equally_large_and_in_order(size, count):
    covariate = np.random.default_rng(size).normal(size=size)
    result = stratify(covariate)
    sizes = np.bincount(result)
    assert sizes.size == count
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(result[np.argsort(covariate)]) >= 0).all()


def test_equal_values_stay_together():
    covariate = np.repeat([3.0, 1.0, 2.0], [100, 2_800, 300])
    result = stratify(covariate)
    for value in (1.0, 2.0, 3.0):
        assert np.unique(result[covariate == value]).size == 1
    assert stratify(np.full(5_000, 0.5)).tolist() == [0] * 5_000


def test_strata_are_numbered_without_gaps():
    """Most values are 0, as on a mostly empty map: edges coincide, and some strata are empty."""
    covariate = np.concatenate([np.zeros(5_000), np.arange(1_000.0)])
    result = stratify(covariate)
    assert np.unique(result).tolist() == list(range(result.max() + 1))
    assert result.max() >= 1


def test_no_symbols_have_no_strata():
    assert stratify(np.empty(0)).shape == (0,)


# --- grids ----------------------------------------------------------------------------------------


def _naive_prediction(shares, used, means, width):
    """Predict from all other cells within four widths, with Gaussian weights."""
    reach = int(4 * width + 0.5)
    rows, columns = SMALL_GRID.shape
    result = np.zeros(shares.size)
    for x in range(rows * columns):
        weights = 0.0
        weighted_sum = 0.0
        for x2 in range(rows * columns):
            down = x // columns - x2 // columns
            across = x % columns - x2 % columns
            if x2 != x and used[x2] and abs(down) <= reach and abs(across) <= reach:
                kernel = math.exp(-(down**2 + across**2) / (2 * width**2))
                weights += kernel
                weighted_sum += kernel * shares[x2]
        result[x] = weighted_sum / weights if weights else 0.0
    return result[used] / means[used]


def test_predictions_match_a_loop_over_pairs():
    rng = np.random.default_rng(1)
    used = rng.random(SMALL_GRID.size) < 0.8
    used[-1] = True  # `other` is pooled, but is nobody's neighbour
    shares = rng.lognormal(0, 2, SMALL_GRID.size)
    pools = _pools(SMALL_GRID.size, used)
    result = dict(predict_from_neighbours(SMALL_GRID, pools, shares, DEFAULT_WIDTHS))
    assert tuple(result) == DEFAULT_WIDTHS
    for width in DEFAULT_WIDTHS:
        expected = _naive_prediction(shares, used, pools.means, width)
        assert result[width] == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert result[width][-1] == 0.0


@pytest.mark.parametrize("x", [0, 14, 95, 179])
def test_grid_prediction_leaves_out_the_cell_itself(x):
    rng = np.random.default_rng(2)
    used = np.ones(SMALL_GRID.size, dtype=np.bool_)
    pools = _pools(SMALL_GRID.size, used)
    shares = rng.random(SMALL_GRID.size)
    changed = shares.copy()
    changed[x] = 1_000.0
    for (_, before), (_, after) in zip(
        predict_from_neighbours(SMALL_GRID, pools, shares, DEFAULT_WIDTHS),
        predict_from_neighbours(SMALL_GRID, pools, changed, DEFAULT_WIDTHS),
        strict=True,
    ):
        assert after[x] == pytest.approx(before[x], rel=1e-9)
        assert (
            abs(after[x + 1 if x % 15 == 0 else x - 1] - before[x + 1 if x % 15 == 0 else x - 1])
            > 1
        )


def test_isolated_cell_is_predicted_as_zero():
    used = np.zeros(SMALL_GRID.size, dtype=np.bool_)
    used[[0, 179]] = True  # opposite corners
    result = dict(
        predict_from_neighbours(
            SMALL_GRID, _pools(SMALL_GRID.size, used), np.ones(SMALL_GRID.size), DEFAULT_WIDTHS
        )
    )
    assert result[0.7] == pytest.approx([0, 0], abs=1e-3)


@pytest.mark.parametrize(
    "box", [(0, 1, 0, 1), (0, 1, 0, 5), (0, 2, 0, 2)], ids=["one cell", "one row", "two by two"]
)
def test_tiny_grids_decode(box):
    domain = GridDomain(*box, 1)
    used = np.ones(domain.size, dtype=np.bool_)
    for _, predicted in predict_from_neighbours(
        domain, _pools(domain.size, used), np.ones(domain.size), DEFAULT_WIDTHS
    ):
        assert np.isfinite(predicted).all()


# --- H3 -------------------------------------------------------------------------------------------


def _h3_domain(**options):
    pytest.importorskip("h3")
    return H3Domain.box(7, south=40.70, north=40.82, west=-74.02, east=-73.92, **options)


def _sphere(domain):
    latitude, longitude = (np.radians(angles) for angles in domain.centres())
    return np.column_stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )


def test_h3_cells_are_predicted_by_their_neighbours():
    """Against all pairs: a Gaussian of the distance in cells, up to two and a half widths."""
    domain = _h3_domain(other="elsewhere")
    rng = np.random.default_rng(3)
    used = rng.random(domain.size) < 0.8
    shares = rng.random(domain.size)
    points = _sphere(domain)
    pools = _pools(domain.size, used)
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    spacing = float(np.median(np.sort(apart, axis=1)[:, 1]))
    result = dict(predict_from_neighbours(domain, pools, shares, DEFAULT_WIDTHS))
    assert tuple(result) == DEFAULT_WIDTHS
    for width in DEFAULT_WIDTHS:
        expected = np.zeros(domain.size)
        for x in range(domain.cell_count):
            near = [
                x2
                for x2 in range(domain.cell_count)
                if x2 != x and used[x2] and apart[x, x2] <= 2.5 * width * spacing
            ]
            kernel = np.exp(-0.5 * (apart[x, near] / (width * spacing)) ** 2)
            expected[x] = kernel @ shares[near] / kernel.sum() if near else 0.0
        assert result[width] == pytest.approx(expected[used] / pools.means[used], rel=1e-6)


def test_h3_prediction_leaves_out_the_cell_itself():
    domain = _h3_domain()
    used = np.ones(domain.size, dtype=np.bool_)
    pools = _pools(domain.size, used)
    shares = np.random.default_rng(4).random(domain.size)
    changed = shares.copy()
    changed[7] = 1e6
    for (_, before), (_, after) in zip(
        predict_from_neighbours(domain, pools, shares, DEFAULT_WIDTHS),
        predict_from_neighbours(domain, pools, changed, DEFAULT_WIDTHS),
        strict=True,
    ):
        assert after[7] == before[7]
        assert (after != before).any()


def test_h3_skips_widths_with_too_many_pairs():
    domain = _h3_domain()
    pools = _pools(domain.size, np.ones(domain.size, dtype=np.bool_))
    result = predict_from_neighbours(domain, pools, np.ones(domain.size), (0.7, 1e4))
    assert [width for width, _ in result] == [0.7]


# --- other domains --------------------------------------------------------------------------------


def test_only_maps_have_neighbours():
    plain = Domain(["a", "b"])
    assert has_neighbours(SMALL_GRID)
    assert not has_neighbours(plain)
    with pytest.raises(ContextMismatch, match="no neighbours"):
        list(
            predict_from_neighbours(
                plain, _pools(2, np.ones(2, dtype=np.bool_)), np.ones(2), DEFAULT_WIDTHS
            )
        )
