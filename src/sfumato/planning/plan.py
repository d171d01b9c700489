"""Plan: how many people a survey needs, or how far off it will be, before anybody is asked."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats
from sfumato.contexts import Context, Uniform
from sfumato.designer import mechanism_for
from sfumato.designer.bounds import lower_bound_risk
from sfumato.domains import Label
from sfumato.errors import InvalidContext, NoClosedForm, SfumatoError
from sfumato.estimation.decoders import decoder_named
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.mechanism import people_count
from sfumato.planning.predict import (
    DECODED_MEASURES,
    MEASURES,
    MOST_PEOPLE,
    Aim,
    DecodedForecast,
    Figures,
    UnbiasedForecast,
)

__all__ = ["Compared", "Plan", "plan"]

_MEASURED = {
    "tv": "total variation error",
    "symbol": "error of the share that is known worst",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_WHAT = {
    "classical": "classical LDP, ε = {epsilon}",
    "hadamard": "Hadamard code",
    "best": "best on the shelf",
    "own": "the survey's own",
}
_LARGEST_ERROR = {"tv": 1.0, "symbol": 1.0, "l2": math.sqrt(2)}
_BEYOND = "10^12"
_WORTH_SAYING = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """One mechanism of the comparison, or the reason why there is none.

    ``risk`` is its ``worst_risk()``, ``over_bound`` that over the least any mechanism for the context can have.
    ``unbiased`` and ``decoded`` are its figures, ``decoded`` for a given distribution only; each is ``None`` where
    the goal cannot be met.
    """

    name: str
    what: str
    mechanism: Mechanism | None
    bits: int | None = None
    leverage: float | None = None
    risk: float | None = None
    over_bound: float | None = None
    unbiased: Figures | None = None
    decoded: Figures | None = None
    reason: str = ""
    unbiased_forecast: UnbiasedForecast | None = None
    decoded_forecast: DecodedForecast | None = None

    @property
    def made(self) -> bool:
        """Whether there is such a mechanism."""
        return self.mechanism is not None

    @property
    def figures(self) -> Figures | None:
        """Those of the decoded picture where it is predicted, or else of the unbiased estimate."""
        return self.unbiased if self.decoded_forecast is None else self.decoded

    def figures_at(self, people: int) -> Figures:
        """The same figures for another number of people."""
        forecast = self.decoded_forecast or self.unbiased_forecast
        if forecast is None:
            raise NoClosedForm(self.reason)
        return forecast.at(people_count(people))

    def in_json(self) -> dict[str, object]:
        """The row in the words of the command."""
        return {
            "name": self.name,
            "what": self.what,
            "bits": self.bits,
            "leverage": self.leverage,
            "risk": self.risk,
            "risk_over_lower_bound": self.over_bound,
            "unbiased": _figures_json(self.unbiased),
            "decoded": _figures_json(self.decoded),
            "reason": self.reason or None,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What a number of people buys, what a goal costs, and what other mechanisms would make of it.

    ``error`` is kept with probability ``confidence``; ``mean`` is the error on average. ``people`` and both errors are
    ``None`` where no number of people meets the ``goal``. ``reading`` says of which estimate they speak: "decoded",
    the picture that a survey reports, or "unbiased", the one that intervals come from. ``distribution`` says for
    which crowd: "worst" (the hardest for the mechanism), "uniform" or "given". ``rows`` compares mechanisms;
    ``chosen`` names the one that the plan is for.
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
    chosen: str
    rows: tuple[Compared, ...]

    @property
    def row(self) -> Compared:
        """The row that the plan is for."""
        return next(row for row in self.rows if row.name == self.chosen)

    def at(self, people: int) -> "Plan":
        """The same plan for another number of people, and without a goal."""
        n = people_count(people)
        rows = tuple(_row_at(row, n) for row in self.rows)
        return _answered(replace(self, goal=None, rows=rows), n)

    def in_words(self) -> str:
        """The plan as a short paragraph."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """The answer; for whom and which estimate; a better row, if any; why a goal is out of reach and what helps."""
        return [self._answer(), self._fine_print(), *self._better(), *self.advice]

    def _better(self) -> list[str]:
        """The shelf's best has the least squared error of the worst crowd; another measure may prefer another code."""
        own = self.row.figures
        if own is None or own.error == 0:
            return []
        others = {row.what: row.figures for row in self.rows if row.figures is not None and row.name != self.chosen}
        # Rows differ in people or in error, never in both: the product says which is better, as error goes by √n.
        cost = {what: found.error * math.sqrt(found.people) for what, found in others.items()}
        what = min(cost, key=lambda name: cost[name], default="")
        if not what or cost[what] > (1 - _WORTH_SAYING) * own.error * math.sqrt(own.people):
            return []
        found = others[what]
        return [f"By this measure another does better: {what}, {_short(found.error)} with {found.people:,} people."]

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
            "mechanism": self.chosen,
            "mechanisms": [row.in_json() for row in self.rows],
        }

    def _answer(self) -> str:
        surely = f"with probability {_percent(self.confidence)}"
        if self.people is None or self.error is None or self.mean is None:
            return f"No number of people up to {_BEYOND} keeps the {_MEASURED[self.measure]} to {self.goal:g}."
        about = "about " if self.goal is not None and self.reading == "decoded" else ""
        told = (
            f"With {about}{self.people:,} people the {_MEASURED[self.measure]} is at most {_short(self.error)} {surely}"
            f" ({_short(self.mean)} on average)"
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
        which = f"the decoded picture ({self.decoder})" if self.reading == "decoded" else "the unbiased estimate"
        return f"This is for {crowd}, and for {which} by this mechanism: {self.row.what}."

    def __repr__(self) -> str:
        columns = self.table()
        widths = [max(len(line[i]) for line in columns) for i in range(len(columns[0]))]
        lines = [*self.sentences(), ""]
        for line in columns:
            cells = [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))]
            lines.append("  ".join(cells).rstrip())
        lines += [f"{row.what}: {row.reason}" for row in self.rows if row.reason]
        return "\n".join(lines)

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
        notes = "".join(f"<p>{escape(row.what)}: {escape(row.reason)}</p>" for row in self.rows if row.reason)
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
                figures = [f"{found.people:,}", _short(found.error), _short(found.mean)]
            facts = ["–"] * 4
            if row.mechanism is not None:
                facts = [str(row.bits), _short(row.leverage), _short(row.risk), _times(row.over_bound)]
            lines.append([row.what, *figures, *facts])
        return lines


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
    then the plan's. The plan is for ``mechanism``, by default the best on the shelf.

    >>> from sfumato.contexts import Uniform
    >>> wanted = plan(Uniform(["red", "green", "blue"], 1), error=0.05)
    >>> wanted.people, round(wanted.at(100_000).error, 4)
    (3791, 0.0097)
    """
    if error is None and people is None:
        raise InvalidContext("say what to plan for: error= (how many people?), people= (how far off?), or both.")
    goal, asked = _checked_goal(error, measure), None if people is None else people_count(people)
    if asked is not None and asked > MOST_PEOPLE:
        raise InvalidContext(f"people must be at most {MOST_PEOPLE}; found {asked}.")
    decoder_named(decoder)
    aim = _aim(context, measure, confidence, distribution, labels)
    bound = lower_bound_risk(context)
    rows = _rows(context, mechanism, aim, decoder, bound)
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
        chosen=chosen,
        rows=tuple(answered),
    )
    return _answered(made_plan, asked)


# --- what was asked -------------------------------------------------------------------------------------------------


def _checked_goal(error: float | None, measure: str) -> float | None:
    if error is None:
        return None
    if isinstance(error, bool) or not isinstance(error, int | float | np.number) or not 0 < error < math.inf:
        raise InvalidContext(f"error must be a number above 0, such as 0.05; found {error!r}. No survey is exact.")
    if measure in _LARGEST_ERROR and error >= _LARGEST_ERROR[measure]:
        raise InvalidContext(
            f"no {measure} error exceeds {_LARGEST_ERROR[measure]:.3g}; an error of {error:g} needs no survey."
        )
    return float(error)


def _aim(context: Context, measure: str, confidence: float, distribution: object, labels: object) -> Aim:
    if measure not in MEASURES:
        raise InvalidContext(f"measure must be one of {', '.join(MEASURES)}; found {measure!r}.")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidContext(f"confidence must lie between 0 and 1; found {confidence!r}. Pass e.g. 0.95.")
    if (measure == "total") != (labels is not None):
        raise InvalidContext('measure "total" needs labels, the labels to add up; other measures take none.')
    weights = None if labels is None else _weights(context, labels)
    return Aim(measure, float(confidence), _distribution(context, distribution), weights)


def _weights(context: Context, labels: object) -> Floats:
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InvalidContext("labels must be a list of labels, or a mapping from label to weight.")
    listed = list(labels)
    symbols = context.domain.label_symbols(listed, "labels")
    if symbols.size == 0 or np.unique(symbols).size != symbols.size:
        raise InvalidContext("labels must name at least one label, and each once.")
    weights = np.zeros(context.size)
    weights[symbols] = list(map(float, labels.values())) if isinstance(labels, Mapping) else 1.0
    if not np.isfinite(weights).all() or not weights.any():
        raise InvalidContext("the weights of labels must be finite numbers, and not all 0.")
    return weights


def _distribution(context: Context, distribution: object) -> Floats | None:
    """The shares in domain order; ``None`` for the hardest."""
    k = context.size
    if isinstance(distribution, str):
        if distribution not in ("worst", "uniform"):
            raise InvalidContext(f'distribution must be "worst", "uniform" or {k} shares; found {distribution!r}.')
        return np.full(k, 1 / k) if distribution == "uniform" else None
    if isinstance(distribution, Mapping):
        given = np.zeros(k)
        given[context.domain.label_symbols(distribution, "distribution")] = list(map(float, distribution.values()))
    else:
        given = np.asarray(distribution, dtype=np.float64)
    if given.shape != (k,) or not np.isfinite(given).all() or (given < 0).any() or given.sum() <= 0:
        raise InvalidContext(f"distribution must be {k} shares or counts of at least 0, not all 0, in domain order.")
    if abs(given.sum() - 1) > 1e-6 and not (given == np.rint(given)).all():
        raise InvalidContext(
            f"the shares of a distribution must add up to 1; these add up to {given.sum():.6g}. Counts are fine too."
        )
    return given / given.sum()


# --- the comparison -------------------------------------------------------------------------------------------------


def _mechanisms(context: Context, own: Mechanism | None) -> dict[str, Mechanism | SfumatoError]:
    """Who is compared: classical LDP at the least ε that keeps every pair, Hadamard, the best; and one's own."""
    makers: dict[str, Callable[[], Mechanism]] = {
        "classical": lambda: mechanism_for(Uniform(context.domain, context.exact_smallest)),
        "hadamard": lambda: mechanism_for(context, code="hadamard"),
        "best": lambda: mechanism_for(context),
    }
    made: dict[str, Mechanism | SfumatoError] = {}
    for name, make in makers.items():
        try:
            made[name] = make()
        except SfumatoError as problem:
            made[name] = problem
    if own is not None:
        if own.context.domain != context.domain:
            raise InvalidContext("the mechanism must be for the domain of the context.")
        best = made["best"]
        if isinstance(best, SfumatoError) or best.record() != own.record():
            made["own"] = own
    return made


