"""Bounds against measured errors: verdicts, numbers computed in a second way, and exponents."""

import dataclasses
import json
import math

import numpy as np
import pytest

import sfumato as sf
from experiments import error_bounds, growth
from experiments.bounds import bounds
from experiments.error_bounds import PaperLine, contexts, lower_bound_error
from experiments.growth import GrowthCurve, Point, PowerFit, hadamard_response
from sfumato.contexts import ContextUnion
from sfumato.errors import ContextMismatch
from sfumato.paper.experiment import RunOptions
from sfumato.planning import people_lower_bound
from sfumato.simulation import Spread

GOOD = PaperLine(
    context="uniform, k = 100",
    error="risk",
    epsilon=1.0,
    people=1000,
    runs=20,
    lower=1.0,
    best=Spread(1.5, 0.1),
    paper=Spread(2.0, 0.1),
    exact_best=1.4,
    exact_paper=2.1,
    tight=3.0,
    paper_bound=9.0,
    printed=9.0,
)


def verdict(**changes):
    return dataclasses.replace(GOOD, **changes).holds


def test_line_holds_only_between_bounds():
    assert GOOD.holds == "yes"
    for name in ("best", "paper", "projected"):
        assert (
            verdict(**{name: Spread(0.9, 0.1)}) == "yes"
        )  # one standard error below the lower bound
        assert verdict(**{name: Spread(0.4, 0.1)}) == "no"
        assert verdict(**{name: Spread(3.6, 0.1)}) == "no"


def test_exact_risks_have_no_tolerance():
    assert verdict(exact_best=0.999) == "no"
    assert verdict(exact_paper=3.001) == "no"
    assert verdict(exact_best=1.0, exact_paper=3.0) == "yes"
    assert verdict(paper_bound=2.9) == "no"
    assert verdict(printed=8.0) == "no"


def test_few_runs_give_no_verdict():
    assert verdict(runs=3, best=Spread(0.9, 0.1)) == "too few runs"
    assert verdict(runs=1, best=Spread(0.9, None)) == "too few runs"
    assert verdict(runs=1, best=Spread(1.9, None)) == "yes"
    assert verdict(runs=1, exact_best=0.5) == "no"


def test_exponent_holds_only_near_theorem():
    fit = PowerFit("", 1, 8, theorem=2.0, lower=2.0, measured=1.9, exact=1.95, upper=1.9)
    assert fit.holds
    for name in ("lower", "measured", "exact", "upper"):
        assert not dataclasses.replace(fit, **{name: 1.8}).holds
    point = Point(1, lower=10, measured=20.0, exact=21.0, upper=30)
    assert GrowthCurve("", "s", 1.0, (point,), (fit,)).is_ordered
    for wrong in ({"lower": 22}, {"upper": 20}, {"measured": 9.0}, {"exact": 31.0}):
        assert not GrowthCurve(
            "", "s", 1.0, (point, dataclasses.replace(point, **wrong)), (fit,)
        ).is_ordered


@pytest.mark.parametrize(
    "context",
    [sf.Uniform(100, 1), sf.Blocks([x % 4 for x in range(40)], 2), sf.HighLow(60, range(8), 1)],
    ids=repr,
)
@pytest.mark.parametrize("people", [100, 10_000, 1_000_000])
def test_lower_bound_error_needs_more_people(context, people):
    alpha = lower_bound_error(context, people)
    assert people_lower_bound(context, alpha) > people
    if alpha < 0.1:  # above, the hard families end
        assert people_lower_bound(context, 1.1 * alpha) <= people


def test_exact_people_match_the_closed_form():
    """Equal blocks at the level p: n Var = c²/m − 1/k², so that everything is in closed form."""
    plan = growth._plans(quick=True)[0]
    c = (math.e + 1) / (math.e - 1)
    for m in (1, 10):
        total = 1000 * math.sqrt(c**2 / m - 1e-6)
        people = (math.sqrt(2 / math.pi) * total / 2 / growth.ERROR) ** 2
        assert growth._measure_point((plan, m, 1)).exact == pytest.approx(people, rel=1e-9)


def test_paper_scheme_uses_the_hadamard_code():
    for context in contexts(1.0).values():
        mechanism = hadamard_response(context)
        assert "hadamard" in json.dumps(mechanism.to_record())
    with pytest.raises(ContextMismatch):
        hadamard_response(
            ContextUnion([sf.HighLow(4, [0, 1], 1), sf.Uniform(3, 1)], [0, 0, 0, 0, 1, 1, 1])
        )


