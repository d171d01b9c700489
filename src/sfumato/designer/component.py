"""Split a context into components, and design a mechanism for each of them.

Nothing is promised between components, so a report may reveal the component. The mechanism for a
component is a closed form, if one is good enough, or the result of a search.
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
from sfumato.foundation.notebook import FieldsView
from sfumato.mechanisms import Mechanism

__all__ = [
    "Clock",
    "ComponentContext",
    "ComponentDesign",
    "Round",
    "design_component",
    "split_into_components",
]

_MAX_SEARCHED_SIZE = 128  # symbols in the largest component that a search can handle
_MAX_GAP = 1e-5  # a search ends at this gap; for a smaller gain, a table is not worth using
_MAX_CLOSED_FORM_GAP = 1e-2  # for closed forms with many symbols, where a search would be slow
_MAX_SMALL_SIZE = 12  # symbols; up to this size, a closed form must meet _MAX_GAP
_MIN_CONVERGED_ROUNDS = 3  # for an estimated bound, because each round searches elsewhere
_MAX_STALLED_ROUNDS = 12
_MIN_PROGRESS = 1e-6  # the smallest change in the risk or bound that counts, relative to the risk
_MAX_ROUNDING_LOSS = 1e-9  # relative, from rounding a binary response to integers
_MAX_CLOSURE_SIZE = 512  # symbols in the largest matrix whose closure is computed
_MIN_EPSILON = 1e-6  # for a search; below this, rounding loses more than reports reveal


@dataclass(frozen=True)
class ComponentContext:
    """The symbols of a component, and its context, in which they are renumbered from 0."""

    symbols: Symbols
    context: Context


def split_into_components(context: Context) -> list[ComponentContext]:
    """Return the components of a context, in the order of their first symbols.

    In a matrix, symbols without a promise in either direction share one component, and are sent
    unchanged.

    >>> E = [[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]
    >>> components = split_into_components(PrivacyMatrix(E))
    >>> [component.symbols.tolist() for component in components]
    [[0, 1], [2]]
    """
    return sorted(_components(context), key=lambda component: int(component.symbols[0]))


def _components(context: Context) -> Iterator[ComponentContext]:
    groups = context.groups
    union = context.as_union
    if union is not None:
        for symbols, part in zip(union.members(), union.parts, strict=True):
            for component in split_into_components(part):
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
class Round(FieldsView):
    """The progress of a search after one round.

    ``risk`` and ``lower_bound`` are those of the current component. ``certified`` is whether the
    bound is proven. ``seconds`` is the time since the design started.
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
        """The amount by which the risk exceeds the bound, relative to the bound."""
        return self.risk / self.lower_bound - 1 if self.lower_bound > 0 else inf


@dataclass(frozen=True)
class ComponentDesign:
    """A mechanism for a component, with its value ``tr(W M⁻¹)``.

    ``bound`` is a lower bound on the value of any mechanism for the component, proven if
    ``certified`` is true and estimated otherwise.
    """

    mechanism: Mechanism
    value: float
    bound: float
    certified: bool
    round_count: int
    stop_reason: str


class Clock:
    """The time limit for all searches, and the callback for their progress."""

    def __init__(self, time_limit: float, on_progress: Callable[[Round], None] | None) -> None:
        self._start = time.monotonic()
        self._end = self._start + time_limit
        self._on_progress = on_progress
        self.interrupted = False

    @property
    def seconds(self) -> float:
        """The time since the start, in seconds."""
        return time.monotonic() - self._start

    def deadline(self, remaining_count: int) -> float:
        """Return when the next search must end, in seconds since the start.

        The remaining time is shared equally among the remaining components.
        """
        time_left = max(self._end - time.monotonic(), 0.0)
        return self.seconds + time_left / remaining_count

    def stop_reason(self, deadline: float) -> str | None:
        """Return why a search must stop, or ``None`` if it may continue."""
        if self.interrupted:
            return "interrupted"
        return "time limit" if self.seconds >= deadline else None

    def report(self, latest_round: Round) -> None:
        """Pass the latest round to ``on_progress``, if there is one."""
        if self._on_progress is not None:
            self._on_progress(latest_round)


def design_component(
    context: Context,
    objective: Objective,
    clock: Clock,
    seed: int,
    component_number: int,
    component_count: int,
) -> ComponentDesign:
    """Return the closed form if it is good enough, or the better of it and the result of a search.

    Components are numbered from 1. Raise ``NoClosedForm`` if there is no closed form and the
    component is too large for a search.
    """
    closed_form = _solve_in_closed_form(context, objective)
    if closed_form is not None:
        risk_bound = max(closed_form.bound - objective.offset, 1e-300)
        gap = (closed_form.value - objective.offset) / risk_bound - 1
        max_gap = _MAX_GAP if context.size <= _MAX_SMALL_SIZE else _MAX_CLOSED_FORM_GAP
        is_good_enough = closed_form.value <= closed_form.bound or gap <= max_gap
        if is_good_enough or context.exact_minimum < _MIN_EPSILON:
            return closed_form
    if context.size <= _MAX_SEARCHED_SIZE:
        search_result = _search(
            context, objective, clock, seed, closed_form, component_number, component_count
        )
        return _choose_better(closed_form, search_result, objective)
    if closed_form is None:
        raise NoClosedForm(
            f"this matrix connects {context.size} symbols and has no known closed form; a search "
            f"handles at most {_MAX_SEARCHED_SIZE}. Merge labels, drop the promises between tiles "
            "(Metric.tiles), or use Uniform(domain, context.smallest_epsilon), which promises at "
            "least as much."
        )
    return closed_form


def _choose_better(
    closed_form: ComponentDesign | None, search_result: ComponentDesign, objective: Objective
) -> ComponentDesign:
    """Return the better mechanism, with the higher of the two bounds.

    If the search gains almost nothing, return the closed form.
    """
    if closed_form is None:
        return search_result
    closed_form_risk = closed_form.value - objective.offset
    search_risk = search_result.value - objective.offset
    is_better = search_risk < closed_form_risk * (1 - _MAX_GAP)
    better_design = search_result if is_better else closed_form
    is_tighter = search_result.bound > closed_form.bound
    tighter_design = search_result if is_tighter else closed_form
    return replace(
        search_result,
        mechanism=better_design.mechanism,
        value=better_design.value,
        bound=tighter_design.bound,
        certified=tighter_design.certified,
    )


# --- closed forms ---------------------------------------------------------------------------------


def _solve_in_closed_form(context: Context, objective: Objective) -> ComponentDesign | None:
    is_matrix = context.groups is None and not context.parts and not context.terms
    try:
        # The closure of a large matrix is slow to compute, and rarely needed to see its structure.
        if is_matrix and context.size > _MAX_CLOSURE_SIZE:
            # Except in unions, a row of a structured matrix has at most two ε off the diagonal.
            if np.unique(context.epsilon(0, np.arange(1, context.size))).size > 2:
                return None
            context = recognise_as_written(context)
        mechanism = mechanism_for(context)
    except NoClosedForm:
        return None
    value = objective.value_of(mechanism)
    bound = min(_lower_bound(context, objective, value), value)
    return ComponentDesign(
        mechanism, value, bound, certified=True, round_count=0, stop_reason="closed form"
    )


def _lower_bound(context: Context, objective: Objective, value: float) -> float:
    """Return a proven lower bound on the value of any mechanism for a structured context."""
    if context.size == 1 or context.exact_minimum == inf:
        return value  # people send their answers unchanged
    if context.size == 2:
        # The value is optimal up to rounding (Acharya et al. 2020, Theorem 2).
        return value * (1 - _MAX_ROUNDING_LOSS)
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
    closed_form: ComponentDesign | None,
    component_number: int,
    component_count: int,
) -> ComponentDesign:
    exact = context.exact_matrix().closure()
    require_distinct_symbols(exact)
    if exact.minimum() < _MIN_EPSILON:
        raise NothingToLearn(
            f"this context promises an ε of {float(exact.minimum()):.2g}; below "
            f"{_MIN_EPSILON:.0e}, a table of 64-bit words cannot tell the symbols apart. Merge "
            "them into one label, or use a larger ε."
        )
    deadline = clock.deadline(component_count - component_number + 1)
    mean_weight = float(objective.weights.mean())  # the search works with weights around 1
    scaled_objective = objective.scale(1 / mean_weight)
    section = CrossSection(Cone(exact), objective.prior)
    columns = _starting_columns(closed_form, context.size)
    rounds = search_rounds(section, objective.weights / mean_weight, seed, columns)
    try:
        progress = _SearchProgress(scaled_objective, next(rounds))
    except KeyboardInterrupt:
        if closed_form is None:
            raise
        clock.interrupted = True
        return replace(closed_form, stop_reason="interrupted")
    stop_reason = None
    while stop_reason is None:
        try:
            clock.report(
                progress.latest_round(component_number, component_count, clock.seconds, mean_weight)
            )
            stop_reason = progress.stop_reason() or clock.stop_reason(deadline)
            if stop_reason is None:
                progress.add(next(rounds))
        except KeyboardInterrupt:
            clock.interrupted = True
            stop_reason = "interrupted"
    if not isfinite(progress.best.mixture.value):
        raise NothingToLearn(
            "the promises of this matrix differ too much for a search in floating point. Merge the "
            "symbols with the smallest ε, or increase their ε."
        )
    mechanism = to_table(context, progress.best, scaled_objective)
    value = objective.value_of(mechanism)
    bound = min(progress.bound * mean_weight, value)
    return ComponentDesign(
        mechanism, value, bound, progress.certified, progress.round_count, stop_reason
    )


