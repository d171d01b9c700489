"""A plan as a page: one small HTML file without scripts, to be sent to whoever must decide."""

from html import escape

from sfumato.pages.document import sheet
from sfumato.pages.plan.chart import plan_svg
from sfumato.pages.style import DARK
from sfumato.planning import Plan

__all__ = ["plan_page"]

_STYLE = """
.plot { overflow-x: auto; }
.plot svg { width: 100%; min-width: 34rem; height: auto; }
.wide { overflow-x: auto; }
.chosen th, .chosen td { font-weight: 600; }
"""


def plan_page(plan: Plan, *, title: str = "Plan of a survey") -> str:
    """The whole page as HTML. Nothing in it points outside, and its own policy forbids the browser to load anything."""
    caption = (
        "A line is a mechanism, the broad one the plan's. The error falls with the square root of the number of "
        "people; a decoded picture falls more slowly at first, because it can never be worse than a guess. Dots are "
        "the figures of the table; the ring is the plan."
    )
    picture = f"""<section aria-labelledby="picture"><h2 id="picture">Error against people</h2>
<figure><div class="plot" role="img" aria-label="Error against people, a line per mechanism">{_svg(plan)}</div>
<figcaption>{escape(caption)}</figcaption></figure>
</section>
"""
    body, style = picture + _comparison(plan), _STYLE + _colours()
    return sheet(title, kicker="Sfumato plan", opening=_words(plan), body=body, style=style)


def _words(plan: Plan) -> str:
    answer, *fine = plan.sentences()
    kind = "lead" if plan.feasible else "lead caution"
    return f'<p class="{kind}">{escape(answer)}</p>\n<p>{escape(" ".join(fine))}</p>'


def _comparison(plan: Plan) -> str:
    head, *body = plan.table()
    heads = f'<th scope="col">{escape(head[0])}</th>' + "".join(
        f'<th scope="col" class="number">{escape(cell)}</th>' for cell in head[1:]
    )
    lines = []
    for row, line in zip(plan.rows, body, strict=True):
        cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in line[1:])
        mark = ' class="chosen"' if row.name == plan.chosen else ""
        lines.append(f'<tr{mark}><th scope="row">{escape(line[0])}</th>{cells}</tr>')
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in plan.notes())
    return f"""<section aria-labelledby="compared"><h2 id="compared">Mechanisms compared</h2>
<p><b>error</b> holds with probability {100 * plan.confidence:.10g} %, <b>mean</b> is the error on average.
<b>bits</b> is the length of a report; one forged report outweighs up to <b>leverage</b> honest people; <b>risk</b> is
the worst mean squared error of one report, and <b>over bound</b> that over the least that any mechanism for this
promise can have.</p>
<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>
{"".join(lines)}
</tbody></table></div>
{notes}
</section>"""


def _svg(plan: Plan) -> str:
    """The picture with its colours as variables, so that a dark page has a dark picture."""
    drawn = plan_svg(plan)
    for colour in DARK:
        drawn = drawn.replace(colour, f"var(--c{colour[1:]})")
    return drawn


def _colours() -> str:
    light, dark = (
        " ".join(f"--c{colour[1:]}: {shown};" for colour, shown in pairs)
        for pairs in (((colour, colour) for colour in DARK), DARK.items())
    )
    return f".plot {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ .plot {{ {dark} }} }}\n"
