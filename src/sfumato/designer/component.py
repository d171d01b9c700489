"""Split a context into components, and design a mechanism for each of them.

Nothing is promised between components, so a report may show the component. The mechanism for one is
its closed form, if that is good, or the result of a search.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from sfumato.contexts import Cone, Context, PrivacyMatrix, Uniform
from sfumato.designer.bounds import lower_bound_risk_at_uniform
from sfumato.designer.choose import mechanism_for
from sfumato.designer.recognise import (
    recognise_as_written,
    require_distinct_symbols,
    symbols_by_component,
)
from sfumato.designer.search import CrossSection, Objective, Solution, search_rounds, to_table
from sfumato.errors import NoClosedForm, NothingToLearn
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms import Mechanism

__all__ = [
    "Clock",
    "Component",
    "ComponentContext",
    "Round",
    "design_component",
    "split",
]

_MAX_DESIGNED_SIZE = 128  # symbols of one component that a search handles
_CLOSE = 1e-5  # the gap that ends a search, and by which a closed form may lose to a table
_CLOSE_ENOUGH = 1e-2  # the same for closed forms with many symbols, where a search takes long
_FEW_SYMBOLS = 12
_CLOSE_ROUNDS = 3  # rounds with an estimated gap closed, because each round looks elsewhere
_IDLE_ROUNDS = 12  # rounds without progress that end a search
_PROGRESS = 1e-6
_ROUNDING = 1e-9  # share of the value, more than the integers of a binary response cost
_MAX_CLOSED_SIZE = 512
_MIN_EPSILON = 1e-6  # to search; below it, rounding costs more than there is to learn


@dataclass(frozen=True)
class ComponentContext:
    """The symbols of a component, and the context between them over the integers from 0."""

    symbols: Symbols
    context: Context


def split(context: Context) -> list[ComponentContext]:
    """Return the components of a context, in the order of their first symbols.

    Symbols without a promise in either direction share one component, which is sent as is.

    >>> components = split(PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]))
    >>> [component.symbols.tolist() for component in components]
    [[0, 1], [2]]
    """
    return sorted(_components(context), key=lambda component: int(component.symbols[0]))


def _components(context: Context) -> Iterator[ComponentContext]:
    groups = context.groups
    blocks = context.as_union
    if blocks is not None:
        for symbols, part in zip(blocks.members(), blocks.parts, strict=True):
            for component in split(part):
                yield ComponentContext(symbols[component.symbols], component.context)
    elif groups is None:
        yield from _split_matrix(context)
    elif groups.may_reveal_groups and len(groups.inside) > 1:
        for symbols, epsilon in zip(groups.members(), groups.inside, strict=True):
            yield ComponentContext(symbols, Uniform(symbols.size, epsilon))
    else:
        yield ComponentContext(np.arange(context.size), context)


def _split_matrix(context: Context) -> Iterator[ComponentContext]:
    exact = context.exact_matrix()
    components = symbols_by_component(exact)
    if len(components) == 1:
        yield ComponentContext(components[0], context)
        return
    for symbols in components:
        part = exact.submatrix(symbols)
        if part.minimum() == inf:
            yield ComponentContext(symbols, Uniform(symbols.size, inf))
        else:
            yield ComponentContext(symbols, PrivacyMatrix.from_exact(part))


@dataclass(frozen=True)
class Round:
    """The progress of a search after one round.

    ``risk`` and ``lower_bound`` are those of the current component.
    """

    component_number: int
    component_count: int
    round_number: int
    risk: float
    lower_bound: float
    certified: bool
    ray_count: int
    seconds: float

    @property
    def gap(self) -> float:
        """The share of the bound by which the risk exceeds it."""
        return self.risk / self.lower_bound - 1 if self.lower_bound > 0 else inf


@dataclass(frozen=True)
class Component:
    """A mechanism for a component, its value ``tr(W M⁻¹)``, and a bound below all values."""

    mechanism: Mechanism
    value: float
    bound: float
    certified: bool
    round_count: int
    stop_reason: str


class Clock:
    """The time limit of all searches, and the function that reports their rounds."""

    def __init__(self, time_limit: float, on_progress: Callable[[Round], None] | None) -> None:
        self._start = time.monotonic()
        self._end = self._start + time_limit
        self._on_progress = on_progress
        self.interrupted = False

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def deadline(self, components_left: int) -> float:
        """Return the second by which the next component must end, so that all get equal time."""
        left = max(self._end - time.monotonic(), 0.0)
        return self.seconds + left / components_left

    def stop_reason(self, deadline: float) -> str | None:
        """Return why a search must stop, or ``None`` if it may go on."""
        if self.interrupted:
            return "interrupted"
        return "time limit" if self.seconds >= deadline else None

    def report(self, latest: Round) -> None:
        """Call ``on_progress``."""
        if self._on_progress is not None:
            self._on_progress(latest)


def design_component(
    context: Context, objective: Objective, clock: Clock, seed: int, number: int, count: int
) -> Component:
    """Return the best mechanism that is known, or that a search finds.

    This is component ``number`` of ``count``.
    """
    closed_form = _solve_in_closed_form(context, objective)
    if closed_form is not None:
        least_risk = max(closed_form.bound - objective.offset, 1e-300)
        gap = (closed_form.value - objective.offset) / least_risk - 1
        close = _CLOSE if context.size <= _FEW_SYMBOLS else _CLOSE_ENOUGH
        good = closed_form.value <= closed_form.bound or gap <= close
        if good or context.exact_minimum < _MIN_EPSILON:
            return closed_form
    if context.size <= _MAX_DESIGNED_SIZE:
        search_result = _search(context, objective, clock, seed, closed_form, number, count)
        return _better(closed_form, search_result, objective)
    if closed_form is None:
        raise NoClosedForm(
            f"this matrix connects {context.size} symbols and has no known closed form; a search "
            f"handles at most {_MAX_DESIGNED_SIZE}. Merge labels, promise nothing between tiles "
            "(Metric.tiles), or use Uniform(domain, context.smallest_epsilon), which keeps every "
            "pair."
        )
    return closed_form


def _better(
    closed_form: Component | None, search_result: Component, objective: Objective
) -> Component:
    """Return the closed form unless the table is better; the higher bound holds for either."""
    if closed_form is None:
        return search_result
    closed_risk = closed_form.value - objective.offset
    search_risk = search_result.value - objective.offset
    best = search_result if search_risk < closed_risk * (1 - _CLOSE) else closed_form
    higher = search_result if search_result.bound > closed_form.bound else closed_form
    return replace(
        search_result,
        mechanism=best.mechanism,
        value=best.value,
        bound=higher.bound,
        certified=higher.certified,
    )


# --- closed forms ---------------------------------------------------------------------------------


def _solve_in_closed_form(context: Context, objective: Objective) -> Component | None:
    is_matrix = context.groups is None and not context.parts and not context.terms
    try:
        # Closing a large matrix takes long, and a structured one is usually written as such.
        if is_matrix and context.size > _MAX_CLOSED_SIZE:
            # A structured row has one ε inside its group and one outward.
            if np.unique(context.epsilon(0, np.arange(1, context.size))).size > 2:
                return None
            context = recognise_as_written(context)
        mechanism = mechanism_for(context)
    except NoClosedForm:
        return None
    value = objective.value_of(mechanism)
    bound = min(_lower_bound(context, objective, value), value)
    return Component(
        mechanism, value, bound, certified=True, round_count=0, stop_reason="closed form"
    )


def _lower_bound(context: Context, objective: Objective, value: float) -> float:
    """Return a proved lower bound on the value of every mechanism for a context of a known form."""
    if context.size == 1 or context.exact_minimum == inf:
        return value  # answers are sent as they are
    if context.size == 2:
        return value * (1 - _ROUNDING)  # Theorem 2, but for rounding to integers
    if objective.is_uniform:
        weight = float(objective.weights[0])
        return weight * lower_bound_risk_at_uniform(context) + objective.offset
    return objective.min_value


# --- searches -------------------------------------------------------------------------------------


def _search(
    context: Context,
    objective: Objective,
    clock: Clock,
    seed: int,
    closed_form: Component | None,
    number: int,
    count: int,
) -> Component:
    exact = context.exact_matrix().closure()
    require_distinct_symbols(exact)
    if exact.minimum() < _MIN_EPSILON:
        raise NothingToLearn(
            f"this context promises an ε of {float(exact.minimum()):.2g}; below "
            f"{_MIN_EPSILON:.0e} a table of 64-bit words cannot tell the symbols apart. Give them "
            "one label, or a larger ε."
        )
    deadline = clock.deadline(count - number + 1)
    unit = float(objective.weights.mean())  # the search sees weights around 1
    scaled = objective.scale(1 / unit)
    section = CrossSection(Cone(exact), objective.prior)
    columns = _starting_columns(closed_form, context.size)
    rounds = search_rounds(section, objective.weights / unit, seed, columns)
    try:
        progress = _SearchProgress(scaled, next(rounds))
    except KeyboardInterrupt:
        if closed_form is None:
            raise
        clock.interrupted = True
        return replace(closed_form, stop_reason="interrupted")
    stopped = None
    while stopped is None:
        try:
            clock.report(progress.latest_round(number, count, clock.seconds, unit))
            stopped = progress.stop_reason() or clock.stop_reason(deadline)
            if stopped is None:
                progress.add(next(rounds))
        except KeyboardInterrupt:
            clock.interrupted = True
            stopped = "interrupted"
    if not isfinite(progress.best.mixture.value):
        raise NothingToLearn(
            "the promises of this matrix differ too much for a search in floats. Merge symbols "
            "that can hardly be told apart, or increase their ε."
        )
    mechanism = to_table(context, progress.best, scaled)
    value = objective.value_of(mechanism)
    bound = min(progress.bound * unit, value)
    return Component(mechanism, value, bound, progress.certified, progress.round_count, stopped)


def _starting_columns(closed_form: Component | None, size: int) -> Floats:
    """Return the columns of the closed form, if they are few enough to begin a search with."""
    if closed_form is None or closed_form.mechanism.outputs > 16 * size:
        return np.empty((0, size))
    return closed_form.mechanism.matrix().T


class _SearchProgress:
    """The best solution of a search so far, and whether the search is over."""

    def __init__(self, objective: Objective, first: Solution) -> None:
        self._offset = objective.offset
        self._min_value = objective.min_value
        self._close_rounds = 0
        self._idle_rounds = 0
        self.round_count = 0
        self.best = first
        self.bound = objective.min_value
        self.certified = first.certified
        self.add(first)

    @property
    def risk(self) -> float:
        """The risk of the best mixture."""
        return self.best.mixture.value - self._offset

    @property
    def lower_bound(self) -> float:
        """The bound on the risk of all mechanisms."""
        return self.bound - self._offset

    def add(self, solution: Solution) -> None:
        """Add the solution of one more round."""
        self.round_count += 1
        value = self.best.mixture.value
        bound = self.bound
        if solution.mixture.value < value:
            self.best = solution
        # Every certified bound holds, so the highest counts. Of estimates, the latest is best.
        known_bound = bound if self.certified else self._min_value
        new_bound = solution.bound if isfinite(solution.bound) else 0.0
        self.bound = max(known_bound, new_bound)
        min_change = _PROGRESS * (value - self._offset)
        fell = solution.mixture.value < value - min_change
        rose = self.certified and self.bound > bound + min_change
        self._idle_rounds = 0 if fell or rose else self._idle_rounds + 1
        is_close = self.risk <= self.lower_bound * (1 + _CLOSE)
        self._close_rounds = self._close_rounds + 1 if is_close else 0

    def latest_round(self, number: int, count: int, seconds: float, unit: float) -> Round:
        """Return the latest round for progress reports; weights are in units of ``unit``."""
        return Round(
            component_number=number,
            component_count=count,
            round_number=self.round_count,
            risk=self.risk * unit,
            lower_bound=self.lower_bound * unit,
            certified=self.certified,
            ray_count=len(self.best.rays),
            seconds=seconds,
        )

    def stop_reason(self) -> str | None:
        """Return "converged" if the gap is closed, "stalled" if nothing changes, or ``None``."""
        if self._close_rounds >= (1 if self.certified else _CLOSE_ROUNDS):
            return "converged"
        return "stalled" if self._idle_rounds >= _IDLE_ROUNDS else None
