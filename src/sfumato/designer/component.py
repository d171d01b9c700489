"""The mechanism for one part: its closed form, if it has a good one, or what a search finds."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from sfumato.contexts import Context, ExactMatrix, Metric, PrivacyMatrix
from sfumato.contexts.cone import Cone
from sfumato.designer.bounds import lower_bound_risk_at_uniform
from sfumato.designer.search.finalize import to_table
from sfumato.designer.search.objective import Objective
from sfumato.designer.search.rays import CrossSection
from sfumato.designer.search.search import Solution, search_rounds
from sfumato.designer.shelf.choose import mechanism_for
from sfumato.designer.shelf.recognise import recognise_as_written, refuse_twins
from sfumato.errors import NoClosedForm, NothingToLearn
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism

__all__ = ["LARGEST_DESIGNED", "Clock", "Part", "Round", "designed_part"]

LARGEST_DESIGNED = 128
"""A matrix is searched for up to this many symbols that are bound to one another."""

_CLOSE = (
    1e-5  # the gap at which a search is over, and by which a closed form may lose against a table
)
_CLOSE_ENOUGH = 1e-2  # the same for closed forms of more symbols, where a search takes long
_FEW = 12
_IN_A_ROW = 3  # rounds that must find an estimated gap closed, since each looks elsewhere
_PROGRESS = 1e-6
_ROUNDED = 1e-9  # of the value, more than the integers of a binary response cost
_STALLED = 12  # rounds without progress after which a search is over
_LARGEST_CLOSED = 512
_LEAST_EPSILON = (
    1e-6  # of a matrix that is searched; below, rounding costs more than there is to learn
)


@dataclass(frozen=True)
class Round:
    """How far a search has come, in part number ``part`` of ``parts``; ``risk`` and ``lower_bound`` are the part's."""

    part: int
    parts: int
    number: int
    risk: float
    lower_bound: float
    certified: bool
    rays: int
    seconds: float

    @property
    def gap(self) -> float:
        """By what share of the bound the risk exceeds it."""
        return self.risk / self.lower_bound - 1 if self.lower_bound > 0 else inf


@dataclass(frozen=True)
class Part:
    """A mechanism for a part, its value ``tr(W M⁻¹)``, and a bound below that of all mechanisms for it."""

    mechanism: Mechanism
    value: float
    bound: float
    certified: bool
    rounds: int
    stopped: str


class Clock:
    """When searches stop, and who is told of their rounds."""

    def __init__(self, time_limit: float, on_progress: Callable[[Round], None] | None) -> None:
        self._end, self._start = time.monotonic() + time_limit, time.monotonic()
        self._on_progress = on_progress
        self.interrupted = False

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._start

    def share(self, parts_left: int) -> float:
        """The second at which the next part must end, if all that are left get as much time."""
        left = max(self._end - time.monotonic(), 0.0)
        return self.seconds + left / parts_left

    def verdict(self, end: float) -> str | None:
        """Why a search must stop, if it must."""
        if self.interrupted:
            return "interrupted"
        return "time limit" if self.seconds >= end else None

    def tell(self, done: Round) -> None:
        """Call whoever wants to know."""
        if self._on_progress is not None:
            self._on_progress(done)


def designed_part(
    context: Context, objective: Objective, clock: Clock, seed: int, number: int, parts: int
) -> Part:
    """The best that is known or found for the context of a part."""
    closed = (
        None
        if isinstance(context, Metric) and context.size > _LARGEST_CLOSED
        else _closed_form(context, objective)
    )
    if closed is not None:
        gap = (closed.value - objective.offset) / max(closed.bound - objective.offset, 1e-300) - 1
        if closed.value <= closed.bound or gap <= (
            _CLOSE if context.size <= _FEW else _CLOSE_ENOUGH
        ):
            return closed
    if closed is not None and context.exact_smallest < _LEAST_EPSILON:
        return closed
    if context.size <= LARGEST_DESIGNED:
        return _better(
            closed, _searched(context, objective, clock, seed, closed, number, parts), objective
        )
    if closed is None:
        raise NoClosedForm(
            f"{context.size} symbols are bound to one another by this matrix, and it has none of the forms that are "
            f"known; a mechanism is computed for up to {LARGEST_DESIGNED}. Merge labels, promise nothing between tiles "
            "of them (Metric.tiles), or use Uniform(domain, context.smallest_epsilon), which keeps every pair."
        )
    return closed


def _better(closed: Part | None, searched: Part, objective: Objective) -> Part:
    """The closed form, unless the table is better; the bounds of both speak for either."""
    if closed is None:
        return searched
    table_wins = searched.value - objective.offset < (closed.value - objective.offset) * (
        1 - _CLOSE
    )
    best = searched if table_wins else closed
    bound, certified = closed.bound, True
    if searched.bound > bound:
        bound, certified = searched.bound, searched.certified
    return Part(best.mechanism, best.value, bound, certified, searched.rounds, searched.stopped)


# --- closed forms ----------------------------------------------------------------------------------------------------


