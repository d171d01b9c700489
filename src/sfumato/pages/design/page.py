"""A design as a page: what is promised, how good the mechanism for it is, and what it looks like."""

from collections.abc import Sequence
from html import escape

from sfumato.designer.design import Design
from sfumato.pages.design.chart import design_svg
from sfumato.pages.design.facts import Rival, bound_sentence, design_facts
from sfumato.pages.document import sheet
from sfumato.pages.promise import promise_sentences
from sfumato.promises import Certificate

__all__ = ["design_page"]

_STYLE = """
.plot { overflow-x: auto; }
.plot svg { width: 100%; min-width: 44rem; height: auto; }
.wide { overflow-x: auto; }
.chosen th, .chosen td { font-weight: 600; }
.dark { display: none; }
@media screen and (prefers-color-scheme: dark) { .light { display: none; } .dark { display: block; } }
"""
_CAPTION = (
    "Above, a square is a pair of answers: the stronger its red, the harder they are to tell apart. What is promised "
    "includes what follows from other pairs. What is used is the most that any report says for one answer against the "
    "other; what is left over could have been used, had it helped. Hatched: nothing is promised. Below, a column is a "
    "report, and a row the answer that sends it: the stronger the colour, the oftener; hatched: never."
)


def design_page(
    design: Design, rivals: Sequence[Rival], *, seconds: float, title: str = "Design of a mechanism"
) -> str:
    """The whole page as HTML; nothing in it points outside. ``seconds`` is how long the design took."""
    return sheet(
        title,
        kicker="Sfumato design",
        opening=_opening(design),
        body="\n".join(
            (
                _promise(design),
                _figures(design, seconds),
                _pictures(design),
                _compared(design, rivals),
                _certificate(design.certificate),
            )
        ),
        style=_STYLE,
    )


def _opening(design: Design) -> str:
    words = f'<p class="lead">{escape(design.in_words())}</p>'
    return (
        words
        if design.certified
        else f'{words}\n<p class="caution">{escape(bound_sentence(design))}</p>'
    )


def _promise(design: Design) -> str:
    items = "".join(
        f"<li>{escape(sentence)}</li>" for sentence in promise_sentences(design.context)
    )
    return _section("promise", "What is promised", f'<ul class="promise">{items}</ul>')


def _figures(design: Design, seconds: float) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(fact)}</td></tr>'
        for name, fact in design_facts(design, seconds)
    )
    note = (
        "Risk is the mean squared error of the unbiased estimate, times the number of people: half of it needs half as "
        "many people. The gap is by how much another mechanism could at the most be better."
    )
    return _section(
        "figures",
        "In figures",
        f'<table class="facts"><tbody>{rows}</tbody></table>\n<p class="note">{note}</p>',
    )


def _pictures(design: Design) -> str:
    """Drawn twice, since a picture of many squares cannot change its colours with the page."""
    described = (
        "Three squares of pairs of answers: promised, used and left over. Below, the channel."
    )
    pictures = "".join(
        f'<div class="plot {name}" role="img" aria-label="{described}">{design_svg(design, dark=name == "dark")}</div>'
        for name in ("light", "dark")
    )
    return _section(
        "pictures",
        "Pictures",
        f"<figure>{pictures}\n<figcaption>{escape(_CAPTION)}</figcaption></figure>",
    )


def _compared(design: Design, rivals: Sequence[Rival]) -> str:
    if not rivals:
        return ""
    lines = "".join(
        _row(rival.what, f"{rival.risk:,.4g}", f"{rival.times:,.3g} ×") for rival in rivals
    )
    own = _row("this design", f"{design.risk:,.4g}", "1 ×", mark=' class="chosen"')
    table = (
        '<div class="wide"><table><thead><tr><th scope="col">mechanism</th><th scope="col" class="number">risk</th>'
        f'<th scope="col" class="number">over this design</th></tr></thead><tbody>{own}{lines}</tbody></table></div>'
    )
    return _section("compared", "Compared with what is used today", table)


def _row(what: str, risk: str, times: str, mark: str = "") -> str:
    numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in (risk, times))
    return f'<tr{mark}><th scope="row">{escape(what)}</th>{numbers}</tr>'


def _certificate(certificate: Certificate) -> str:
    return _section(
        "certificate",
        "The promise is kept",
        f'<p class="certified">{escape(str(certificate))}</p>\n'
        "<p>The check is of the integers that devices draw from, without tolerance. "
        f"Mechanism <code>{escape(certificate.mechanism)}</code></p>",
    )


def _section(name: str, heading: str, inside: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>\n{inside}\n</section>'
