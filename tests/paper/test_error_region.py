"""Figure 1: the corners, by formula, by the channel's integers and counted on reports."""

import json
import math
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import InvalidContext
from sfumato.paper.error_region import error_region
from sfumato.paper.experiment import RunOptions


@pytest.fixture(scope="module")
def figure_1():
    return error_region(RunOptions(runs=4, seed=3))


def mechanisms(result, panel):
    return {found["name"]: found for found in result.data["panels"][panel]["mechanisms"]}


def corner(found):
    """The vertex of the binary optimum, from its own integers."""
    (test,) = found["tests"]
    return float(Fraction(test["false_alarm"])), float(Fraction(test["miss"]))


def test_the_two_panels_have_the_papers_corners(figure_1):
    first, second = (mechanisms(figure_1, panel)["binary optimum"] for panel in (0, 1))
    assert corner(first) == pytest.approx((1 / 4, 1 / 4), abs=1e-12)
    assert corner(second) == pytest.approx((3 / 7, 1 / 7), abs=1e-12)
    # The appendix prints the first coordinate twice.
    assert corner(second)[0] != pytest.approx(corner(second)[1], abs=0.1)


@pytest.mark.parametrize("panel", [0, 1])
def test_the_binary_optimum_fills_the_region_and_the_others_stay_inside(figure_1, panel):
    promised = figure_1.data["panels"][panel]["promised"]
    found = mechanisms(figure_1, panel)
    assert len(found) == 2 + panel
    for name, one in found.items():
        assert one["kept"]
        fills = len(one["realised"]) == 3 and all(
            point == pytest.approx(vertex, abs=1e-12)
            for point, vertex in zip(one["realised"], promised, strict=True)
        )
        assert fills == (name == "binary optimum")


def test_hadamard_response_of_two_symbols_has_the_vertices_of_its_four_reports(figure_1):
    hadamard = mechanisms(figure_1, 0)["Hadamard response"]["realised"]
    for point, vertex in zip(
        hadamard, [(0, 1), (1 / 8, 5 / 8), (5 / 8, 1 / 8), (1, 0)], strict=True
    ):
        assert point == pytest.approx(vertex, abs=1e-12)


def test_tests_are_the_vertices_of_the_region(figure_1):
    for panel in (0, 1):
        for found in mechanisms(figure_1, panel).values():
            tests = [
                (float(Fraction(t["false_alarm"])), float(Fraction(t["miss"])))
                for t in found["tests"]
            ]
            assert [(0.0, 1.0), *tests, (1.0, 0.0)] == [tuple(point) for point in found["realised"]]


def test_counted_rates_are_those_of_the_channel(figure_1):
    """Binomial counts of 100,000 reports: at 1e-6 a mean is within 4.9 standard deviations."""
    people = figure_1.data["people_per_symbol"] * figure_1.data["runs"]
    for panel in (0, 1):
        for found in mechanisms(figure_1, panel).values():
            for test in found["tests"]:
                for rate in ("false_alarm", "miss"):
                    exact = float(Fraction(test[rate]))
                    spread = math.sqrt(exact * (1 - exact) / people)
                    assert abs(test[f"counted_{rate}"]["mean"] - exact) < 4.9 * spread
                    assert spread < 0.002  # the check can fail


def test_other_promises_by_argument():
    one = error_region(RunOptions(runs=1), epsilon=1.0)
    (panel,) = one.data["panels"]
    assert panel["epsilon"] == panel["epsilon_back"] == 1.0
    assert corner(mechanisms(one, 0)["binary optimum"])[0] == pytest.approx(1 / (1 + math.e))
    back = error_region(RunOptions(runs=1), epsilon_back=1.0)
    assert back.data["panels"] == one.data["panels"]
    both = error_region(RunOptions(runs=1), epsilon=0.5, epsilon_back=2.0)
    region = sf.error_region(sf.PrivacyMatrix([[0, 0.5], [2, 0]]), 0, 1)
    assert corner(mechanisms(both, 0)["binary optimum"]) == pytest.approx(region.corner)


def test_nothing_promised_in_one_direction_is_mangats_response():
    result = error_region(RunOptions(runs=1), epsilon=math.inf, epsilon_back=math.log(2))
    assert result.data["panels"][0]["epsilon"] == "inf"
    assert corner(mechanisms(result, 0)["binary optimum"]) == pytest.approx((0, 1 / 2))
    assert result.picture("svg")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1000.0, math.nan])
def test_impossible_promises_are_refused(epsilon):
    with pytest.raises(InvalidContext):
        error_region(RunOptions(runs=1), epsilon=epsilon)


def test_four_files_and_strict_json(figure_1, tmp_path):
    paths = figure_1.save(tmp_path)
    assert [path.name for path in paths] == [
        f"error-region.{kind}" for kind in ("png", "pdf", "csv", "json")
    ]
    assert json.loads(paths[3].read_text(), parse_constant=pytest.fail) == figure_1.data
    lines = paths[2].read_text().splitlines()
    assert len(lines) == 1 + len(figure_1.rows) == 8
    assert all(row[-1] == "yes" for row in figure_1.rows)


def test_the_same_seed_gives_the_same_outcome_and_another_seed_another(figure_1):
    again = error_region(RunOptions(runs=4, seed=3))
    assert again.data == figure_1.data
    assert again.picture("png") == figure_1.picture("png")
    assert error_region(RunOptions(runs=4, seed=4)).rows != figure_1.rows
