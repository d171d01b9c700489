"""Design: a mechanism for any privacy matrix, as good as can be found, and how much better another could be."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from math import inf, isfinite

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context, ContextUnion
from sfumato.designer.component import LARGEST_DESIGNED, Clock, Part, Round, designed_part
from sfumato.designer.component_context import Piece, split
from sfumato.designer.search.objective import Objective
from sfumato.designer.shelf.choose import mechanism_for
from sfumato.errors import InvalidArgument, InvalidContext, NoClosedForm
from sfumato.foundation.arrays import Floats
from sfumato.foundation.canonical import fingerprint
from sfumato.mechanisms import Mechanism, TableResponse, UnionResponse
from sfumato.promises import Certificate, certify

__all__ = ["LARGEST_DESIGNED", "Design", "Round", "design"]

_REASONS = (
    "closed form",
    "converged",
    "stalled",
    "time limit",
    "interrupted",
)  # the last of any part counts


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A mechanism, and how far it can be from the best possible.

    ``risk`` is ``n · E Σ_x w_x (p̂_x − p_x)²`` of its unbiased estimate at ``prior`` p, with ``weights`` w. No
    mechanism for the context has a risk below ``lower_bound`` there: if the bound is ``certified`` that is proved; if
    it is estimated, a search has found nothing that speaks against it. ``stopped`` says why the search ended: "closed
    form" (there was none), "converged", "stalled" (nothing changed any more, with a gap left), "time limit" or
    "interrupted".
    """

    context: Context
    mechanism: Mechanism
    certificate: Certificate
    risk: float
    lower_bound: float
    certified: bool
    rounds: int
    stopped: str
    prior: Floats
    weights: Floats

    @property
    def gap(self) -> float:
        """By what share of the bound the risk exceeds it."""
        if self.risk <= self.lower_bound:
            return 0.0
        return self.risk / self.lower_bound - 1 if self.lower_bound > 0 else inf

    @property
    def bound_is(self) -> str:
        """What may be said of the bound: "certified" or "estimated"."""
        return "certified" if self.certified else "estimated"

    def in_words(self) -> str:
        """The outcome as a short paragraph."""
        above = (
            "on"
            if self.gap == 0
            else f"{100 * self.gap:.2g} % above"
            if isfinite(self.gap)
            else "above"
        )
        if self.certified:
            meaning = "no mechanism for this context has less than the bound"
        elif self.stopped in ("time limit", "interrupted"):
            meaning = "the search was not over, and more time may find better"
        else:
            meaning = "the search found no better one, which proves nothing"
        return (
            f"Risk {self.risk:.6g}, {above} the {self.bound_is} bound of {self.lower_bound:.6g}: {meaning}. "
            f"Reports have {self.mechanism.bits} bits."
        )

    def in_json(self) -> dict[str, object]:
        """The outcome as plain data."""
        return {
            "risk": self.risk,
            "lower_bound": self.lower_bound,
            "bound_is": self.bound_is,
            "gap": self.gap if isfinite(self.gap) else None,
            "rounds": self.rounds,
            "stopped": self.stopped,
            "mechanism": self.mechanism.kind,
            "outputs": self.mechanism.outputs,
            "bits": self.mechanism.bits,
            "leverage": float(self.mechanism.scores.leverage),
        }

    def __repr__(self) -> str:
        return f"Design({self.mechanism!r}): {self.in_words()}"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return (
            f"<p><b>Design.</b> {escape(self.in_words())}</p><p>{escape(str(self.certificate))}</p>"
        )


