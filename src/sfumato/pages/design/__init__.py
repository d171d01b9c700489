"""The page of a design: what is promised, how good the mechanism is, and what it looks like.

Its facts are the same in the terminal, in JSON and on the page.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from sfumato.contexts import Uniform
from sfumato.designer import Design, exponential_response, mechanism_for, recognise
from sfumato.errors import SfumatoError
from sfumato.foundation.formatting import format_count, format_epsilon, format_gap
from sfumato.mechanisms import Mechanism, contains_table
from sfumato.pages.design.chart import design_svg
from sfumato.pages.markup import (
    EMPTY,
    Html,
    fact_rows,
    fill,
    fill_each,
    join,
    list_items,
    number_row,
    offline_document,
    read_asset,
    render,
)
from sfumato.pages.promise import plural, promise_sentences

_MAX_COMPARED = 128  # symbols; for more, other mechanisms take too long
_MAX_RECOGNISED = 512  # symbols; larger matrices take too long to recognise
_ENDINGS = {
    "converged": "ended by itself",
    "stalled": "ended where nothing changed any more",
    "time limit": "stopped by the time limit",
    "interrupted": "stopped early",
}
_PICTURE = (
    '<div class="plot $scheme" role="img" aria-label="Three squares of pairs of answers: promised, '
    'used and left over. Below, the channel.">$svg</div>'
)


# --- the facts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alternative:
    """Another mechanism for the same promise.

    ``risk`` is for the design's prior and weights; ``times`` is ``risk`` over the design's risk.
    """

    name: str
    what: str
    risk: float
    times: float

    def in_json(self) -> dict[str, object]:
        """Return the fields that the command prints as JSON."""
        return asdict(self)


def alternatives_to(design: Design) -> list[Alternative]:
    """Return classical LDP at the smallest ε and the exponential mechanism, if they are quick."""
    context = design.context
    if context.size > _MAX_COMPARED or math.isinf(context.smallest_epsilon) or design.risk == 0:
        return []
    uniform = Uniform(context.domain, context.exact_minimum)
    epsilon = format_epsilon(context.smallest_epsilon).removeprefix("≈ ")
    candidates: list[tuple[str, str, Callable[[], Mechanism]]] = [
        ("classical", f"classical LDP, ε = {epsilon}", lambda: mechanism_for(uniform)),
        ("exponential", "exponential mechanism", lambda: exponential_response(context)),
    ]
    alternatives = []
    for name, what, make in candidates:
        try:
            variances = make().scores.variances(design.prior, 1)
        except SfumatoError:  # the mechanism does not exist, or cannot be inverted
            continue
        risk = float(design.weights @ variances)
        alternatives.append(Alternative(name, what, risk, risk / design.risk))
    return alternatives


def design_facts(design: Design, seconds: float) -> list[tuple[str, str]]:
    """Return the facts to show, in order: names and values."""
    mechanism = design.mechanism
    facts = [
        ("symbols", format_count(design.context.size)),
        ("closed form", _describe_closed_form(design)),
        ("risk", f"{design.risk:.6g}, {_distribution_text(design)}"),
        ("lower bound", f"{design.lower_bound:.6g} ({design.bound_status})"),
        ("gap", f"{format_gap(design.gap)} ({design.bound_status})"),
    ]
    if design.stop_reason in _ENDINGS:
        duration = f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
        search = (
            f"{plural(design.round_count, 'round')} in {duration}, {_ENDINGS[design.stop_reason]}"
        )
        facts.append(("search", search))
    reports = (
        f"{format_count(mechanism.outputs)} different ones, {plural(mechanism.bits, 'bit')} each"
    )
    leverage = f"a forged report outweighs up to {mechanism.scores.leverage:,.3g} honest people"
    return [*facts, ("reports", reports), ("leverage", leverage)]


def bound_sentence(design: Design) -> str:
    """Explain what the lower bound means, and how far to trust it."""
    if design.certified:
        return (
            "The lower bound is certified: it is proved that no mechanism for this promise has a "
            "smaller risk."
        )
    return (
        "The lower bound is estimated: a search found no report that would help, which does not "
        "prove that none exists. The gap may be larger than it seems."
    )


def name_closed_form(design: Design) -> str:
    """Return the name of the context's closed form, or an empty string."""
    if design.context.size == 2:
        return "two symbols"
    if design.context.size > _MAX_RECOGNISED:  # too large for a search, so it is a closed form
        return design.mechanism.context.kind
    try:
        return recognise(design.context).kind
    except SfumatoError:
        return ""


def _describe_closed_form(design: Design) -> str:
    name = name_closed_form(design)
    if not name:
        return "none known; the mechanism was searched for"
    if design.stop_reason == "closed form":
        return name
    outcome = "a better" if contains_table(design.mechanism) else "no better"
    return f"{name}; a search found {outcome} mechanism"


def _distribution_text(design: Design) -> str:
    people = "people spread evenly" if np.ptp(design.prior) < 1e-12 else "people like the prior"
    if np.ptp(design.weights) < 1e-12:
        return people
    return f"{people}, symbols weighted"


# --- the page -------------------------------------------------------------------------------------


def design_page(
    design: Design,
    alternatives: Sequence[Alternative],
    *,
    seconds: float,
    title: str = "Design of a mechanism",
) -> str:
    """Return the page as HTML. It links to nothing outside itself.

    ``alternatives`` are mechanisms to compare with; ``seconds`` is the time that the design took.
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
    lead = fill('<p class="lead">$text</p>', text=design.summary())
    if design.certified:
        return lead
    caution = fill('<p class="caution">$sentence</p>', sentence=bound_sentence(design))
    return join([lead, caution])


def _pictures(design: Design) -> Html:
    """Draw twice, because the colours of many squares cannot change with the page."""
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
