"""The mechanisms that a plan considers, each with its risk and its predicted error."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from sfumato.contexts import Context, Uniform
from sfumato.designer import exponential_response, mechanism_for
from sfumato.errors import ContextMismatch, NoClosedForm, NothingToLearn, SfumatoError
from sfumato.foundation.formatting import format_number
from sfumato.mechanisms import Mechanism, contains_table, require_people
from sfumato.planning.predict import MAX_PEOPLE, DecodedForecast, Figures, UnbiasedForecast
from sfumato.planning.target import DECODED_MEASURES, Target

__all__ = ["PlanRow", "build_rows", "find_mechanisms"]

_TITLES = {
    "classical": "classical LDP, ε = {epsilon}",
    "exponential": "exponential mechanism",
    "hadamard": "Hadamard code",
    "best": "best closed form",
    "own": "the survey's own",
}
_DESIGNED_TITLE = "designed for this matrix"
_NO_PROMISE_REASON = "the context does not protect any pair, so everyone may answer unrandomized."
_MAX_FAST_SIZE = 48  # exact arithmetic inverts channels with up to this many symbols within seconds
_MAX_CONDITION = 2e4  # above this condition number, floats may be too imprecise to invert a channel

MechanismOrError = Mechanism | SfumatoError
"""A mechanism, or the error from building it."""


@dataclass(frozen=True, eq=False, repr=False)
class PlanRow:
    """One mechanism in a plan, or the reason why that mechanism does not exist.

    ``name``: "classical", "exponential", "hadamard", "best" or "own".
    ``title``: the name shown in tables.
    ``risk``: the mechanism's ``worst_risk()``.
    ``over_bound``: the risk divided by a lower bound on the risk of any mechanism for the context.
    ``unbiased``, ``decoded``: the predicted figures for the unbiased and the decoded estimate;
    ``None`` if no number of people meets the goal. ``decoded`` is predicted only for the
    measures "tv" and "l2", and only if the distribution is not "worst".
    ``reason``: why there is no mechanism, or why none is needed.
    """

    name: str
    title: str
    mechanism: Mechanism | None = None
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
    def is_available(self) -> bool:
        """Whether the mechanism exists."""
        return self.mechanism is not None

    @property
    def figures(self) -> Figures | None:
        """The figures for the decoded estimate if predicted, otherwise for the unbiased one."""
        return self.unbiased if self.decoded_forecast is None else self.decoded

    def figures_at(self, people: int) -> Figures:
        """Predict ``figures`` for a different number of people."""
        forecast = self.decoded_forecast or self.unbiased_forecast
        if forecast is None:
            raise NoClosedForm(self.reason)
        return forecast.at(require_people(people))

    def at(self, people: int) -> "PlanRow":
        """Return the row with the figures for this number of people."""
        if self.unbiased_forecast is None:
            return self
        unbiased = self.unbiased_forecast.at(people)
        decoded = None
        if self.decoded_forecast is not None:
            decoded = self.decoded_forecast.at(people)
        return replace(self, unbiased=unbiased, decoded=decoded)

    def for_error(self, error: float, decoded_ratio: float = 1.0) -> "PlanRow":
        """Return the row with the figures for the number of people needed to reach this error.

        ``decoded_ratio``: where to start the search: a guess of the number of people that the
        decoded estimate needs, divided by the number that the unbiased estimate needs.
        """
        if self.unbiased_forecast is None:
            return self
        unbiased = None
        people = self.unbiased_forecast.people_for(error)
        if people is not None:
            unbiased = self.unbiased_forecast.at(people)
        decoded = None
        if self.decoded_forecast is not None:
            max_start = MAX_PEOPLE // 2
            guess = round((people or max_start) * decoded_ratio)
            start = min(max(guess, 1), max_start)
            people = self.decoded_forecast.people_for(error, start=start)
            if people is not None:
                decoded = self.decoded_forecast.at(people)
        return replace(self, unbiased=unbiased, decoded=decoded)

    def to_dict(self) -> dict[str, object]:
        """Return the row as ``sfumato plan --json`` prints it."""
        return {
            "name": self.name,
            "what": self.title,
            "bits": self.bits,
            "leverage": self.leverage,
            "risk": self.risk,
            "risk_over_lower_bound": self.over_bound,
            "unbiased": None if self.unbiased is None else asdict(self.unbiased),
            "decoded": None if self.decoded is None else asdict(self.decoded),
            "reason": self.reason or None,
        }


def find_mechanisms(context: Context, own: Mechanism | None) -> dict[str, MechanismOrError]:
    """Return the mechanisms that a plan considers, by name, or the errors from building them.

    Classical LDP uses the smallest ε of any pair for all pairs. The exponential mechanism is the
    usual choice for metrics, and for matrices without a closed form. ``own`` is the mechanism to
    plan for, if the caller has one. It is included unless it has the same channel as the best
    closed form or the exponential mechanism.
    """
    mechanisms = {
        "classical": _build_or_error(
            lambda: mechanism_for(Uniform(context.domain, context.exact_minimum))
        ),
        "hadamard": _build_or_error(lambda: mechanism_for(context, code="hadamard")),
        "best": _build_or_error(lambda: mechanism_for(context)),
    }
    if context.is_metric or isinstance(mechanisms["best"], NoClosedForm):
        mechanisms["exponential"] = _build_or_error(lambda: _build_exponential(context))
    if own is not None:
        if own.context.domain != context.domain:
            raise ContextMismatch("the mechanism and the context must have the same domain.")
        if not any(_is_same_channel(mechanisms.get(name), own) for name in ("best", "exponential")):
            mechanisms["own"] = own
    return {name: mechanisms[name] for name in _TITLES if name in mechanisms}


def build_rows(
    mechanisms: Mapping[str, MechanismOrError],
    context: Context,
    target: Target,
    decoder: str,
    bound: float,
) -> list[PlanRow]:
    """Build a row for each mechanism, without figures.

    ``bound``: a lower bound on the risk of any mechanism.

    Mechanisms with the same channel share their forecasts, so nothing is predicted twice.
    """
    rows: list[PlanRow] = []
    for name, mechanism in mechanisms.items():
        title = _title(name, context, mechanisms)
        if isinstance(mechanism, SfumatoError):
            rows.append(PlanRow(name, title, reason=str(mechanism)))
            continue
        twin = next((row for row in rows if _is_same_channel(row.mechanism, mechanism)), None)
        if twin is not None:
            rows.append(replace(twin, name=name, title=title, reason=""))
            continue
        row = _build_row(name, title, mechanism, target, decoder, bound)
        if name == "classical" and math.isinf(context.smallest_epsilon) and context.size > 1:
            row = replace(row, reason=_NO_PROMISE_REASON)
        rows.append(row)
    return rows


def _build_row(
    name: str, title: str, mechanism: Mechanism, target: Target, decoder: str, bound: float
) -> PlanRow:
    decoded = None
    if target.p is not None and target.measure in DECODED_MEASURES:
        decoded = DecodedForecast(mechanism, target.measure, target.confidence, target.p, decoder)
    risk = mechanism.scores.worst_risk()
    over_bound = None
    if 0 < bound < math.inf:
        over_bound = risk / bound
    return PlanRow(
        name,
        title,
        mechanism,
        bits=mechanism.bits,
        leverage=float(mechanism.scores.leverage),
        risk=risk,
        over_bound=over_bound,
        unbiased_forecast=UnbiasedForecast.for_target(mechanism, target),
        decoded_forecast=decoded,
    )


def _build_or_error(build: Callable[[], Mechanism]) -> MechanismOrError:
    try:
        return build()
    except SfumatoError as error:
        return error


def _build_exponential(context: Context) -> Mechanism:
    """Build the exponential mechanism; raise an error if inverting it fails or would take too long.

    Short distances between symbols make their rows similar, and inverting a channel with similar
    rows requires exact arithmetic.
    """
    mechanism = exponential_response(context)
    if mechanism.inputs > _MAX_FAST_SIZE and np.linalg.cond(mechanism.matrix()) > _MAX_CONDITION:
        raise NothingToLearn(
            f"the rows of its {mechanism.inputs} symbols are so similar that inverting them takes "
            "too long for a plan. Merge labels, or allow a larger ε."
        )
    mechanism.scores.worst_risk()  # raises an error if the channel cannot be inverted
    return mechanism


def _is_same_channel(candidate: MechanismOrError | None, mechanism: Mechanism) -> bool:
    return isinstance(candidate, Mechanism) and candidate.to_record() == mechanism.to_record()


def _title(name: str, context: Context, mechanisms: Mapping[str, MechanismOrError]) -> str:
    no_closed_form = isinstance(mechanisms["best"], NoClosedForm)
    if name == "own" and no_closed_form and contains_table(mechanisms["own"]):
        return _DESIGNED_TITLE
    return _TITLES[name].format(epsilon=format_number(context.smallest_epsilon))
