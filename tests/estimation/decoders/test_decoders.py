"""Every decoder on every mechanism; projection in units of errors; pools of symbols."""

import numpy as np
import pytest

from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, ContextUnion, HighLow, Tiers, Uniform
from sfumato.errors import InvalidArgument, NotEnoughReports
from sfumato.estimation.decoders import DECODERS, get_decoder
from sfumato.estimation.decoders.decoder import Pools, Projection, Unbiased
from sfumato.foundation.simplex import project, project_groups, project_groups_weighted
from sfumato.mechanisms import (
    BlockResponse,
    GroupResponse,
    HighLowResponse,
    PlainResponse,
    UnionResponse,
)
from sfumato.tally import Tally
from support.mechanism_examples import REPRESENTATIVES

ALL = [
    (f"{cls.__name__}-{i}", mechanism)
    for cls, each in REPRESENTATIVES.items()
    for i, mechanism in enumerate(each)
]
every_example = pytest.mark.parametrize(
    "mechanism", [m for _, m in ALL], ids=[name for name, _ in ALL]
)
one_of_each = pytest.mark.parametrize(
    "mechanism", [each[-1] for each in REPRESENTATIVES.values()], ids=lambda m: m.kind
)
BLOCKS = BlockResponse(Blocks([0, 0, 0, 1, 2, 2, 2, 2], 1), RandomizedCode)


def _tally(mechanism, counts):
    return Tally(np.asarray(counts, dtype=np.int64), mechanism.fingerprint)


def _draw_tally(mechanism, p, reports, seed=0):
    q = np.maximum(mechanism.forward(p), 0)
    return _tally(mechanism, np.random.default_rng(seed).multinomial(reports, q / q.sum()))


def _random_tally(mechanism, reports, seed=0):
    """Return the tally of a random crowd that holds few of the symbols."""
    p = np.random.default_rng(seed).dirichlet(np.full(mechanism.inputs, 0.2))
    return _draw_tally(mechanism, p, reports, seed)


def _constant_tally(mechanism, reports):
    """Return a tally of the last report only: empty blocks, and extreme estimates."""
    return _tally(mechanism, reports * (np.arange(mechanism.outputs) == mechanism.outputs - 1))


def _check_distribution(mechanism, tally, frequencies):
    groups, shares = mechanism.scores.observed_shares(tally)
    assert frequencies.shape == (mechanism.inputs,)
    assert np.isfinite(frequencies).all()
    assert (frequencies >= 0).all()
    assert np.bincount(groups, frequencies, minlength=shares.size) == pytest.approx(
        shares, abs=1e-12
    )
    assert frequencies.sum() == pytest.approx(1, abs=1e-12)


# --- every decoder, every mechanism ---------------------------------------------------------------


# "unbiased" returns no distribution, and "auto" has tests of its own.
DISTRIBUTION_DECODERS = [name for name in DECODERS if name not in ("auto", "unbiased")]


@every_example
def test_decoders_keep_the_observed_shares(mechanism):
    for tally in (
        _random_tally(mechanism, 2_000),
        _constant_tally(mechanism, 1),
        _constant_tally(mechanism, 1_000),
    ):
        for name in DISTRIBUTION_DECODERS:
            _check_distribution(
                mechanism, tally, get_decoder(name).decode(mechanism, tally).frequencies
            )


@one_of_each
def test_auto_keeps_the_observed_shares(mechanism):
    last = mechanism.outputs - 1
    for sent in ([0], [last], [0, 0], [0, last]):
        tally = mechanism.tally(sent)
        _check_distribution(
            mechanism, tally, get_decoder("auto").decode(mechanism, tally).frequencies
        )
    tally = _random_tally(mechanism, 2_000)
    result = get_decoder("auto").decode(mechanism, tally)
    _check_distribution(mechanism, tally, result.frequencies)
    assert result.details["chosen"] in ("projection", "empirical-bayes")


@pytest.mark.parametrize("name", DECODERS)
def test_decoding_is_deterministic(name):
    domain = _small_grid()
    mechanism = PlainResponse(Uniform(domain, 1))
    tally = _random_tally(mechanism, 3_000)
    first, second = (get_decoder(name).decode(mechanism, tally) for _ in range(2))
    assert first.frequencies.tolist() == second.frequencies.tolist()
    assert dict(first.details) == dict(second.details)


def test_unbiased_decoder_returns_the_mean_score():
    tally = _random_tally(BLOCKS, 50)
    result = Unbiased().decode(BLOCKS, tally).frequencies
    assert result == pytest.approx(BLOCKS.scores.matrix() @ (tally.counts / 50), abs=1e-12)
    assert (result < 0).any()


@pytest.mark.parametrize("name", DECODERS)
def test_empty_tally_is_rejected(name):
    with pytest.raises(NotEnoughReports):
        get_decoder(name).decode(BLOCKS, _tally(BLOCKS, np.zeros(BLOCKS.outputs)))


