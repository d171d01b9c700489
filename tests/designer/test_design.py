"""Designs match known optima, keep their context, and survive a stop at any time."""

import itertools
import sys
from fractions import Fraction
from functools import cache
from math import exp, nan

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import sfumato as sf
from sfumato.contexts import ContextUnion
from sfumato.designer import component
from sfumato.designer.exponential import exponential_response
from sfumato.designer.search import Objective, search_rounds, to_table
from sfumato.errors import InvalidArgument, NoClosedForm, NothingToLearn
from sfumato.planning import lower_bound_risk_at_uniform, ye_barg_bound
from support.lone_checker import check_file
from support.matrices import (
    asymmetric,
    chain,
    cross_section,
    equal,
    free_rows,
    line,
    mixed,
    one_way,
    planar,
    star,
    value_of,
    without,
)
from support.slow import slow_except


def _check_sound(result, context):
    """Check that a design is private, describes its mechanism, and lies above its bound."""
    assert str(sf.certify(result.mechanism, context)) == str(result.certificate)
    variances = result.mechanism.scores.variances(result.prior, 1)
    assert result.risk == pytest.approx(float(result.weights @ variances), rel=1e-9, abs=1e-12)
    assert -1e-12 <= result.lower_bound <= result.risk
    assert result.gap == pytest.approx(
        result.risk / result.lower_bound - 1 if result.lower_bound > 0 else 0, abs=1e-12
    )


# --- known optima ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(1, 1), ("0.5", 2), ("inf", 1), (1, "inf"), ("inf", "inf")])
@pytest.mark.parametrize("prior", [None, [0.9, 0.1]])
def test_two_symbols_get_the_binary_optimum(a, b, prior):
    context = sf.PrivacyMatrix([[0, a], [b, 0]])
    result = sf.design(context, prior=prior)
    _check_sound(result, context)
    assert (result.mechanism.kind, result.certified) == ("binary", True)
    assert result.gap < 1e-8  # the cost of rounding to integers only
    if (a, b) == (1, 1) and prior is None:
        assert result.risk == pytest.approx(0.5 * ((exp(1) + 1) / (exp(1) - 1)) ** 2, rel=1e-12)


@pytest.mark.parametrize("k", slow_except(range(3, 8), range(3, 11)))
@pytest.mark.parametrize("epsilon", ["0.5", 1, 3])
def test_uniform_contexts_meet_ye_and_barg(k, epsilon):
    result = sf.design(sf.Uniform(k, epsilon))
    _check_sound(result, sf.Uniform(k, epsilon))
    assert result.certified
    assert result.risk == pytest.approx(ye_barg_bound(k, float(epsilon)), rel=1e-4)
    assert result.lower_bound == pytest.approx(ye_barg_bound(k, float(epsilon)), rel=1e-4)


@pytest.mark.parametrize(
    "context",
    [
        sf.HighLow(8, [0, 1, 2], 1),
        sf.HighLow(12, range(4), 1),
        sf.HighLow(10, range(5), 1),
        sf.Blocks([0] * 4 + [1] * 4, 1),
        sf.Blocks([0] * 3 + [1] * 5 + [2] * 2, 1),
        sf.Blocks([0] * 3 + [1] * 5 + [2] * 2, [1, 2, 3]),
    ],
    ids=repr,
)
def test_high_low_and_blocks_meet_their_bound(context):
    result = sf.design(context)
    _check_sound(result, context)
    assert result.certified
    assert result.risk == pytest.approx(lower_bound_risk_at_uniform(context), rel=1e-4)
    assert result.risk <= sf.mechanism_for(context).scores.risk(result.prior) * (1 + 1e-9)


