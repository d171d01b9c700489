"""The exponential mechanism: its formula, its exact promise, and wrong variants."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.designer.exponential import exponential_response
from sfumato.errors import InvalidContext, NothingToLearn, PrivacyViolation
from sfumato.mechanisms.channel import IntegerChannel
from support.matrices import naive_closure

INF = math.inf


def _random(k, seed, *, symmetric=False, without=0.0, scale=1.0):
    """Return a random matrix, not closed, without some of the promises."""
    generator = np.random.default_rng(seed)
    E = np.rint(generator.uniform(0.1, 4, (k, k)) * 1000) / 1000 * scale
    E = np.minimum(E, E.T) if symmetric else E
    E[generator.random((k, k)) < without] = INF
    np.fill_diagonal(E, 0)
    return sf.PrivacyMatrix(E)


def _chain(k, epsilon):
    """Return promises between neighbours only; the ends are k − 1 steps apart."""
    steps = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    return sf.PrivacyMatrix(np.where(steps == 1, epsilon, np.where(steps == 0, 0, INF)))


CONTEXTS = {
    "one": sf.PrivacyMatrix([[0]]),
    "two": sf.PrivacyMatrix([[0, 1], ["inf", 0]]),
    "line": sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], 2),
    "detour": sf.PrivacyMatrix([[0, 1, 5], [1, 0, 1], [5, 1, 0]]),
    "symmetric": _random(7, 1, symmetric=True),
    "asymmetric": _random(7, 2),
    "some inf": _random(8, 3, without=0.6),
    "mostly inf": _random(9, 4, without=0.9),
    "apart": sf.PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]),
    "all inf": sf.Metric([[0, 1], [1, 0]], "inf"),
    "small": _random(6, 5, scale=0.001),
    "large": _random(6, 6, scale=10),
    "chain": _chain(10, 2.5),
    "blocks": sf.Blocks([0, 0, 0, 1, 1], 1, across=3),
    "free": sf.HighLow(6, [1, 2], 1),
    "union": sf.union([_random(4, 7), sf.Uniform(3, 2)]),
    "sum": _random(5, 8) + sf.Uniform(5, 1),
}


def _naive_distances(context):
    """Return shortest paths over the smaller promise of both directions, in fractions."""
    k = range(context.size)
    return naive_closure(
        [[min(context.exact_epsilon(x, y), context.exact_epsilon(y, x)) for y in k] for x in k]
    )


def _naive_channel(distances, factor=0.5):
    """Return ``Q(y

    x) ∝ e^{−factor · d(x, y)}``, entry by entry.
    """
    weights = [[math.exp(-factor * d) for d in row] for row in distances]
    return [[weight / sum(row) for weight in row] for row in weights]


def _nearest_table(context, Q):
    """Return the nearest integers: without rounding towards privacy, wrong channels stay wrong."""
    rows = [[Fraction(q) for q in row] for row in Q]
    exact = [[q / sum(row) for q in row] for row in rows]
    return sf.TableResponse(context, IntegerChannel.from_fractions(exact, 64).rows)


@pytest.mark.parametrize("name", CONTEXTS)
def test_channel_matches_the_formula(name):
    context = CONTEXTS[name]
    result = exponential_response(context)
    assert result.outputs == result.inputs == context.size
    np.testing.assert_allclose(
        result.matrix(), _naive_channel(_naive_distances(context)), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("name", CONTEXTS)
def test_exponential_response_keeps_its_context(name):
    """It also keeps the closure, and one-way promises in both directions."""
    context = CONTEXTS[name]
    result = exponential_response(context)
    certificate = sf.certify(result)
    assert certificate.method == "enumerated"
    assert certificate.realised_epsilon <= certificate.promised_epsilon
    exact = sf.PrivacyMatrix(
        [[str(d) for d in row] for row in _naive_distances(context)], domain=context.domain
    )
    sf.certify(result, exact)


@pytest.mark.parametrize("name", ["line", "symmetric", "asymmetric", "some inf", "large"])
def test_omitting_the_half_breaks_the_context(name):
    """Nearest integers of the formula are certified; those of the formula without ½ are not."""
    context = CONTEXTS[name]
    d = _naive_distances(context)
    sf.certify(_nearest_table(context, _naive_channel(d)))
    with pytest.raises(PrivacyViolation):
        sf.certify(_nearest_table(context, _naive_channel(d, factor=1.0)))


@pytest.mark.parametrize("name", ["detour", "asymmetric"])
def test_omitting_shortest_paths_or_symmetry_breaks_the_context(name):
    context = CONTEXTS[name]
    with pytest.raises(PrivacyViolation):
        sf.certify(_nearest_table(context, _naive_channel(context.matrix().tolist())))


def test_uniform_context_gives_randomised_response_at_half_epsilon():
    result = exponential_response(sf.Uniform(5, 1)).matrix()
    np.testing.assert_allclose(np.diag(result), math.exp(0.5) / (math.exp(0.5) + 4), atol=1e-10)
    assert np.ptp(result[~np.eye(5, dtype=bool)]) < 1e-10


def test_long_chains_fit_in_a_word():
    """e^{−156} of a word rounds to 0, but connected symbols must share all reports."""
    context = _chain(40, 8.0)
    result = exponential_response(context)
    sf.certify(result)
    assert all(min(result.integer_row(x)) > 0 for x in range(40))
    np.testing.assert_allclose(
        result.matrix(), _naive_channel(_naive_distances(context)), rtol=0, atol=1e-10
    )


def test_exponential_response_passes_the_exam():
    sf.check_mechanism(exponential_response(CONTEXTS["asymmetric"]))


def test_exponential_response_keeps_the_labels():
    context = sf.Metric([[0, 1], [1, 0]], domain=["near", "far"])
    assert exponential_response(context).context == context


@pytest.mark.parametrize("E", [[[0, 0], [0, 0]], [[0, 1, 2], [1, 0, 0], [2, 1, 0]]])
def test_exponential_response_rejects_indistinguishable_symbols(E):
    with pytest.raises(NothingToLearn, match="forbids telling symbols"):
        exponential_response(sf.PrivacyMatrix(E))


def test_exponential_response_rejects_large_domains():
    with pytest.raises(InvalidContext, match="at most 256 symbols; this one has 257"):
        exponential_response(sf.Uniform(257, 1))


@pytest.mark.slow
def test_largest_exponential_response_keeps_its_context():
    side = np.arange(16)
    places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    steps = np.abs(places[:, None] - places[None]).sum(axis=2)
    context = sf.Metric(steps, "0.5")
    result = exponential_response(context)
    sf.certify(result)
    np.testing.assert_allclose(
        result.matrix(), _naive_channel((0.5 * steps).tolist()), rtol=0, atol=1e-10
    )
