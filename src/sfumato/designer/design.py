"""Design a mechanism for any privacy matrix, and bound how far it is from the optimum."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from math import inf, isfinite

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context, ContextUnion
from sfumato.designer.choose import mechanism_for
from sfumato.designer.component import (
    Clock,
    ComponentContext,
    ComponentDesign,
    Round,
    design_component,
    split_into_components,
)
from sfumato.designer.search import Objective
from sfumato.errors import InvalidArgument, InvalidContext, NoClosedForm
from sfumato.foundation.arrays import Floats
from sfumato.foundation.canonical import fingerprint
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.formatting import plural
from sfumato.mechanisms import Mechanism, TableResponse, UnionResponse
from sfumato.promises import Certificate, certify

__all__ = ["Design", "design"]

# Why a search can end. If components stop for different reasons, the last one listed is reported.
_STOP_REASONS = ("closed form", "converged", "stalled", "time limit", "interrupted")


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A mechanism, and a bound on how far it can be from the best possible one.

    ``risk`` is ``n · E Σ_x w_x (p̂_x − p_x)²`` for the mechanism's unbiased estimate at ``prior`` p,
    with ``weights`` w. ``lower_bound`` is a lower bound on the risk at p of any mechanism for the
    context. If ``certified`` is true, the bound is proven. Otherwise it is an estimate, to which a
    search found no counterexample. ``stop_reason`` is why the search ended: "closed form" (there
    was no search), "converged", "stalled" (no more progress, but a gap remains), "time limit" or
    "interrupted".
    """

    context: Context
    mechanism: Mechanism
    certificate: Certificate
    risk: float
    lower_bound: float
    certified: bool
    round_count: int
    stop_reason: str
    prior: Floats
    weights: Floats

    @property
    def gap(self) -> float:
        """The amount by which the risk exceeds the bound, relative to the bound."""
        if self.risk <= self.lower_bound:
            return 0.0
        return self.risk / self.lower_bound - 1 if self.lower_bound > 0 else inf

    @property
    def bound_status(self) -> str:
        """The status of the bound: "certified" or "estimated"."""
        return "certified" if self.certified else "estimated"

    def summary(self) -> str:
        """Return the result as a short paragraph."""
        if self.gap == 0:
            comparison = "equal to"
        elif isfinite(self.gap):
            comparison = f"{100 * self.gap:.2g}% above"
        else:
            comparison = "above"
        if self.certified:
            meaning = "no mechanism for this context has a smaller risk than the bound"
        elif self.stop_reason in ("time limit", "interrupted"):
            meaning = "the search did not finish, and more time may improve the mechanism"
        else:
            meaning = "the search found no better mechanism, but that is not a proof"
        return (
            f"Risk {self.risk:.6g}, {comparison} the {self.bound_status} bound of "
            f"{self.lower_bound:.6g}: {meaning}. Reports have {plural(self.mechanism.bits, 'bit')}."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON-compatible data."""
        return {
            "risk": self.risk,
            "lower_bound": self.lower_bound,
            "bound_is": self.bound_status,
            "gap": self.gap if isfinite(self.gap) else None,
            "rounds": self.round_count,
            "stopped": self.stop_reason,
            "mechanism": self.mechanism.kind,
            "outputs": self.mechanism.outputs,
            "bits": self.mechanism.bits,
            "leverage": float(self.mechanism.scores.leverage),
        }

    def __repr__(self) -> str:
        return f"Design({self.mechanism!r}): {self.summary()}"

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        summary = f"<p><b>Design.</b> {escape(self.summary())}</p>"
        return summary + f"<p>{escape(str(self.certificate))}</p>"


@shows_call("sf.design(context, time_limit=60)")
def design(
    context: Context,
    *,
    prior: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    time_limit: float = 60,
    seed: int = 0,
    on_progress: Callable[[Round], None] | None = None,
) -> Design:
    """Compute an exactly private mechanism for any context, with a risk close to the minimum.

    The risk is minimized at ``prior``, a guess at the distribution, which is uniform by default.
    Shares below a millionth are raised to a millionth. ``weights`` contains the relative importance
    of each symbol's error. Components with no promise between them are designed separately. Each
    uses its closed form, if it has one, unless a search finds a better mechanism. A search runs
    until the gap is closed, progress stops, or ``time_limit`` seconds have passed. Rounding to
    integers and certifying take extra time: well under a second for 16 symbols, about ten seconds
    for 64.

    For a component with up to 12 symbols, or with a closed form that needs no search, the bound is
    certified. Otherwise, it is usually estimated. After an interrupt (Ctrl-C), the result is the
    best mechanism found so far. On the same machine, the same ``seed`` and the same number of
    rounds give the same mechanism; the time limit affects only the number of rounds.
    ``on_progress`` is called after every round.

    Raise ``NothingToLearn`` if the context forbids telling two symbols apart, or promises an ε too
    small for a search. Raise ``NoClosedForm`` if it connects more than 128 symbols and has no known
    structure.
    For the derivation and the proof of the bound, see docs/designer.md.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> result = design(PrivacyMatrix([[0, 1, 2], ["0.5", 0, 1], [1, 1, 0]]))
    >>> result.bound_status, result.gap < 1e-4
    ('certified', True)
    """
    # Import SciPy before limiting threads: the limit applies only to libraries already loaded.
    import scipy.linalg
    import scipy.optimize  # noqa: F401
    from threadpoolctl import threadpool_limits

    if not isinstance(context, Context):
        raise InvalidContext(
            f"design needs a context; got {type(context).__name__}. Call sf.design(context) with "
            "e.g. context = sf.PrivacyMatrix(E), or context = survey.context."
        )
    objective = Objective.parse(context.size, prior, weights)
    is_number = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
    if not is_number or not time_limit > 0:
        raise InvalidArgument(
            f"time_limit must be a positive number of seconds; got {time_limit!r}."
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InvalidArgument(f"seed must be an integer; got {seed!r}.")
    # The matrices are small: threads would slow the search down, and change the rounding.
    with threadpool_limits(1):
        components = split_into_components(context)
        clock = Clock(time_limit, on_progress)
        designs = _design_components(components, objective, clock, int(seed))
        mechanism = _join(context, components, designs)
        return _assemble(context, mechanism, objective, components, designs)


def _design_components(
    components: Sequence[ComponentContext], objective: Objective, clock: Clock, seed: int
) -> list[ComponentDesign]:
    """Return a design for each component; identical components share one design."""
    if len(components) == 1:
        return [design_component(components[0].context, objective, clock, seed, 1, 1)]
    objectives = [objective.restrict(component.symbols) for component in components]
    keys = []
    for component, component_objective in zip(components, objectives, strict=True):
        context_id = fingerprint(component.context.to_record())
        weights = component_objective.weights.tobytes()
        keys.append((context_id, component_objective.counts, weights))
    distinct_count = len(set(keys))
    design_by_key: dict[object, ComponentDesign] = {}
    for component, component_objective, key in zip(components, objectives, keys, strict=True):
        if key not in design_by_key:
            number = len(design_by_key) + 1
            design_by_key[key] = design_component(
                component.context, component_objective, clock, seed, number, distinct_count
            )
    return [design_by_key[key] for key in keys]


def _join(
    context: Context,
    components: Sequence[ComponentContext],
    designs: Sequence[ComponentDesign],
) -> Mechanism:
    """Return one mechanism for all components.

    If there is only one mechanism, return it as is. If all components use closed forms, and the
    entire context also has a closed form, return that one. Otherwise, return a union.
    """
    mechanisms = [component_design.mechanism for component_design in designs]
    if len(mechanisms) == 1:
        return mechanisms[0]
    if not any(isinstance(mechanism, TableResponse) for mechanism in mechanisms):
        with suppress(NoClosedForm):
            return mechanism_for(context)
    block_of = np.empty(context.size, dtype=np.int64)
    for j, component in enumerate(components):
        block_of[component.symbols] = j
    part_contexts = [mechanism.context for mechanism in mechanisms]
    return UnionResponse(ContextUnion(part_contexts, block_of, domain=context.domain), mechanisms)


def _assemble(
    context: Context,
    mechanism: Mechanism,
    objective: Objective,
    components: Sequence[ComponentContext],
    designs: Sequence[ComponentDesign],
) -> Design:
    """Return the design: the mechanism, its certificate, its risk and the lower bound."""
    # The value tr(W M⁻¹) of a union is the mean value of its parts, weighted by their prior shares.
    value_bound = 0.0
    for component, component_design in zip(components, designs, strict=True):
        share = float(objective.prior[component.symbols].sum())
        value_bound += share * component_design.bound
    risk = objective.value_of(mechanism) - objective.offset
    distinct_designs = {id(part): part for part in designs}.values()
    return Design(
        context=context,
        mechanism=mechanism,
        certificate=certify(mechanism, context),
        risk=risk,
        lower_bound=min(value_bound - objective.offset, risk),
        certified=all(part.certified for part in designs),
        round_count=sum(part.round_count for part in distinct_designs),
        stop_reason=max((part.stop_reason for part in designs), key=_STOP_REASONS.index),
        prior=objective.prior,
        weights=objective.weights,
    )
