"""Plans: predictions against real reports, the hardest distribution against search, round trips,
infeasible goals.
"""

import html
import json
import math
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import sfumato as sf
from sfumato.designer.exponential import exponential_response
from sfumato.domains.partitions import grid_tiles
from sfumato.errors import (
    ContextMismatch,
    InvalidArgument,
    InvalidContext,
    NoClosedForm,
    NotEnoughReports,
    SfumatoError,
)
from sfumato.estimation.decoders import get_decoder
from sfumato.estimation.decoders.histograms import draw_histogram
from sfumato.planning import plan
from sfumato.planning.decoded_forecast import DecodedForecast
from sfumato.planning.predict import (
    MAX_PEOPLE,
    UnbiasedForecast,
    hardest_for_l2,
    hardest_for_tv,
    worst_symbol_variance,
    worst_total_variance,
)
from sfumato.planning.target import MEASURES, Target
from sfumato.simulation import SeededWords
from support.slow import slow_except

CONTEXTS = {
    "two": sf.Uniform(2, 1),
    "uniform": sf.Uniform(5, 1),
    "high-low": sf.HighLow(20, [1, 2, 3], 1),
    "blocks": sf.Blocks([0] * 3 + [1] * 7 + [2], 1),
    "matrix": sf.PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]),
}
RUNS = 300
PEOPLE = 5000


@pytest.fixture
def few_draws(monkeypatch):
    """Predict from 40 draws, in tests that do not compare predictions with real reports."""
    monkeypatch.setattr("sfumato.planning.decoded_forecast._MAX_DRAWS", 40)


def _skewed_distribution(size, seed):
    """Return a skewed distribution, the same every time."""
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.6))


def _real_tallies(mechanism, p, people, runs):
    """Draw people from p, privatize and tally their answers."""
    generator = np.random.default_rng(17)
    for run in range(runs):
        symbols = generator.choice(p.size, size=people, p=p)
        yield mechanism.tally(mechanism.privatize(symbols, SeededWords(5, run=run)))


class Surveyed(NamedTuple):
    """A mechanism, the distribution of people, and tallies of their reports, one for each run."""

    mechanism: sf.Mechanism
    p: np.ndarray
    tallies: list


@cache
def _surveyed(name):
    mechanism = sf.mechanism_for(CONTEXTS[name])
    p = _skewed_distribution(mechanism.inputs, 3)
    return Surveyed(mechanism, p, list(_real_tallies(mechanism, p, PEOPLE, RUNS)))


def _errors_of(surveyed, decoder, measure="tv", weights=None):
    """Decode the tallies and compare with the distribution of people."""
    mechanism, p, tallies = surveyed
    errors = []
    for tally in tallies:
        off = get_decoder(decoder).decode(mechanism, tally).frequencies - p
        if measure == "tv":
            errors.append(np.abs(off).sum() / 2)
        else:
            errors.append(np.linalg.norm(off) if measure == "l2" else abs(off @ weights))
    return np.array(errors)


# --- predictions and real reports ----------------------------------------------------------------


