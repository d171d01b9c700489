"""Cyclic codes: sets, transforms and kernels against obvious twins, and what base blocks must not
be.
"""

import base64
import copy
from fractions import Fraction
from math import exp

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import CyclicCode, CyclicDesign, RandomizedCode, cyclic
from sfumato.codes.best import search_designs, singer_risk
from sfumato.codes.cyclic import circle_transform, from_circle_transform
from sfumato.codes.search import best_sizes, flatness, ye_barg_risk
from sfumato.codes.singer import SingerDesign, singer_set
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSurvey, NothingToLearn
from sfumato.mechanisms import mechanism_from_record
from sfumato.randomness import TwoLevels, within_odds

ONE = Fraction(1)
DESIGNS = [
    CyclicDesign(2, ((0,),)),
    CyclicDesign(3, ((1, 2),)),
    CyclicDesign(7, ((0, 1, 3),)),
    CyclicDesign(6, ((0, 1), (0, 2))),
    CyclicDesign(9, ((0, 4, 8), (1, 2, 5), (0, 3, 7))),
    CyclicDesign(13, ((0, 1, 4), (0, 2, 7))),
    CyclicDesign(13, ((0, 1, 3, 9),)),
    CyclicDesign(16, ((0, 1, 2, 5, 8),) * 2),
]


def naive_sets(design):
    """S_x as a set of output numbers, for every x: the definition, pair by pair."""
    K = design.circle_size
    return [
        {i * K + y for i, block in enumerate(design.base) for y in range(K) if (x - y) % K in block}
        for x in range(K)
    ]


def membership(design):
    """``[y ∈ S_x]``, points by outputs."""
    outputs = len(design.base) * design.circle_size
    return np.array([[float(y in S) for y in range(outputs)] for S in naive_sets(design)])


def naive_differences(design):
    """How often each difference but 0 occurs."""
    K = design.circle_size
    counts = dict.fromkeys(range(1, K), 0)
    for block in design.base:
        for a in block:
            for b in block:
                if a != b:
                    counts[(a - b) % K] += 1
    return counts


def each(design):
    """A code of the design, with all points and all outputs as words."""
    code = design(design.circle_size, ONE)
    return code, np.arange(code.points, dtype=np.uint64), np.arange(code.outputs, dtype=np.uint64)


# --- the sets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_contains_matches_the_definition(design):
    code, points, outputs = each(design)
    assert np.array_equal(code.contains(points[:, None], outputs), membership(design) == 1)
    assert all(len(S) == code.raised for S in naive_sets(design))


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_place_visits_each_output_once_own_set_first(design):
    code, points, outputs = each(design)
    for x, S in enumerate(naive_sets(design)):
        order = code.output_at(np.full_like(outputs, points[x]), outputs).tolist()
        assert sorted(order) == outputs.tolist()
        assert set(order[: code.raised]) == S


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_gather_and_spread_match_matrix_products(design):
    code = design(design.circle_size, ONE)
    M = membership(design)
    rng = np.random.default_rng(1)
    by_output = rng.normal(size=(3, 2, code.outputs))
    by_point = rng.normal(size=(3, 2, code.points))
    np.testing.assert_allclose(code.gather(by_output), by_output @ M.T, atol=1e-12 * code.outputs)
    np.testing.assert_allclose(code.spread(by_point), by_point @ M, atol=1e-12 * code.outputs)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_word_counts_match_the_levels(design):
    """Every word of 12 bits through ``encode``: high on S_x, low elsewhere, the leftover on output
    0.
    """
    code = design(design.circle_size, ONE, 12)
    words = np.arange(1 << 12, dtype=np.uint64)
    assert within_odds(code.high, code.low, ONE)
    for x, S in enumerate(naive_sets(design)):
        counts = np.bincount(
            code.encode(np.full_like(words, x), words).astype(np.int64), minlength=code.outputs
        )
        wanted = [
            (code.high if y in S else code.low) + code.leftover * (y == 0)
            for y in range(code.outputs)
        ]
        assert counts.tolist() == wanted


def test_single_point_base_block_is_randomized_response():
    for k in (2, 3, 10):
        one_point = CyclicDesign(k, ((0,),))(k, ONE, 12)
        randomized = RandomizedCode(k, ONE, 12)
        point, word = (
            axis.ravel()
            for axis in np.meshgrid(*(np.arange(n, dtype=np.uint64) for n in (k, 1 << 12)))
        )
        assert np.array_equal(one_point.encode(point, word), randomized.encode(point, word))
        assert (one_point.raised, one_point.shared) == (randomized.raised, randomized.shared)


