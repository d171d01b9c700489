"""Union response: its risk follows from its parts; uniform parts become blocks; invalid input."""

import copy
import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import BestCode, HadamardCode, RandomizedCode
from sfumato.contexts import ContextUnion
from sfumato.errors import ContextMismatch, InvalidSurvey
from sfumato.mechanisms import mechanism_from_record
from sfumato.simulation.seeded import SeededWords

inf = math.inf
PARTS = [
    sf.Uniform(3, 1),
    sf.HighLow(4, [1, 3], 2),
    sf.PrivacyMatrix([[0, 1], [2, 0]]),
    sf.Tiers([0, 1, 1], [1, 2]),
    sf.Uniform(1, 1),
]
INTERLEAVED = [0, 1, 0, 2, 1, 3, 4, 1, 3, 0, 2, 3, 1]  # block of each symbol


def union(block_of=None):
    return sf.union(PARTS) if block_of is None else ContextUnion(PARTS, block_of)


def crowds(k):
    rng = np.random.default_rng(k)
    return [np.full(k, 1 / k), rng.dirichlet(np.full(k, 0.5)), rng.dirichlet(np.full(k, 5.0))]


@pytest.mark.parametrize("block_of", [None, INTERLEAVED], ids=["in order", "turned"])
@pytest.mark.parametrize("code", ["best", "hadamard"])
def test_union_risk_follows_from_its_parts(block_of, code):
    """``Σ_j [p_j R_j(θ_j) + p_j (1 − p_j) ‖θ_j‖²]``."""
    context = union(block_of)
    mechanism = sf.mechanism_for(context, code=code)
    assert isinstance(mechanism, sf.UnionResponse)
    for p in crowds(context.size):
        expected = 0.0
        for j, part in enumerate(mechanism.parts):
            inside = p[np.flatnonzero(context.block_of == j)]
            share = inside.sum()
            theta = inside / share
            expected += share * part.scores.risk(theta) + share * (1 - share) * float(theta @ theta)
        assert mechanism.scores.risk(p) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("family", [HadamardCode, RandomizedCode, BestCode()], ids=repr)
def test_union_of_plain_responses_is_a_block_response(family):
    block_of = [0, 1, 0, 1, 1, 0, 2, 1]
    epsilons = [1, 2, 1]
    context = ContextUnion([sf.Uniform(3, 1), sf.Uniform(4, 2), sf.Uniform(1, 1)], block_of)
    together = sf.UnionResponse(context, [sf.PlainResponse(part, family) for part in context.parts])
    blocks = sf.BlockResponse(sf.Blocks(block_of, epsilons), family)
    assert together.outputs == blocks.outputs
    for x in range(8):
        assert together.exact_row(x) == blocks.exact_row(x)
    for y in range(blocks.outputs):
        assert together.scores.exact_column(y) == blocks.scores.exact_column(y)
    words = np.random.default_rng(0).integers(0, 2**64, (400, 1), dtype=np.uint64)
    symbols = np.arange(400) % 8
    assert np.array_equal(
        together.reports_from(symbols, words), blocks.reports_from(symbols, words)
    )


def test_uniform_parts_become_blocks_on_the_shelf():
    assert isinstance(
        sf.mechanism_for(sf.union([sf.Uniform(3, 1), sf.Uniform(4, 2)])), sf.BlockResponse
    )


def test_estimates_keep_observed_block_shares():
    context = union(INTERLEAVED)
    mechanism = sf.mechanism_for(context)
    reports = mechanism.privatize(np.arange(5000) % context.size, SeededWords(3))
    tally = mechanism.tally(reports)
    group_of, shares = mechanism.scores.observed_shares(tally)
    observed = np.array(
        [(np.array(INTERLEAVED)[np.arange(5000) % 13] == j).mean() for j in range(5)]
    )
    for x, j in enumerate(INTERLEAVED):
        assert shares[group_of[x]] == pytest.approx(observed[j], abs=1e-12)
    np.testing.assert_allclose(
        np.bincount(INTERLEAVED, mechanism.scores.unbiased(tally)), observed, atol=1e-9
    )


