"""What sections 5 and 6 of Acharya et al. (2020) state in addition to their theorems."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import HadamardCode
from sfumato.designer import lower_bound_risk, ye_barg_bound
from sfumato.planning import sample_complexity

SIZES = [1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 500]


# --- the size of a report -------------------------------------------------------------------------


@pytest.mark.parametrize("s", SIZES)
@pytest.mark.parametrize("t", [1, 2, 30, 1000])
def test_high_low_reports_have_at_most_log_k_plus_1_bits(s, t):
    """S is the smallest power of two above s, so S + t ≤ 2s + t < 2k."""
    k = s + t
    mechanism = sf.HighLowResponse(sf.HighLow(k, range(s), 1), HadamardCode)
    S = 1 << s.bit_length()
    assert mechanism.outputs == S + t
    assert mechanism.outputs <= 2 * k
    assert math.log2(mechanism.outputs) <= math.log2(k) + 1
    assert mechanism.bits == math.ceil(math.log2(mechanism.outputs))


@pytest.mark.parametrize("sizes", [[1, 1, 1], [2, 3], [7, 8, 9], [31, 32, 1, 500]])
def test_block_reports_have_at_most_log_k_plus_1_bits(sizes):
    """Each block of k_j ≥ 2 symbols needs K_j ≤ 2 k_j reports; a single symbol needs one."""
    context = sf.Blocks(np.repeat(np.arange(len(sizes)), sizes), 1)
    mechanism = sf.mechanism_for(context, code="hadamard")
    assert mechanism.outputs <= 2 * context.size
    assert math.log2(mechanism.outputs) <= math.log2(context.size) + 1


# --- the error of blocks --------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2])
@pytest.mark.parametrize("sizes", [[7] * 5, [63, 3, 3, 1], [2, 2], [255, 31]])
def test_block_scheme_is_optimal_in_l2_because_all_mass_may_be_in_one_block(sizes, epsilon):
    """No mechanism has less than the risk of one block alone, and the scheme has little more.

    The Hadamard code's blocks have K_j ≤ 2 k_j reports, and c² = ((e^ε + 1)/(e^ε − 1))².
    """
    context = sf.Blocks(np.repeat(np.arange(len(sizes)), sizes), epsilon)
    alone = max(ye_barg_bound(size, epsilon) for size in sizes)
    assert lower_bound_risk(context) >= alone * (1 - 1e-12)
    scheme = sf.BlockResponse(context, HadamardCode)
    p = np.zeros(context.size)
    p[: sizes[0]] = 1 / sizes[0]  # all mass on one block
    one_block = sf.PlainResponse(sf.Uniform(sizes[0], epsilon), HadamardCode)
    uniform = np.full(sizes[0], 1 / sizes[0])
    assert scheme.scores.risk(p) == pytest.approx(one_block.scores.risk(uniform), rel=1e-6)
    assert scheme.scores.worst_risk() <= 2.5 * lower_bound_risk(context)


def test_scheme_without_blocks_is_not_optimal_in_l2():
    """The twin: a code over all symbols has the risk of all of them."""
    context = sf.Blocks(np.repeat(np.arange(20), 7), 1)
    plain = sf.PlainResponse(sf.Uniform(context.size, 1), HadamardCode)
    assert plain.scores.worst_risk() > 2.5 * lower_bound_risk(context)


@pytest.mark.parametrize("m", [2, 4, 16, 31])
def test_equal_blocks_save_a_factor_m_of_the_people(m):
    block_size = 255
    k = m * block_size
    blocks = sf.Blocks(np.arange(k) // block_size, 1)
    assert sample_complexity(sf.Uniform(k, 1), 0.1) == pytest.approx(
        m * sample_complexity(blocks, 0.1)
    )
    one_block = sf.Blocks(np.zeros(k, dtype=np.int64), 1)
    saved = _people_ratio(one_block) / _people_ratio(blocks)
    assert saved == pytest.approx(m, rel=0.02)


def _people_ratio(context):
    """Return n α² for small total variation errors α of an even crowd.

    The mean error of a nearly normal estimate is √(2/π) of its standard error.
    """
    mechanism = sf.BlockResponse(context, HadamardCode)
    p = np.full(context.size, 1 / context.size)
    return float(np.sqrt(mechanism.scores.variances(p, 1)).sum() ** 2)
