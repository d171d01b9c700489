"""Product response: its exact channel, its optimal weights and mixtures, and where it helps."""

import copy
import json
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import BestCode, HadamardCode, RandomizedCode
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSurvey
from sfumato.mechanisms import mechanism_from_record

FAMILIES = [RandomizedCode, HadamardCode, BestCode()]


def blocks(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def uniform(k):
    return np.full(k, 1 / k)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_channel_is_two_plain_responses_side_by_side(family):
    context = sf.Blocks([0, 1, 0, 2, 1, 0], "0.5", across="1.25")
    mechanism = sf.ProductResponse(context, family)
    outer = sf.PlainResponse(sf.Uniform(3, "0.75"), family)
    inner = sf.PlainResponse(sf.Uniform(6, "0.5"), family)
    for x, j in enumerate(context.block_of.tolist()):
        both = [a * b for a in outer.exact_row(j) for b in inner.exact_row(x)]
        assert mechanism.exact_row(x) == both


def test_two_answers_use_two_words():
    """The first word affects only the block, the second only the symbol."""
    mechanism = sf.ProductResponse(sf.Blocks(blocks(3, 3), 1, across=2), RandomizedCode)
    words = np.random.default_rng(1).integers(0, 2**64, (500, 2), dtype=np.uint64)
    symbols = np.arange(500) % 6
    reports = mechanism.reports_from(symbols, words).astype(np.int64)
    first = words.copy()
    second = words.copy()
    first[:, 0] = words[::-1, 0]
    second[:, 1] = words[::-1, 1]
    assert np.array_equal(mechanism.reports_from(symbols, first) % 6, reports % 6)
    assert np.array_equal(mechanism.reports_from(symbols, second) // 6, reports // 6)
    assert not np.array_equal(mechanism.reports_from(symbols, first), reports)


@pytest.mark.parametrize(
    ("epsilons", "across", "promised"),
    [
        (1, 3, (2, 1)),
        ([1, 2], 3, (2, 1)),
        (["0.5", 2], 3, (Fraction(5, 2), Fraction(1, 2))),
    ],
)
def test_promises_of_the_two_answers_add_up(epsilons, across, promised):
    assert sf.ProductResponse.epsilons(sf.Blocks(blocks(2, 3), epsilons, across=across)) == promised


def test_block_of_one_symbol_has_no_inner_promise():
    assert sf.ProductResponse.epsilons(sf.Blocks(blocks(1, 3), ["0.1", 1], across=2)) == (1, 1)


@pytest.mark.parametrize(
    "context",
    [
        sf.Blocks(blocks(2, 2), 1),
        sf.Blocks(blocks(2, 2), 1, across=1),
        sf.Blocks(blocks(2, 2), 2, across=1),
        sf.Blocks([0, 0, 0], 1, across=2),
        sf.Blocks([0, 1, 2], 1, across=2),
        sf.Blocks(blocks(2, 2), "inf", across=2),
        sf.Tiers(blocks(2, 2), [1, 2]),
    ],
    ids=repr,
)
def test_contexts_without_two_levels_are_rejected(context):
    with pytest.raises(ContextMismatch, match="product response"):
        sf.ProductResponse(context)


def test_product_too_large_for_a_matrix_is_rejected():
    with pytest.raises(InvalidContext, match="GroupResponse"):
        sf.ProductResponse(sf.Blocks(np.arange(1000) // 10, "0.5", across=1))
    # `mechanism_for` handles it.
    assert sf.mechanism_for(sf.Blocks(np.arange(1000) // 10, "0.5", across=1)).outputs > 0


# --- the estimate ---------------------------------------------------------------------------------

CONTEXTS = [
    sf.Blocks(blocks(4, 4), "0.5", across=1),
    sf.Blocks(blocks(3, 3, 3), "0.25", across="0.5"),
    sf.Blocks(blocks(2, 5, 1), ["0.5", 1, 1], across="1.5"),
]


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_estimates_always_add_up_to_one(context, family):
    scores = sf.ProductResponse(context, family).scores.matrix()
    np.testing.assert_allclose(scores.sum(axis=0), 1, atol=1e-9 * np.abs(scores).max())


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_both_answers_beat_the_second_alone(context, family):
    """Without the answer about the block, it is a plain response at the least promise."""
    p = uniform(context.size)
    plain = sf.PlainResponse(sf.Uniform(context.domain, context.smallest_epsilon), family)
    assert sf.ProductResponse(context, family).scores.risk(p) < plain.scores.risk(p)


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_estimate_is_close_to_the_best_linear_one(context, family):
    """``tr (Q D⁻¹ Qᵀ)⁻¹ − ‖p‖²`` is the least risk of any unbiased estimate at p."""
    mechanism = sf.ProductResponse(context, family)
    p = uniform(context.size)
    Q = mechanism.matrix()
    least = np.trace(np.linalg.inv((Q / (p @ Q)) @ Q.T)) - p @ p
    assert least * (1 - 1e-9) <= mechanism.scores.risk(p) <= 1.2 * least


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
@pytest.mark.parametrize("step", [-0.02, 0.02])
def test_mixture_of_totals_has_the_least_variance(context, step):
    """Before totals are corrected to 1, any other μ_j increases the noise."""
    mechanism = sf.ProductResponse(context, RandomizedCode)
    _, sums, A1 = mechanism.scores._score_terms
    q = mechanism.forward(uniform(context.size)).reshape(sums.shape[1:])

    def noise(j, mu):
        total = mu * sums[j] + (1 - mu) * A1[j][:, None]
        return float((q * total**2).sum() - (q * total).sum() ** 2)

    for j, mu in enumerate(mechanism.scores._mixing_weights):
        assert noise(j, float(mu)) < noise(j, float(mu) + step)


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
@pytest.mark.parametrize("step", [-0.02, 0.02])
def test_block_weights_minimise_noise(context, step):
    """They minimise ``E[w(J)²]`` over the crowd, among weights with mean 1 in the block."""
    mechanism = sf.ProductResponse(context, RandomizedCode)
    about_block, _ = mechanism.epsilons(context)
    outer = sf.PlainResponse(sf.Uniform(context.sizes.size, about_block), RandomizedCode)
    Q = outer.matrix()
    shares = context.sizes / context.size
    for j, (low, high) in enumerate(mechanism.scores._answer_weights):
        h = Q[j, j]
        P = float(shares @ Q[:, j])
        assert h * float(high) + (1 - h) * float(low) == pytest.approx(1, abs=1e-12)

        def noise(weight, h=h, P=P):
            other = (1 - h * weight) / (1 - h)
            return P * weight**2 + (1 - P) * other**2

        assert noise(float(high)) < noise(float(high) + step)


def test_product_wins_only_for_small_promises():
    for inside, across, pays in (
        ("0.25", "0.5", True),
        ("0.5", "1", True),
        ("2", "4", False),
        ("1", "3", False),
    ):
        context = sf.Blocks(blocks(4, 4), inside, across=across)
        product = sf.mechanism_for(context)
        group = sf.GroupResponse(context, RandomizedCode)
        assert isinstance(product, sf.ProductResponse) == pays
        assert product.scores.worst_risk() <= group.scores.worst_risk() * (1 + 1e-9)


# --- records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_record_round_trip_keeps_channel_and_estimate(family):
    mechanism = sf.ProductResponse(CONTEXTS[2], family)
    restored = mechanism_from_record(mechanism.to_record(), mechanism.context)
    assert restored.fingerprint == mechanism.fingerprint
    assert all(restored.integer_row(x) == mechanism.integer_row(x) for x in range(mechanism.inputs))
    assert restored.scores.exact_column(3) == mechanism.scores.exact_column(3)
    assert restored.with_word_bits(20).fingerprint == mechanism.with_word_bits(20).fingerprint


def test_saved_product_is_an_equivalent_table(tmp_path):
    mechanism = sf.ProductResponse(CONTEXTS[0], RandomizedCode)
    mechanism.save(tmp_path / "m.json")
    saved = json.loads((tmp_path / "m.json").read_text())["mechanism"]
    assert (saved["kind"], saved["word_bits"]) == ("table", 128)
    assert saved["rows"] == [[str(n) for n in mechanism.integer_row(x)] for x in range(8)]


def test_record_that_does_not_fit_is_rejected():
    record = sf.ProductResponse(CONTEXTS[0], RandomizedCode).to_record()
    spoilt = [
        ({**record, "codes": record["codes"][:1]}, CONTEXTS[0]),
        ({**record, "codes": record["codes"][::-1]}, CONTEXTS[0]),
        ({**record, "codes": {}}, CONTEXTS[0]),
        (record, sf.Uniform(8, 1)),
        (record, CONTEXTS[1]),
    ]
    for changed, context in spoilt:
        with pytest.raises((InvalidSurvey, ContextMismatch)):
            mechanism_from_record(copy.deepcopy(changed), context)
    # Two answers that reveal too much add up and can be loaded, but the certificate fails.
    stricter = sf.Blocks(blocks(4, 4), "0.5", across="0.99")
    with pytest.raises(sf.errors.PrivacyViolation):
        sf.certify(mechanism_from_record(record, stricter))