def test_get_decoder_accepts_names_and_decoders():
    assert [get_decoder(name).name for name in DECODERS] == list(DECODERS)
    planted = Projection()
    assert get_decoder(planted) is planted
    with pytest.raises(InvalidArgument, match=r"one of auto, projection, .*; got 'best'"):
        get_decoder("best")
    with pytest.raises(InvalidArgument, match="got int"):
        get_decoder(3)


def _small_grid():
    from sfumato.domains import GridDomain

    return GridDomain(0, 3, 0, 4, 1, other="elsewhere")


# --- projection -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [HadamardCode, RandomizedCode], ids=lambda code: code.kind)
def test_projection_is_euclidean_for_equal_errors(code):
    plain = PlainResponse(Uniform(7, 1), code)
    tally = _random_tally(plain, 300)
    assert Projection().decode(plain, tally).frequencies == pytest.approx(
        project(plain.scores.unbiased(tally)), abs=1e-12
    )
    # Blocks of 3 and 7 leave no spare points in either code.
    blocks = BlockResponse(Blocks([0, 1, 0, 0, 1, 1, 1, 1, 1, 1], 1), code)
    tally = _random_tally(blocks, 300)
    euclidean = project_groups(blocks.scores.unbiased(tally), *blocks.scores.observed_shares(tally))
    assert Projection().decode(blocks, tally).frequencies == pytest.approx(euclidean, abs=1e-12)


def test_projection_scales_are_variances_of_even_groups():
    """Formula: d_x is the variance of p̂_x if every group of the context were uniform."""
    context = HighLow(9, [0, 4, 5], 1)
    mechanism = HighLowResponse(context, RandomizedCode)
    tally = _random_tally(mechanism, 60, seed=3)
    unbiased = mechanism.scores.unbiased(tally)
    groups = context.groups.group_of
    shares = project(np.bincount(groups, unbiased))
    even = (shares / np.bincount(groups))[groups]
    expected = _naive_nearest(unbiased, 1.0, mechanism.scores.variances(even, 60))
    result = Projection().decode(mechanism, tally).frequencies
    assert result == pytest.approx(expected, abs=1e-9)
    assert np.abs(result - project(unbiased)).max() > 1e-3


def test_projection_moves_well_known_symbols_less():
    """High-low, mostly unrandomized symbols: total variation of both projections in 40 tallies."""
    mechanism = HighLowResponse(HighLow(60, range(40), 1.0))
    p = np.concatenate(
        [np.full(40, 0.2 / 40), 0.8 * 0.7 ** np.arange(20) / sum(0.7 ** np.arange(20))]
    )
    errors = []
    for seed in range(40):
        tally = _draw_tally(mechanism, p, 3_000, seed)
        both = (
            Projection().decode(mechanism, tally).frequencies,
            project(mechanism.scores.unbiased(tally)),
        )
        errors.append([np.abs(result - p).sum() / 2 for result in both])
    ours, euclidean = np.mean(errors, axis=0)
    gains = np.diff(errors, axis=1).ravel()
    assert gains.mean() > 5 * gains.std() / np.sqrt(gains.size)
    assert ours < 0.97 * euclidean


def _naive_nearest(v, total, d):
    """Bisect for the θ at which Σ max(v − θd, 0) falls to the total."""
    low = -(np.abs(v).max() + total) / d.min()
    high = np.abs(v).max() / d.min()
    for _ in range(300):
        theta = (low + high) / 2
        if np.maximum(v - theta * d, 0).sum() > total:
            low = theta
        else:
            high = theta
    return np.maximum(v - high * d, 0)


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_nearest_matches_bisection(size):
    rng = np.random.default_rng(size)
    for _ in range(30):
        v = rng.normal(0.2, 0.5, size)
        d = rng.lognormal(0, 2, size)
        result = project_groups_weighted(v, np.zeros(size, dtype=np.int64), np.ones(1), d)
        assert result == pytest.approx(_naive_nearest(v, 1.0, d), abs=1e-10)


