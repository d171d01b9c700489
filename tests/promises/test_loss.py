"""Repeated reports: exact (ε, δ) curves against brute force and a published accountant."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions

import sfumato as sf
from sfumato.errors import InvalidArgument, InvalidContext, InvalidSymbols
from support.slow import slow_except

inf = math.inf


def test_a_hundred_reports_at_one_half():
    """Naive 50; from the dominating pair 33.3; from the rows of Hadamard response 21.7."""
    context = sf.Uniform(7, 0.5)
    dominating = sf.privacy_loss(context, 0, 1, report_count=100)
    rows = sf.privacy_loss(sf.PlainResponse(context), 0, 1, report_count=100)
    assert dominating.naive_epsilon == rows.naive_epsilon == 50
    assert dominating.epsilon(1e-6) == pytest.approx(33.3, abs=0.05)
    assert rows.epsilon(1e-6) == pytest.approx(21.7, abs=0.05)


def _naive_delta(row, row2, reports, epsilon):
    """Sum over every sequence of reports, in floats."""
    total = 0.0
    for sequence in itertools.product(range(len(row)), repeat=reports):
        p = math.prod(row[y] for y in sequence)
        p2 = math.prod(row2[y] for y in sequence)
        total += max(0.0, p - math.exp(epsilon) * p2)
    return total


MECHANISMS = [
    sf.PlainResponse(sf.Uniform(3, 1)),
    sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode),
    sf.HighLowResponse(sf.HighLow(3, [0, 1], 1)),
    sf.BinaryResponse(sf.PrivacyMatrix([[0, "inf"], [1, 0]])),
    sf.BlockResponse(sf.Blocks([0, 0, 1], 0.5)),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("reports", [1, 2, 4])
def test_delta_matches_a_sum_over_all_sequences(mechanism, reports):
    for x, x2 in itertools.permutations(range(mechanism.inputs), 2):
        row, row2 = ([float(q) for q in mechanism.exact_row(symbol)] for symbol in (x, x2))
        loss = sf.privacy_loss(mechanism, x, x2, report_count=reports)
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            assert loss.delta(epsilon) == pytest.approx(
                _naive_delta(row, row2, reports, epsilon), abs=1e-12
            )


PAIRS = [(0.5, 0.5), (0.2, 1.0), (1.0, inf), (inf, 0.7)]


# The accountant takes longest for many reports whose losses are all finite.
@pytest.mark.parametrize(
    ("reports", "pair"),
    slow_except(
        {*itertools.product([1, 7], PAIRS), *itertools.product([50], PAIRS[2:])},
        itertools.product([1, 7, 50], PAIRS),
    ),
)
def test_dominating_pair_matches_a_published_accountant(reports, pair):
    context = sf.PrivacyMatrix([[0, pair[0]], [pair[1], 0]])
    rows = sf.BinaryResponse(context).matrix()
    # The accountant rounds losses up to a grid: agreement is to its width times the reports.
    step = 1e-5
    upper, lower = ({y: math.log(q) for y, q in enumerate(row) if q > 0} for row in rows)
    pld = from_two_probability_mass_functions(
        lower, upper, pessimistic_estimate=True, value_discretization_interval=step
    )
    loss = sf.privacy_loss(context, 0, 1, report_count=reports)
    composed = pld.self_compose(reports)._pmf_remove
    for epsilon in np.linspace(0, min(reports * pair[0], 30), 7).tolist():
        theirs = composed.get_delta_for_epsilon(epsilon)
        assert loss.delta(epsilon) <= theirs + 1e-9
        assert (
            loss.delta(epsilon) >= composed.get_delta_for_epsilon(epsilon + reports * step) - 1e-6
        )


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_mechanism_loses_no_more_than_its_context_allows(mechanism):
    for x, x2 in itertools.permutations(range(mechanism.inputs), 2):
        own = sf.privacy_loss(mechanism, x, x2, report_count=10)
        allowed = sf.privacy_loss(mechanism.context, x, x2, report_count=10)
        for epsilon in (0.0, 1.0, 4.0, 9.0):
            assert own.delta(epsilon) <= allowed.delta(epsilon) + 1e-15


def test_epsilon_inverts_delta():
    loss = sf.privacy_loss(sf.Uniform(2, 0.3), 0, 1, report_count=30)
    for delta in (1e-9, 1e-4, 0.1):
        epsilon = loss.epsilon(delta)
        assert loss.delta(epsilon) <= delta < loss.delta(epsilon - 1e-7)


def test_zero_delta_gives_pure_privacy():
    loss = sf.privacy_loss(sf.Uniform(2, 0.5), 0, 1, report_count=4)
    assert loss.epsilon(0.0) == pytest.approx(2.0, abs=1e-8)
    assert loss.delta(2.0) <= 1e-15


def test_infinite_losses_leave_a_delta_at_every_epsilon():
    loss = sf.privacy_loss(sf.HighLowResponse(sf.HighLow(2, [1], 1)), 0, 1, report_count=3)
    stays_hidden = Fraction(1) - loss_of_one()
    assert loss.delta(inf) == pytest.approx(float(1 - stays_hidden**3))
    assert loss.epsilon(1e-6) == inf


def loss_of_one():
    """Return the probability of an unrandomized "not sensitive"."""
    return sf.HighLowResponse(sf.HighLow(2, [1], 1)).exact_row(0)[2]


@pytest.mark.parametrize("pair", [(0, 0), (0, 2), (-1, 0)])
def test_equal_symbols_raise(pair):
    with pytest.raises(InvalidSymbols, match="two different symbols"):
        sf.privacy_loss(sf.Uniform(2, 1), *pair)


def test_invalid_reports_delta_and_epsilon_raise():
    with pytest.raises(InvalidArgument, match="positive integer"):
        sf.privacy_loss(sf.Uniform(2, 1), 0, 1, report_count=0)
    with pytest.raises(InvalidArgument, match="delta must be"):
        sf.privacy_loss(sf.Uniform(2, 1), 0, 1).epsilon(1.0)
    with pytest.raises(InvalidContext, match="negative"):
        sf.privacy_loss(sf.Uniform(2, 1), 0, 1).delta(-1)
