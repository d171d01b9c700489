"""The page of a design: what is promised, how good the mechanism is, and what it looks like."""

from collections.abc import Sequence

from sfumato.designer import Design
from sfumato.pages.design.chart import design_svg
from sfumato.pages.design.facts import Alternative, bound_sentence, design_facts
from sfumato.pages.document import offline_document
from sfumato.pages.markup import (
    EMPTY,
    Html,
    fact_rows,
    fill,
    fill_each,
    join,
    list_items,
    number_row,
    read_asset,
    render,
)
from sfumato.pages.promise import promise_sentences

__all__ = ["design_page"]

_PICTURE = (
    '<div class="plot $scheme" role="img" aria-label="Three squares of pairs of answers: promised, '
    'used and left over. Below, the channel.">$svg</div>'
)


def design_page(
    design: Design,
    alternatives: Sequence[Alternative],
    *,
    seconds: float,
    title: str = "Design of a mechanism",
) -> str:
    """Return the page as HTML. It links to nothing outside itself.

    ``alternatives`` are mechanisms to compare with, and ``seconds`` is how long the design took.
    """
    sections = render(
        "design/design.html",
        promise=list_items(promise_sentences(design.context)),
        facts=fact_rows(design_facts(design, seconds)),
        pictures=_pictures(design),
        comparison=_comparison(design, alternatives),
        certificate=design.certificate,
        mechanism=design.certificate.mechanism,
    )
    return offline_document(
        title,
        kicker="Sfumato design",
        opening=_opening(design),
        sections=sections,
        css=read_asset("design/design.css"),
    )


def _opening(design: Design) -> Html:
    lead = fill('<p class="lead">$words</p>', words=design.summary())
    if design.certified:
        return lead
    caution = fill('<p class="caution">$sentence</p>', sentence=bound_sentence(design))
    return join([lead, caution])


def _pictures(design: Design) -> Html:
    """Draw twice: a picture of many squares cannot change its colours with the page."""
    light = Html(design_svg(design))
    dark = Html(design_svg(design, dark=True))
    return fill_each(_PICTURE, scheme=("light", "dark"), svg=(light, dark))


def _comparison(design: Design, alternatives: Sequence[Alternative]) -> Html:
    if not alternatives:
        return EMPTY
    rows = [number_row("this design", [f"{design.risk:,.4g}", "1 ×"], "chosen")]
    for alternative in alternatives:
        numbers = [f"{alternative.risk:,.4g}", f"{alternative.times:,.3g} ×"]
        rows.append(number_row(alternative.what, numbers))
    return render("design/comparison.html", rows=join(rows))
