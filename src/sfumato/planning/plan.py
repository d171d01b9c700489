"""Plan a survey: how many people it needs, or how far off it will be, before anyone answers."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.designer import lower_bound_risk
from sfumato.domains import Label
from sfumato.errors import InvalidArgument, NoClosedForm
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.formatting import (
    format_factor,
    format_number,
    format_percent,
    format_upper_bound,
)
from sfumato.mechanisms import Mechanism, require_people
from sfumato.planning.predict import MAX_PEOPLE
from sfumato.planning.rows import PlanRow, build_rows, find_mechanisms
from sfumato.planning.target import Target, check_goal

__all__ = ["Plan", "plan"]

_MEASURE_NAMES = {
    "tv": "total variation error",
    "symbol": "error of the least certain share",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_DISTRIBUTION_NAMES = {
    "worst": "the hardest distribution for this mechanism",
    "uniform": "people spread evenly",
    "given": "people drawn from the distribution that you gave",
}
_TABLE_HEAD = ["mechanism", "people", "error", "mean", "bits", "leverage", "risk", "over bound"]
_MAX_PEOPLE_TEXT = "10^12"
_CLEARLY_BETTER = 0.95  # another row is worth mentioning below this share of the plan's own cost
_FAKE_SHARE = 0.01  # the share of fake reports that a plan warns about
_DESIGN_ADVICE = (
    "No closed form is known for this privacy matrix. To compute a mechanism for it, use "
    "sf.design(context) or the command sfumato design."
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The error for a number of people, or the people for an error, with other mechanisms compared.

    ``measure`` and ``confidence``: which error it is, and the probability with which it holds.
    ``distribution``: "worst" (the hardest for the mechanism), "uniform" or "given".
    ``goal``: the error that you asked for, if any; ``feasible`` says whether it is met.
    ``lower_bound``: the least risk that any mechanism for the context can have.
    ``on_shelf``: whether a closed form is known for the context.
    ``rows``: the mechanisms that were considered; ``chosen`` names the one that the plan is for.
    """

    context: Context
    measure: str
    confidence: float
    distribution: str
    goal: float | None
    feasible: bool
    lower_bound: float
    on_shelf: bool
    chosen: str
    rows: tuple[PlanRow, ...]

    @property
    def row(self) -> PlanRow:
        """The row that the plan is for."""
        return next(row for row in self.rows if row.name == self.chosen)

    @property
    def people(self) -> int | None:
        """The number of people; ``None`` if no number meets the goal."""
        figures = self.row.figures
        return None if figures is None else figures.people

    @property
    def error(self) -> float | None:
        """The error at this confidence; ``None`` if no number of people meets the goal."""
        figures = self.row.figures
        return None if figures is None else figures.error

    @property
    def mean(self) -> float | None:
        """The error on average; ``None`` if no number of people meets the goal."""
        figures = self.row.figures
        return None if figures is None else figures.mean

    @property
    def estimate(self) -> str:
        """Which estimate the figures are for.

        "decoded" is the estimate that a survey reports, "unbiased" the one that intervals come
        from.
        """
        return "unbiased" if self.decoder is None else "decoded"

    @property
    def decoder(self) -> str | None:
        """The decoder of the predicted estimate; ``None`` for the unbiased one."""
        forecast = self.row.decoded_forecast
        return None if forecast is None else forecast.decoder

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What would help, if the goal is out of reach or the context has no closed form."""
        design = []
        if not self.on_shelf and self.chosen != "own":
            design.append(_DESIGN_ADVICE)
        if self.feasible or self.goal is None:
            return tuple(design)
        return (self._shortfall(self.goal), *design, *self._remedies())

    def at(self, people: int) -> "Plan":
        """Return the same plan for another number of people, without a goal."""
        n = require_people(people)
        rows = tuple(row.at(n) for row in self.rows)
        return replace(self, goal=None, feasible=True, rows=rows)

    def summary(self) -> str:
        """Return the plan as a short paragraph."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return the answer, its conditions, the effect of fake reports, and any advice."""
        return [
            self._answer(),
            self._fine_print(),
            *self._fake_reports(),
            *self._better_row(),
            *self.advice,
        ]

    def in_json(self) -> dict[str, object]:
        """Return the plan as the command prints it."""
        return {
            "measure": self.measure,
            "confidence": self.confidence,
            "distribution": self.distribution,
            "estimate": self.estimate,
            "decoder": self.decoder,
            "goal": self.goal,
            "people": self.people,
            "error": self.error,
            "mean": self.mean,
            "feasible": self.feasible,
            "advice": list(self.advice),
            "lower_bound_risk": self.lower_bound if math.isfinite(self.lower_bound) else None,
            "forged": self._fake_reports_json(),
            "mechanism": self.chosen,
            "mechanisms": [row.in_json() for row in self.rows],
        }

    def table(self) -> list[list[str]]:
        """Return the rows as text, below a header."""
        lines = [_TABLE_HEAD]
        for row in self.rows:
            lines.append([row.title, *_figure_cells(row), *_mechanism_cells(row)])
        return lines

    def notes(self) -> list[str]:
        """Return the reasons why rows have no mechanism, or need none, without duplicates."""
        titles: dict[str, str] = {}
        for row in self.rows:
            if row.reason in titles:
                titles[row.reason] += f"; {row.title}"
            elif row.reason:
                titles[row.reason] = row.title
        return [f"{title}: {reason}" for reason, title in titles.items()]

    def __repr__(self) -> str:
        table = self.table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [*self.sentences(), ""]
        for title, *cells in table:
            line = title.ljust(widths[0])
            for cell, width in zip(cells, widths[1:], strict=True):
                line += "  " + cell.rjust(width)
            lines.append(line.rstrip())
        return "\n".join([*lines, *self.notes()])

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        head, *body = self.table()
        heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
        rows = ""
        for title, *cells in body:
            rows += f'<tr><th scope="row" style="text-align:left">{escape(title)}</th>'
            rows += "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows += "</tr>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes())
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<p><b>Plan.</b> {escape(self.summary())}</p>{table}{notes}"

    def _answer(self) -> str:
        name = _MEASURE_NAMES[self.measure]
        figures = self.row.figures
        if figures is None:
            return (
                f"No number of people up to {_MAX_PEOPLE_TEXT} keeps the {name} to {self.goal:g}."
            )
        about = ""
        if self.goal is not None and self.estimate == "decoded":
            about = "about "
        answer = (
            f"With {about}{figures.people:,} people the {name} is at most "
            f"{format_number(figures.error)} with probability {format_percent(self.confidence)} "
            f"({format_number(figures.mean)} on average)"
        )
        if not self.feasible:
            return f"{answer}; that is more than your goal of {self.goal:g}."
        if self.measure in ("tv", "symbol") and figures.error >= 1:
            return f"{answer}: too few people to learn anything."
        return f"{answer}."

    def _fine_print(self) -> str:
        estimate = "the unbiased estimate"
        if self.decoder is not None:
            estimate = f"the decoded picture ({self.decoder})"
        people = _DISTRIBUTION_NAMES[self.distribution]
        return f"This is for {people}, and for {estimate} of this mechanism: {self.row.title}."

    def _fake_reports(self) -> list[str]:
        """Say what one fake report in a hundred could do, which more people do not reduce."""
        mechanism = self.row.mechanism
        if mechanism is None or mechanism.inputs == 1:
            return []
        shift = format_upper_bound(_FAKE_SHARE * mechanism.scores.reach.max_shift)
        return [
            f"If one report in a hundred is fake, that moves an unbiased share by up to {shift}."
        ]

    def _fake_reports_json(self) -> dict[str, float] | None:
        if self.row.mechanism is None:
            return None
        reach = self.row.mechanism.scores.reach
        return {
            "of_reports": _FAKE_SHARE,
            "share": _FAKE_SHARE * reach.max_shift,
            "total_variation": _FAKE_SHARE * reach.total_variation,
        }

    def _better_row(self) -> list[str]:
        """Name a mechanism that does better by this measure.

        The best on the shelf has the least squared error at its worst distribution; another measure
        may prefer another code.
        """
        if self.row.figures is None or self.row.figures.error == 0:
            return []
        # Rows differ in people or in error, never in both. Error falls as 1/√n, so compare the
        # product error · √n.
        best = None
        least = _CLEARLY_BETTER * self.row.figures.cost
        for row in self.rows:
            if row.figures is not None and row.name != self.chosen and row.figures.cost < least:
                best = row
                least = row.figures.cost
        if best is None or best.figures is None:
            return []
        error = format_number(best.figures.error)
        return [
            f"By this measure another mechanism does better: {best.title}, "
            f"{error} with {best.figures.people:,} people."
        ]

    def _shortfall(self, goal: float) -> str:
        """Say by how much the goal is missed."""
        if self.people is None:
            error = format_number(self.row.figures_at(MAX_PEOPLE).error)
            return (
                f"Even {_MAX_PEOPLE_TEXT} people leave an error of {error}, because it falls only "
                "with the square root of their number."
            )
        needed = self.row.for_error(goal).figures
        if needed is None:
            return f"No number of people up to {_MAX_PEOPLE_TEXT} is enough."
        return f"About {needed.people:,} people are enough."

    def _remedies(self) -> list[str]:
        remedies = []
        risk = self.row.risk
        best = next(row for row in self.rows if row.name == "best")
        if best.risk is not None and risk is not None and best.risk < risk:
            ratio = format_number(best.risk / risk)
            remedies.append(f"The best mechanism on the shelf has {ratio} of the risk of this one.")
        if self.distribution == "worst":
            remedies.append(
                "Most distributions are easier than the worst: give one if you can guess it."
            )
        groups = self.context.groups
        if groups is not None and len(groups.inside) == 1:
            remedies.append(
                "Promise less where less is needed: only for sensitive labels, or only within "
                "blocks."
            )
        if self.measure in ("tv", "l2") and self.context.size > 2:
            remedies.append(
                "Merge labels, or ask for single shares or a total, which need far fewer people."
            )
        if math.isfinite(self.context.smallest_epsilon):
            remedies.append(
                "A larger ε helps too: while ε is small, doubling it saves three quarters of the "
                "people."
            )
        return remedies


