"""The comparison page: the error of a survey next to that of classical mechanisms."""

from sfumato.charts import Bar, BarChart
from sfumato.foundation.formatting import format_factor, format_share, plural
from sfumato.pages.markup import (
    Html,
    chart_html,
    chart_link,
    fill,
    fill_each,
    join,
    offline_document,
    render,
)
from sfumato.simulation.compare import Comparison, Row

__all__ = ["comparison_chart", "comparison_page"]

_DECIMALS = 1  # in a percentage


def comparison_page(comparison: Comparison, *, title: str = "Comparison") -> str:
    """Return the page as self-contained HTML without scripts."""
    own, *others = comparison.rows
    chart = comparison_chart(comparison)
    sections = render(
        "comparison/comparison.html",
        chart=chart_html(chart),
        chart_file=chart_link(chart, "comparison"),
        rows=join(_render_row(comparison, row) for row in comparison.rows),
        decoder=comparison.decoder,
        epsilon=f"{comparison.epsilon:.4g}",
    )
    best_other = min(others, key=lambda row: row.error.mean)
    opening = fill(
        '<p class="note">People counted under a wrong label</p>\n'
        '<p class="headline"><strong>$own</strong> <span>with Sfumato; $other with $name, the best '
        "of the others</span></p>\n"
        '<p class="basis"><span>$people</span> <span>$labels</span> <span>$runs</span></p>',
        own=_share(own.error.mean),
        other=_share(best_other.error.mean),
        name=best_other.title,
        people=f"{comparison.people:,} simulated people",
        labels=plural(comparison.size, "label"),
        runs=plural(comparison.draws.runs, "run"),
    )
    return offline_document(title, kicker="Sfumato comparison", opening=opening, sections=sections)


def comparison_chart(comparison: Comparison) -> BarChart:
    """Return a bar for each mechanism: its mean error, and how well the runs determine it."""
    bars = [_bar(row) for row in comparison.rows]
    return BarChart("Error of each mechanism", tuple(bars), _share)


def _bar(row: Row) -> Bar:
    mean = row.error.mean
    if row.error.standard_error is None:
        return Bar(row.title, mean)
    # The standard error is itself estimated, from as many runs as there are errors.
    half_width = student_quantile(row.errors.size - 1) * row.error.standard_error
    return Bar(row.title, mean, max(mean - half_width, 0.0), mean + half_width)


def student_quantile(degrees: int) -> float:
    """Return the 97.5% quantile of Student's distribution.

    >>> round(student_quantile(4), 3), round(student_quantile(1000), 2)
    (2.776, 1.96)
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


def _share(share: float) -> str:
    return format_share(share, _DECIMALS)


def _render_row(comparison: Comparison, row: Row) -> Html:
    decoded = row.decoder_error
    numbers = {
        "error": _share(row.error.mean),
        "error, decoded": "–" if decoded is None else _share(decoded.mean),
        "people needed": format_factor(comparison.people_ratio(row)),
        "bits": f"{row.bits:,}",
        "leverage": f"{row.leverage:.3g}",
    }
    cell = '<td class="number" data-name="$name">$number</td>'
    cells = fill_each(cell, name=numbers, number=numbers.values())
    return fill('<tr><th scope="row">$title</th>$cells</tr>', title=row.title, cells=cells)