def test_nearest_matches_a_general_optimiser():
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(1)
    group_of = np.array([0, 0, 1, 1, 1, 2])
    totals = np.array([0.5, 0.4, 0.1])
    for _ in range(10):
        v = rng.normal(0.15, 0.3, 6)
        d = rng.uniform(0.2, 3, 6)
        sums = [
            {"type": "eq", "fun": lambda p, j=j: p[group_of == j].sum() - totals[j]}
            for j in range(3)
        ]
        optimum = optimize.minimize(
            lambda p, v=v, d=d: ((p - v) ** 2 / d).sum(),
            (totals / np.bincount(group_of))[group_of],
            bounds=[(0, 1)] * 6,
            constraints=sums,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert project_groups_weighted(v, group_of, totals, d) == pytest.approx(optimum.x, abs=1e-5)


def test_nearest_with_equal_scales_is_the_projection():
    rng = np.random.default_rng(2)
    for _ in range(50):
        group_of = rng.integers(0, 5, 30)
        totals = rng.dirichlet(np.ones(5)) * (rng.random(5) < 0.8)
        v = rng.normal(0, 1, 30)
        scale = rng.uniform(0.1, 10)
        result = project_groups_weighted(v, group_of, totals, np.full(30, scale))
        assert result == pytest.approx(project_groups(v, group_of, totals), abs=1e-12)


# --- pools ----------------------------------------------------------------------------------------

UNION = ContextUnion(
    [Uniform(3, 1), Tiers([0, 0, 1, 1, 1], [1, 2]), Uniform(4, 0.5)],
    [0, 1, 2, 1, 0, 1, 2, 1, 2, 1, 0, 2],
)
POOLED = {
    "plain": PlainResponse(Uniform(6, 1)),
    "blocks": BLOCKS,
    "tiers": GroupResponse(Tiers([0, 0, 0, 1, 1, 2, 2], [1, 2, 3]), RandomizedCode),
    "high-low": HighLowResponse(HighLow(8, [0, 2, 4, 6], 1)),
    "across": GroupResponse(Blocks([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], 1, across=2)),
    "union": UnionResponse(
        UNION,
        [
            PlainResponse(UNION.parts[0]),
            GroupResponse(UNION.parts[1]),
            PlainResponse(UNION.parts[2]),
        ],
    ),
}


def _naive_key(mechanism, x):
    """Return a key that is equal for two symbols of one group."""
    context = mechanism.context
    if isinstance(context, ContextUnion):
        j = int(context.block_of[x])
        inside = np.flatnonzero(context.block_of == j).tolist().index(x)
        return j, int(context.parts[j].groups.group_of[inside])
    return int(context.groups.group_of[x])


@pytest.mark.parametrize("name", POOLED)
def test_pools_match_a_loop_over_groups(name):
    mechanism = POOLED[name]
    tally = _random_tally(mechanism, 400, seed=2)
    pools = Pools.from_tally(mechanism, tally)
    k = mechanism.inputs
    n = 400
    keys = [_naive_key(mechanism, x) for x in range(k)]
    observed, shares = mechanism.scores.observed_shares(tally)
    unbiased = mechanism.scores.matrix() @ (tally.counts / n)
    totals = {}
    # In each observed block, the groups' sums, projected onto the block's share.
    for j in range(shares.size):
        inside = list(dict.fromkeys(keys[x] for x in range(k) if observed[x] == j))
        sums = [sum(unbiased[x] for x in range(k) if keys[x] == key) for key in inside]
        totals.update(zip(inside, project(sums, shares[j]), strict=True))
    means = np.array([totals[keys[x]] / keys.count(keys[x]) for x in range(k)])
    A = mechanism.scores.matrix()
    q = means @ mechanism.matrix()
    errors = np.sqrt(np.maximum(((A**2 * q).sum(axis=1) - means**2) / n, 0))
    assert pools.unbiased == pytest.approx(unbiased, abs=1e-12)
    assert pools.means == pytest.approx(means, abs=1e-12)
    assert pools.errors == pytest.approx(errors, rel=1e-6, abs=1e-9)
    for x in range(k):
        for x2 in range(k):
            assert (pools.group_of[x] == pools.group_of[x2]) == (keys[x] == keys[x2])
    pooling_mask = [
        means[x] > 0 and keys.count(keys[x]) > 1 and errors[x] ** 2 > 4 * means[x] / n
        for x in range(k)
    ]
    assert pools.pooling_mask.tolist() == pooling_mask
    assert pools.u == pytest.approx(unbiased[pooling_mask] / means[pooling_mask], rel=1e-9)
    assert pools.s == pytest.approx(errors[pooling_mask] / means[pooling_mask], rel=1e-6)


def test_clear_symbols_are_not_pooled():
    mechanism = HighLowResponse(HighLow(40, range(30), 1))
    pools = Pools.from_tally(mechanism, _random_tally(mechanism, 100_000))
    assert pools.pooling_mask.tolist() == [True] * 30 + [False] * 10
    clear = PlainResponse(Uniform(5, np.inf))
    assert not Pools.from_tally(clear, _random_tally(clear, 1_000)).pooling_mask.any()


@pytest.mark.parametrize("name", ["empirical-bayes", "auto"])
def test_unrandomized_counts_are_decoded_exactly(name):
    clear = BlockResponse(Blocks([0, 0, 0, 1, 1], np.inf))
    tally = _tally(clear, np.arange(clear.outputs) + 1)
    result = get_decoder(name).decode(clear, tally).frequencies
    assert result == pytest.approx(clear.scores.unbiased(tally), abs=1e-12)
