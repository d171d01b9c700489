"""The paper's mechanisms against its formulas, with an explicit Hadamard matrix."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.codes.hadamard import walsh_hadamard
from sfumato.errors import (
    ContextMismatch,
    InvalidArgument,
    InvalidContext,
    InvalidSymbols,
    NothingToLearn,
    ReportRejected,
)
from sfumato.foundation.simplex import project
from support.slow import slow_except

inf = math.inf


def sylvester(size):
    """Return H_n by H_1 = [1], H_2m = [[H, H], [H, −H]]."""
    H = np.ones((1, 1))
    while len(H) < size:
        H = np.block([[H, H], [H, -H]])
    return H


def power_above(k):
    return 2 ** math.ceil(math.log2(k + 1))


def paper_block_channel(block_of, epsilon):
    """Return the channel of section 6.1; a block of one symbol is sent alone."""
    e = math.exp(epsilon)
    blocks = list(dict.fromkeys(block_of))
    sizes = [block_of.count(j) for j in blocks]
    lengths = [1 if size == 1 else power_above(size) for size in sizes]
    Q = np.zeros((len(block_of), sum(lengths)))
    next_rank = [0] * len(blocks)
    for x, name in enumerate(block_of):
        j = blocks.index(name)
        first = sum(lengths[:j])
        K = lengths[j]
        row = sylvester(K)[next_rank[j] + 1] if K > 1 else np.ones(1)
        Q[x, first : first + K] = (
            np.where(row > 0, 2 * e / (K * (1 + e)), 2 / (K * (1 + e))) if K > 1 else 1.0
        )
        next_rank[j] += 1
    return Q


def paper_high_low_channel(k, sensitive, epsilon):
    """Return the channel of section 5.1, with row x+1 of H_S for the x-th sensitive symbol."""
    e = math.exp(epsilon)
    s = len(sensitive)
    S = power_above(s)
    Q = np.zeros((k, S + k - s))
    clear = S
    for x in range(k):
        if x in sensitive:
            row = sylvester(S)[sorted(sensitive).index(x) + 1]
            Q[x, :S] = np.where(row > 0, 2 * e / (S * (e + 1)), 2 / (S * (e + 1)))
        else:
            Q[x, :S] = 2 / (S * (e + 1))
            Q[x, clear] = (e - 1) / (e + 1)
            clear += 1
    return Q


def shapes(k):
    """Return a few partitions of k symbols."""
    return [list(range(k)), [0] * k, [i % 3 for i in range(k)], [math.isqrt(i) for i in range(k)]]


# Powers of two and their neighbours; the sizes between them are slow.
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32)


@pytest.mark.parametrize("k", slow_except(SIZES, range(1, 33)))
def test_block_response_is_the_papers_channel_and_keeps_epsilon_exactly(k):
    for block_of in shapes(k):
        mechanism = sf.BlockResponse(sf.Blocks(block_of, 1.0))
        np.testing.assert_allclose(
            mechanism.matrix(), paper_block_channel(block_of, 1.0), atol=1e-9
        )
        assert mechanism.outputs <= 2 * k
        sf.certify(mechanism)


@pytest.mark.parametrize("k", slow_except(SIZES, range(1, 33)))
def test_plain_response_is_hadamard_response_and_keeps_epsilon_exactly(k):
    mechanism = sf.PlainResponse(sf.Uniform(k, 0.7))
    np.testing.assert_allclose(mechanism.matrix(), paper_block_channel([0] * k, 0.7), atol=1e-9)
    assert mechanism.outputs <= 2 * k
    sf.certify(mechanism)


@pytest.mark.parametrize("k", slow_except(SIZES, range(2, 33)))
def test_high_low_response_is_the_papers_channel_and_keeps_epsilon_exactly(k):
    for sensitive in ({0}, {k - 1}, set(range(0, k, 2)), set(range(k - 1))):
        mechanism = sf.HighLowResponse(sf.HighLow(k, sorted(sensitive), 1.3))
        np.testing.assert_allclose(
            mechanism.matrix(), paper_high_low_channel(k, sensitive, 1.3), atol=1e-9
        )
        assert mechanism.outputs <= 2 * k
        sf.certify(mechanism)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 32])
def test_randomized_response_matches_its_formula(k):
    e = math.exp(1.0)
    expected = np.where(np.eye(k) > 0, e / (e + k - 1), 1 / (e + k - 1))
    mechanism = sf.PlainResponse(sf.Uniform(k, 1.0), RandomizedCode)
    np.testing.assert_allclose(mechanism.matrix(), expected, atol=1e-9)


@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64])
def test_hadamard_rows_are_balanced(size):
    code = HadamardCode(size - 1, Fraction(1))
    sets = [
        {y for y in range(size) if code.contains(np.uint64(x), np.uint64(y))}
        for x in range(size - 1)
    ]
    assert code.outputs == size
    assert all(len(S) == size // 2 == code.raised for S in sets)
    assert all(len(S & T) == size / 4 == code.shared for S in sets for T in sets if S is not T)
    H = sylvester(size)
    assert sets == [{y for y in range(size) if H[x + 1, y] > 0} for x in range(size - 1)]


@pytest.mark.parametrize(
    "size", slow_except({1, 2, 8, 64, 128, 512}, [1, 2, 8, 64, 128, 512, 4096])
)
def test_fast_transform_matches_the_matrix_product(size):
    values = np.cos(np.arange(3 * size, dtype=float)).reshape(3, size)
    np.testing.assert_allclose(walsh_hadamard(values), values @ sylvester(size), atol=1e-9 * size)


CONTEXTS = [
    sf.Uniform(4, 1.5),
    sf.HighLow(5, [1, 2], 0.5),
    sf.Blocks([0, 0, 1, 1, 1], 2),
    sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], 0.3),
    sf.PrivacyMatrix([[0, 0.5, inf], [2, 0, 1], [inf, 3, 0]]),
    sf.HighLow(5, [1, 2], 0.5) + sf.Blocks([0, 0, 1, 1, 1], 2),
]


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
@pytest.mark.parametrize("code", ["hadamard", "randomized", "best"])
def test_mechanism_for_the_smallest_epsilon_keeps_every_context(context, code):
    classical = sf.mechanism_for(sf.Uniform(context.domain, context.smallest_epsilon), code=code)
    assert sf.certify(classical, context).slack >= 0


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (math.log(2), math.log(4), [[6 / 7, 1 / 7], [3 / 7, 4 / 7]]),
        (
            1,
            1,
            [[math.e / (1 + math.e), 1 / (1 + math.e)], [1 / (1 + math.e), math.e / (1 + math.e)]],
        ),
        (inf, 1, [[1 - math.exp(-1), math.exp(-1)], [0, 1]]),
        (1, inf, [[1, 0], [math.exp(-1), 1 - math.exp(-1)]]),
        (inf, inf, [[1, 0], [0, 1]]),
    ],
    ids=["asymmetric", "Warner", "Mangat", "Mangat reversed", "identity"],
)
def test_binary_optimum(a, b, expected):
    mechanism = sf.mechanism_for(sf.PrivacyMatrix([[0, a], [b, 0]]))
    assert isinstance(mechanism, sf.BinaryResponse)
    np.testing.assert_allclose(mechanism.matrix(), expected, atol=1e-12)
    sf.certify(mechanism)


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (0, 0), (0, inf)])
def test_zero_between_two_symbols_leaves_nothing_to_learn(pair):
    with pytest.raises(NothingToLearn, match="leaves nothing to learn"):
        sf.mechanism_for(sf.PrivacyMatrix([[0, pair[0]], [pair[1], 0]]))


def test_single_symbol_in_a_block_reports_only_the_block():
    mechanism = sf.BlockResponse(sf.Blocks(["a", "b", "b", "b", "c"], 1.0))
    assert mechanism.outputs == 1 + 4 + 1
    assert mechanism.exact_row(0) == [1, 0, 0, 0, 0, 0]
    assert mechanism.exact_row(4) == [0, 0, 0, 0, 0, 1]


def test_high_low_extremes_are_identity_and_plain_response():
    identity = sf.HighLowResponse(sf.HighLow(4, [], 1))
    full = sf.HighLowResponse(sf.HighLow(4, range(4), 1))
    plain = sf.PlainResponse(sf.Uniform(4, 1))
    assert (identity.matrix() == np.eye(4)).all()
    assert all(full.exact_row(x) == plain.exact_row(x) for x in range(4))


def test_single_symbol_and_infinite_epsilon_are_unrandomized():
    alone = sf.mechanism_for(sf.Uniform(1, 0.5))
    assert (alone.outputs, alone.bits, alone.scores.worst_risk()) == (1, 0, 0.0)
    assert (sf.mechanism_for(sf.Uniform(3, inf)).matrix() == np.eye(3)).all()


# --- exact variances, section 4 of the derivations ------------------------------------------------

SKEWED = np.array([0.4, 0.2, 0.2, 0.1, 0.06, 0.04])


def realised_c(code):
    """Return c = (e+1)/(e−1) for the odds of the integers."""
    return float(Fraction(code.high + code.low, code.high - code.low))


def test_paper_block_variances_match_the_closed_form():
    mechanism = sf.BlockResponse(sf.Blocks([0, 0, 0, 1, 1, 1], 1.0))
    c = realised_c(mechanism._codes[0])
    share = np.repeat([SKEWED[:3].sum(), SKEWED[3:].sum()], 3)
    np.testing.assert_allclose(
        mechanism.scores.paper_variances(SKEWED, 7), (c**2 * share - SKEWED**2) / 7, rtol=1e-9
    )


def test_paper_high_low_variances_match_the_closed_form():
    mechanism = sf.HighLowResponse(sf.HighLow(6, [0, 1, 2], 1.0))
    c = realised_c(mechanism._code)
    p_B = SKEWED[3:].sum()
    in_range = (1 - p_B) + p_B * (1 - 1 / c)  # p([S]) = p_A + 2 p_B/(e+1), and (e−1)/(e+1) = 1/c
    expected = np.where(np.arange(6) < 3, c**2 * in_range, c * SKEWED) - SKEWED**2
    np.testing.assert_allclose(mechanism.scores.paper_variances(SKEWED, 1), expected, rtol=1e-9)


def test_covariances_of_a_full_hadamard_block_follow_the_xor_of_rows():
    # K = 8: rows 1 to 7 are all used, so pairs need no correction.
    mechanism = sf.PlainResponse(sf.Uniform(7, 1.0))
    c = realised_c(mechanism._codes[0])
    p = np.arange(1.0, 8) / 28
    A = np.array([[c * sylvester(8)[x + 1, y] for y in range(8)] for x in range(7)])
    covariance = (A * mechanism.forward(p)) @ A.T - np.outer(p, p)
    for x in range(7):
        for x2 in range(7):
            if x != x2:
                third = ((x + 1) ^ (x2 + 1)) - 1
                assert covariance[x, x2] == pytest.approx(c * p[third] - p[x] * p[x2], abs=1e-12)


@pytest.mark.parametrize(
    "context", [sf.Uniform(5, 1), sf.Blocks([0, 0, 1, 1, 1, 1, 1], 0.5)], ids=repr
)
def test_total_correction_never_raises_the_risk_of_a_block(context):
    mechanism = sf.mechanism_for(context, code="hadamard")
    k = context.size
    for p in (np.full(k, 1 / k), np.eye(k)[0], np.arange(1.0, k + 1) * 2 / (k * (k + 1))):
        assert mechanism.scores.risk(p) < mechanism.scores.paper_variances(p, 1).sum()


def test_corrected_estimates_of_a_block_add_up_to_its_observed_share():
    mechanism = sf.BlockResponse(sf.Blocks([0, 0, 0, 0, 0, 1, 1], 1))
    tally = mechanism.tally(np.arange(97) * 31 % mechanism.outputs)
    groups, shares = mechanism.scores.observed_shares(tally)
    np.testing.assert_allclose(
        np.bincount(groups, mechanism.scores.unbiased(tally)), shares, atol=1e-12
    )
    assert abs(mechanism.scores.paper_estimate(tally).sum() - 1) > 0.01


@pytest.mark.parametrize(
    "mechanism", [sf.PlainResponse(sf.Uniform(6, 1)), sf.HighLowResponse(sf.HighLow(6, [0, 1], 1))]
)
def test_worst_risk_is_attained_and_never_exceeded(mechanism):
    rho = mechanism.adjoint(mechanism.scores.squares())
    rng = np.random.default_rng(1)
    largest = max(mechanism.scores.risk(p) for p in rng.dirichlet(np.full(6, 0.5), 2000))
    assert largest <= mechanism.scores.worst_risk() + 1e-9
    climbed = np.full(6, 1 / 6)
    for _ in range(5000):  # projected gradient ascent
        climbed = project(climbed + 0.01 * (rho - 2 * climbed))
    assert mechanism.scores.risk(climbed) == pytest.approx(mechanism.scores.worst_risk(), rel=1e-6)


def test_leverage_counts_honest_people():
    hadamard, randomized = (
        sf.PlainResponse(sf.Uniform(1023, 1), code) for code in (HadamardCode, RandomizedCode)
    )
    simple = 1 / float(hadamard._codes[0].contrast) / 2  # (1 − q)/Δ with q = ½
    assert simple == pytest.approx((math.e + 1) / (math.e - 1), rel=1e-9)
    # The total correction moves it by 1/k.
    assert hadamard.scores.leverage == pytest.approx(simple, rel=2e-3)
    k = 1024
    randomized = sf.PlainResponse(sf.Uniform(k, 1), RandomizedCode)
    assert randomized.scores.leverage == pytest.approx((math.e + k - 2) / (math.e - 1), rel=1e-9)


# --- invalid input --------------------------------------------------------------------------------

MECHANISM = sf.HighLowResponse(sf.HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1))
CANARY = 987654321


@pytest.mark.parametrize(
    "symbols",
    [
        [float("nan")], [0.0, 1.0], [-1], [3], [CANARY], [], np.array([], dtype=np.int64),
        [[0], [1]], [True], ["park"], [None], None, "park", [0, [1]], 1,
        np.array([2**63], dtype=np.uint64), np.array([1], dtype="M8[s]"),
    ],
    ids=str,
)  # fmt: skip
def test_invalid_symbols_are_rejected_without_being_printed(symbols):
    with pytest.raises(InvalidSymbols, match="must") as refusal:
        MECHANISM.privatize(symbols)
    assert str(CANARY) not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@pytest.mark.parametrize(
    "words", [[[1]], np.ones((2, 1), np.int64), np.ones(2, np.uint64), np.ones((2, 2), np.uint64)]
)
def test_invalid_words_are_rejected(words):
    with pytest.raises(InvalidSymbols, match="words must be a uint64 array"):
        MECHANISM.reports_from([0, 1], words)


def test_words_longer_than_the_realisation_are_rejected():
    with pytest.raises(InvalidSymbols, match="below"):
        MECHANISM.with_word_bits(12).reports_from([0], np.array([[4096]], dtype=np.uint64))


def test_vectors_of_the_wrong_length_are_rejected():
    for method, size in ((MECHANISM.forward, 3), (MECHANISM.adjoint, MECHANISM.outputs)):
        with pytest.raises(InvalidSymbols, match=f"{size} entries"):
            method([0.1, 0.9])


def test_reports_out_of_range_are_rejected_by_position():
    with pytest.raises(ReportRejected, match="position 1"):
        MECHANISM.tally([0, CANARY])


def test_binary_response_needs_two_symbols():
    with pytest.raises(ContextMismatch, match="two symbols"):
        sf.BinaryResponse(sf.Uniform(3, 1))


def test_channel_too_large_for_a_matrix_is_rejected():
    with pytest.raises(InvalidContext, match="at most"):
        sf.PlainResponse(sf.Uniform(43_750, 1)).matrix()


def test_epsilon_too_small_for_the_word_is_rejected():
    with pytest.raises(NothingToLearn, match="larger ε"):
        sf.PlainResponse(sf.Uniform(43_750, "0.0000000000000001"))


@pytest.mark.parametrize("code", ["nothing", "", None])
def test_unknown_code_is_rejected(code):
    with pytest.raises(InvalidArgument, match="best, hadamard, cyclic, randomized"):
        sf.mechanism_for(sf.Uniform(3, 1), code=code)


def test_max_bits_error_names_the_minimum():
    context = sf.Uniform(16, 1)
    assert sf.mechanism_for(context).bits <= 8  # ⌈log2(k + 1)⌉ and three more
    risks = [
        sf.mechanism_for(context, max_bits=bits).scores.worst_risk() for bits in (8, 7, 6, 5, 4)
    ]
    assert risks == sorted(risks)
    assert sf.mechanism_for(context, max_bits=4).bits == 4
    with pytest.raises(InvalidArgument, match="at least 4"):
        sf.mechanism_for(context, max_bits=3)


# --- large instances ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "context",
    [sf.Blocks(np.arange(43_750) // 25, 1.0), sf.HighLow(43_750, range(0, 43_750, 40), 1.0)],
    ids=["blocks", "high-low"],
)
def test_privatize_and_tally_memory_is_one_chunk(context):
    import tracemalloc

    mechanism = sf.mechanism_for(context, code="hadamard")
    chunk = np.arange(2**16) % 43_750
    mechanism.scores.unbiased(mechanism.tally(mechanism.privatize(chunk)))
    tracemalloc.start()
    try:
        tally = mechanism.tally(mechanism.privatize(chunk) for _ in range(16))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tally.reports == 2**20
    # About a dozen arrays of one chunk; a million reports alone would use half of it.
    assert peak < 16 * 2**20


def test_fast_and_slow_estimates_agree_at_size():
    mechanism = sf.BlockResponse(sf.Blocks(np.arange(1200) // 7, 1.0))
    tally = mechanism.tally(np.arange(5000) ** 2 % mechanism.outputs)
    f = tally.counts / tally.reports
    slow = sum(
        f[y] * np.array(mechanism.scores.exact_column(y), dtype=float) for y in np.flatnonzero(f)
    )
    np.testing.assert_allclose(mechanism.scores.unbiased(tally), slow, atol=1e-10)