def test_empty_block_has_share_zero():
    mechanism = sf.mechanism_for(union())
    tally = mechanism.tally(mechanism.privatize([0, 1, 2] * 10, SeededWords(1)))
    group_of, shares = mechanism.scores.observed_shares(tally)
    assert shares.sum() == pytest.approx(1)
    assert shares[group_of[0]] == 1 and all(shares[group_of[x]] == 0 for x in range(3, 13))
    np.testing.assert_array_equal(mechanism.scores.unbiased(tally)[3:], 0)


def test_nested_union_keeps_its_context_and_decodes():
    inner = sf.union([sf.HighLow(3, [0], 1), sf.Uniform(2, 1)])
    context = sf.union([sf.Tiers([0, 1], [1, 2]), inner, sf.Uniform(3, inf)])
    mechanism = sf.mechanism_for(context)
    sf.certify(mechanism, context)
    p = crowds(context.size)[1]
    np.testing.assert_allclose(mechanism.scores.mean(mechanism.forward(p)), p, atol=1e-9)
    restored = mechanism_from_record(mechanism.to_record(), mechanism.context)
    assert restored.fingerprint == mechanism.fingerprint


def test_one_word_parts_ignore_the_second_word():
    context = sf.union([sf.Blocks([0, 0, 1, 1], "0.5", across=1), sf.Uniform(3, 1)])
    parts = [sf.ProductResponse(context.parts[0]), sf.PlainResponse(context.parts[1])]
    mechanism = sf.UnionResponse(context, parts)
    assert mechanism.words == 2
    words = np.random.default_rng(2).integers(0, 2**64, (60, 2), dtype=np.uint64)
    changed = np.column_stack([words[:, 0], words[::-1, 1]])
    symbols = 4 + np.arange(60) % 3
    assert np.array_equal(
        mechanism.reports_from(symbols, words), mechanism.reports_from(symbols, changed)
    )
    assert sum(mechanism.integer_row(5)) == mechanism.denominator == 1 << 128


# --- invalid input --------------------------------------------------------------------------------


def test_parts_must_match_their_contexts():
    context = union()
    parts = list(sf.mechanism_for(context).parts)
    fitting = context.with_parts([part.context for part in parts])
    sf.UnionResponse(fitting, parts)
    wrong = [
        parts[:-1],
        [*parts, parts[-1]],
        [parts[1], parts[0], *parts[2:]],
        [sf.PlainResponse(sf.Uniform(3, 2)), *parts[1:]],
        [parts[0].with_word_bits(32), *parts[1:]],
        [],
    ]
    for each in wrong:
        with pytest.raises(ContextMismatch, match=r"union response|of the same length"):
            sf.UnionResponse(fitting, each)
    with pytest.raises(ContextMismatch, match=r"sf\.union"):
        sf.UnionResponse(sf.Blocks([0, 0, 1], 1), parts)


def test_record_that_does_not_fit_is_rejected():
    mechanism = sf.mechanism_for(union())
    record = mechanism.to_record()
    context = mechanism.context
    spoilt = [
        {**record, "parts": record["parts"][:-1]},
        {**record, "parts": record["parts"][::-1]},
        {**record, "parts": {}},
        {**record, "more": 1},
    ]
    for changed in spoilt:
        with pytest.raises((InvalidSurvey, ContextMismatch)):
            mechanism_from_record(copy.deepcopy(changed), context)
    with pytest.raises(InvalidSurvey, match="list its parts"):
        mechanism_from_record(record, sf.Uniform(context.size, 1))


def test_broken_part_breaks_the_union():
    """The error names the union's symbols."""
    context = ContextUnion([sf.Uniform(3, 1), sf.Uniform(3, 1)], [0, 1, 0, 1, 0, 1])
    kept = [sf.PlainResponse(part) for part in context.parts]
    stricter = ContextUnion([sf.Uniform(3, 1), sf.Uniform(3, "0.99")], [0, 1, 0, 1, 0, 1])
    mechanism = sf.UnionResponse(context, kept)
    assert sf.certify(mechanism, context).slack >= 0
    with pytest.raises(sf.errors.PrivacyViolation) as violation:
        sf.certify(mechanism, stricter)
    assert {violation.value.x, violation.value.x2} <= {1, 3, 5}