def _starting_columns(closed_form: ComponentDesign | None, size: int) -> Floats:
    """Return the columns of the closed form, or none if there are too many for a search."""
    if closed_form is None or closed_form.mechanism.outputs > 16 * size:
        return np.empty((0, size))
    return closed_form.mechanism.matrix().T


class _SearchProgress:
    """The best solution of a search so far, and whether the search is finished."""

    def __init__(self, objective: Objective, first_solution: Solution) -> None:
        self._offset = objective.offset
        self._min_value = objective.min_value
        self._converged_round_count = 0
        self._stalled_round_count = 0
        self.round_count = 0
        self.best = first_solution
        self.bound = objective.min_value
        self.certified = first_solution.certified
        self.add(first_solution)

    @property
    def risk(self) -> float:
        """The risk of the best mixture."""
        return self.best.mixture.value - self._offset

    @property
    def lower_bound(self) -> float:
        """The lower bound on the risk of any mechanism."""
        return self.bound - self._offset

    def add(self, solution: Solution) -> None:
        """Add the solution of the next round."""
        self.round_count += 1
        previous_value = self.best.mixture.value
        previous_bound = self.bound
        if solution.mixture.value < previous_value:
            self.best = solution
        # All certified bounds are valid, so keep the highest. Of the estimates, keep the latest.
        known_bound = previous_bound if self.certified else self._min_value
        new_bound = solution.bound if isfinite(solution.bound) else 0.0
        self.bound = max(known_bound, new_bound)
        min_change = _MIN_PROGRESS * (previous_value - self._offset)
        value_decreased = solution.mixture.value < previous_value - min_change
        bound_increased = self.certified and self.bound > previous_bound + min_change
        has_progressed = value_decreased or bound_increased
        self._stalled_round_count = 0 if has_progressed else self._stalled_round_count + 1
        is_converged = self.risk <= self.lower_bound * (1 + _MAX_GAP)
        self._converged_round_count = self._converged_round_count + 1 if is_converged else 0

    def latest_round(
        self, component_number: int, component_count: int, seconds: float, mean_weight: float
    ) -> Round:
        """Return the latest round, with risks multiplied by ``mean_weight`` to undo the scaling."""
        return Round(
            component_number=component_number,
            component_count=component_count,
            round_number=self.round_count,
            risk=self.risk * mean_weight,
            lower_bound=self.lower_bound * mean_weight,
            certified=self.certified,
            ray_count=len(self.best.rays),
            seconds=seconds,
        )

    def stop_reason(self) -> str | None:
        """Return "converged" if the gap is closed, "stalled" if progress stopped, else ``None``."""
        if self._converged_round_count >= (1 if self.certified else _MIN_CONVERGED_ROUNDS):
            return "converged"
        return "stalled" if self._stalled_round_count >= _MAX_STALLED_ROUNDS else None