def design(
    context: Context,
    *,
    prior: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    time_limit: float = 60,
    seed: int = 0,
    on_progress: Callable[[Round], None] | None = None,
) -> Design:
    """A mechanism for any context, near the least risk that is possible and exactly private, and a bound below all.

    The risk is taken at ``prior``, a guess of the distribution (by default people are spread evenly; shares below a
    millionth count as one), and symbols can have ``weights``. A matrix that has a closed form gets it, unless a
    better mechanism is found; parts between which nothing is promised are designed one by one. Everything else is
    searched, round by round, until the gap is closed, nothing changes any more, or ``time_limit`` seconds have
    passed. Rounding to integers and certifying come on top of that: well below a second for 16 symbols, about ten for
    64.

    Up to 12 symbols the bound is certified, above it is estimated. An interrupt (Ctrl-C) ends the search with the
    best so far. The same seed and the same number of rounds give the same mechanism on the same machine: a time limit
    only picks the round. ``on_progress`` is called after every round.

    Raises ``NothingToLearn`` where the context forbids telling two symbols apart, and ``NoClosedForm`` where more than
    128 symbols are bound to one another in a form that is not known.
    Reference: docs/designer.md has the derivation, and the proof of the bound.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> found = design(PrivacyMatrix([[0, 1, 2], ["0.5", 0, 1], [1, 1, 0]]))
    >>> found.bound_is, found.gap < 1e-4
    ('certified', True)
    """
    import scipy.linalg
    import scipy.optimize  # both before the limit, which holds for libraries that are loaded already  # noqa: F401
    from threadpoolctl import threadpool_limits

    if not isinstance(context, Context):
        raise InvalidContext(
            f"design takes a context; found {type(context).__name__}. Pass e.g. PrivacyMatrix(E)."
        )
    objective = Objective.of(context.size, prior, weights)
    is_number = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
    if not is_number or not time_limit > 0:
        raise InvalidArgument(
            f"time_limit must be a positive number of seconds; got {time_limit!r}."
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InvalidArgument(f"seed must be an integer; got {seed!r}.")
    # The matrices are small: threads would wait for one another more than they work, and change the last digits.
    with threadpool_limits(1):
        pieces = split(context)
        parts = _parts(pieces, objective, Clock(time_limit, on_progress), int(seed))
        mechanism = _joined(context, pieces, parts)
        return _told(context, mechanism, objective, pieces, parts)


def _parts(pieces: Sequence[Piece], objective: Objective, clock: Clock, seed: int) -> list[Part]:
    """A part for each piece; pieces that are alike in everything share one."""
    if len(pieces) == 1:
        return [designed_part(pieces[0].context, objective, clock, seed, 1, 1)]
    aims = [objective.restrict(piece.symbols) for piece in pieces]
    names = [
        (fingerprint(piece.context.record()), own.counts, own.weights.tobytes())
        for piece, own in zip(pieces, aims, strict=True)
    ]
    made: dict[object, Part] = {}
    for piece, own, name in zip(pieces, aims, names, strict=True):
        if name not in made:
            made[name] = designed_part(
                piece.context, own, clock, seed, len(made) + 1, len(set(names))
            )
    return [made[name] for name in names]


def _joined(context: Context, pieces: Sequence[Piece], parts: Sequence[Part]) -> Mechanism:
    """The mechanism of the only part; the closed form of the whole, if all parts have theirs; or the union of parts."""
    if len(parts) == 1:
        return parts[0].mechanism
    if not any(isinstance(part.mechanism, TableResponse) for part in parts):
        with suppress(NoClosedForm):
            return mechanism_for(context)
    block_of = np.empty(context.size, dtype=np.int64)
    for j, piece in enumerate(pieces):
        block_of[piece.symbols] = j
    union = ContextUnion(
        [part.mechanism.context for part in parts], block_of, domain=context.domain
    )
    return UnionResponse(union, [part.mechanism for part in parts])


def _told(
    context: Context,
    mechanism: Mechanism,
    objective: Objective,
    pieces: Sequence[Piece],
    parts: Sequence[Part],
) -> Design:
    """The outcome: ``tr(W M⁻¹)`` of a union is that of its parts, by their shares."""
    shares = [float(objective.crowd[piece.symbols].sum()) for piece in pieces]
    bound = (
        sum(share * part.bound for share, part in zip(shares, parts, strict=True))
        - objective.offset
    )
    risk = objective.value_of(mechanism) - objective.offset
    searched = {id(part): part for part in parts}.values()
    return Design(
        context=context,
        mechanism=mechanism,
        certificate=certify(mechanism, context),
        risk=risk,
        lower_bound=min(bound, risk),
        certified=all(part.certified for part in parts),
        rounds=sum(part.rounds for part in searched),
        stopped=max((part.stopped for part in parts), key=_REASONS.index),
        prior=objective.crowd,
        weights=objective.weights,
    )