def _figure_cells(row: PlanRow) -> list[str]:
    """Return people, error and mean of a row."""
    figures = row.figures
    if figures is not None:
        return [f"{figures.people:,}", format_number(figures.error), format_number(figures.mean)]
    if row.available:
        return [f"> {_MAX_PEOPLE_TEXT}", "–", "–"]
    return ["–", "–", "–"]


def _mechanism_cells(row: PlanRow) -> list[str]:
    """Return bits, leverage, risk and risk over bound of a row."""
    if not row.available:
        return ["–"] * 4
    return [
        str(row.bits),
        format_number(row.leverage),
        format_number(row.risk),
        format_factor(row.over_bound),
    ]


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
    """Return how many people an error needs, or the error that a number of people gives.

    ``error``: the goal; the plan says how many people it needs.
    ``people``: the plan says how far off their estimate will be. If you pass both, it says whether
    they are enough.
    ``measure``: which error to predict:

    - "tv": total variation, ``½ Σ_x |p̂_x − p_x|``;
    - "symbol": the least certain share, each share on its own;
    - "total": the total of ``labels``, or with a mapping from label to weight ``Σ_x w_x p_x``;
    - "l2": Euclidean distance, ``‖p̂ − p‖``.

    ``confidence``: the probability with which the error holds. It covers everything between the
    estimate and the distribution that people are drawn from: the noise of privacy, and the chance
    of who answers.
    ``distribution``: "worst", "uniform", a share or a count for each symbol, or a mapping from
    label to share. For "worst", the figures are those of the unbiased estimate at the distribution
    that is hardest for it: no distribution is harder, and most are easier. For the others, "tv" and
    "l2" are also predicted for the decoded estimate, and the plan is for that one.
    ``labels``: the labels to add up, or a mapping from label to weight; for "total" only.
    ``decoder``: the name of the decoder to predict.
    ``mechanism``: the mechanism to plan for; by default the best on the shelf, or if nothing on the
    shelf fits, the mechanism of least risk that keeps the context.

    >>> from sfumato.contexts import Uniform
    >>> colours = plan(Uniform(["red", "green", "blue"], 1), error=0.05)
    >>> colours.people, round(colours.at(100_000).error, 4)
    (3791, 0.0097)
    """
    if error is None and people is None:
        raise InvalidArgument(
            "pass error= (how many people?), people= (how far off?), or both to check them."
        )
    goal = None
    if error is not None:
        goal = check_goal(error, measure)
    n = _check_people(people)
    get_decoder(decoder)
    target = Target.parse(
        context,
        measure=measure,
        confidence=confidence,
        distribution=distribution,
        labels=labels,
    )
    bound = lower_bound_risk(context)
    mechanisms = find_mechanisms(context, mechanism)
    rows = build_rows(mechanisms, context, target, decoder, bound)
    chosen = _choose(rows, mechanism)
    rows = _add_figures(rows, chosen, goal, n)
    return Plan(
        context=context,
        measure=measure,
        confidence=target.confidence,
        distribution=distribution if isinstance(distribution, str) else "given",
        goal=goal,
        feasible=_is_feasible(rows, chosen, goal, n),
        lower_bound=bound,
        on_shelf=not isinstance(mechanisms["best"], NoClosedForm),
        chosen=chosen,
        rows=tuple(rows),
    )


