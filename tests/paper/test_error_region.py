"""Figure 1: the corners, by formula, by the channel's integers, and measured on reports."""

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
    return {entry["name"]: entry for entry in result.data["panels"][panel]["mechanisms"]}


def corner(mechanism):
    """Return the vertex of the binary optimum, from its own integers."""
    (test,) = mechanism["tests"]
    return float(Fraction(test["false_alarm"])), float(Fraction(test["miss"]))


def test_both_panels_have_the_corners_of_the_paper(figure_1):
    first = mechanisms(figure_1, 0)["binary optimum"]
    second = mechanisms(figure_1, 1)["binary optimum"]
    assert corner(first) == pytest.approx((1 / 4, 1 / 4), abs=1e-12)
    assert corner(second) == pytest.approx((3 / 7, 1 / 7), abs=1e-12)
    # The appendix prints the first coordinate twice.
    assert corner(second)[0] != pytest.approx(corner(second)[1], abs=0.1)


@pytest.mark.parametrize("panel", [0, 1])
def test_only_the_binary_optimum_fills_the_region(figure_1, panel):
    promised = figure_1.data["panels"][panel]["promised"]
    entries = mechanisms(figure_1, panel)
    assert len(entries) == 2 + panel
    for name, mechanism in entries.items():
        assert mechanism["kept"]
        fills = len(mechanism["realised"]) == 3 and all(
            point == pytest.approx(vertex, abs=1e-12)
            for point, vertex in zip(mechanism["realised"], promised, strict=True)
        )
        assert fills == (name == "binary optimum")


def test_hadamard_response_has_the_vertices_of_its_four_reports(figure_1):
    hadamard = mechanisms(figure_1, 0)["Hadamard response"]["realised"]
    vertices = [(0, 1), (1 / 8, 5 / 8), (5 / 8, 1 / 8), (1, 0)]
    for point, vertex in zip(hadamard, vertices, strict=True):
        assert point == pytest.approx(vertex, abs=1e-12)


def test_tests_are_the_vertices_of_the_region(figure_1):
    for panel in (0, 1):
        for mechanism in mechanisms(figure_1, panel).values():
            tests = [
                (float(Fraction(test["false_alarm"])), float(Fraction(test["miss"])))
                for test in mechanism["tests"]
            ]
            vertices = [tuple(point) for point in mechanism["realised"]]
            assert vertices == [(0.0, 1.0), *tests, (1.0, 0.0)]


def test_measured_rates_match_the_channel(figure_1):
    """Binomial counts of 100,000 reports: at 1e-6 a mean is within 4.9 standard deviations."""
    people = figure_1.data["people_per_symbol"] * figure_1.data["runs"]
    for panel in (0, 1):
        for mechanism in mechanisms(figure_1, panel).values():
            for test in mechanism["tests"]:
                for rate in ("false_alarm", "miss"):
                    exact = float(Fraction(test[rate]))
                    spread = math.sqrt(exact * (1 - exact) / people)
                    assert abs(test[f"counted_{rate}"]["mean"] - exact) < 4.9 * spread
                    assert spread < 0.002  # the check can fail


def test_arguments_choose_other_promises():
    one = error_region(RunOptions(runs=1), epsilon=1.0)
    (panel,) = one.data["panels"]
    assert panel["epsilon"] == panel["epsilon_back"] == 1.0
    assert corner(mechanisms(one, 0)["binary optimum"])[0] == pytest.approx(1 / (1 + math.e))
    back = error_region(RunOptions(runs=1), epsilon_back=1.0)
    assert back.data["panels"] == one.data["panels"]
    both = error_region(RunOptions(runs=1), epsilon=0.5, epsilon_back=2.0)
    region = sf.error_region(sf.PrivacyMatrix([[0, 0.5], [2, 0]]), 0, 1)
    assert corner(mechanisms(both, 0)["binary optimum"]) == pytest.approx(region.corner)


def test_no_promise_in_one_direction_gives_mangats_response():
    result = error_region(RunOptions(runs=1), epsilon=math.inf, epsilon_back=math.log(2))
    assert result.data["panels"][0]["epsilon"] == "inf"
    assert corner(mechanisms(result, 0)["binary optimum"]) == pytest.approx((0, 1 / 2))
    assert result.render_figure("svg")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1000.0, math.nan])
def test_invalid_promises_are_rejected(epsilon):
    with pytest.raises(InvalidContext):
        error_region(RunOptions(runs=1), epsilon=epsilon)


def test_result_is_saved_in_four_formats_with_strict_json(figure_1, tmp_path):
    paths = figure_1.save(tmp_path)
    assert [path.name for path in paths] == [
        f"error-region.{kind}" for kind in ("png", "pdf", "csv", "json")
    ]
    assert json.loads(paths[3].read_text(), parse_constant=pytest.fail) == figure_1.data
    lines = paths[2].read_text().splitlines()
    assert len(lines) == 1 + len(figure_1.rows) == 8
    assert all(row[-1] == "yes" for row in figure_1.rows)


def test_results_depend_only_on_the_seed(figure_1):
    again = error_region(RunOptions(runs=4, seed=3))
    assert again.data == figure_1.data
    assert again.render_figure("png") == figure_1.render_figure("png")
    assert error_region(RunOptions(runs=4, seed=4)).rows != figure_1.rows
