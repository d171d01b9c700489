"""The design page: what is promised, how good the mechanism is, and what it looks like.

``sfumato design`` prints the same facts and alternatives.
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

_MAX_COMPARED_SYMBOLS = 128  # with more, the alternatives take too long to compute
_MAX_RECOGNISED_SYMBOLS = 512  # larger matrices take too long to recognise
_STOP_REASONS = {
    "converged": "converged",
    "stalled": "stopped making progress",
    "time limit": "stopped by the time limit",
    "interrupted": "stopped early",
}
_FIGURE = (
    '<div class="plot $scheme" role="img" aria-label="Three matrices with a square for each '
    'pair of answers: what is promised, used and left over. Below them, the channel.">$svg</div>'
)


# --- the facts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alternative:
    """A different mechanism for the same promise.

    ``what``: a short description. ``risk``: the risk with the design's prior and weights.
    ``times``: ``risk`` divided by the design's risk.
    """

    name: str
    what: str
    risk: float
    times: float

    def to_dict(self) -> dict[str, object]:
        """Return the fields that ``sfumato design --json`` prints."""
        return asdict(self)


def alternatives_to(design: Design) -> list[Alternative]:
    """Return classical LDP at the smallest ε, and the exponential mechanism.

    Omit those that do not exist or cannot be inverted. Return an empty list if there are too many
    symbols, if nothing is promised, or if the design's risk is 0.
    """
    context = design.context
    if (
        context.size > _MAX_COMPARED_SYMBOLS
        or math.isinf(context.smallest_epsilon)
        or design.risk == 0
    ):
        return []
    uniform = Uniform(context.domain, context.exact_minimum)
    epsilon = format_epsilon(context.smallest_epsilon).removeprefix("≈ ")
    candidates: list[tuple[str, str, Callable[[], Mechanism]]] = [
        ("classical", f"classical LDP, ε = {epsilon}", lambda: mechanism_for(uniform)),
        ("exponential", "exponential mechanism", lambda: exponential_response(context)),
    ]
    alternatives = []
    for name, what, create_mechanism in candidates:
        try:
            variances = create_mechanism().scores.variances(design.prior, 1)
        except SfumatoError:  # the mechanism does not exist, or cannot be inverted
            continue
        risk = float(design.weights @ variances)
        alternatives.append(Alternative(name, what, risk, risk / design.risk))
    return alternatives


def design_facts(design: Design, seconds: float) -> list[tuple[str, str]]:
    """Return the names and values of the facts to show, in order.

    ``seconds``: how long the design took.
    """
    mechanism = design.mechanism
    facts = [
        ("symbols", format_count(design.context.size)),
        ("closed form", _describe_closed_form(design)),
        ("risk", f"{design.risk:.6g}, {_distribution_text(design)}"),
        ("lower bound", f"{design.lower_bound:.6g} ({design.bound_status})"),
        ("gap", f"{format_gap(design.gap)} ({design.bound_status})"),
    ]
    if design.stop_reason in _STOP_REASONS:
        duration = f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
        reason = _STOP_REASONS[design.stop_reason]
        search_text = f"{plural(design.round_count, 'round')} in {duration}, {reason}"
        facts.append(("search", search_text))
    reports_text = (
        f"{format_count(mechanism.outputs)} possible reports, {plural(mechanism.bits, 'bit')} each"
    )
    leverage_text = (
        f"a forged report outweighs up to {mechanism.scores.leverage:,.3g} honest people"
    )
    return [*facts, ("reports", reports_text), ("leverage", leverage_text)]


def bound_sentence(design: Design) -> str:
    """Explain what the lower bound means, and how reliable it is."""
    if design.certified:
        return (
            "The lower bound is certified: no mechanism for this promise has a smaller risk than "
            f"the bound, with {_distribution_text(design)}."
        )
    return (
        "The lower bound is estimated: a search found no report that lowers the risk, which does "
        "not prove that none exists. The gap may be larger than it seems."
    )


def name_of_closed_form(design: Design) -> str:
    """Return the name of the context's closed form, or an empty string if none is known."""
    if design.context.size == 2:
        return "two symbols"
    # A context too large for a search must have a closed form.
    if design.context.size > _MAX_RECOGNISED_SYMBOLS:
        return design.mechanism.context.kind
    try:
        return recognise(design.context).kind
    except SfumatoError:
        return ""


def _describe_closed_form(design: Design) -> str:
    name = name_of_closed_form(design)
    if not name:
        return "none known; the mechanism was found by a search"
    if design.stop_reason == "closed form":
        return name
    outcome = "a better" if contains_table(design.mechanism) else "no better"
    return f"{name}; a search found {outcome} mechanism"


def _distribution_text(design: Design) -> str:
    distribution = "people spread evenly"
    if np.ptp(design.prior) >= 1e-12:
        distribution = "people distributed according to the prior"
    if np.ptp(design.weights) < 1e-12:
        return distribution
    return f"{distribution}, symbols weighted"


# --- the page -------------------------------------------------------------------------------------


def design_page(
    design: Design,
    alternatives: Sequence[Alternative],
    *,
    seconds: float,
    title: str = "Mechanism design",
) -> str:
    """Return the design page as self-contained HTML.

    ``alternatives``: mechanisms to compare with. ``seconds``: how long the design took.
    """
    sections = render(
        "design/design.html",
        promise=list_items(promise_sentences(design.context)),
        facts=fact_rows(design_facts(design, seconds)),
        pictures=_render_figures(design),
        comparison=_render_comparison(design, alternatives),
        certificate=design.certificate,
        mechanism=design.certificate.mechanism,
    )
    return offline_document(
        title,
        kicker="Sfumato design",
        opening=_render_opening(design),
        sections=sections,
        css=read_asset("design/design.css"),
    )


def _render_opening(design: Design) -> Html:
    lead = fill('<p class="lead">$text</p>', text=design.summary())
    if design.certified:
        return lead
    caution = fill('<p class="caution">$sentence</p>', sentence=bound_sentence(design))
    return join([lead, caution])


def _render_figures(design: Design) -> Html:
    """Draw a light and a dark figure, because CSS cannot change the colours of a bitmap."""
    light = Html(design_svg(design))
    dark = Html(design_svg(design, dark=True))
    return fill_each(_FIGURE, scheme=("light", "dark"), svg=(light, dark))


def _render_comparison(design: Design, alternatives: Sequence[Alternative]) -> Html:
    if not alternatives:
        return EMPTY
    rows = [number_row("this design", [f"{design.risk:,.4g}", "1 ×"], "chosen")]
    for alternative in alternatives:
        numbers = [f"{alternative.risk:,.4g}", f"{alternative.times:,.3g} ×"]
        rows.append(number_row(alternative.what, numbers))
    return render("design/comparison.html", rows=join(rows))
