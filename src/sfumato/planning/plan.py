"""Plan: how many people a survey needs, or how far off it will be, before anybody is asked."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape

from numpy.typing import ArrayLike

from sfumato.contexts import Context, Uniform
from sfumato.designer.bounds import lower_bound_risk
from sfumato.domains import Label
from sfumato.errors import InvalidContext, NoClosedForm
from sfumato.estimation.decoders import decoder_named
from sfumato.foundation.formatting import (
    format_factor,
    format_number,
    format_percent,
    format_upper_bound,
)
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.mechanism import people_count
from sfumato.planning.asked import checked_aim, checked_goal
from sfumato.planning.compare import Compared, compared, mechanisms_compared
from sfumato.planning.predict import DECODED_MEASURES, MOST_PEOPLE

__all__ = ["Compared", "Plan", "plan"]

_MEASURED = {
    "tv": "total variation error",
    "symbol": "error of the share that is known worst",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_BEYOND = "10^12"
_WORTH_SAYING = 0.05
_FORGED = 0.01  # the share of fake people that a plan speaks of
_DESIGN = (
    "No closed form is known for this privacy matrix: sf.design(context), or the command sfumato design, computes a "
    "mechanism for this very matrix."
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What a number of people buys, what a goal costs, and what other mechanisms would make of it.

    ``error`` is kept with probability ``confidence``; ``mean`` is the error on average. ``people`` and both errors are
    ``None`` where no number of people meets the ``goal``. ``reading`` says of which estimate they speak: "decoded",
    the picture that a survey reports, or "unbiased", the one that intervals come from. ``distribution`` says for
    which crowd: "worst" (the hardest for the mechanism), "uniform" or "given". ``rows`` compares mechanisms;
    ``chosen`` names the one that the plan is for. ``on_shelf`` says whether a closed form is known for the context;
    where none is, and where the goal cannot be met, ``advice`` says what would help.
    """

    context: Context
    measure: str
    confidence: float
    distribution: str
    reading: str
    decoder: str | None
    goal: float | None
    people: int | None
    error: float | None
    mean: float | None
    feasible: bool
    advice: tuple[str, ...]
    lower_bound: float
    on_shelf: bool
    chosen: str
    rows: tuple[Compared, ...]

    @property
    def row(self) -> Compared:
        """The row that the plan is for."""
        return next(row for row in self.rows if row.name == self.chosen)

    def at(self, people: int) -> "Plan":
        """The same plan for another number of people, and without a goal."""
        n = people_count(people)
        rows = tuple(row.at(n) for row in self.rows)
        return _answered(replace(self, goal=None, rows=rows), n)

    def in_words(self) -> str:
        """The plan as a short paragraph."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """The answer; for whom; what fakes could do; a better row, if any; why a goal is out of reach, what helps."""
        return [self._answer(), self._fine_print(), *self._forged(), *self._better(), *self.advice]

    def _forged(self) -> list[str]:
        """What one forger in a hundred could do, which no number of people makes smaller."""
        if self.row.mechanism is None or self.row.mechanism.inputs == 1:
            return []
        moved = _FORGED * self.row.mechanism.reach.largest
        return [
            f"If one report in a hundred is fake, that moves an unbiased share by up to {format_upper_bound(moved)}."
        ]

    def _better(self) -> list[str]:
        """The shelf's best has the least squared error of the worst crowd; another measure may prefer another code."""
        own = self.row.figures
        if own is None or own.error == 0:
            return []
        others = {
            row.what: row.figures
            for row in self.rows
            if row.figures is not None and row.name != self.chosen
        }
        # Rows differ in people or in error, never in both: the product says which is better, as error goes by √n.
        cost = {what: found.error * math.sqrt(found.people) for what, found in others.items()}
        what = min(cost, key=lambda name: cost[name], default="")
        if not what or cost[what] > (1 - _WORTH_SAYING) * own.error * math.sqrt(own.people):
            return []
        found = others[what]
        return [
            f"By this measure another does better: {what}, {format_number(found.error)} with {found.people:,} people."
        ]

    def in_json(self) -> dict[str, object]:
        """The plan in the words of the command."""
        return {
            "measure": self.measure,
            "confidence": self.confidence,
            "distribution": self.distribution,
            "estimate": self.reading,
            "decoder": self.decoder,
            "goal": self.goal,
            "people": self.people,
            "error": self.error,
            "mean": self.mean,
            "feasible": self.feasible,
            "advice": list(self.advice),
            "lower_bound_risk": self.lower_bound if math.isfinite(self.lower_bound) else None,
            "forged": self._forged_json(),
            "mechanism": self.chosen,
            "mechanisms": [row.in_json() for row in self.rows],
        }

    def _forged_json(self) -> dict[str, float] | None:
        if self.row.mechanism is None:
            return None
        reach = self.row.mechanism.reach
        moved = {"share": reach.largest, "total_variation": reach.total_variation}
        return {"of_reports": _FORGED, **{name: _FORGED * people for name, people in moved.items()}}

    def _answer(self) -> str:
        surely = f"with probability {format_percent(self.confidence)}"
        if self.people is None or self.error is None or self.mean is None:
            return f"No number of people up to {_BEYOND} keeps the {_MEASURED[self.measure]} to {self.goal:g}."
        about = "about " if self.goal is not None and self.reading == "decoded" else ""
        told = (
            f"With {about}{self.people:,} people the {_MEASURED[self.measure]} is at most "
            f"{format_number(self.error)} {surely} ({format_number(self.mean)} on average)"
        )
        if not self.feasible:
            return f"{told}; that is more than the {self.goal:g} asked for."
        if self.measure in ("tv", "symbol") and self.error >= 1:
            return f"{told}: so few people tell nothing."
        return f"{told}."

    def _fine_print(self) -> str:
        crowd = {
            "worst": "the hardest distribution for this mechanism",
            "uniform": "people spread evenly",
            "given": "people drawn from the distribution that was given",
        }[self.distribution]
        which = (
            f"the decoded picture ({self.decoder})"
            if self.reading == "decoded"
            else "the unbiased estimate"
        )
        return f"This is for {crowd}, and for {which} by this mechanism: {self.row.what}."

    def __repr__(self) -> str:
        columns = self.table()
        widths = [max(len(line[i]) for line in columns) for i in range(len(columns[0]))]
        lines = [*self.sentences(), ""]
        for line in columns:
            cells = [
                line[0].ljust(widths[0]),
                *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)),
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, *self.notes()])

    def _repr_html_(self) -> str:
        """What notebooks show."""
        head, *body = self.table()
        heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(line[0])}</th>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in line[1:])
            + "</tr>"
            for line in body
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes())
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<p><b>Plan.</b> {escape(self.in_words())}</p>{table}{notes}"

    def table(self) -> list[list[str]]:
        """The comparison as text, a line per mechanism, headed."""
        head = ["mechanism", "people", "error", "mean", "bits", "leverage", "risk", "over bound"]
        lines = [head]
        for row in self.rows:
            found, beyond = row.figures, "–" if not row.made else f"> {_BEYOND}"
            figures = [beyond, "–", "–"]
            if found is not None:
                figures = [
                    f"{found.people:,}",
                    format_number(found.error),
                    format_number(found.mean),
                ]
            facts = ["–"] * 4
            if row.mechanism is not None:
                facts = [
                    str(row.bits),
                    format_number(row.leverage),
                    format_number(row.risk),
                    format_factor(row.over_bound),
                ]
            lines.append([row.what, *figures, *facts])
        return lines

    def notes(self) -> list[str]:
        """Why rows have no mechanism, or need none; those with one reason are named together."""
        named: dict[str, list[str]] = {}
        for row in self.rows:
            if row.reason:
                named.setdefault(row.reason, []).append(row.what)
        return [f"{'; '.join(rows)}: {reason}" for reason, rows in named.items()]


