"""The decoded and the unbiased estimate in one chart: every mark is at its number."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.charts import BarChart, CurveChart
from sfumato.domains import Domain
from sfumato.estimation.decoded_chart import _choose_group_size

PLACES = ["park", "café", "clinic"]


def estimate_of(domain, answers, *, decoder="projection"):
    survey = sf.Survey("chart", sf.Uniform(domain, 2))
    return sf.estimate(survey, sf.simulation.reports(survey, answers, seed=1), decoder=decoder)


def ages(size, start=18):
    answers = np.random.default_rng(2).binomial(size - 1, 0.3, 4000) + start
    return estimate_of(sf.IntegerDomain(size, start=start), answers)


@pytest.fixture(scope="module")
def single():
    return ages(100)


@pytest.fixture(scope="module")
def grouped():
    return ages(405, start=0)


def heights(points):
    return np.array([y for _, y in points])


def test_each_label_has_a_dot_in_its_interval(single):
    chart = single.plot_decoded()
    unbiased, decoded = chart.curves
    low, high = single.interval()
    assert isinstance(chart, CurveChart)
    assert [x for x, _ in unbiased.points] == list(range(18, 118))
    np.testing.assert_array_equal(heights(decoded.points), single.frequencies)
    np.testing.assert_array_equal(heights(unbiased.points), np.clip(single.unbiased, low, high))
    np.testing.assert_array_equal(heights(unbiased.band[0]), low)
    np.testing.assert_array_equal(heights(unbiased.band[1]), high)
    assert unbiased.is_scatter
    assert decoded.band is None  # the intervals are not those of the decoded estimate
    assert unbiased.label == "unbiased, with 95% interval"


def test_the_level_is_that_of_the_band(single):
    wide = single.plot_decoded(level=0.99).curves[0]
    narrow = single.plot_decoded(level=0.5).curves[0]
    assert (heights(wide.band[1]) > heights(narrow.band[1])).all()
    assert wide.label == "unbiased, with 99% interval"


def test_groups_have_the_interval_of_their_total(grouped):
    """The mean of the labels' intervals would be wider by the root of the size of the group."""
    chart = grouped.plot_decoded()
    unbiased, decoded = chart.curves
    assert len(unbiased.points) == 81
    assert chart.y_axis.title == "mean share of 5 answers"
    for index in (0, 7, 80):
        group = range(5 * index, 5 * index + 5)
        total = grouped.total(list(group))
        shares = [curve[index][1] for curve in (*unbiased.band, decoded.points)]
        expected = [total.low, total.high, grouped.frequencies[list(group)].sum()]
        np.testing.assert_allclose(shares, np.array(expected) / 5)
        assert unbiased.points[index][0] == 5 * index + 2
    assert unbiased.notes[7].startswith("35 … 39, mean: ")


def test_a_short_last_group_has_its_own_mean():
    last = [400, 401, 402]
    result = estimate_of(sf.IntegerDomain(403), [*range(403), *last * 200])
    _, decoded = result.plot_decoded().curves
    assert result.frequencies[last].mean() > 0.1
    assert decoded.points[-1] == (401, pytest.approx(result.frequencies[last].mean()))


@pytest.mark.parametrize("count", [31, 120, 121, 1000, 12_345, 10**6])
def test_charts_have_few_dots(count):
    dots = -(-count // _choose_group_size(count))
    assert dots <= 120
    assert dots >= 6


def test_answers_without_a_place_are_left_out():
    labels = [f"{10 * decade} to {10 * decade + 9}" for decade in range(40)]
    domain = Domain([*labels, "no answer"])
    result = estimate_of(domain, [*labels, *["no answer"] * 40] * 20)
    chart = result.plot_decoded()
    unbiased, decoded = chart.curves
    assert len(unbiased.points) == 40
    assert chart.x_axis.kind == "label"
    assert chart.x_axis.tick_text(3) == "30 to 39"
    np.testing.assert_array_equal(heights(decoded.points), result.frequencies[:40])
    assert max(heights(decoded.points)) < result.frequencies[40]


def test_numbers_in_unequal_steps_are_written_as_labels():
    """On an axis of numbers, dense labels would look like a low share per number."""
    labels = [*range(20), *range(20, 200, 10)]
    chart = estimate_of(Domain(labels), labels * 40).plot_decoded()
    assert chart.x_axis.kind == "label"
    assert chart.x_axis.tick_text(21) == "30"


def test_nothing_is_drawn_above_the_axis(single, grouped):
    for result in (single, grouped):
        chart = result.plot_decoded()
        unbiased, decoded = chart.curves
        top = max(heights(unbiased.band[1]).max(), heights(decoded.points).max())
        assert chart.y_axis.high == top


@pytest.mark.parametrize(
    ("domain", "answers"),
    [
        (PLACES, PLACES * 100),
        (sf.IntegerDomain(30), list(range(30)) * 40),  # all of them have room for a bar
        (sf.GridDomain(0, 5, 0, 10, 1), None),
    ],
)
def test_other_domains_have_bars_with_rings(domain, answers):
    survey = sf.Survey("bars", sf.Uniform(domain, 2))
    symbols = np.arange(survey.context.size).repeat(40)
    tally = survey.mechanism.tally(survey.mechanism.privatize(symbols))
    result = sf.estimate(survey.mechanism, tally, decoder="projection")
    chart = result.plot_decoded()
    assert isinstance(chart, BarChart)
    assert chart.legend == ("unbiased, with 95% interval", "decoded")
    named = {
        str(label): share for label, share in zip(result.labels, result.frequencies, strict=True)
    }
    for bar in chart.bars:
        (label,) = [label for label in named if bar.label == label or f"({label})" in bar.label]
        assert bar.ring == named[label]
    assert "; decoded " in chart.bars[0].note


def test_plot_itself_has_no_rings():
    chart = estimate_of(PLACES, PLACES * 100).plot()
    assert chart.legend is None
    assert all(bar.ring is None for bar in chart.bars)


def test_single_report_can_be_drawn():
    for size in (40, 400):
        chart = estimate_of(sf.IntegerDomain(size), [3]).plot_decoded()
        assert "nan" not in chart.to_svg()
