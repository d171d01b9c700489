"""Plan a survey: predict how many people it needs, or its error, before anyone answers."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Literal

from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.designer import lower_bound_risk
from sfumato.domains import Label
from sfumato.errors import InvalidArgument, NoClosedForm
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.decoder_table import DecoderName
from sfumato.foundation.formatting import (
    format_factor,
    format_number,
    format_percent,
    format_upper_bound,
)
from sfumato.foundation.parallel import Progress
from sfumato.mechanisms import (
    Mechanism,
    MechanismHolder,
    context_of,
    mechanism_of,
    require_mechanism,
    require_people,
)
from sfumato.planning.predict import MAX_PEOPLE
from sfumato.planning.rows import PlanRow, build_rows, find_mechanisms
from sfumato.planning.target import Measure, Target, check_goal

__all__ = ["Plan", "plan"]

_MEASURE_NAMES = {
    "tv": "total variation error",
    "symbol": "error of the least certain share",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_DISTRIBUTION_NAMES = {
    "worst": "the worst population",
    "uniform": "people spread evenly",
    "given": "people drawn from the distribution you provided",
}
_TABLE_HEADER = [
    "mechanism",
    "people",
    "error",
    "mean error",
    "bits",
    "leverage",
    "risk",
    "risk ratio",
]
_MAX_PEOPLE_TEXT = "10^12"
_FAKE_SHARE = 0.01  # the fraction of reports that the warning assumes to be fake
_CLEARLY_BETTER_RATIO = 0.95
"""Mention another mechanism if its cost is below this fraction of the chosen mechanism's cost."""

