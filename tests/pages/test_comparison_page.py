"""The comparison page: every mechanism, its error and its interval."""

import re

import pytest

import sfumato as sf
from sfumato.pages import comparison_chart, comparison_page
from sfumato.simulation import Draws, compare

CONTEXT = sf.HighLow(["park", "café", "clinic", "bar"], ["clinic", "bar"], 1)


@pytest.fixture(scope="module")
def comparison():
    counts = [4000, 3000, 1000, 2000]
    return compare(CONTEXT, counts, decoder="projection", draws=Draws(5, 1, 1))


def test_bars_show_mean_errors_and_their_intervals(comparison):
    bars = comparison_chart(comparison).bars
    assert [bar.label for bar in bars] == [row.title for row in comparison.rows]
    for bar, row in zip(bars, comparison.rows, strict=True):
        assert bar.value == row.error.mean
        # 2.776: Student's quantile for the four degrees of freedom of five runs.
        assert bar.high - bar.value == pytest.approx(2.776 * row.error.standard_error, rel=1e-3)
        assert 0 <= bar.low <= bar.value


def test_a_single_run_has_no_interval():
    single = compare(CONTEXT, [40, 30, 10, 20], decoder="projection", draws=Draws(1, 1, 1))
    assert all(bar.low is None for bar in comparison_chart(single).bars)
    assert "1 run<" in comparison_page(single)


def test_page_states_the_result_first(comparison):
    page = comparison_page(comparison, title="Lunch & more")
    assert "<title>Lunch &amp; more</title>" in page
    opening = page[: page.index("<main>")]
    assert f"{100 * comparison.rows[0].error.mean:.1f}%" in opening
    assert "10,000 simulated people" in opening
    assert len(page) < 60_000
    for row in comparison.rows:
        assert f'<th scope="row">{row.title}</th>' in page
    assert re.search(r'data-name="people needed">1 ×<', page)


def test_page_fits_a_phone_and_is_accessible(comparison, browser, tmp_path):
    from support.browser import accessibility_violations

    file = tmp_path / "comparison.html"
    file.write_text(comparison_page(comparison), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator("svg.narrow").is_visible()
    for cell in page.locator(".cards td").all():
        assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")
        right = cell.evaluate("(cell) => cell.getBoundingClientRect().right")
        assert right <= page.locator("main table").evaluate(
            "(table) => table.parentElement.getBoundingClientRect().right - 14"
        )
    assert accessibility_violations(page) == []
