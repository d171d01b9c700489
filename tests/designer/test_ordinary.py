"""High-low mechanisms for ordinary crowds: exact errors, and the limit on the worst case."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.codes import BestCode, HadamardCode, RandomizedCode
from sfumato.designer.bounds import clear_share_limit
from sfumato.designer.ordinary import choose_for_ordinary_crowds, ordinary_error
from sfumato.errors import InvalidArgument

MARGIN = 0.1
CELLS = list(product([(100, 10), (100, 50), (1000, 10), (1000, 100)], ["0.5", "1", "2"]))
each_cell = pytest.mark.parametrize(("size", "epsilon"), CELLS)


def zipf(size):
    weights = 1 / np.arange(1, size + 1)
    return weights / weights.sum()


def crowds(k, s):
    """An even crowd, and one in which a tenth of the people have a sensitive symbol."""
    return np.full(k, 1 / k), np.concatenate([0.1 * zipf(s), 0.9 * zipf(k - s)])


def mean_error(mechanism, p):
    """Return the expected total variation of the unbiased estimate, up to a factor."""
    return np.sqrt(mechanism.scores.variances(p, 1)).sum()


def clear_share(mechanism):
    """Return the share of people with a free symbol who report it in clear."""
    return mechanism.ideal_row(mechanism.inputs - 1)[-1]


def within_limit(mechanism, minimax):
    return mechanism.scores.worst_risk() <= (1 + MARGIN) * minimax.scores.worst_risk()


# --- the cells of benchmarks/high_low.py ----------------------------------------------------------


@each_cell
def test_worst_risk_stays_within_the_margin(size, epsilon):
    k, s = size
    context = sf.HighLow(k, range(s), epsilon)
    minimax = sf.mechanism_for(context)
    mechanism = sf.mechanism_for(context, worst_case_margin=MARGIN)
    assert within_limit(mechanism, minimax)
    assert sf.certify(mechanism, context)


@each_cell
def test_ordinary_crowds_gain(size, epsilon):
    k, s = size
    context = sf.HighLow(k, range(s), epsilon)
    minimax = sf.mechanism_for(context)
    mechanism = sf.mechanism_for(context, worst_case_margin=MARGIN)
    for p in crowds(k, s):
        assert mean_error(mechanism, p) < mean_error(minimax, p)


@each_cell
def test_error_is_near_that_of_the_better_code(size, epsilon):
    """Only for ten sensitive symbols at ε = 2, no mechanism within the margin can be as good."""
    k, s = size
    context = sf.HighLow(k, range(s), epsilon)
    minimax = sf.mechanism_for(context)
    hadamard = sf.mechanism_for(context, code="hadamard")
    mechanism = sf.mechanism_for(context, worst_case_margin=MARGIN)
    risk_limit = (1 + MARGIN) * minimax.scores.worst_risk() + 1 / s
    share_limit = clear_share_limit(s, float(epsilon), risk_limit)
    # The standard deviation of a free symbol is nearly proportional to 1/√β.
    least_ratio = math.sqrt(clear_share(hadamard) / share_limit)
    assert clear_share(mechanism) <= share_limit
    for p in crowds(k, s):
        ratio = mean_error(mechanism, p) / min(mean_error(minimax, p), mean_error(hadamard, p))
        if s == 10 and epsilon == "2":
            assert least_ratio > 1.1
            assert ratio < 1.03 * least_ratio
        else:
            assert ratio <= 1.031


def test_hadamard_code_is_outside_the_margin():
    """The check of the worst case detects a code that is chosen for ordinary crowds alone."""
    context = sf.HighLow(1000, range(100), 2)
    minimax = sf.mechanism_for(context)
    assert not within_limit(sf.mechanism_for(context, code="hadamard"), minimax)
    assert not within_limit(sf.mechanism_for(context, worst_case_margin=0.5), minimax)


# --- the choice -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    s=st.integers(2, 40),
    free=st.integers(1, 60),
    epsilon=st.sampled_from(["0.1", "0.5", "1", "2", "4"]),
    margin=st.sampled_from([0.01, 0.1, 0.5, 2]),
    extra_bits=st.integers(0, 3),
)
def test_choice_is_safe_in_any_context(s, free, epsilon, margin, extra_bits):
    context = sf.HighLow(s + free, range(s), epsilon)
    max_bits = (s + free).bit_length() + extra_bits
    try:
        minimax = sf.mechanism_for(context, max_bits=max_bits)
    except InvalidArgument:
        return
    mechanism = sf.mechanism_for(context, max_bits=max_bits, worst_case_margin=margin)
    assert mechanism.bits <= max_bits
    assert mechanism.scores.worst_risk() <= (1 + margin) * minimax.scores.worst_risk()
    assert ordinary_error(mechanism) <= ordinary_error(minimax)


def test_larger_margins_lower_the_error():
    context = sf.HighLow(1000, range(20), 2)
    mechanisms = [sf.mechanism_for(context)]
    for margin in (0.1, 0.3, 1, 3):
        mechanisms.append(sf.mechanism_for(context, worst_case_margin=margin))
    errors = [ordinary_error(mechanism) for mechanism in mechanisms]
    risks = [mechanism.scores.worst_risk() for mechanism in mechanisms]
    assert errors == sorted(errors, reverse=True)
    assert risks == sorted(risks)
    assert errors[-1] < 0.9 * errors[0]


def test_without_a_margin_the_worst_case_decides():
    context = sf.HighLow(1000, range(100), 2)
    least = sf.mechanism_for(context).to_record()
    assert sf.mechanism_for(context, worst_case_margin=0).to_record() == least
    assert sf.mechanism_for(context, worst_case_margin=MARGIN).to_record() != least


def test_matrix_of_a_high_low_context_gets_the_same_code():
    context = sf.HighLow(12, range(8), 2)
    matrix = sf.PrivacyMatrix(context.matrix())
    mechanism = sf.mechanism_for(matrix, worst_case_margin=MARGIN)
    expected = sf.mechanism_for(context, worst_case_margin=MARGIN)
    assert mechanism.to_record() == expected.to_record()


@pytest.mark.parametrize(
    "context",
    [
        sf.Uniform(20, 1),
        sf.Blocks([0, 0, 0, 1, 1, 1], 1),
        sf.Tiers([1, 1, 2, 2, 3], {1: 1, 2: 2, 3: "inf"}),
        sf.HighLow(9, [3], 1),
        sf.HighLow(2, [1], 1),
        sf.HighLow(9, range(4), "inf"),
        sf.HighLow(9, range(9), 1),
        sf.HighLow(9, [], 1),
    ],
    ids=repr,
)
def test_other_contexts_ignore_the_margin(context):
    margin = sf.mechanism_for(context, worst_case_margin=MARGIN)
    assert margin.to_record() == sf.mechanism_for(context).to_record()


@pytest.mark.parametrize("margin", [-0.1, math.nan, math.inf, True, "0.1"])
def test_invalid_margin_raises(margin):
    with pytest.raises(InvalidArgument, match="worst_case_margin must be a number of at least 0"):
        sf.mechanism_for(sf.HighLow(9, range(4), 1), worst_case_margin=margin)


@pytest.mark.parametrize("options", [{"code": "hadamard"}, {"sensitive_share": 0.1}])
def test_margin_excludes_a_fixed_choice(options):
    with pytest.raises(InvalidArgument, match="Drop it, or drop code and sensitive_share"):
        sf.mechanism_for(sf.HighLow(9, range(4), 1), worst_case_margin=MARGIN, **options)


def test_worse_codes_are_not_chosen():
    """If the given mechanism is already the best for ordinary crowds, it is returned."""
    context = sf.HighLow(1000, range(10), 2)
    hadamard = sf.mechanism_for(context, code="hadamard")
    assert choose_for_ordinary_crowds(context, hadamard, 0, None) is not hadamard
    best = choose_for_ordinary_crowds(context, hadamard, 0, None)
    assert choose_for_ordinary_crowds(context, best, 0, None) is best


# --- what no mechanism can do ---------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
@pytest.mark.parametrize("s", [2, 7, 10, 31])
@pytest.mark.parametrize("code", [HadamardCode, RandomizedCode, BestCode()])
def test_no_code_exceeds_the_clear_share_limit(s, epsilon, code):
    mechanism = sf.HighLowResponse(sf.HighLow(s + 5, range(s), epsilon), code)
    p = np.where(np.arange(s + 5) < s, 1 / s, 0)
    assert clear_share(mechanism) <= clear_share_limit(s, epsilon, mechanism.scores.risk(p)) + 1e-9


@pytest.mark.parametrize("epsilon", [1.5, 2, 4])
@pytest.mark.parametrize("s", [3, 7, 10])
def test_flat_codes_attain_the_clear_share_limit(s, epsilon):
    mechanism = sf.HighLowResponse(sf.HighLow(s + 5, range(s), epsilon), RandomizedCode)
    p = np.where(np.arange(s + 5) < s, 1 / s, 0)
    e = math.exp(epsilon)
    beta = clear_share(mechanism)
    least_risk = (s - 1) ** 2 / (s * beta * (e - 1 - e * beta))
    assert mechanism.scores.risk(p) == pytest.approx(least_risk, rel=1e-9)


def test_impossible_risks_raise():
    with pytest.raises(InvalidArgument, match="no mechanism has a risk of at most 5"):
        clear_share_limit(10, 1.0, 5.0)
