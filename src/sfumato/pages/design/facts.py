"""What is told of a design, the same on a terminal, in JSON and on a page: its figures, and how others would do."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.contexts import Blocks, Context, HighLow, Tiers, Uniform
from sfumato.designer import mechanism_for, recognise
from sfumato.designer.design import Design
from sfumato.designer.exponential import exponential_response
from sfumato.errors import SfumatoError
from sfumato.foundation.formatting import format_count, format_epsilon, format_gap
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.union import holds_table

__all__ = ["Rival", "bound_sentence", "design_facts", "recognised_as", "rivals_of"]

_MOST_COMPARED = 128
_LARGEST_CLOSED = 512  # symbols of a matrix that is quickly recognised
_STOPPED = {
    "converged": "ended by itself",
    "stalled": "ended where nothing changed any more",
    "time limit": "stopped by the time limit",
    "interrupted": "stopped early",
}


@dataclass(frozen=True)
class Rival:
    """Another mechanism for the same promise: its risk under the same crowd and weights, over that of the design."""

    name: str
    what: str
    risk: float
    times: float

    def in_json(self) -> dict[str, object]:
        """The rival in the words of the command."""
        return {"name": self.name, "what": self.what, "risk": self.risk, "times": self.times}


def rivals_of(design: Design) -> list[Rival]:
    """Classical LDP at the least ε, and the exponential mechanism; those that can be made quickly."""
    context = design.context
    if context.size > _MOST_COMPARED or math.isinf(context.smallest_epsilon) or design.risk == 0:
        return []
    classical = f"classical LDP, ε = {format_epsilon(context.smallest_epsilon).removeprefix('≈ ')}"
    made = (
        (
            "classical",
            classical,
            lambda: mechanism_for(Uniform(context.domain, context.exact_smallest)),
        ),
        ("exponential", "exponential mechanism", lambda: exponential_response(context)),
    )
    found = [(name, what, _risk(make, design)) for name, what, make in made]
    return [
        Rival(name, what, risk, risk / design.risk)
        for name, what, risk in found
        if risk is not None
    ]


def _risk(make: Callable[[], Mechanism], design: Design) -> float | None:
    """Its risk as the design's is meant; ``None`` where there is no such mechanism, or no way to undo it."""
    try:
        return float(design.weights @ make().scores.variances(design.prior, 1))
    except SfumatoError:
        return None


def design_facts(design: Design, seconds: float) -> list[tuple[str, str]]:
    """Names and values, in the order in which they are told."""
    mechanism = design.mechanism
    facts = [
        ("symbols", format_count(design.context.size)),
        ("closed form", _closed_form(design)),
        ("risk", f"{design.risk:.6g}, {_crowd(design)}"),
        ("lower bound", f"{design.lower_bound:.6g} ({design.bound_is})"),
        ("gap", f"{format_gap(design.gap)} ({design.bound_is})"),
    ]
    if design.stopped in _STOPPED:
        rounds = _counted(design.rounds, "round")
        facts.append(("search", f"{rounds} in {_duration(seconds)}, {_STOPPED[design.stopped]}"))
    return [
        *facts,
        (
            "reports",
            f"{format_count(mechanism.outputs)} different ones, {_counted(mechanism.bits, 'bit')} each",
        ),
        (
            "leverage",
            f"a forged report outweighs up to {mechanism.scores.leverage:,.3g} honest people",
        ),
    ]


def bound_sentence(design: Design) -> str:
    """What the lower bound means, and how far to trust it."""
    if design.certified:
        return "The lower bound is certified: it is proved that no mechanism for this promise has a smaller risk."
    return (
        "The lower bound is estimated: a search found no report that would help, which does not prove that there is "
        "none. The gap may be larger than it seems."
    )


def recognised_as(design: Design) -> str:
    """The structure of the context, if it is one that has a closed form; else nothing."""
    if design.context.size == 2:
        return "two symbols"
    if (
        design.context.size > _LARGEST_CLOSED
    ):  # what is searched is smaller, so that this is a closed form
        return _kind(design.mechanism.context)
    try:
        return _kind(recognise(design.context))
    except SfumatoError:
        return ""


def _closed_form(design: Design) -> str:
    found = recognised_as(design)
    if not found:
        return "none known; the mechanism was searched for"
    if design.stopped == "closed form":
        return found
    better = "a" if holds_table(design.mechanism) else "no"
    return f"{found}; a search found {better} better mechanism"


def _kind(context: Context) -> str:
    if isinstance(context, Uniform):
        return "uniform"
    if isinstance(context, HighLow):
        return "high-low"
    if isinstance(context, Tiers):
        return "tiers"
    return "blocks" if isinstance(context, Blocks) else "a union of blocks"


def _crowd(design: Design) -> str:
    people = "people spread evenly" if np.ptp(design.prior) < 1e-12 else "people like the prior"
    return people if np.ptp(design.weights) < 1e-12 else f"{people}, symbols weighted"


def _counted(number: int, what: str) -> str:
    return f"{format_count(number)} {what}{'s' * (number != 1)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