def _rows(context: Context, own: Mechanism | None, aim: Aim, decoder: str, bound: float) -> list[Compared]:
    """A row per mechanism; two that are the same channel are looked at once."""
    rows: list[Compared] = []
    seen: list[tuple[object, Compared]] = []
    for name, made in _mechanisms(context, own).items():
        record = None if isinstance(made, SfumatoError) else made.record()
        twin = next((row for known, row in seen if known == record and record is not None), None)
        row = _row(name, made, context, aim, decoder, bound) if twin is None else _renamed(twin, name, context)
        seen.append((record, row))
        rows.append(row)
    return rows


def _renamed(twin: Compared, name: str, context: Context) -> Compared:
    return replace(twin, name=name, what=_what(name, context), reason="")


def _what(name: str, context: Context) -> str:
    return _WHAT[name].format(epsilon=_short(context.smallest_epsilon))


def _row(name: str, made: Mechanism | SfumatoError, context: Context, aim: Aim, decoder: str, bound: float) -> Compared:
    what = _what(name, context)
    if isinstance(made, SfumatoError):
        return Compared(name, what, None, reason=str(made))
    decoded = None
    if aim.p is not None and aim.measure in DECODED_MEASURES:
        decoded = DecodedForecast(made, aim.measure, aim.confidence, aim.p, decoder)
    risk = made.worst_risk()
    free = name == "classical" and math.isinf(made.context.smallest_epsilon) and made.inputs > 1
    return Compared(
        name,
        what,
        made,
        bits=made.bits,
        leverage=float(made.leverage),
        risk=risk,
        over_bound=risk / bound if 0 < bound < math.inf else None,
        unbiased_forecast=UnbiasedForecast.of(made, aim),
        decoded_forecast=decoded,
        reason="the context promises nothing for any pair, so everybody may answer in clear." if free else "",
    )