def plan(
    context: Context,
    *,
    error: float | None = None,
    people: int | None = None,
    measure: str = "tv",
    confidence: float = 0.95,
    distribution: str | ArrayLike | Mapping[Label, float] = "worst",
    labels: Iterable[Label] | Mapping[Label, float] | None = None,
    decoder: str = "projection",
    mechanism: Mechanism | None = None,
) -> Plan:
    """People for an error, or the error for people; with both, whether these people are enough.

    ``measure`` is what the error is of:

    - "tv": total variation, ``½ Σ_x |p̂_x − p_x|``;
    - "symbol": the share that is known worst, each share on its own;
    - "total": the total of ``labels``, or with a mapping from label to weight ``Σ_x w_x p_x``;
    - "l2": Euclidean distance, ``‖p̂ − p‖``.

    The error holds with probability ``confidence``. It counts everything between the estimate and the distribution
    that people are drawn from: the noise of privacy, and the luck of who is asked.

    ``distribution`` is "worst", "uniform", a share (or a count) per symbol, or a mapping from label to share. For
    "worst" the figures are those of the unbiased estimate at the distribution that is hardest for it: no crowd is
    harder, most are easier. For the others "tv" and "l2" are also predicted for the decoded picture, and these are
    then the plan's. The plan is for ``mechanism``, by default the best on the shelf, or where nothing on the shelf fits
    the one of least risk that keeps the context all the same.

    >>> from sfumato.contexts import Uniform
    >>> wanted = plan(Uniform(["red", "green", "blue"], 1), error=0.05)
    >>> wanted.people, round(wanted.at(100_000).error, 4)
    (3791, 0.0097)
    """
    if error is None and people is None:
        raise InvalidContext(
            "say what to plan for: error= (how many people?), people= (how far off?), or both."
        )
    goal, asked = checked_goal(error, measure), None if people is None else people_count(people)
    if asked is not None and asked > MOST_PEOPLE:
        raise InvalidContext(f"people must be at most {MOST_PEOPLE}; found {asked}.")
    decoder_named(decoder)
    aim = checked_aim(context, measure, confidence, distribution, labels)
    bound = lower_bound_risk(context)
    mechanisms = mechanisms_compared(context, mechanism)
    rows = compared(mechanisms, context, aim, decoder, bound)
    chosen = _chosen(rows, mechanism)
    answered = _planned(rows, chosen, goal, asked)
    word = distribution if isinstance(distribution, str) else "given"
    drawn = aim.p is not None and measure in DECODED_MEASURES
    made_plan = Plan(
        context=context,
        measure=measure,
        confidence=float(confidence),
        distribution=word,
        reading="decoded" if drawn else "unbiased",
        decoder=decoder if drawn else None,
        goal=goal,
        people=None,
        error=None,
        mean=None,
        feasible=True,
        advice=(),
        lower_bound=bound,
        on_shelf=not isinstance(mechanisms["best"], NoClosedForm),
        chosen=chosen,
        rows=tuple(answered),
    )
    return _answered(made_plan, asked)