@pytest.mark.parametrize("decoder", ["projection", "unbiased"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_predictions_match_real_reports(name, decoder):
    mechanism, p, _ = _surveyed(name)
    real = _errors_of(_surveyed(name), decoder)
    forecasts = [DecodedForecast(mechanism, "tv", 0.95, p, decoder).at(PEOPLE)]
    if decoder == "unbiased":
        forecasts.append(UnbiasedForecast.for_target(mechanism, Target("tv", 0.95, p)).at(PEOPLE))
    for forecast in forecasts:
        assert forecast.mean_error == pytest.approx(real.mean(), rel=0.1)
        # 300 runs give their own 95th percentile to about a tenth; the share of runs below ours is
        # sharper.
        assert 0.9 < (real <= forecast.error).mean() < 0.99


def test_real_reports_reveal_half_the_variance():
    mechanism, p, _ = _surveyed("blocks")
    real = _errors_of(_surveyed("blocks"), "unbiased")
    honest = UnbiasedForecast.for_target(mechanism, Target("tv", 0.95, p)).at(PEOPLE)
    assert honest.mean_error / math.sqrt(2) != pytest.approx(real.mean(), rel=0.1)
    assert (real <= honest.error / math.sqrt(2)).mean() < 0.9


@pytest.mark.parametrize("name", ["uniform", "blocks"])
def test_l2_and_totals_are_those_of_real_reports(name):
    mechanism, p, _ = _surveyed(name)
    weights = np.zeros(mechanism.inputs)
    weights[[0, 3]] = 1, 2
    for measure, decoder in (("l2", "unbiased"), ("l2", "projection"), ("total", "unbiased")):
        real = _errors_of(_surveyed(name), decoder, measure, weights)
        target = Target(measure, 0.95, p, weights if measure == "total" else None)
        forecast = UnbiasedForecast.for_target(mechanism, target)
        if decoder == "projection":
            forecast = DecodedForecast(mechanism, measure, 0.95, p, decoder)
        mean = math.sqrt((real**2).mean()) if measure == "l2" else real.mean()
        assert forecast.at(PEOPLE).mean_error == pytest.approx(mean, rel=0.1)
        assert 0.9 < (real <= forecast.at(PEOPLE).error).mean() < 0.99


def test_grid_plan_matches_real_reports():
    grid = sf.GridDomain(25, 50, -130, -60, 0.2)
    context = sf.Blocks(grid_tiles(grid, 25, 70), 1, domain=grid)
    p = np.random.default_rng(2).pareto(1.2, grid.size)
    p /= p.sum()
    result = plan(context, people=1_000_000, distribution=p, decoder="projection")
    mechanism = result.row.mechanism
    tallies = list(_real_tallies(mechanism, p, 1_000_000, runs=1))
    real = _errors_of(Surveyed(mechanism, p, tallies), "projection")
    assert result.mean_error == pytest.approx(real.mean(), rel=0.1)
    assert (result.estimate, result.decoder, result.distribution) == (
        "decoded",
        "projection",
        "given",
    )


def test_draw_histogram_has_the_moments_of_counts():
    q = np.array([0.0005, 0.004, 0.015, 0.02, 0.4, 0.5605])
    drawn = np.array([draw_histogram(q, 1000, draw) for draw in range(3_000)])
    # Means of 3,000 draws: 6 standard errors. Variances: √(2/3,000) = 2.6 % each, a little more
    # where counts are few.
    np.testing.assert_allclose(
        drawn.mean(axis=0), 1000 * q, atol=6 * np.sqrt(1000 * q.max() / 3_000), rtol=0
    )
    np.testing.assert_allclose(drawn.var(axis=0), 1000 * q, rtol=0.09)
    skews = ((drawn - 1000 * q) ** 3).mean(axis=0) / (1000 * q) ** 1.5
    np.testing.assert_allclose(skews[:4], (1000 * q[:4]) ** -0.5, rtol=0.5, atol=0.05)


def test_histograms_depend_only_on_the_draw():
    q = np.array([0.2, 0.3, 0.5])
    assert draw_histogram(q, 10**9, 3).tolist() == draw_histogram(q, 10**9, 3).tolist()
    assert len({tuple(draw_histogram(q, 10**9, draw)) for draw in range(50)}) == 50


# --- the hardest distribution --------------------------------------------------------------------

LARGE = {
    "high-low, 600": sf.HighLow(600, range(10), 1),
    "blocks, 201": sf.Blocks([0] * 50 + [1] * 100 + [2] * 50 + [3], 1),
    "many sizes": sf.Blocks([j for j in range(20) for _ in range(j + 1)], 1),
    "more sizes": sf.Blocks([j for j in range(30) for _ in range(j + 1)], 1),
}


@pytest.mark.parametrize(
    "name", slow_except({*CONTEXTS, *LARGE} - {"more sizes"}, [*CONTEXTS, *LARGE])
)
def test_no_other_distribution_is_harder(name):
    mechanism = sf.mechanism_for({**CONTEXTS, **LARGE}[name])
    k = mechanism.inputs
    generator = np.random.default_rng(1)

    def roots(p):
        return np.sqrt(np.maximum(mechanism.scores.variances(p, 1), 0)).sum()

    hardest = hardest_for_tv(mechanism)
    assert hardest.sum() == pytest.approx(1)
    assert (hardest >= 0).all()
    tried = [generator.dirichlet(np.full(k, a)) for a in (0.02, 0.3, 3, 30) for _ in range(20)]
    tried += [np.full(k, 1 / k), *np.eye(k)[:5]]
    tried += [np.abs(hardest * (1 + 0.3 * generator.standard_normal(k))) for _ in range(20)]
    tried = [p / p.sum() for p in tried]
    weights = np.zeros(k)
    weights[: k // 2 + 1] = generator.integers(1, 4, k // 2 + 1)
    scores = mechanism.scores.totals(weights)
    assert max(map(roots, tried)) <= roots(hardest) * 1.002
    assert max(map(mechanism.scores.risk, tried)) <= mechanism.scores.risk(
        hardest_for_l2(mechanism)
    ) * (1 + 1e-9)
    assert mechanism.scores.risk(hardest_for_l2(mechanism)) == pytest.approx(
        mechanism.scores.worst_risk()
    )
    assert (
        max(mechanism.scores.variances(p, 1).max() for p in tried)
        <= worst_symbol_variance(mechanism) * 1.002
    )
    largest = max(mechanism.forward(p) @ scores**2 - (weights @ p) ** 2 for p in tried)
    assert largest <= worst_total_variance(mechanism, weights) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("name", CONTEXTS)
def test_the_worst_variances_are_reached(name):
    """Try every pair of symbols and a fine grid of shares."""
    mechanism = sf.mechanism_for(CONTEXTS[name])
    k = mechanism.inputs
    t = np.linspace(0, 1, 2001)
    M = (mechanism.scores.matrix() ** 2) @ mechanism.matrix().T
    worst = [
        max(float((t * M[x, x] + (1 - t) * M[x, x2] - t**2).max()) for x2 in range(k) if x2 != x)
        for x in range(k)
    ]
    assert worst_symbol_variance(mechanism) == pytest.approx(max(worst), rel=1e-5)
    variances = [worst_total_variance(mechanism, unit) for unit in np.eye(k)]
    np.testing.assert_allclose(variances, worst, rtol=1e-5)


# --- people and errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", ["uniform", "high-low", "blocks"])
def test_people_and_error_round_trip(name, measure):
    labels = [0, 2] if measure == "total" else None
    result = plan(CONTEXTS[name], people=12_345, measure=measure, labels=labels)
    back = plan(CONTEXTS[name], error=result.error, measure=measure, labels=labels)
    assert back.people == 12_345
    assert back.error == pytest.approx(result.error)
    fewer = plan(CONTEXTS[name], people=12_344, error=result.error, measure=measure, labels=labels)
    assert not fewer.is_feasible


@pytest.mark.parametrize("name", slow_except({"uniform"}, ["uniform", "high-low", "blocks"]))
def test_decoded_people_and_error_round_trip(name):
    p = _skewed_distribution(CONTEXTS[name].size, 3)
    forecast = DecodedForecast(sf.mechanism_for(CONTEXTS[name]), "tv", 0.95, p, "projection")
    error = forecast.at(10_000).error
    people = forecast.people_for(error, start=20_000)
    assert people == pytest.approx(10_000, rel=0.1)
    assert error * 0.98 <= forecast.at(people).error <= error


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("distribution", ["worst", "uniform"])
@pytest.mark.parametrize("measure", ["tv", "l2", "symbol"])
def test_more_people_never_increase_the_error(distribution, measure):
    context = CONTEXTS["two"]
    options = {"distribution": distribution, "measure": measure, "decoder": "projection"}
    result = plan(context, people=100, **options)
    errors = [result.at(n).error for n in (100, 1600, 25_600)]
    assert errors == sorted(errors, reverse=True)
    assert result.at(100).error == result.error
    needed = [plan(context, error=e, **options).people for e in (0.2, 0.05)]
    assert needed[0] < needed[1]


def test_confidence_changes_the_error_not_the_mean():
    plans = [plan(CONTEXTS["uniform"], people=1000, confidence=level) for level in (0.6, 0.9, 0.99)]
    assert plans[0].error < plans[1].error < plans[2].error
    assert len({result.mean_error for result in plans}) == 1
    assert plans[0].mean_error < plans[0].error


def test_worst_is_worse_than_any_distribution():
    for name in ("uniform", "high-low", "blocks"):
        worst = plan(CONTEXTS[name], people=1000)
        assert worst.estimate == "unbiased"
        for seed in range(2):
            target = Target("tv", 0.95, _skewed_distribution(CONTEXTS[name].size, seed))
            forecast = UnbiasedForecast.for_target(worst.row.mechanism, target).at(1000)
            assert forecast.mean_error <= worst.mean_error * 1.001


def test_rows_show_what_context_saves():
    result = plan(sf.HighLow(200, range(5), 1), error=0.1)
    rows = {row.name: row for row in result.rows}
    assert list(rows) == ["classical", "hadamard", "best"]
    assert rows["classical"].unbiased.people > 20 * rows["best"].unbiased.people
    assert rows["best"].risk_ratio == pytest.approx(rows["best"].risk / result.risk_lower_bound)
    assert min(row.risk_ratio for row in result.rows) >= 1
    assert rows["best"].bits == rows["best"].mechanism.bits
    assert rows["best"].leverage == rows["best"].mechanism.scores.leverage


def test_plan_is_for_your_mechanism():
    context = sf.Uniform(5, 3)
    own = sf.mechanism_for(context, code="hadamard")
    result = plan(context, error=0.05, mechanism=own)
    assert result.chosen == "own"
    assert result.row.mechanism.to_record() == own.to_record()
    assert result.people > plan(context, error=0.05).people
    assert plan(context, error=0.05, mechanism=sf.mechanism_for(context)).chosen == "best"


def test_plan_names_a_better_mechanism():
    context = sf.Uniform(5, 3)
    poor = plan(context, people=1000, mechanism=sf.mechanism_for(context, code="hadamard"))
    better = next(row for row in poor.rows if row.name == "best").unbiased.error
    assert (
        "another mechanism is better: classical LDP, ε = 3, with an error of "
        f"{better:.3g} for 1,000 people" in poor.summary()
    )
    assert "another mechanism is better" not in plan(context, people=1000).summary()


def _places(k, seed=1):
    """Places in the unit square, their distances in units of half the median: no closed form fits
    them.
    """
    places = np.random.default_rng(seed).random((k, 2))
    far = np.linalg.norm(places[:, None] - places[None], axis=2)
    return sf.Metric((far / np.median(far) * 2).round(4))


NO_CLOSED_FORM = {
    "places": _places(6),
    "matrix": sf.PrivacyMatrix([[0, 1, 2], [1, 0, 3], [2, 3, 0]]),
    "one way": sf.PrivacyMatrix([[0, 1, 2, "inf"], [1, 0, 3, 2], [2, 3, 0, 1], [1, 1, 2, 0]]),
    "union": sf.union([_places(4), sf.Uniform(2, 1)]),
}


@pytest.mark.parametrize("name", NO_CLOSED_FORM)
def test_plan_without_closed_form_takes_the_least_risk(name):
    result = plan(NO_CLOSED_FORM[name], people=1000)
    rows = {row.name: row for row in result.rows}
    assert list(rows) == ["classical", "exponential", "hadamard", "best"]
    assert [name for name in rows if rows[name].is_available] == ["classical", "exponential"]
    risks = {
        name: rows[name].mechanism.scores.worst_risk() for name in ("classical", "exponential")
    }
    assert result.chosen == min(risks, key=risks.get)
    assert result.error == rows[result.chosen].unbiased.error
    sf.certify(rows["exponential"].mechanism, NO_CLOSED_FORM[name])


def test_either_mechanism_can_have_the_least_risk():
    """So that the test above cannot pass by always naming the same one."""
    assert {plan(context, people=1000).chosen for context in NO_CLOSED_FORM.values()} == {
        "classical",
        "exponential",
    }


def test_missing_row_gives_its_reason():
    context = NO_CLOSED_FORM["matrix"]
    result = plan(context, people=1000)
    with pytest.raises(NoClosedForm) as problem:
        sf.mechanism_for(context)
    rows = {row.name: row for row in result.rows}
    assert (rows["best"].is_available, rows["best"].reason) == (False, str(problem.value))
    assert result.notes() == [f"Hadamard code; best closed form: {problem.value}"]
    for shown in (repr(result), html.unescape(result._repr_html_())):
        assert shown.count(str(problem.value)) == 1
    with pytest.raises(SfumatoError):
        rows["best"].figures_at(10)


@pytest.mark.parametrize("name", CONTEXTS)
def test_structured_contexts_have_no_exponential_row(name):
    result = plan(CONTEXTS[name], people=1000)
    assert [row.name for row in result.rows] == ["classical", "hadamard", "best"]
    assert result.has_closed_form
    assert result.advice == ()


def test_metrics_always_have_an_exponential_row():
    level = sf.Metric(2 * (np.ones((5, 5)) - np.eye(5)))
    result = plan(level, people=1000)
    rows = {row.name: row for row in result.rows}
    assert (result.chosen, result.has_closed_form, result.advice) == ("best", True, ())
    assert list(rows) == ["classical", "exponential", "hadamard", "best"]
    # All distances are equal, so it is randomised response at half the ε, which is best for so few
    # symbols.
    half = plan(
        sf.Uniform(5, 1),
        people=1000,
        mechanism=sf.mechanism_for(sf.Uniform(5, 1), code="randomized"),
    )
    assert rows["exponential"].unbiased.error == pytest.approx(half.error)


def test_oversized_exponential_mechanism_is_explained():
    line = np.abs(np.subtract.outer(np.arange(257), np.arange(257)))
    result = plan(sf.Metric(line, "0.01"), people=1000)
    assert (result.chosen, result.has_closed_form) == ("classical", False)
    assert (
        "exponential mechanism: the exponential mechanism needs a domain of at most 256 symbols"
        in repr(result)
    )


def test_singular_exponential_mechanism_is_explained(monkeypatch):
    """Distances may lead to rows that depend on each other, as those of two triples do, 1 across
    and 2 inside.
    """
    level = sf.Metric(2 * (np.ones((4, 4)) - np.eye(4)))
    same_rows = sf.TableResponse(level, [[2**62] * 4] * 4)
    monkeypatch.setattr("sfumato.planning.rows.exponential_response", lambda context: same_rows)
    result = plan(level, people=1000)
    row = next(row for row in result.rows if row.name == "exponential")
    assert (result.chosen, row.is_available) == ("best", False)
    assert "cannot be inverted" in row.reason


def _blocks_of_a_town(side):
    """Crossings of a square town, as far from each other as one has to walk."""
    crossings = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    return np.abs(crossings[:, None] - crossings[None]).sum(axis=2)


@pytest.mark.parametrize(
    ("side", "epsilon", "is_available"), [(7, "0.5", True), (7, "0.01", False), (5, "0.01", True)]
)
def test_slow_exponential_mechanism_is_explained(side, epsilon, is_available):
    planned = plan(sf.Metric(_blocks_of_a_town(side), epsilon), people=1000)
    row = next(row for row in planned.rows if row.name == "exponential")
    assert row.is_available == is_available
    assert ("inverting it takes too long" in row.reason) == (not is_available)
    assert planned.chosen == "classical"


# --- a mechanism that was computed ---------------------------------------------------------------


def _mixed(context, share=0.7):
    """A table that keeps the context: the exponential mechanism, or now and then a report drawn
    evenly.
    """
    Q = share * exponential_response(context).matrix() + (1 - share) / context.size
    rows = [[Fraction(q) for q in row] for row in Q.tolist()]
    return sf.TableResponse.from_fractions(context, [[q / sum(row) for q in row] for row in rows])


def test_own_table_without_closed_form_is_titled_designed():
    context = NO_CLOSED_FORM["places"]
    result = plan(context, error=0.05, mechanism=_mixed(context))
    assert (result.chosen, result.row.title) == ("own", "designed for this matrix")
    assert [row.name for row in result.rows] == [
        "classical",
        "exponential",
        "hadamard",
        "best",
        "own",
    ]
    assert result.advice == ()
    union = NO_CLOSED_FORM["union"]
    parts = [_mixed(union.parts[0]), sf.mechanism_for(union.parts[1])]
    assert (
        plan(union, people=100, mechanism=sf.UnionResponse(union, parts)).row.title
        == "designed for this matrix"
    )


def test_own_mechanism_is_not_titled_designed():
    context = NO_CLOSED_FORM["places"]
    plain = sf.mechanism_for(sf.Uniform(context.domain, context.exact_minimum), code="randomized")
    assert plan(context, people=100, mechanism=plain).row.title == "the survey's mechanism"
    uniform = sf.Uniform(4, 1)
    mixed = _mixed(uniform)
    assert plan(uniform, people=100, mechanism=mixed).row.title == "the survey's mechanism"


def test_own_exponential_mechanism_has_one_row():
    context = NO_CLOSED_FORM["matrix"]
    result = plan(context, people=100, mechanism=exponential_response(context))
    assert result.chosen == "exponential"
    assert [row.name for row in result.rows] == ["classical", "exponential", "hadamard", "best"]
    assert "sf.design(context)" in result.summary()


@pytest.mark.parametrize(
    "goal", [{"people": 1000}, {"error": 0.05}, {"error": 1e-9}, {"error": 0.01, "people": 10}]
)
def test_plan_without_closed_form_names_the_designer(goal):
    result = plan(NO_CLOSED_FORM["places"], **goal)
    lines = [
        line for line in result.advice if "sf.design(context)" in line and "sfumato design" in line
    ]
    assert len(lines) == 1
    assert lines[0] in repr(result)
    assert lines[0] in result.to_dict()["advice"]
    assert len(result.advice) == 1 or not result.is_feasible


def test_plan_at_other_people_has_no_stale_advice():
    """Advice for a goal out of reach does not appear in a plan without a goal."""
    result = plan(sf.Uniform(50, 0.001), error=1e-6)
    assert result.advice
    assert result.at(1000).advice == ()
    assert len(plan(NO_CLOSED_FORM["places"], error=1e-9).at(1000).advice) == 1


def test_indistinguishable_symbols_cannot_be_planned():
    with pytest.raises(NoClosedForm, match="no mechanism to plan for"):
        plan(sf.Metric([[0, 0, 2], [0, 0, 1], [2, 1, 0]]), people=100)


def test_context_without_promises_is_planned():
    result = plan(sf.Uniform(3, "inf"), people=1000)
    assert "does not protect any pair" in repr(result)
    expected = math.sqrt(2 / math.pi) * 1.5 * math.sqrt(2 / 9 / 1000)
    assert result.mean_error == pytest.approx(expected)
    assert plan(sf.Uniform(["only"], 1), people=10).error == 0


# --- goals that cannot be met --------------------------------------------------------------------


def test_unreachable_goal_comes_with_advice():
    result = plan(sf.Uniform(50, 0.001), error=1e-6)
    assert not result.is_feasible
    assert (result.people, result.error, result.mean_error) == (None, None, None)
    for advice in (
        "Not even 10^12 people are enough",
        "square root",
        "easier than the worst",
        "Weaken the promise",
        "larger ε",
        "Merge",
    ):
        assert advice in result.summary()
    assert "> 10^12" in repr(result)
    assert result.at(MAX_PEOPLE).error > 1e-6
    assert result.at(MAX_PEOPLE).is_feasible


def test_too_few_people_names_how_many_are_enough():
    result = plan(CONTEXTS["high-low"], error=0.02, people=500)
    needed = plan(CONTEXTS["high-low"], error=0.02).people
    assert not result.is_feasible
    assert f"{needed:,} people are enough" in result.summary()
    assert plan(CONTEXTS["high-low"], error=0.02, people=needed).is_feasible


@pytest.mark.usefixtures("few_draws")
def test_unreachable_decoded_goal_is_infeasible():
    context = sf.Uniform(50, 0.001)
    options = {"distribution": "uniform", "decoder": "projection"}
    assert not plan(context, error=1e-6, **options).is_feasible


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "pass error="),
        ({"error": 0}, "positive number"),
        ({"error": -0.1}, "positive number"),
        ({"error": math.nan}, "positive number"),
        ({"error": True}, "positive number"),
        ({"error": 1}, "does not require a survey"),
        ({"error": 1.5, "measure": "l2"}, "does not require a survey"),
        ({"people": 10**13}, "at most"),
        ({"people": 10, "measure": "nonsense"}, "measure must be one of"),
        ({"people": 10, "confidence": 1}, "between 0 and 1"),
        ({"people": 10, "confidence": 95}, "between 0 and 1"),
        ({"people": 10, "distribution": "nonsense"}, "distribution must be"),
        ({"people": 10, "distribution": [0.5, 0.5]}, "5 shares"),
        ({"people": 10, "distribution": [0.5, 0.5, 0, 0, -0.1]}, "5 shares"),
        ({"people": 10, "distribution": [0.5, 0.1, 0, 0, 0]}, "add up to 1"),
        ({"people": 10, "distribution": {9: 1.0}}, "not one of"),
        ({"people": 10, "measure": "total"}, "requires labels="),
        ({"people": 10, "labels": [1]}, "requires labels="),
        ({"people": 10, "measure": "total", "labels": []}, "at least one"),
        ({"people": 10, "measure": "total", "labels": [1, 1]}, "no duplicates"),
        ({"people": 10, "measure": "total", "labels": [7]}, "not one of"),
        ({"people": 10, "measure": "total", "labels": {1: math.inf}}, "finite"),
        ({"people": 10, "decoder": "nonsense"}, "decoder must be one of"),
        ({"people": 10, "mechanism": sf.mechanism_for(sf.Uniform(3, 1))}, "the same domain"),
    ],
)
def test_invalid_arguments_are_rejected(arguments, message):
    with pytest.raises((InvalidArgument, InvalidContext, ContextMismatch), match=message):
        plan(CONTEXTS["uniform"], **arguments)