def _chosen(rows: list[Compared], own: Mechanism | None) -> str:
    """One's own mechanism; else the best; else classical LDP, which keeps every context with a least ε above 0."""
    made = [row.name for row in rows if row.made]
    wanted = ("own", "best", "classical") if own is not None else ("best", "classical")
    for name in wanted:
        if name in made:
            return name
    raise NoClosedForm("there is no mechanism to plan for: " + next(row.reason for row in rows if row.name == "best"))


def _planned(rows: list[Compared], chosen: str, goal: float | None, people: int | None) -> list[Compared]:
    """Each row with its figures: at the people asked for, or at those that the goal needs."""
    if people is not None or goal is None:
        return [_row_at(row, people or 1) for row in rows]
    ratio = 1.0  # what the decoded picture saves with the chosen mechanism: where to begin with the others
    first = next(row for row in rows if row.name == chosen)
    planned = {chosen: _row_for(first, goal, ratio)}
    alone, together = planned[chosen].unbiased, planned[chosen].decoded
    if alone is not None and together is not None:
        ratio = together.people / alone.people
    return [planned[row.name] if row.name == chosen else _row_for(row, goal, ratio) for row in rows]


def _row_at(row: Compared, people: int) -> Compared:
    if row.unbiased_forecast is None:
        return row
    decoded = None if row.decoded_forecast is None else row.decoded_forecast.at(people)
    return replace(row, unbiased=row.unbiased_forecast.at(people), decoded=decoded)


