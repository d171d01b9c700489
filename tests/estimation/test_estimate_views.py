"""Rows, data frames, charts and report pages of an estimate."""

import builtins
import re

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, MissingExtra, UnknownLabel
from sfumato.estimation import EstimateRow
from sfumato.estimation.top_answers import MAX_BARS

LABELS = ["park", "a $5 café", "clinic"]
SURVEY = sf.Survey("lunch", sf.HighLow(LABELS, ["clinic"], 1))
RESULT = sf.estimate(SURVEY, sf.simulation.reports(SURVEY, LABELS * 100, seed=1))
AGES = sf.Survey("ages", sf.Uniform(sf.IntegerDomain(40, start=18), 3))
AGES_RESULT = sf.estimate(AGES, sf.simulation.reports(AGES, [*range(20, 58)] * 20, seed=1))


def test_rows_have_the_figures_of_the_table():
    low, high = RESULT.interval()
    table = RESULT.to_arrow().to_pylist()
    for x, row in enumerate(RESULT):
        assert isinstance(row, EstimateRow)
        assert vars(row) == table[x]
        assert (row.low, row.high) == (low[x], high[x])
        assert RESULT[LABELS[x]] == row
    assert len(RESULT) == 3


def test_unknown_labels_are_key_errors_with_the_closest_label():
    with pytest.raises(KeyError, match="Did you mean 'clinic'"):
        RESULT["clinics"]
    with pytest.raises(UnknownLabel):
        RESULT[0]
    assert "clinic" in RESULT
    for unknown in ("clinics", 0, None, 1.5):
        assert unknown not in RESULT


def test_integers_name_labels_of_an_estimate():
    assert AGES_RESULT[18].label == 18
    assert 17 not in AGES_RESULT
    assert 57 in AGES_RESULT


def test_frames_have_the_same_values():
    for result in (RESULT, RESULT.block_shares(), RESULT.difference(RESULT), RESULT.top(1)):
        rows = result.to_arrow().to_pylist()
        assert result.to_pandas().to_dict("records") == rows
        assert result.to_polars().to_dicts() == rows
    assert RESULT.top(3).to_arrow().to_pylist()[0] == {
        "label": RESULT.top(3).possibly[0],
        "certainly": True,
    }


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("pandas", lambda: RESULT.to_pandas()),
        ("polars", lambda: RESULT.top(1).to_polars()),
        ("resvg_py", lambda: RESULT.plot().save("never-written.png")),
    ],
)
def test_missing_packages_are_named(monkeypatch, package, call):
    import_module = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return import_module(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=package.replace("_", ".")):
        call()


def test_plot_draws_sensitive_labels_in_the_accent_colour():
    chart = RESULT.plot()
    assert {bar.label for bar in chart.bars if bar.is_accented} == {"clinic"}
    assert [bar.label for bar in chart.bars] == sorted(
        LABELS, key=lambda label: -RESULT[label].unbiased
    )


def test_plot_keeps_the_order_of_numbers_and_at_most_30_labels():
    labels = [int(bar.label) for bar in AGES_RESULT.plot().bars]
    assert len(labels) == MAX_BARS
    assert labels == sorted(labels)
    most_frequent = np.argsort(-AGES_RESULT.frequencies, kind="stable")[:5] + 18
    assert set(most_frequent.tolist()) <= set(labels)


def test_plot_uses_the_level():
    wide = RESULT.plot(level=0.999).bars[0]
    narrow = RESULT.plot(level=0.5).bars[0]
    assert wide.low < narrow.low < narrow.high < wide.high


def test_notebooks_show_the_chart_and_the_table():
    html = RESULT._repr_html_()
    assert html.index("<svg") < html.index("<table")


RANGES = ["under 18", "18 to 29", "30 to 59", "60 and over", "no answer"]
COUNTS_OF_RANGES = (10, 40, 400, 90, 200)


def estimate_of_ranges(labels):
    survey = sf.Survey("ranges", sf.Uniform(labels, 4))
    answers = np.repeat(RANGES, COUNTS_OF_RANGES)
    return sf.estimate(survey, sf.simulation.reports(survey, answers, seed=1))


def table_labels(result):
    _, _, table = result._repr_html_().partition("<tbody>")
    return re.findall(r'<th scope="row"[^>]*>([^<]*)</th>', table)


def test_notebooks_keep_the_order_of_ranges():
    result = estimate_of_ranges(RANGES)
    assert table_labels(result) == RANGES
    assert [bar.label for bar in result.plot().bars] == RANGES


def test_notebooks_sort_ranges_without_an_order_by_share():
    """The twin: these labels are in no order, so the most frequent comes first."""
    shuffled = [RANGES[index] for index in (3, 0, 2, 1, 4)]
    shown = table_labels(estimate_of_ranges(shuffled))
    assert shown[:2] == ["30 to 59", "no answer"]


def test_notebooks_show_the_most_frequent_numbers_in_order():
    shown = [int(label) for label in table_labels(AGES_RESULT)]
    assert len(shown) == 20
    assert shown == sorted(shown)
    assert "the 20 most frequent of 40" in AGES_RESULT._repr_html_()


def test_html_is_the_report_page_of_the_survey(tmp_path):
    page = RESULT.to_html(title="Where we eat")
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert "Where we eat" in page
    assert SURVEY.fingerprint in page
    path = tmp_path / "report.html"
    assert RESULT.to_html(path, title="Where we eat") is None
    assert path.read_text(encoding="utf-8") == page


def test_html_needs_a_survey():
    result = sf.estimate(SURVEY.mechanism, [0, 1])
    with pytest.raises(InvalidArgument, match=r"survey\.estimate\(tally\)\.to_html\(path\)"):
        result.to_html()