def _check_people(people: int | None) -> int | None:
    if people is None:
        return None
    n = require_people(people)
    if n > MAX_PEOPLE:
        raise InvalidArgument(f"people must be at most {MAX_PEOPLE}; got {n}.")
    return n


def _choose(rows: list[PlanRow], own: Mechanism | None) -> str:
    """Return the name of the row to plan for: your own mechanism, the best, or the least risk."""
    if own is not None:
        record = own.to_record()
        for row in reversed(rows):
            if row.mechanism is not None and row.mechanism.to_record() == record:
                return row.name
    best = next(row for row in rows if row.name == "best")
    if best.available:
        return "best"
    chosen = None
    least = math.inf
    for row in rows:
        if row.risk is not None and row.risk < least:
            chosen = row.name
            least = row.risk
    if chosen is None:
        raise NoClosedForm(f"there is no mechanism to plan for: {best.reason}")
    return chosen


def _add_figures(
    rows: list[PlanRow], chosen: str, goal: float | None, people: int | None
) -> list[PlanRow]:
    """Return the rows with their figures, for these people or for those that the goal needs.

    For a goal the chosen row comes first: the people that its decoded estimate saves tell the other
    rows where to start their search.
    """
    if people is not None or goal is None:
        return [row.at(people or 1) for row in rows]
    own = next(row for row in rows if row.name == chosen).for_error(goal)
    ratio = 1.0
    if own.unbiased is not None and own.decoded is not None:
        ratio = own.decoded.people / own.unbiased.people
    return [own if row.name == chosen else row.for_error(goal, ratio) for row in rows]


def _is_feasible(rows: list[PlanRow], chosen: str, goal: float | None, people: int | None) -> bool:
    figures = next(row for row in rows if row.name == chosen).figures
    if figures is None:
        return False
    # Without ``people``, their number was chosen to meet the goal.
    return people is None or goal is None or figures.error <= goal