@pytest.mark.parametrize("people", [0, -1, 1.5, True])
def test_people_must_be_an_integer(people):
    with pytest.raises(NotEnoughReports):
        plan(CONTEXTS["uniform"], people=people)


# --- how it is shown -----------------------------------------------------------------------------


@pytest.mark.usefixtures("few_draws")
def test_counts_shares_and_mappings_are_equivalent():
    context = sf.Uniform(["a", "b", "c"], 1)
    distributions = [
        [0.5, 0.25, 0.25],
        [2, 1, 1],
        {"a": 0.5, "b": 0.25, "c": 0.25},
        np.array([50, 25, 25]),
    ]
    plans = [plan(context, people=1000, distribution=p, measure="symbol") for p in distributions]
    assert len({result.error for result in plans}) == 1


def test_weights_scale_a_total():
    context = sf.Uniform(["a", "b", "c"], 1)
    one = plan(context, people=1000, measure="total", labels=["a"])
    three = plan(context, people=1000, measure="total", labels={"a": 3.0})
    assert three.error == pytest.approx(3 * one.error)
    assert one.error == pytest.approx(plan(context, people=1000, measure="symbol").error)


@pytest.mark.usefixtures("few_draws")
def test_summary_names_distribution_and_estimate():
    worst = plan(CONTEXTS["uniform"], people=1000)
    uniform = plan(CONTEXTS["uniform"], people=1000, distribution="uniform", decoder="projection")
    assert "worst population" in worst.summary()
    assert "unbiased estimate" in worst.summary()
    assert "spread evenly" in uniform.summary()
    assert "decoded estimate (projection)" in uniform.summary()
    assert "too few people" in plan(sf.Uniform(100, 1), people=10).summary()
    for result in (worst, uniform):
        assert "classical LDP, ε = 1" in repr(result)
        assert "<table>" in result._repr_html_()
        record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert record["distribution"] == result.distribution
        assert record["estimate"] == result.estimate
        assert [row["name"] for row in record["mechanisms"]] == ["classical", "hadamard", "best"]


@pytest.mark.slow
def test_plans_are_deterministic():
    p = _skewed_distribution(20, 3)
    first, second = (
        plan(CONTEXTS["high-low"], error=0.05, distribution=p, decoder="projection").to_dict()
        for _ in range(2)
    )
    assert first == second
