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
    Component,
    ComponentContext,
    Round,
    design_component,
    split,
)
from sfumato.designer.search import Objective
from sfumato.errors import InvalidArgument, InvalidContext, NoClosedForm
from sfumato.foundation.arrays import Floats
from sfumato.foundation.canonical import fingerprint
from sfumato.mechanisms import Mechanism, TableResponse, UnionResponse
from sfumato.promises import Certificate, certify

__all__ = ["Design", "design"]

# Why a search can end. If the reasons differ between components, the last one listed is reported.
_STOP_REASONS = ("closed form", "converged", "stalled", "time limit", "interrupted")


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A mechanism, and a bound on how far it can be from the best possible one.

    ``risk`` is ``n · E Σ_x w_x (p̂_x − p_x)²`` for the mechanism's unbiased estimate at ``prior`` p,
    with ``weights`` w. No mechanism for the context has a risk below ``lower_bound`` at p. If the
    bound is ``certified``, that is proven. Otherwise the bound is estimated: a search found no
    counterexample. ``stop_reason`` is why the search ended: "closed form" (there was no search),
    "converged", "stalled" (no more progress, but a gap remains), "time limit" or "interrupted".
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
            position = "equal to"
        elif isfinite(self.gap):
            position = f"{100 * self.gap:.2g}% above"
        else:
            position = "above"
        if self.certified:
            meaning = "no mechanism for this context has a smaller risk than the bound"
        elif self.stop_reason in ("time limit", "interrupted"):
            meaning = "the search did not finish, and more time may improve the mechanism"
        else:
            meaning = "the search found no better mechanism, but that is not a proof"
        return (
            f"Risk {self.risk:.6g}, {position} the {self.bound_status} bound of "
            f"{self.lower_bound:.6g}: {meaning}. Reports have {self.mechanism.bits} bits."
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


def design(
    context: Context,
    *,
    prior: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    time_limit: float = 60,
    seed: int = 0,
    on_progress: Callable[[Round], None] | None = None,
) -> Design:
    """Compute a mechanism for any context: exactly private, its risk close to the minimum.

    ``prior`` is a guess at the distribution at which to minimise the risk, uniform by default.
    Shares below a millionth are raised to a millionth. ``weights`` are the relative importance of
    each symbol's error. Components with no promise between them are designed one by one. Each uses
    its closed form, if it has one, unless a search finds a better mechanism. A search runs until
    the gap is closed, no round makes progress, or ``time_limit`` seconds have passed. Rounding to
    integers and certifying take extra time: well under a second for 16 symbols, about ten seconds
    for 64.

    For up to 12 symbols, the bound is certified; for more, it is estimated. An interrupt (Ctrl-C)
    ends the search with the best mechanism so far. The same ``seed`` and the same number of rounds
    give the same mechanism on the same machine; a time limit only limits the number of rounds.
    ``on_progress`` is called after every round.

    Raise ``NothingToLearn`` if the context forbids telling two symbols apart, and ``NoClosedForm``
    if it connects more than 128 symbols and has no known structure.
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
            f"design needs a context; got {type(context).__name__}. Pass e.g. PrivacyMatrix(E)."
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
        contexts = split(context)
        clock = Clock(time_limit, on_progress)
        components = _design_components(contexts, objective, clock, int(seed))
        mechanism = _join(context, contexts, components)
        return _assemble(context, mechanism, objective, contexts, components)


def _design_components(
    contexts: Sequence[ComponentContext], objective: Objective, clock: Clock, seed: int
) -> list[Component]:
    """Design each component; identical components share one mechanism."""
    if len(contexts) == 1:
        return [design_component(contexts[0].context, objective, clock, seed, 1, 1)]
    objectives = [objective.restrict(component.symbols) for component in contexts]
    keys = []
    for component, part in zip(contexts, objectives, strict=True):
        context_id = fingerprint(component.context.to_record())
        keys.append((context_id, part.counts, part.weights.tobytes()))
    count = len(set(keys))
    designs: dict[object, Component] = {}
    for component, part, key in zip(contexts, objectives, keys, strict=True):
        if key not in designs:
            number = len(designs) + 1
            designs[key] = design_component(component.context, part, clock, seed, number, count)
    return [designs[key] for key in keys]


def _join(
    context: Context, contexts: Sequence[ComponentContext], components: Sequence[Component]
) -> Mechanism:
    """Join the mechanisms of all components.

    A single mechanism is returned as is. If all components use closed forms, and the entire context
    also has a closed form, return the latter. Otherwise, return a union.
    """
    mechanisms = [component.mechanism for component in components]
    if len(mechanisms) == 1:
        return mechanisms[0]
    if not any(isinstance(mechanism, TableResponse) for mechanism in mechanisms):
        with suppress(NoClosedForm):
            return mechanism_for(context)
    block_of = np.empty(context.size, dtype=np.int64)
    for j, component in enumerate(contexts):
        block_of[component.symbols] = j
    parts = [mechanism.context for mechanism in mechanisms]
    return UnionResponse(ContextUnion(parts, block_of, domain=context.domain), mechanisms)


def _assemble(
    context: Context,
    mechanism: Mechanism,
    objective: Objective,
    contexts: Sequence[ComponentContext],
    components: Sequence[Component],
) -> Design:
    """Return the complete design."""
    # tr(W M⁻¹) of a union is the mean over its parts, weighted by their shares of the prior.
    value_bound = 0.0
    for component_context, component in zip(contexts, components, strict=True):
        share = float(objective.prior[component_context.symbols].sum())
        value_bound += share * component.bound
    risk = objective.value_of(mechanism) - objective.offset
    distinct = {id(component): component for component in components}.values()
    return Design(
        context=context,
        mechanism=mechanism,
        certificate=certify(mechanism, context),
        risk=risk,
        lower_bound=min(value_bound - objective.offset, risk),
        certified=all(component.certified for component in components),
        round_count=sum(component.round_count for component in distinct),
        stop_reason=max(
            (component.stop_reason for component in components), key=_STOP_REASONS.index
        ),
        prior=objective.prior,
        weights=objective.weights,
    )