@pytest.fixture(scope="module")
def result():
    """The grid on its two smallest contexts, and the curve of the blocks alone."""
    small = {name: context for name, context in contexts(1.0).items() if context.size == 100}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(error_bounds, "contexts", lambda epsilon: small)
        all_plans = growth._plans(quick=True)
        patch.setattr(growth, "_plans", lambda quick: [all_plans[0], *map(shorten, all_plans[1:])])
        patch.setattr(growth, "_RUNS", 1)
        return bounds(RunOptions(quick=True, runs=2, seed=5), workers=1)


def shorten(plan):
    """Keep the first three points, over 400 symbols: enough for the picture."""
    few = dict(list(plan.contexts.items())[:3])
    small = {
        value: sf.HighLow(400, range(2), 1) if context.size > 1000 else context
        for value, context in few.items()
    }
    return dataclasses.replace(plan, contexts=small, segments=plan.segments[:1])


def test_small_grid_holds(result):
    assert [line["holds"] for line in result.data["lines"]] == ["yes"] * 6
    assert {line["error"] for line in result.data["lines"]} == {"risk", "TV"}


def test_measured_risks_match_exact_risks(result):
    """Compare within 30 %, six standard deviations: eight runs of about a hundred squares each."""
    for line in result.data["lines"]:
        if line["error"] == "risk" and "high-low" not in line["context"]:
            for name in ("best", "paper"):
                assert line[name]["mean"] == pytest.approx(line[f"exact_{name}"], rel=0.3)
            assert line["exact_paper"] > 1.2 * line["exact_best"]


def test_printed_bound_is_twice_the_total_variation(result):
    for line in result.data["lines"]:
        assert line["printed"] == (2 if line["error"] == "TV" else 1) * line["paper_bound"]


def test_people_fall_with_the_number_of_blocks(result):
    fit = result.data["growth"][0]["fits"][0]
    assert fit["exact"] == pytest.approx(-1, abs=1e-3)
    assert fit["lower"] == pytest.approx(-1, abs=1e-3)
    assert fit["measured"] == pytest.approx(-1, abs=0.1)


@pytest.mark.slow
def test_files_are_complete(result, tmp_path):
    paths = result.save(tmp_path)
    assert [path.suffix for path in paths] == [".png", ".pdf", ".csv", ".json"]
    data = json.loads(paths[3].read_text(), parse_constant=pytest.fail)
    assert len(data["lines"]) + sum(len(curve["fits"]) for curve in data["growth"]) == len(
        result.rows
    )
    assert all(len(row) == len(result.columns) for row in result.rows)
    assert not any(
        isinstance(cell, float) and math.isnan(cell) for row in result.rows for cell in row
    )


def test_workers_do_not_change_results(monkeypatch):
    small = {name: context for name, context in contexts(1.0).items() if context.size == 100}
    monkeypatch.setattr(error_bounds, "contexts", lambda epsilon: small)
    options = RunOptions(quick=True, seed=2)
    assert (
        error_bounds.measure_lines(options, 1, workers=1)
        == error_bounds.measure_lines(options, 1, workers=3)
        != []
    )


def test_biased_estimates_break_a_line(monkeypatch):
    """Add a constant to the estimates: the line must fail."""
    small = {"uniform, k = 100": sf.Uniform(100, 1)}
    monkeypatch.setattr(error_bounds, "contexts", lambda epsilon: small)
    squares = error_bounds._sum_of_squares
    monkeypatch.setattr(
        error_bounds, "_sum_of_squares", lambda estimate, p: squares(estimate + 0.05, p)
    )
    risk, tv = error_bounds.measure_lines(RunOptions(quick=True), 2, workers=1)
    assert (risk.holds, tv.holds) == ("no", "yes")


@pytest.mark.slow
def test_full_grid_and_exponents_hold():
    full = bounds(RunOptions(seed=1))
    assert {row[-1] for row in full.rows} == {"yes"}
    exponents = [fit for curve in full.data["growth"] for fit in curve["fits"]]
    assert [fit["theorem"] for fit in exponents] == [-1, 0, 2, 1, -2, -1]
    for fit in exponents:
        assert fit["measured"] == pytest.approx(fit["theorem"], abs=0.1)
    ratios = np.array(
        [
            line["exact_best"] / line["lower"]
            for line in full.data["lines"]
            if line["error"] == "risk"
        ]
    )
    assert (ratios >= 1 - 1e-9).all()
    assert ratios.max() < 1.06