def _chosen(rows: list[Compared], own: Mechanism | None) -> str:
    """One's own mechanism, by whatever name; else the best; else the one of least risk among those that are there."""
    made = {row.name: row.mechanism for row in rows if row.mechanism is not None}
    if own is not None:
        return next(name for name in reversed(made) if made[name].record() == own.record())
    if not made:
        reason = next(row.reason for row in rows if row.name == "best")
        raise NoClosedForm(f"there is no mechanism to plan for: {reason}")
    risks = {row.name: row.risk for row in rows if row.risk is not None}
    return "best" if "best" in made else min(risks, key=lambda name: risks[name])


def _planned(
    rows: list[Compared], chosen: str, goal: float | None, people: int | None
) -> list[Compared]:
    """Each row with its figures: at the people asked for, or at those that the goal needs."""
    if people is not None or goal is None:
        return [row.at(people or 1) for row in rows]
    ratio = 1.0  # what the decoded picture saves with the chosen mechanism: where to begin with the others
    first = next(row for row in rows if row.name == chosen)
    planned = {chosen: first.for_error(goal)}
    alone, together = planned[chosen].unbiased, planned[chosen].decoded
    if alone is not None and together is not None:
        ratio = together.people / alone.people
    return [planned[row.name] if row.name == chosen else row.for_error(goal, ratio) for row in rows]


# --- the answer -----------------------------------------------------------------------------------------------------


def _answered(made: Plan, people: int | None) -> Plan:
    """The plan with the figures of its own row, whether they meet the goal, and what would help."""
    found = made.row.figures
    if found is None:
        answered = replace(made, feasible=False)
    else:
        feasible = people is None or made.goal is None or found.error <= made.goal
        answered = replace(
            made, people=found.people, error=found.error, mean=found.mean, feasible=feasible
        )
    return replace(answered, advice=_advice(answered))


def _advice(made: Plan) -> tuple[str, ...]:
    """Why a goal cannot be met, and what would help: in figures where there are any."""
    design = [] if made.on_shelf or made.chosen == "own" else [_DESIGN]
    if made.feasible or made.goal is None:
        return tuple(design)
    return (*_shortfall(made, made.row, made.goal), *design, *_remedies(made, made.row))


def _shortfall(made: Plan, row: Compared, goal: float) -> list[str]:
    if made.people is None:
        most = row.figures_at(MOST_PEOPLE).error
        return [
            f"Even {_BEYOND} people leave an error of {format_number(most)}: it falls with their square root only."
        ]
    needed = row.for_error(goal).figures
    if needed is None:
        return [f"No number of people up to {_BEYOND} would do."]
    return [f"About {needed.people:,} people would do."]


def _remedies(made: Plan, row: Compared) -> list[str]:
    remedies = []
    best = next(other for other in made.rows if other.name == "best")
    if (
        row.name != "best"
        and best.made
        and best.risk is not None
        and row.risk is not None
        and best.risk < row.risk
    ):
        remedies.append(
            f"The best mechanism on the shelf has {format_number(best.risk / row.risk)} of the risk of this one."
        )
    if made.distribution == "worst":
        remedies.append(
            "Most crowds are easier than the worst: give a distribution if one can be guessed."
        )
    if isinstance(made.context, Uniform):
        remedies.append(
            "Promise less where less is needed: sensitive labels only, or pairs within blocks only."
        )
    if made.measure in ("tv", "l2") and made.context.size > 2:
        remedies.append(
            "Merge labels, or ask for single shares or a total, which need far fewer people."
        )
    if math.isfinite(made.context.smallest_epsilon):
        remedies.append(
            "A larger ε helps too: for small ε, twice the ε does the work of four times the people."
        )
    return remedies
