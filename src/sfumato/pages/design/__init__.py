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
from sfumato.pages.design.chart import design_chart
from sfumato.pages.markup import (
    EMPTY,
    Html,
    chart_html,
    fact_rows,
    fill,
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
_NO_GAP = 1e-6  # smaller gaps are rounding errors
_SMALL_GAP = 1e-3
_STOP_REASONS = {
    "converged": "converged",
    "stalled": "stopped making progress",
    "time limit": "stopped by the time limit",
    "interrupted": "stopped early",
}


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
        ("risk", f"{design.risk:.6g} {_shares_text(design)}"),
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
    shares = _shares_text(design)
    if design.certified:
        return (
            f"The lower bound is certified: {shares}, no mechanism for this promise has a smaller "
            "risk than the bound."
        )
    return (
        f"The lower bound is estimated: {shares}, a search found no report that lowers the risk, "
        "which does not prove that none exists. The gap may be larger than it seems."
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


def _shares_text(design: Design) -> str:
    """Return the distribution that the risk and its bound are for."""
    shares = "at even shares"
    if np.ptp(design.prior) >= 1e-12:
        shares = "at the shares of the prior"
    if np.ptp(design.weights) < 1e-12:
        return shares
    return f"{shares}, with weighted answers"


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
    chart = design_chart(design)
    sections = render(
        "design/design.html",
        comparison=_render_comparison(design, alternatives),
        promise=list_items(promise_sentences(design.context)),
        promise_chart=chart_html(chart.promise),
        left_over=_left_over_sentence(len(chart.promise.panels)),
        channel_chart=chart_html(chart.channel),
        facts=fact_rows(design_facts(design, seconds)),
        bound=bound_sentence(design),
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
    opening = render(
        "design/opening.html",
        answer=_answer(design),
        risk=f"{design.risk:.4g}",
        reports=plural(design.mechanism.outputs, "possible report"),
        bits=plural(design.mechanism.bits, "bit"),
    )
    if design.certified:
        return opening
    caution = fill('<p class="caution">$sentence</p>', sentence=bound_sentence(design))
    return join([opening, caution])


def _answer(design: Design) -> str:
    """Say how close the mechanism is to the best one for its promise."""
    shares = _shares_text(design)
    start = f"{shares[0].upper()}{shares[1:]},"
    if not math.isfinite(design.gap):
        return f"{start} it is unknown how far this mechanism is from the best one."
    if not design.certified:
        return f"{start} the risk of this mechanism is about {_gap_text(design)} the smallest one."
    if design.gap < _NO_GAP:
        return f"{start} no mechanism that keeps this promise has a smaller risk than this one."
    if design.gap < _SMALL_GAP:
        return (
            f"{start} no mechanism that keeps this promise has a noticeably smaller risk than this "
            f"one: at most {format_gap(design.gap)} smaller."
        )
    return (
        f"{start} the risk of this mechanism is at most {_gap_text(design)} the smallest that any "
        "mechanism with this promise can have."
    )


def _gap_text(design: Design) -> str:
    return f"{format_gap(design.gap)} above"


def _left_over_sentence(panel_count: int) -> str:
    if panel_count > 2:
        return "What is left over would not have helped."
    return "The reports use all that is promised."


def _render_comparison(design: Design, alternatives: Sequence[Alternative]) -> Html:
    if not alternatives:
        return EMPTY
    rows = [number_row("this design", [f"{design.risk:,.4g}", "1 ×"], "chosen")]
    for alternative in alternatives:
        numbers = [f"{alternative.risk:,.4g}", f"{alternative.times:,.3g} ×"]
        rows.append(number_row(alternative.what, numbers))
    return render("design/comparison.html", shares=_shares_text(design), rows=join(rows))