# --- undoing them ------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_kernels_are_the_pseudo_inverse_of_the_members(design):
    """Of all z with mean 0 over points that undo the members, the one of least squares is the
    pseudo-inverse.
    """
    K = design.circle_size
    code = design(K, ONE)
    M = membership(design)
    centred = np.eye(K) - 1 / K
    kernel_rows = np.array(
        [[code.kernels[y // K, (x - y) % K] for y in range(code.outputs)] for x in range(K)]
    )
    np.testing.assert_allclose(kernel_rows, centred @ np.linalg.pinv(centred @ M).T, atol=1e-12)
    np.testing.assert_allclose(kernel_rows @ M.T, centred, atol=1e-12)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_exact_kernels_invert_the_members_exactly(design):
    K = design.circle_size
    code = design(K, ONE)
    exact = code.exact_kernels()
    np.testing.assert_allclose(np.array(exact, dtype=float), code.kernels, atol=1e-12)
    for x in range(K):
        for x2 in range(K):
            total = sum(
                exact[i][(x - y) % K]
                for i, block in enumerate(design.base)
                for y in range(K)
                if (x2 - y) % K in block
            )
            assert total == (x == x2) - Fraction(1, K)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_code_is_balanced_if_differences_are_equally_frequent(design):
    code = design(design.circle_size, ONE)
    counts = naive_differences(design)
    assert code.is_balanced == (len(set(counts.values())) == 1)
    assert code.shared == Fraction(
        sum(counts.values()), design.circle_size - 1
    )  # of every pair, or on average
    if code.is_balanced:
        sets = naive_sets(design)
        assert all(len(S & T) == code.shared for S in sets for T in sets if S is not T)


def test_one_rare_difference_makes_a_large_code_unbalanced():
    """Counts come from a transform; on a circle of 87,381 points one swap must still show."""
    design = SingerDesign(4, 9)
    assert design.points == 87_381
    D = singer_set(design)
    assert CyclicDesign.from_base_blocks(design.points, D)(design.points, ONE).is_balanced
    free = next(x for x in range(design.points) if x not in set(D.tolist()))
    assert not CyclicDesign.from_base_blocks(design.points, np.append(D[:-1], free))(
        design.points, ONE
    ).is_balanced


# --- what fits and what does not ---------------------------------------------------------------


@pytest.mark.parametrize(
    "design", [design for design in DESIGNS if design.circle_size > 2], ids=repr
)
def test_only_balanced_codes_may_leave_points_unused(design):
    if design(design.circle_size, ONE).is_balanced:
        assert design(design.circle_size - 1, ONE).points == design.circle_size
    else:
        with pytest.raises(InvalidContext, match="serve exactly"):
            design(design.circle_size - 1, ONE)
    with pytest.raises(InvalidContext, match="cannot serve"):
        design(design.circle_size + 1, ONE)


def test_frame_rejects_unused_points_of_unbalanced_codes():
    """A family that hands out a code for fewer symbols than it has points is refused when scores
    are made.
    """
    code = CyclicDesign(6, ((0, 1), (0, 2)))(6, ONE)

    class Careless:
        kind = "cyclic"

        def __call__(self, points, epsilon, word_bits=64):
            return code

    with pytest.raises(ContextMismatch, match="a symbol for every point"):
        sf.PlainResponse(sf.Uniform(5, 1), Careless()).scores.risk(np.full(5, 0.2))


@pytest.mark.parametrize("K", [4, 8, 12, 100])
def test_base_blocks_blind_to_opposite_points_raise(K):
    with pytest.raises(NothingToLearn, match="cannot tell two mixtures"):
        CyclicDesign(K, ((0, K // 2),))(K, ONE)
    assert CyclicDesign(K, ((0, K // 2), (0, 1)))(K, ONE).points == K


@pytest.mark.parametrize("K", range(3, 13))
def test_blind_frequencies_are_detected(K):
    """All pairs {0, d}: frequency j is not seen if and only if d·j is an odd number of half
    circles.
    """
    for d in range(1, K):
        blind = any(2 * d * j % (2 * K) == K for j in range(1, K))
        try:
            CyclicDesign(K, ((0, d),))(K, ONE)
        except NothingToLearn:
            assert blind
        else:
            assert not blind


@pytest.mark.parametrize(
    ("circle", "base"),
    [
        (5, ()), (5, ((),)), (5, ((0, 1, 2, 3, 4),)), (5, ((0, 5),)), (5, ((0, -1),)),
        (5, ((0, 0),)), (5, ((0, 1), (0,))), (0, ((0,),)), (1, ((0,),)),
    ],
)  # fmt: skip
def test_invalid_base_blocks_raise(circle, base):
    with pytest.raises(InvalidContext):
        CyclicDesign(circle, base)


def test_infinite_epsilon_raises():
    with pytest.raises(InvalidContext, match="finite"):
        CyclicDesign(7, ((0, 1, 3),))(7, float("inf"))


def test_unbalanced_code_has_no_paper_estimate():
    mechanism = sf.PlainResponse(sf.Uniform(6, 1), CyclicDesign(6, ((0, 1), (0, 2))))
    with pytest.raises(ContextMismatch, match="share the same number"):
        mechanism.scores.paper_variances(np.full(6, 1 / 6), 1)


# --- risks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("q", "d"), [(2, 3), (2, 4), (3, 3), (3, 4), (4, 3), (5, 3), (8, 3)])
@pytest.mark.parametrize("epsilon", ["0.25", "1", "3"])
def test_singer_risk_matches_the_closed_form(q, d, epsilon):
    design = SingerDesign(q, d)
    family = CyclicDesign.from_base_blocks(design.points, singer_set(design))
    for k in {design.points, design.points - 1, design.points // 2 + 1, 2}:
        mechanism = sf.PlainResponse(sf.Uniform(k, epsilon), family)
        wanted = singer_risk(k, design, exp(float(epsilon)))
        assert mechanism.scores.risk(np.full(k, 1 / k)) == pytest.approx(wanted, rel=1e-9)
        if (
            k == design.points
        ):  # nothing to spare: a flat design, which has the bound's own risk for its size
            assert wanted == pytest.approx(ye_barg_risk(k, design.raised, float(epsilon)), rel=1e-9)


@pytest.mark.parametrize("k", [5, 12, 20, 33, 64])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_searched_risk_is_flatness_times_the_bound(k, epsilon):
    for design, F in search_designs(k, best_sizes(k, float(epsilon)), 8 * k):
        mechanism = sf.PlainResponse(sf.Uniform(k, epsilon), design)
        assert flatness(np.array(design.base), k) == F
        assert mechanism.scores.risk(np.full(k, 1 / k)) == pytest.approx(
            F * ye_barg_risk(k, len(design.base[0]), float(epsilon)), rel=1e-9
        )


@pytest.mark.parametrize("design", [DESIGNS[3], DESIGNS[4], DESIGNS[7]], ids=repr)
def test_full_circle_risk_falls_by_squared_p(design):
    """``risk(p) = R + 1/k − ‖p‖²``: no crowd is worse than the uniform one."""
    k = design.circle_size
    mechanism = sf.PlainResponse(sf.Uniform(k, 1), design)
    uniform = mechanism.scores.risk(np.full(k, 1 / k))
    for p in np.random.default_rng(3).dirichlet(np.full(k, 0.3), 5):
        assert mechanism.scores.risk(p) == pytest.approx(uniform + 1 / k - p @ p, rel=1e-9)
    assert mechanism.scores.worst_risk() == pytest.approx(uniform, rel=1e-9)


# --- records -----------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_records_round_trip(design):
    k = design.circle_size
    for mechanism in (
        sf.PlainResponse(sf.Uniform(k, 1), design),
        sf.BlockResponse(sf.Blocks([0] * k + [1] * k, 1), design),
        sf.HighLowResponse(sf.HighLow(k + 2, range(k), 1), design),
        sf.GroupResponse(sf.Tiers([0] * k + [1] * k, [1, 2]), design),
    ):
        again = mechanism_from_record(mechanism.to_record(), mechanism.context)
        assert again.fingerprint == mechanism.fingerprint
        assert all(
            again.integer_row(x) == mechanism.integer_row(x) for x in range(0, mechanism.inputs, 3)
        )
        assert again.with_word_bits(20).fingerprint == mechanism.with_word_bits(20).fingerprint


RECORD = sf.PlainResponse(sf.Uniform(6, 1), CyclicDesign(6, ((0, 1), (0, 2)))).to_record()


def packed(*numbers):
    return base64.b64encode(np.array(numbers, dtype="<u4").tobytes()).decode()


@pytest.mark.parametrize(
    "change",
    [
        {"base": packed(0, 1, 0)},
        {"base": packed(0, 1, 0, 6)},
        {"base": packed(0, 0, 0, 2)},
        {"base": packed()},
        {"base": packed(0, 3, 0, 3)},
        {"base": packed(0, 1, 0, 2) + "A"},
        {"base": 5},
        {"base_blocks": 0},
        {"base_blocks": 3},
        {"base_blocks": 1},
        {"base_blocks": True},
        {"points": 5},
        {"points": 7},
        {"outputs": 13},
        {"high": "0"},
        {"leftover": "1"},
    ],
    ids=str,
)
def test_modified_records_raise(change):
    record = copy.deepcopy(RECORD)
    mechanism_from_record(record, sf.Uniform(6, 1))
    record["codes"][0].update(change)
    with pytest.raises((InvalidSurvey, InvalidContext, NothingToLearn)):
        mechanism_from_record(record, sf.Uniform(6, 1))


def test_integers_must_add_up():
    design = CyclicDesign(7, ((0, 1, 3),))
    levels = design(7, ONE, 12)
    for high, low, leftover in [
        (levels.high + 1, levels.low, levels.leftover),
        (4096 // 7, 4096 // 7, 1),
    ]:
        with pytest.raises(InvalidContext, match="add up"):
            CyclicCode(design, TwoLevels(high, low, leftover), ONE, 12)


# --- transforms on circles, and on the tori that large ones are -----------------------------------

SIZES = [1, 2, 7, 15, 36, 77, 105, 257, 1023 * 1025]


@pytest.fixture(params=[False, True], ids=["circle", "torus"])
def on_torus(request, monkeypatch):
    cyclic._torus_sides.cache_clear()
    monkeypatch.setattr(cyclic, "_MIN_TORUS_POINTS", 1 if request.param else 2**40)
    yield request.param
    cyclic._torus_sides.cache_clear()


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("K", SIZES)
def test_circle_transform_round_trips(on_torus, K):
    values = numbers(2, K)
    np.testing.assert_allclose(
        from_circle_transform(circle_transform(values), K), values, atol=1e-9
    )


@pytest.mark.parametrize("K", [1, 2, 7, 15, 36, 77, 105])
def test_products_are_convolutions(on_torus, K):
    f = numbers(3, K)
    g = numbers(K)
    slow = np.array(
        [[sum(row[y] * g[(x - y) % K] for y in range(K)) for x in range(K)] for row in f]
    )
    product = circle_transform(f) * circle_transform(g)
    np.testing.assert_allclose(from_circle_transform(product, K), slow, atol=1e-9)


@pytest.mark.parametrize("K", [1, 2, 7, 15, 36, 77, 105])
def test_conjugates_reverse_the_circle(on_torus, K):
    g = numbers(K)
    turned = from_circle_transform(circle_transform(g).conj(), K)
    np.testing.assert_allclose(turned, g[-np.arange(K) % K], atol=1e-9)


@pytest.mark.parametrize("K", SIZES)
def test_first_entry_of_a_transform_is_the_sum(on_torus, K):
    values = numbers(K)
    assert circle_transform(values)[0] == pytest.approx(values.sum(), abs=1e-6)


def test_torus_sides_are_coprime_and_only_for_large_circles():
    assert cyclic._torus_sides(2**24 - 1) == (4095, 4097)
    assert cyclic._torus_sides(2**20 - 1) == (1, 2**20 - 1)
    assert cyclic._torus_sides(2**24) == (1, 2**24)
    assert cyclic._torus_sides(2**20 + 7) == (1, 2**20 + 7)  # a prime


def test_wrong_places_on_the_torus_fail_the_check(monkeypatch):
    cyclic._torus_sides.cache_clear()
    monkeypatch.setattr(cyclic, "_MIN_TORUS_POINTS", 1)
    monkeypatch.setattr(cyclic, "_torus_positions", lambda a, b: np.arange(a * b))
    f = numbers(15)
    g = numbers(15)
    slow = np.array([sum(f[y] * g[(x - y) % 15] for y in range(15)) for x in range(15)])
    product = circle_transform(f) * circle_transform(g)
    assert not np.allclose(from_circle_transform(product, 15), slow)
    cyclic._torus_sides.cache_clear()