_DESIGN_BOUND_NOTE = (
    "The risk ratio is for the worst population: the risk there, divided by a lower bound for all "
    "mechanisms. The bound of sfumato design is a different one: it is for the shares that the "
    "design assumes, which are even unless you pass --prior."
)
_DESIGN_ADVICE = (
    "No closed form is known for this privacy matrix. To compute a mechanism for it, use "
    "sf.design(context) or the command sfumato design."
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The predicted error or number of people for a mechanism, and a comparison with others.

    ``measure``: which error is predicted: "tv", "symbol", "total" or "l2".
    ``confidence``: the probability that the error stays within the predicted value.
    ``distribution``: "worst" (the hardest for the mechanism), "uniform" or "given".
    ``goal``: the error that you asked for, if any.
    ``is_feasible``: whether the predicted error is within the goal; true if there is no goal.
    ``risk_lower_bound``: a lower bound on the risk of any mechanism for the context.
    ``has_closed_form``: whether a closed form is known for the context.
    ``chosen``: the name of the mechanism that the plan is for.
    ``rows``: one row for each mechanism considered, with its figures.
    """

    context: Context
    measure: str
    confidence: float
    distribution: str
    goal: float | None
    is_feasible: bool
    risk_lower_bound: float
    has_closed_form: bool
    chosen: str
    rows: tuple[PlanRow, ...]

    @property
    def row(self) -> PlanRow:
        """The row of the chosen mechanism."""
        return next(row for row in self.rows if row.name == self.chosen)

    @property
    def people(self) -> int | None:
        """The number of people; ``None`` if not even ``MAX_PEOPLE`` are enough to meet the goal."""
        figures = self.row.figures
        return None if figures is None else figures.people

    @property
    def error(self) -> float | None:
        """The error at the plan's confidence; ``None`` if ``people`` is ``None``."""
        figures = self.row.figures
        return None if figures is None else figures.error

    @property
    def mean_error(self) -> float | None:
        """The mean error; ``None`` if ``people`` is ``None``."""
        figures = self.row.figures
        return None if figures is None else figures.mean_error

    @property
    def _is_designed(self) -> bool:
        """Whether the plan is for a mechanism that was computed for this context."""
        return self.chosen == "own" and not self.has_closed_form

    @property
    def estimate(self) -> str:
        """Which estimate the figures are for: "decoded" or "unbiased".

        Surveys report the decoded estimate; intervals come from the unbiased one.
        """
        return "unbiased" if self.decoder is None else "decoded"

    @property
    def decoder(self) -> str | None:
        """The name of the decoder if the figures are for the decoded estimate, else ``None``."""
        forecast = self.row.decoded_forecast
        return None if forecast is None else forecast.decoder

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """Advice if the goal is out of reach or the context has no closed form."""
        design_advice = []
        if not self.has_closed_form and self.chosen != "own":
            design_advice.append(_DESIGN_ADVICE)
        if self.is_feasible or self.goal is None:
            return tuple(design_advice)
        return (self._shortfall(self.goal), *design_advice, *self._remedies())

    def at(self, people: int) -> "Plan":
        """Return this plan for a different number of people, without a goal."""
        n = require_people(people)
        rows = tuple(row.at(n) for row in self.rows)
        return replace(self, goal=None, is_feasible=True, rows=rows)

    def summary(self) -> str:
        """Return the plan as a short paragraph."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return the answer, its assumptions, a warning about fake reports, notes and advice."""
        return [
            self._answer(),
            self._assumptions(),
            *self._fake_report_warning(),
            *self._better_mechanism_note(),
            *self.advice,
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the plan as ``sfumato plan --json`` prints it."""
        return {
            "measure": self.measure,
            "confidence": self.confidence,
            "distribution": self.distribution,
            "estimate": self.estimate,
            "decoder": self.decoder,
            "goal": self.goal,
            "people": self.people,
            "error": self.error,
            "mean": self.mean_error,
            "feasible": self.is_feasible,
            "advice": list(self.advice),
            "lower_bound_risk": _finite_or_none(self.risk_lower_bound),
            "forged": self._fake_reports_json(),
            "mechanism": self.chosen,
            "mechanisms": [row.to_dict() for row in self.rows],
        }

    def table(self) -> list[list[str]]:
        """Return the available rows as text cells, starting with a header."""
        table = [_TABLE_HEADER]
        for row in self.rows:
            if row.is_available:
                table.append([row.title, *_figure_cells(row), *_mechanism_cells(row)])
        return table

    def notes(self) -> list[str]:
        """Return the reasons given in the rows, each once, after the titles of its rows.

        If the survey has a designed mechanism, leave out why others are missing.
        """
        if self._is_designed:
            return [_DESIGN_BOUND_NOTE]
        titles_by_reason: dict[str, str] = {}
        for row in self.rows:
            if row.reason in titles_by_reason:
                titles_by_reason[row.reason] += f"; {row.title}"
            elif row.reason:
                titles_by_reason[row.reason] = row.title
        return [f"{titles}: {reason}" for reason, titles in titles_by_reason.items()]

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
        """Return the summary and the table for notebooks."""
        header, *body_rows = self.table()
        headers = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
        rows = ""
        for title, *cells in body_rows:
            rows += f'<tr><th scope="row" style="text-align:left">{escape(title)}</th>'
            rows += "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows += "</tr>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes())
        table = f"<table><thead><tr>{headers}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<p><b>Plan.</b> {escape(self.summary())}</p>{table}{notes}"

    def _answer(self) -> str:
        measure_name = _MEASURE_NAMES[self.measure]
        figures = self.row.figures
        if figures is None:
            return (
                f"Not even {_MAX_PEOPLE_TEXT} people are enough to keep the {measure_name} within "
                f"{self.goal:g}."
            )
        qualifier = ""
        if self.goal is not None and self.estimate == "decoded":
            qualifier = "about "
        answer = (
            f"With {qualifier}{figures.people:,} people, the {measure_name} is at most "
            f"{format_number(figures.error)} with probability {format_percent(self.confidence)} "
            f"({format_number(figures.mean_error)} on average)"
        )
        if not self.is_feasible:
            return f"{answer}; that exceeds your goal of {self.goal:g}."
        if self.measure in ("tv", "symbol") and figures.error >= 1:
            return f"{answer}: too few people to learn anything."
        return f"{answer}."

    def _assumptions(self) -> str:
        estimate_name = "the unbiased estimate"
        if self.decoder is not None:
            estimate_name = f"the decoded estimate ({self.decoder})"
        distribution_name = _DISTRIBUTION_NAMES[self.distribution]
        return (
            f"This assumes {distribution_name}, {estimate_name}, and this mechanism: "
            f"{self.row.title}."
        )

    def _fake_report_warning(self) -> list[str]:
        """State the effect of 1% fake reports, which more people do not reduce."""
        mechanism = self.row.mechanism
        if mechanism is None or mechanism.inputs == 1:
            return []
        shift = format_upper_bound(_FAKE_SHARE * mechanism.scores.reach.max_shift)
        return [
            "If 1% of the reports are fake, they can move the unbiased estimate of a share by up "
            f"to {shift}."
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

    def _better_mechanism_note(self) -> list[str]:
        """Mention the mechanism with the lowest cost if it is clearly better than the chosen one.

        The best closed form minimizes the squared error for its worst distribution. By the plan's
        measure, a different mechanism may be better.
        """
        if self.row.figures is None or self.row.figures.error == 0:
            return []
        # Rows differ either in the number of people or in the error, but not both. The error falls
        # as 1/√n, so compare the cost, which is error · √n.
        best = None
        cost_to_beat = _CLEARLY_BETTER_RATIO * self.row.figures.cost
        for row in self.rows:
            if row.name == self.chosen or row.figures is None:
                continue
            if row.figures.cost < cost_to_beat:
                best = row
                cost_to_beat = row.figures.cost
        if best is None or best.figures is None:
            return []
        error = format_number(best.figures.error)
        return [
            f"By this measure, another mechanism is better: {best.title}, with an error of {error} "
            f"for {best.figures.people:,} people."
        ]

    def _shortfall(self, goal: float) -> str:
        """State how many people are enough to meet the goal, or that ``MAX_PEOPLE`` are too few."""
        if self.people is None:
            error = format_number(self.row.figures_at(MAX_PEOPLE).error)
            return (
                f"Even with {_MAX_PEOPLE_TEXT} people, the error is {error}, because it decreases "
                "only with the square root of the number of people."
            )
        needed_figures = self.row.for_error(goal).figures
        if needed_figures is None:
            return f"Not even {_MAX_PEOPLE_TEXT} people are enough."
        return f"About {needed_figures.people:,} people are enough."

    def _remedies(self) -> list[str]:
        remedies = []
        risk = self.row.risk
        best = next(row for row in self.rows if row.name == "best")
        if best.risk is not None and risk is not None and best.risk < risk:
            ratio = format_number(best.risk / risk)
            remedies.append(
                f"The best closed-form mechanism has {ratio} times the risk of this one."
            )
        if self.distribution == "worst":
            remedies.append(
                "Most distributions are easier than the worst one. If you have a good guess, "
                "pass that instead."
            )
        groups = self.context.groups
        if groups is not None and len(groups.inside) == 1:
            remedies.append(
                "Weaken the promise where you can: protect only sensitive labels, or only pairs "
                "within blocks."
            )
        if self.measure in ("tv", "l2") and self.context.size > 2:
            remedies.append(
                "Merge labels, or plan for single shares or a total, which need far fewer people."
            )
        if math.isfinite(self.context.smallest_epsilon):
            remedies.append(
                "A larger ε helps too: while ε is small, doubling it cuts the number of people "
                "needed by three quarters."
            )
        return remedies


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _figure_cells(row: PlanRow) -> list[str]:
    """Return the cells with the number of people, the error and the mean error."""
    figures = row.figures
    if figures is not None:
        return [
            f"{figures.people:,}",
            format_number(figures.error),
            format_number(figures.mean_error),
        ]
    return [f"> {_MAX_PEOPLE_TEXT}", "–", "–"]


def _mechanism_cells(row: PlanRow) -> list[str]:
    """Return the cells with the bits, the leverage, the risk and the risk ratio."""
    return [
        str(row.bits),
        format_number(row.leverage),
        format_number(row.risk),
        format_factor(row.risk_ratio),
    ]


def _ignore_progress(tally_count: int) -> None:
    """Do nothing; a function with a name, so that plans can be pickled."""


@shows_call("sf.plan(context, error=0.05)")
def plan(
    context: Context | Mechanism | MechanismHolder,
    *,
    error: float | None = None,
    people: int | None = None,
    measure: Measure = "tv",
    confidence: float = 0.95,
    distribution: Literal["worst", "uniform"] | ArrayLike | Mapping[Label, float] = "worst",
    labels: Iterable[Label] | Mapping[Label, float] | None = None,
    decoder: DecoderName = "auto",
    mechanism: Mechanism | MechanismHolder | None = None,
    on_progress: Progress = _ignore_progress,
) -> Plan:
    """Predict how many people are needed for a given error, or the error for a number of people.

    ``context``: the promise. If you pass a survey, a design or a mechanism, the plan is for that
    mechanism.
    ``error``: the goal; the plan predicts how many people are needed to meet it.
    ``people``: the number of people; the plan predicts the error of an estimate from their reports.
    If you pass both ``error`` and ``people``, the plan tells you whether that many people are
    enough.
    ``measure``: which error to predict:

    - "tv": total variation, ``½ Σ_x |p̂_x − p_x|``;
    - "symbol": the least certain share, with each share considered separately;
    - "total": the combined share of ``labels`` or, if they have weights, ``Σ_x w_x p_x``;
    - "l2": Euclidean distance, ``‖p̂ − p‖``.

    ``confidence``: the probability that the error stays within the predicted value. The error
    includes both privacy noise and sampling error, because it compares the estimate with the
    distribution that people are drawn from.
    ``distribution``: "worst", "uniform", a share or a count for each symbol, or a mapping from
    label to share. For "worst", the figures are for the unbiased estimate and the distribution that
    is hardest for it; most distributions are easier. For any other distribution, the measures "tv"
    and "l2" are also predicted for the decoded estimate, and the plan is for that estimate.
    ``labels``: the labels to add up, or a mapping from label to weight; for "total" only.
    ``decoder``: the name of the decoder for the decoded estimate. The default is the decoder that
    ``estimate`` uses.
    ``mechanism``: the mechanism to plan for. The default is that of the first argument. For a
    context, it is the best closed form or, if no closed form is known, the mechanism with the
    smallest risk among those considered.
    ``on_progress``: called with the number of tallies drawn and decoded so far.

    >>> from sfumato.contexts import Uniform
    >>> colours = plan(Uniform(["red", "green", "blue"], 1), error=0.05)
    >>> colours.people, round(colours.at(100_000).error, 4)
    (3791, 0.0097)
    """
    holder = context
    context = context_of(holder, "plan(context, error=0.05)")
    if mechanism is None:
        chosen_mechanism = mechanism_of(holder)
    else:
        chosen_mechanism = require_mechanism(mechanism, "plan(context, mechanism=mechanism)")
    if error is None and people is None:
        raise InvalidArgument(
            "pass error= to predict the number of people, people= to predict the error, or both to "
            "check whether that many people are enough."
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
    risk_bound = lower_bound_risk(context)
    mechanisms = find_mechanisms(context, chosen_mechanism)
    on_draw = _DrawCounter(on_progress)
    rows = build_rows(mechanisms, context, target, decoder, risk_bound, on_draw)
    chosen = _choose_row(rows, chosen_mechanism)
    rows = _add_figures(_compare_with(chosen, rows), chosen, goal, n)
    return Plan(
        context=context,
        measure=measure,
        confidence=target.confidence,
        distribution=distribution if isinstance(distribution, str) else "given",
        goal=goal,
        is_feasible=_is_feasible(rows, chosen, goal, n),
        risk_lower_bound=risk_bound,
        has_closed_form=not isinstance(mechanisms["best"], NoClosedForm),
        chosen=chosen,
        rows=tuple(rows),
    )


class _DrawCounter:
    """Counts draws, and passes on the number of draws so far."""

    def __init__(self, on_progress: Progress) -> None:
        self._on_progress = on_progress
        self._draw_count = 0

    def __call__(self) -> None:
        self._draw_count += 1
        self._on_progress(self._draw_count)


def _check_people(people: int | None) -> int | None:
    if people is None:
        return None
    n = require_people(people)
    if n > MAX_PEOPLE:
        raise InvalidArgument(f"people must be at most {MAX_PEOPLE}; got {n}.")
    return n


def _choose_row(rows: list[PlanRow], custom_mechanism: Mechanism | None) -> str:
    """Return the name of the row to plan for.

    That is the row of the custom mechanism if there is one, otherwise the best closed form,
    otherwise the mechanism with the smallest risk.
    """
    if custom_mechanism is not None:
        record = custom_mechanism.to_record()
        for row in reversed(rows):
            if row.mechanism is not None and row.mechanism.to_record() == record:
                return row.name
    best = next(row for row in rows if row.name == "best")
    if best.is_available:
        return "best"
    chosen = None
    smallest_risk = math.inf
    for row in rows:
        if row.risk is not None and row.risk < smallest_risk:
            chosen = row.name
            smallest_risk = row.risk
    if chosen is None:
        raise NoClosedForm(f"there is no mechanism to plan for: {best.reason}")
    return chosen


def _compare_with(chosen: str, rows: list[PlanRow]) -> list[PlanRow]:
    """Return the rows with fewer draws for all mechanisms but the chosen one."""
    chosen_row = next(row for row in rows if row.name == chosen)
    compared_rows = []
    for row in rows:
        is_same_mechanism = row.decoded_forecast is chosen_row.decoded_forecast
        compared_rows.append(row if is_same_mechanism else row.for_comparison())
    return compared_rows


def _add_figures(
    rows: list[PlanRow], chosen: str, goal: float | None, people: int | None
) -> list[PlanRow]:
    """Return the rows with figures for a number of people.

    If ``people`` is ``None``, each row gets the number of people that it needs to meet the goal. To
    find these numbers, start with the chosen row. Its decoded and unbiased estimates need different
    numbers of people. The ratio of the two determines where the search starts for the other rows.
    """
    if people is not None or goal is None:
        return [row.at(people or 1) for row in rows]
    chosen_row = next(row for row in rows if row.name == chosen).for_error(goal)
    ratio = 1.0
    if chosen_row.unbiased is not None and chosen_row.decoded is not None:
        ratio = chosen_row.decoded.people / chosen_row.unbiased.people
    return [chosen_row if row.name == chosen else row.for_error(goal, ratio) for row in rows]


def _is_feasible(rows: list[PlanRow], chosen: str, goal: float | None, people: int | None) -> bool:
    figures = next(row for row in rows if row.name == chosen).figures
    if figures is None:
        return False
    # If ``people`` is ``None``, the number of people was chosen to meet the goal.
    return people is None or goal is None or figures.error <= goal