def _row_for(row: Compared, goal: float, ratio: float) -> Compared:
    if row.unbiased_forecast is None:
        return row
    alone = row.unbiased_forecast.people_for(goal)
    unbiased = None if alone is None else row.unbiased_forecast.at(alone)
    decoded = None
    if row.decoded_forecast is not None:
        start = min(max(round((alone or MOST_PEOPLE // 2) * ratio), 1), MOST_PEOPLE // 2)
        found = row.decoded_forecast.people_for(goal, start)
        decoded = None if found is None else row.decoded_forecast.at(found)
    return replace(row, unbiased=unbiased, decoded=decoded)


# --- the answer -----------------------------------------------------------------------------------------------------


def _answered(made: Plan, people: int | None) -> Plan:
    """The plan with the figures of its own row, and whether they meet the goal."""
    found = made.row.figures
    if found is None:
        return replace(made, feasible=False, advice=_advice(made))
    feasible = people is None or made.goal is None or found.error <= made.goal
    answered = replace(made, people=found.people, error=found.error, mean=found.mean, feasible=feasible)
    return answered if feasible else replace(answered, advice=_advice(answered))


def _advice(made: Plan) -> tuple[str, ...]:
    """Why a goal cannot be met, and what would help: in figures where there are any."""
    row, goal = made.row, made.goal
    forecast = row.decoded_forecast or row.unbiased_forecast
    if goal is None or forecast is None:
        return ()
    return tuple(_shortfall(made, row, goal)) + tuple(_remedies(made, row, goal))


def _shortfall(made: Plan, row: Compared, goal: float) -> list[str]:
    if made.people is None:
        most = row.figures_at(MOST_PEOPLE).error
        return [f"Even {_BEYOND} people leave an error of {_short(most)}: it falls with their square root only."]
    needed = _row_for(row, goal, 1.0).figures
    if needed is None:
        return [f"No number of people up to {_BEYOND} would do."]
    return [f"About {needed.people:,} people would do."]


def _remedies(made: Plan, row: Compared, goal: float) -> list[str]:
    remedies = []
    best = next(other for other in made.rows if other.name == "best")
    if row.name != "best" and best.made and best.risk is not None and row.risk is not None and best.risk < row.risk:
        remedies.append(f"The best mechanism on the shelf has {_short(best.risk / row.risk)} of the risk of this one.")
    if made.distribution == "worst":
        remedies.append("Most crowds are easier than the worst: give a distribution if one can be guessed.")
    if isinstance(made.context, Uniform):
        remedies.append("Promise less where less is needed: sensitive labels only, or pairs within blocks only.")
    if made.measure in ("tv", "l2") and made.context.size > 2:
        remedies.append("Merge labels, or ask for single shares or a total, which need far fewer people.")
    if math.isfinite(made.context.smallest_epsilon):
        remedies.append("A larger ε helps too: for small ε, twice the ε does the work of four times the people.")
    return remedies


def _figures_json(figures: Figures | None) -> dict[str, object] | None:
    return None if figures is None else {"people": figures.people, "mean": figures.mean, "error": figures.error}


def _short(number: float | None) -> str:
    """Three digits."""
    if number is None:
        return "–"
    if math.isinf(number):
        return "∞"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _times(number: float | None) -> str:
    return "–" if number is None else f"{_short(number)} ×"


def _percent(share: float) -> str:
    return f"{100 * share:.10g} %"