def _closed_form(context: Context, objective: Objective) -> Part | None:
    try:
        # Closing a large matrix takes long; as a rule those that are structured are written as they are meant.
        if isinstance(context, PrivacyMatrix) and context.size > _LARGEST_CLOSED:
            context = recognise_as_written(context)
        mechanism = mechanism_for(context)
    except NoClosedForm:
        return None
    value = objective.value_of(mechanism)
    return Part(
        mechanism,
        value,
        min(_proved_bound(context, objective, value), value),
        True,
        0,
        "closed form",
    )


def _proved_bound(context: Context, objective: Objective, value: float) -> float:
    """What is proved of the value of every mechanism for a context of a known form."""
    if context.size == 1 or context.exact_smallest == inf:
        return value  # answers in clear
    if context.size == 2:
        return value * (
            1 - _ROUNDED
        )  # Theorem 2 of the paper, but for what rounding to integers adds
    if objective.is_even:
        return float(objective.weights[0]) * lower_bound_risk_at_uniform(context) + objective.offset
    return objective.least_value


# --- searches --------------------------------------------------------------------------------------------------------


def _searched(
    context: Context,
    objective: Objective,
    clock: Clock,
    seed: int,
    closed: Part | None,
    number: int,
    parts: int,
) -> Part:
    exact = context.exact_matrix().closure()
    refuse_twins(exact)
    _refuse_near_twins(exact)
    end = clock.share(parts - number + 1)
    columns = np.empty((0, context.size)) if closed is None else _columns(closed.mechanism)
    unit = float(objective.weights.mean())  # a search sees weights around 1, whatever their unit
    search = search_rounds(
        CrossSection(Cone(exact), objective.crowd), objective.weights / unit, seed, columns
    )
    try:
        course = _Course(objective.scale(1 / unit), next(search))
    except KeyboardInterrupt:
        if closed is None:
            raise
        clock.interrupted = True
        return replace(closed, stopped="interrupted")
    stopped = None
    while stopped is None:
        try:
            clock.tell(course.round(number, parts, clock.seconds, unit))
            stopped = course.verdict() or clock.verdict(end)
            if stopped is None:
                course.take(next(search))
        except KeyboardInterrupt:
            clock.interrupted = True
            stopped = "interrupted"
    if not isfinite(course.best.mixture.value):
        raise NothingToLearn(
            "the promises of this matrix are too far apart for a mechanism to be computed in floats. Merge symbols "
            "that are hardly told apart, or make their ε larger."
        )
    mechanism = to_table(context, course.best, objective.scale(1 / unit))
    value = objective.value_of(mechanism)
    return Part(
        mechanism, value, min(course.bound * unit, value), course.certified, course.rounds, stopped
    )


def _refuse_near_twins(exact: ExactMatrix) -> None:
    if exact.smallest() < _LEAST_EPSILON:
        raise NothingToLearn(
            f"this context promises an ε of {float(exact.smallest()):.2g}; below {_LEAST_EPSILON:.0e} a table of "
            "64-bit words cannot tell such symbols apart. Give them one label, or a larger ε."
        )


def _columns(mechanism: Mechanism) -> Floats:
    """The columns of a closed form that is small enough to begin a search with."""
    if mechanism.outputs > 16 * mechanism.inputs:
        return np.empty((0, mechanism.inputs))
    return mechanism.matrix().T


class _Course:
    """What a search has found so far, and whether it is over."""

    def __init__(self, objective: Objective, first: Solution) -> None:
        self._known, self._least, self._close, self._idle = (
            objective.offset,
            objective.least_value,
            0,
            0,
        )
        self.rounds, self.best, self.bound, self.certified = (
            0,
            first,
            objective.least_value,
            first.certified,
        )
        self.take(first)

    @property
    def risk(self) -> float:
        """Of the best mixture."""
        return self.best.mixture.value - self._known

    @property
    def lower_bound(self) -> float:
        """On the risk of all."""
        return self.bound - self._known

    def take(self, solution: Solution) -> None:
        """Look at the answer of one more round."""
        self.rounds += 1
        value, bound = self.best.mixture.value, self.bound
        if solution.mixture.value < value:
            self.best = solution
        # Every certified bound holds, so that the highest counts. Of estimates the latest has looked hardest.
        self.bound = max(
            bound if self.certified else self._least,
            solution.bound if isfinite(solution.bound) else 0.0,
        )
        progress = _PROGRESS * (value - self._known)
        fell = solution.mixture.value < value - progress
        rose = self.certified and self.bound > bound + progress
        self._idle = 0 if fell or rose else self._idle + 1
        self._close = self._close + 1 if self.risk <= self.lower_bound * (1 + _CLOSE) else 0

    def round(self, part: int, parts: int, seconds: float, unit: float) -> Round:
        """The latest round, for whoever wants to know; ``unit`` is that of the weights."""
        risk, bound, rays = self.risk * unit, self.lower_bound * unit, len(self.best.rays)
        return Round(part, parts, self.rounds, risk, bound, self.certified, rays, seconds)

    def verdict(self) -> str | None:
        """Whether the gap is closed, or nothing changes any more."""
        if self._close >= (1 if self.certified else _IN_A_ROW):
            return "converged"
        return "stalled" if self._idle >= _STALLED else None