@pytest.mark.parametrize(
    "context",
    [
        sf.Tiers([0, 0, 1, 1, 1, 2], [1, 2, "0.5"]),
        sf.Blocks([0, 0, 0, 1, 1, 1], 1, across=3),
        sf.Uniform(6, 1),
        sf.HighLow(7, [0, 2, 4], 2),
        sf.Blocks([0, 0, 0, 1, 1], [1, 2]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_designs_beat_closed_form_baselines(context, seed):
    k = context.size
    random = np.random.default_rng(seed)
    prior = None if seed is None else random.dirichlet(np.full(k, 2.0))
    weights = None if seed is None else random.uniform(0.3, 3, k)
    result = sf.design(context, prior=prior, weights=weights)
    _check_sound(result, context)
    assert result.certified
    assert result.gap < 1e-3
    for rival in (sf.mechanism_for(context), exponential_response(context)):
        risk = float(result.weights @ rival.scores.variances(result.prior, 1))
        assert result.lower_bound <= risk * (1 + 1e-12)
        assert result.risk <= risk * (1 + 2e-5)


def test_better_table_replaces_a_closed_form():
    context = sf.Uniform(5, 1)
    result = sf.design(context, prior=[5, 1, 1, 1, 1])
    assert result.mechanism.kind == "table"
    assert result.risk < 0.999 * sf.mechanism_for(context).scores.risk(result.prior)
    even = sf.design(context, weights=[3] * 5)
    assert even.mechanism.kind == "plain"
    assert even.risk == pytest.approx(3 * ye_barg_bound(5, 1.0), rel=1e-9)


# --- more known optima ---------------------------------------------------------------------------

KNOWN = {  # from an independent program
    "planar 8": (planar(8, 1, 2.0), 73.5673),
    "planar 9": (planar(9, 1, 2.0), 88.4876),
    "asymmetric 6": (asymmetric(6, 5), 22.4108),
    "asymmetric 8": (asymmetric(8, 5), 30.9608),
    "asymmetric 10": (asymmetric(10, 5), 34.7632),
}


@pytest.mark.parametrize("name", slow_except({"planar 8", "asymmetric 6", "asymmetric 8"}, KNOWN))
def test_risks_match_an_independent_program(name):
    E, risk = KNOWN[name]
    result = sf.design(sf.PrivacyMatrix(E))
    assert result.certified
    assert result.risk == pytest.approx(risk, rel=1e-4)
    assert result.lower_bound == pytest.approx(risk, rel=1e-4)


APART = np.not_equal.outer([0, 1, 0, 2, 1, 0, 3], [0, 1, 0, 2, 1, 0, 3])
NEAR = np.isin(np.arange(36).reshape(6, 6), [1, 6])
MATRICES = {
    "asymmetric 6": asymmetric(6, 11),
    "asymmetric 8": asymmetric(8, 12),
    "line 6": line(6, 1.0),
    "line 8": line(8, 0.5),
    "planar 6": planar(6, 13, 2.0),
    "planar 8": planar(8, 14, 1.0),
    "ε around 0.01": asymmetric(6, 7) * 0.01,
    "ε around 0.1": asymmetric(6, 7) * 0.1,
    "ε around 5": asymmetric(6, 7) * 3,
    "ε around 20": asymmetric(6, 7) * 12,
    "mixed": mixed(6, 1),
    "mixed again": mixed(6, 2),
    "a pair at 1/100": np.where(NEAR, 0.01, asymmetric(6, 3)),
    "a free row": free_rows(6, 4, 1),
    "three free rows": free_rows(7, 5, 3),
    "one-way": one_way(6, 6),
    "chain": chain(7, 7),
    "star": star(6, 8),
    "star outwards": star(6, 9).T,
    "pieces and singles": without(asymmetric(7, 10), APART),
    "a link between pieces": np.where(
        np.arange(49).reshape(7, 7) == 1, 1.0, without(asymmetric(7, 10), APART)
    ),
    "blocks with a matrix inside": np.where(
        np.kron(np.eye(2), np.ones((4, 4))), asymmetric(8, 16), 6.0
    )
    * (1 - np.eye(8)),
}


@cache
def _design_of(name):
    return sf.design(sf.PrivacyMatrix(MATRICES[name]))


@pytest.mark.parametrize("name", MATRICES)
def test_designs_are_private_and_close_to_their_bound(name):
    E = MATRICES[name]
    context = sf.PrivacyMatrix(E)
    result = _design_of(name)
    _check_sound(result, context)
    assert result.certified
    assert result.stop_reason == "converged"
    assert result.gap < 2e-5
    rival = exponential_response(context)
    assert result.risk < rival.scores.risk(np.full(len(E), 1 / len(E)))


@pytest.mark.parametrize(
    "name",
    ["asymmetric 6", "ε around 0.01", "mixed", "a pair at 1/100", "star", "pieces and singles"],
)
def test_designs_pass_the_exam(name):
    sf.check_mechanism(_design_of(name).mechanism)


ROUNDED = ["asymmetric 8", "planar 8", "ε around 0.01", "mixed", "a pair at 1/100", "star"]


@pytest.mark.parametrize(
    ("name", "prior"),
    slow_except(
        {*itertools.product(ROUNDED[2:], [None, 1]), ("asymmetric 8", 1)},
        itertools.product(ROUNDED, [None, 1]),
    ),
)
def test_rounding_costs_almost_nothing(name, prior):
    context = sf.PrivacyMatrix(MATRICES[name])
    k = context.size
    p = None if prior is None else np.random.default_rng(prior).dirichlet(np.full(k, 2.0))
    objective = Objective.parse(k, p, None)
    section = cross_section(context.matrix(), objective.prior)
    with threadpool_limits(1):
        answer = list(
            itertools.islice(search_rounds(section, objective.weights, 0, np.empty((0, k))), 8)
        )[-1]
        table = to_table(context, answer, objective)
    assert objective.value_of(table) <= answer.mixture.value * (1 + 1e-6)
    assert objective.value_of(table) >= answer.bound
    assert objective.value_of(table) == pytest.approx(
        value_of(table.matrix().T, objective.prior, objective.weights), rel=1e-7
    )
    sf.certify(table, context)


def test_designs_need_few_reports():
    """At most ``k(k+1)/2``: an optimal mixture needs no more."""
    for E in (asymmetric(8, 12), planar(8, 14, 1.0), line(8, 0.5), equal(6, 1.0)):
        context = sf.PrivacyMatrix(E)
        k = context.size
        assert sf.design(context, prior=np.arange(1, k + 1)).mechanism.outputs <= k * (k + 1) // 2


LARGER_ONE_WAY = {
    "star": star(18, 7),
    "one-way": one_way(18, 7),
    "chain": chain(18, 7),
    "free rows": free_rows(18, 7, 3),
}


@pytest.mark.parametrize("name", slow_except({"chain"}, LARGER_ONE_WAY))
def test_larger_one_way_matrices(name):
    E = LARGER_ONE_WAY[name]
    """Columns with zeros, where the search cannot list all rays."""
    context = sf.PrivacyMatrix(E)
    result = sf.design(context, time_limit=1)
    _check_sound(result, context)
    assert np.isfinite(result.lower_bound)
    assert not result.certified
    assert result.risk < exponential_response(context).scores.risk(result.prior)


def test_closed_form_keeps_its_certified_bound_after_a_search():
    context = sf.HighLow(20, range(4), 1)
    result = sf.design(context, time_limit=20)
    _check_sound(result, context)
    assert result.certified
    assert result.lower_bound >= lower_bound_risk_at_uniform(context) * (1 - 1e-9)
    assert result.risk < 0.95 * sf.mechanism_for(context).scores.risk(result.prior)


@pytest.mark.parametrize("epsilon", ["1e-5", "1e-7", "1e-9"])
def test_nearly_equal_symbols_get_a_design_or_a_clear_error(epsilon):
    E = asymmetric(5, 3)
    E[0, 1] = E[1, 0] = float(epsilon)
    context = sf.PrivacyMatrix(E)
    try:
        result = sf.design(context)
    except NothingToLearn as refused:
        assert "ε" in str(refused) or "word" in str(refused)
    else:
        _check_sound(result, context)


# --- priors and weights ---------------------------------------------------------------------------

PRIORS = {
    "uneven": [3, 1, 4, 1, 5, 9],
    "tiny shares": [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5],
    "nobody there": [1, 1, 0, 0, 1, 0],
    "all in one": [0, 0, 1, 0, 0, 0],
}
WEIGHTS = {
    "even": None,
    "uneven": [1, 2, 3, 4, 5, 6],
    "one hardly counts": [1, 1, 1, 1, 1, 1e-6],
    "one alone counts": [1, 1, 1, 1, 1e6, 1],
    "small": [1e-30] * 6,
    "large": [1e30] * 6,
}


# Every prior and every kind of weights once; the other pairs are slow.
DIAGONAL = set(
    zip(PRIORS, ["even", "uneven", "one hardly counts", "one alone counts"], strict=True)
)
DIAGONAL |= {(next(iter(PRIORS)), "small"), (next(iter(PRIORS)), "large")}


@pytest.mark.parametrize(
    ("prior_name", "weights_name"), slow_except(DIAGONAL, itertools.product(PRIORS, WEIGHTS))
)
def test_design_follows_prior_and_weights(prior_name, weights_name):
    prior = PRIORS[prior_name]
    weights = WEIGHTS[weights_name]
    context = sf.PrivacyMatrix(asymmetric(6, 7))
    result = sf.design(context, prior=prior, weights=weights)
    _check_sound(result, context)
    assert result.certified
    assert result.gap < 2e-5
    p = np.maximum(np.array(prior) / np.sum(prior), 1e-6)
    np.testing.assert_allclose(result.prior, p / p.sum(), rtol=0.1, atol=2e-6)
    even = sf.design(context).mechanism
    assert result.lower_bound <= float(result.weights @ even.scores.variances(result.prior, 1)) * (
        1 + 1e-12
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": [1, 2]}, "prior must be 6 finite, non-negative numbers"),
        ({"prior": [nan] * 6}, "prior must be 6 finite"),
        ({"prior": [0] * 6}, "that are not all 0"),
        ({"prior": [-1, 1, 1, 1, 1, 1]}, "non-negative"),
        ({"weights": [0, 1, 1, 1, 1, 1]}, "weights must be positive"),
        ({"weights": 3}, "weights must be 6 finite"),
        ({"time_limit": 0}, "time_limit must be a positive number of seconds; got 0"),
        ({"time_limit": nan}, "time_limit must be"),
        ({"time_limit": "3"}, "time_limit must be"),
        ({"time_limit": True}, "time_limit must be"),
        ({"seed": 1.5}, "seed must be an integer; got 1.5"),
        ({"seed": True}, "seed must be"),
    ],
    ids=str,
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        sf.design(sf.PrivacyMatrix(asymmetric(6, 1)), **arguments)


@pytest.mark.parametrize(
    "E", [[[0, 0, 1], [0, 0, 1], [1, 1, 0]], [[0, 0, 1], [2, 0, 1], [1, 1, 0]]], ids=["both", "one"]
)
def test_indistinguishable_symbols_raise(E):
    with pytest.raises(NothingToLearn, match="forbids telling symbols 0 and 1 apart"):
        sf.design(sf.PrivacyMatrix(E))


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", [sf.PrivacyMatrix([[0]]), sf.Uniform(1, 1)], ids=repr)
def test_one_symbol(context):
    result = sf.design(context, prior=[3], weights=[2])
    assert (result.risk, result.lower_bound, result.gap, result.stop_reason) == (
        0,
        0,
        0,
        "closed form",
    )


def test_matrix_without_promises_keeps_its_labels():
    E = np.where(np.eye(3, dtype=bool), 0, np.inf)
    context = sf.PrivacyMatrix(E, domain=["park", "clinic", "bar"])
    assert sf.design(context).mechanism.context.domain == context.domain


def test_too_many_symbols_without_closed_form_raise():
    context = sf.PrivacyMatrix(asymmetric(300, 1))
    with pytest.raises(NoClosedForm, match=r"connects 300 symbols.*at most 128.*Metric\.tiles"):
        sf.design(context)


def test_large_matrix_with_closed_form_gets_it():
    result = sf.design(sf.PrivacyMatrix(equal(200, 1.0)))
    assert (result.mechanism.kind, result.stop_reason, result.certified) == (
        "plain",
        "closed form",
        True,
    )
    assert result.gap < 0.02


def test_many_small_components_are_designed():
    context = sf.union([sf.PrivacyMatrix(asymmetric(3, 1))] * 50)
    result = sf.design(context)
    _check_sound(result, context)
    assert result.mechanism.inputs == 150
    assert result.certified
    assert result.gap < 1e-5


# --- unions ---------------------------------------------------------------------------------------


def test_union_combines_its_parts():
    """``Σ_j p_j (tr W_j M_j⁻¹)``, less ``Σ w p²``, for the risk and for the bound."""
    parts = [
        sf.PrivacyMatrix(asymmetric(4, 1)),
        sf.PrivacyMatrix(asymmetric(3, 2)),
        sf.Uniform(3, 2),
    ]
    context = ContextUnion(parts, [0, 1, 0, 2, 1, 0, 2, 0, 2, 1])
    prior = np.arange(1, 11) / 55
    weights = np.arange(10, 0, -1.0)
    result = sf.design(context, prior=prior, weights=weights)
    _check_sound(result, context)
    risk = bound = 0.0
    for j, inside in enumerate(parts):
        at = np.flatnonzero(context.block_of == j)
        p = prior[at] / prior[at].sum()
        w = weights[at]
        alone = sf.design(inside, prior=p, weights=w)
        known = float(w @ p**2)
        risk += prior[at].sum() * (alone.risk + known)
        bound += prior[at].sum() * (alone.lower_bound + known)
    known = float(weights @ prior**2)
    assert result.risk == pytest.approx(risk - known, rel=1e-5)
    assert result.lower_bound == pytest.approx(bound - known, rel=1e-5)
    assert result.gap < 1e-5


def test_equal_components_are_designed_once(monkeypatch):
    sizes = []

    def counted(context, objective, *rest):
        sizes.append(context.size)
        return component.design_component(context, objective, *rest)

    monkeypatch.setattr(sys.modules["sfumato.designer.design"], "design_component", counted)
    E = sf.PrivacyMatrix(asymmetric(4, 1))
    parts = [E, E, sf.Uniform(3, 2), E, sf.Uniform(3, 2)]
    result = sf.design(sf.union(parts))
    assert sorted(sizes) == [3, 4]
    assert (
        result.mechanism.parts[0].to_record()
        == result.mechanism.parts[1].to_record()
        == result.mechanism.parts[3].to_record()
    )
    sizes.clear()
    sf.design(sf.union([E, E]), prior=[1, 1, 1, 1, 1, 1, 1, 2])
    assert sizes == [4, 4]
    sizes.clear()
    sf.design(sf.union([E, E]), prior=[1, 1, 1, 2, 3, 3, 3, 6])
    assert sizes == [4]


@pytest.mark.parametrize(
    "context",
    [
        sf.PrivacyMatrix(asymmetric(5, 1), domain=["a", "b", "c", "d", "e"]),
        sf.Metric(line(5, 1.0), "0.7"),
        sf.PrivacyMatrix(without(asymmetric(7, 10), APART)),
        sf.Metric(planar(8, 1, 1.0)).tiles([0, 0, 0, 0, 1, 1, 1, 1]),
        sf.Blocks([0, 0, 0, 1, 1], [1, 2]),
    ],
    ids=["table", "metric", "pieces", "tiles", "blocks"],
)
@pytest.mark.parametrize("prior", [False, True], ids=["even", "prior"])
def test_designs_round_trip_and_pass_the_checker(context, prior, tmp_path):
    result = sf.design(context, prior=np.arange(1, context.size + 1) if prior else None)
    survey = sf.Survey("designed", context, result.mechanism)
    survey.save(tmp_path / "survey.json")
    restored = sf.Survey.load(tmp_path / "survey.json")
    assert restored.fingerprint == survey.fingerprint
    assert restored.mechanism.fingerprint == result.mechanism.fingerprint
    assert restored.context == context
    np.testing.assert_array_equal(
        restored.mechanism.scores.variances(result.prior, 1),
        result.mechanism.scores.variances(result.prior, 1),
    )
    result.mechanism.save(tmp_path / "mechanism.json")
    code, printed = check_file(tmp_path / "mechanism.json")
    assert code == 0, printed


# --- rounds, and stopping -------------------------------------------------------------------------

HARD = sf.PrivacyMatrix(asymmetric(8, 5))


class FakeTime:
    """A clock that stands still until the test advances it."""

    now = 0.0

    def monotonic(self):
        return self.now


def _design_stopped_after(rounds, monkeypatch, how, context=HARD):
    """Return a design whose search stopped after `rounds` rounds."""
    time = FakeTime()
    monkeypatch.setattr(component, "time", time)

    def progress(round_):
        if round_.round_number == rounds:
            if how == "interrupted":
                raise KeyboardInterrupt
            time.now += 1000

    return sf.design(context, time_limit=900, on_progress=progress)


STOPPED = {
    "8": HARD,
    "9": sf.PrivacyMatrix(asymmetric(9, 1)),
    "star": sf.PrivacyMatrix(star(8, 1)),
}


@pytest.mark.parametrize(
    ("name", "rounds"),
    slow_except({("8", 1), ("8", 2), ("8", 4), ("star", 2)}, itertools.product(STOPPED, [1, 2, 4])),
)
def test_result_depends_on_the_last_round_not_the_reason(name, rounds, monkeypatch):
    context = STOPPED[name]
    late = _design_stopped_after(rounds, monkeypatch, "time limit", context)
    broken = _design_stopped_after(rounds, monkeypatch, "interrupted", context)
    assert (late.stop_reason, broken.stop_reason) == ("time limit", "interrupted")
    assert late.round_count == broken.round_count == rounds
    assert late.mechanism.fingerprint == broken.mechanism.fingerprint
    assert late.lower_bound == broken.lower_bound
    _check_sound(late, context)


def test_interrupt_inside_a_round_keeps_earlier_rounds(monkeypatch):
    def interrupted(*arguments):
        yield from itertools.islice(search_rounds(*arguments), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(component, "search_rounds", interrupted)
    rounds_seen = []
    result = sf.design(HARD, on_progress=lambda round_: rounds_seen.append(round_.round_number))
    assert (result.stop_reason, result.round_count, rounds_seen) == ("interrupted", 3, [1, 2, 3])
    monkeypatch.undo()
    assert (
        result.mechanism.fingerprint
        == _design_stopped_after(3, monkeypatch, "time limit").mechanism.fingerprint
    )


def test_interrupt_ends_the_search_of_every_component(monkeypatch):
    context = sf.union([sf.PrivacyMatrix(asymmetric(6, seed)) for seed in (1, 2)])
    result = _design_stopped_after(2, monkeypatch, "interrupted", context)
    _check_sound(result, context)
    assert result.stop_reason == "interrupted"
    assert result.round_count == 3


def test_equal_seeds_give_equal_mechanisms():
    one, two, other = (sf.design(HARD, seed=seed) for seed in (3, 3, -4))
    assert one.mechanism.fingerprint == two.mechanism.fingerprint
    assert one.mechanism.fingerprint != other.mechanism.fingerprint
    assert one.risk == pytest.approx(other.risk, rel=1e-5)


def test_on_progress_is_called_every_round():
    rounds_seen = []
    context = sf.union(
        [sf.PrivacyMatrix(asymmetric(5, 1)), sf.PrivacyMatrix(asymmetric(6, 2)), sf.Uniform(3, 1)]
    )
    result = sf.design(context, on_progress=rounds_seen.append)
    assert {round_.component_count for round_ in rounds_seen} == {3}
    for number in (1, 2):
        rounds = [round_ for round_ in rounds_seen if round_.component_number == number]
        assert [round_.round_number for round_ in rounds] == list(range(1, len(rounds) + 1))
        risks = [round_.risk for round_ in rounds]
        bounds = [round_.lower_bound for round_ in rounds]
        assert risks == sorted(risks, reverse=True)
        assert bounds == sorted(bounds)
        assert rounds[-1].gap <= 1e-5
        assert all(round_.certified and round_.ray_count > 0 for round_ in rounds)
    assert len(rounds_seen) == result.round_count
    seconds = [round_.seconds for round_ in rounds_seen]
    assert seconds == sorted(seconds)


def test_components_share_the_time_limit(monkeypatch):
    """The first of three components gets 300 of 900 seconds; the others still get theirs."""
    time = FakeTime()
    rounds = {1: 0, 2: 0, 3: 0}
    monkeypatch.setattr(component, "time", time)

    def progress(round_):
        rounds[round_.component_number] += 1
        time.now += 160

    context = sf.union([sf.PrivacyMatrix(asymmetric(7, seed)) for seed in (1, 2, 3)])
    assert sf.design(context, time_limit=900, on_progress=progress).stop_reason == "time limit"
    assert rounds == {1: 2, 2: 2, 3: 2}


def test_design_in_words_and_json():
    result = sf.design(HARD)
    assert result.summary().startswith(f"Risk {result.risk:.6g}, ")
    assert "certified bound" in result.summary()
    assert result.summary() in repr(result)
    document = result.to_dict()
    assert (document["risk"], document["bound_is"], document["stopped"]) == (
        result.risk,
        "certified",
        "converged",
    )
    assert document["outputs"] == result.mechanism.outputs
    assert "<p>" in result._repr_html_()
    exact = sf.design(sf.Uniform(4, 1))
    assert exact.to_dict()["gap"] == pytest.approx(0, abs=1e-12)


def test_designs_keep_exact_promises():
    """Promises are decimals, not the floats that the search uses."""
    context = sf.PrivacyMatrix([[0, "0.1", "0.2"], ["0.1", 0, "0.3"], ["0.2", "0.1", 0]])
    result = sf.design(context)
    assert result.mechanism.context.exact_epsilon(0, 1) == Fraction(1, 10)
    _check_sound(result, context)
