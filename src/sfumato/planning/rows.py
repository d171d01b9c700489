"""The mechanisms that a plan considers, each with its risk and its predicted error."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sfumato.contexts import Context, Uniform
from sfumato.designer import exponential_response, mechanism_for
from sfumato.errors import ContextMismatch, NoClosedForm, NothingToLearn, SfumatoError
from sfumato.foundation.formatting import format_number
from sfumato.foundation.notebook import FieldsView
from sfumato.mechanisms import Mechanism, contains_table, require_people
from sfumato.planning.decoded_forecast import COMPARISON, DecodedForecast
from sfumato.planning.predict import MAX_PEOPLE, Figures, UnbiasedForecast
from sfumato.planning.target import DECODED_MEASURES, Target

__all__ = ["PlanRow", "build_rows", "find_mechanisms"]

_TITLES = {
    "classical": "classical LDP, ε = {epsilon}",
    "exponential": "exponential mechanism",
    "hadamard": "Hadamard code",
    "best": "best closed form",
    "own": "the survey's mechanism",
}
_DESIGNED_TITLE = "designed for this matrix"
_NO_PROMISE_REASON = "the context does not protect any pair, so answers need not be randomized."
_MAX_EXACT_SIZE = 48  # up to this many symbols, inverting a channel exactly takes only seconds
_MAX_CONDITION_NUMBER = 2e4  # above this, floats may be too imprecise to invert a channel

MechanismOrError = Mechanism | SfumatoError
"""A mechanism, or the error from building it."""


@dataclass(frozen=True, eq=False, repr=False)
class PlanRow(FieldsView):
    """One mechanism in a plan, or the reason why it could not be built.

    ``name``: "classical", "exponential", "hadamard", "best" or "own".
    ``title``: the name shown in tables.
    ``risk``: the mechanism's ``worst_risk()``.
    ``risk_ratio``: the risk divided by a lower bound on the risk of any mechanism for the context.
    ``unbiased``, ``decoded``: the predicted figures for the unbiased and the decoded estimate;
    ``None`` if not even ``MAX_PEOPLE`` are enough to meet the goal. ``decoded`` is predicted only
    for the measures "tv" and "l2", and only if the distribution is not "worst".
    ``reason``: why the mechanism could not be built, or why none is needed; otherwise empty.
    """

    name: str
    title: str
    mechanism: Mechanism | None = None
    bits: int | None = None
    leverage: float | None = None
    risk: float | None = None
    risk_ratio: float | None = None
    unbiased: Figures | None = None
    decoded: Figures | None = None
    reason: str = ""
    unbiased_forecast: UnbiasedForecast | None = None
    decoded_forecast: DecodedForecast | None = None

    @property
    def is_available(self) -> bool:
        """Whether the mechanism could be built."""
        return self.mechanism is not None

    @property
    def figures(self) -> Figures | None:
        """The figures for the decoded estimate if predicted, otherwise for the unbiased one."""
        return self.unbiased if self.decoded_forecast is None else self.decoded

    def figures_at(self, people: int) -> Figures:
        """Return what ``figures`` would be for a different number of people.

        For the decoded estimate, these figures are approximate: they come from few draws. For those
        of a plan, use ``at``.
        """
        n = require_people(people)
        if self.decoded_forecast is not None:
            return self.decoded_forecast.near(n, self.decoded)
        if self.unbiased_forecast is None:
            raise NoClosedForm(self.reason)
        return self.unbiased_forecast.at(n)

    def at(self, people: int) -> "PlanRow":
        """Return this row with the figures for a number of people."""
        if self.unbiased_forecast is None:
            return self
        unbiased = self.unbiased_forecast.at(people)
        decoded = None
        if self.decoded_forecast is not None:
            decoded = self.decoded_forecast.at(people)
        return replace(self, unbiased=unbiased, decoded=decoded)

    def for_error(self, error: float, decoded_ratio: float = 1.0) -> "PlanRow":
        """Return this row with the figures for the number of people needed to reach an error.

        ``decoded_ratio``: a guess at the number of people that the decoded estimate needs, divided
        by the number that the unbiased estimate needs. The search starts from this guess.
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

    def for_comparison(self) -> "PlanRow":
        """Return this row with fewer draws for the figures of the decoded estimate."""
        if self.decoded_forecast is None:
            return self
        return replace(self, decoded_forecast=self.decoded_forecast.with_effort(COMPARISON))

    def to_dict(self) -> dict[str, object]:
        """Return the row as ``sfumato plan --json`` prints it."""
        return {
            "name": self.name,
            "what": self.title,
            "bits": self.bits,
            "leverage": self.leverage,
            "risk": self.risk,
            "risk_over_lower_bound": self.risk_ratio,
            "unbiased": None if self.unbiased is None else self.unbiased.to_dict(),
            "decoded": None if self.decoded is None else self.decoded.to_dict(),
            "reason": self.reason or None,
        }


def find_mechanisms(
    context: Context, custom_mechanism: Mechanism | None
) -> dict[str, MechanismOrError]:
    """Return the mechanisms that a plan considers, by name, or the errors from building them.

    Classical LDP uses the smallest ε of any pair for all pairs. The exponential mechanism is the
    usual choice for metrics, and for matrices without a closed form.

    ``custom_mechanism``: the mechanism to plan for, if the caller has one. It is included unless it
    has the same channel as the best closed form or the exponential mechanism.
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
    if custom_mechanism is not None:
        if custom_mechanism.context.domain != context.domain:
            raise ContextMismatch("the mechanism and the context must have the same domain.")
        others = (mechanisms.get("best"), mechanisms.get("exponential"))
        if not any(_is_same_channel(other, custom_mechanism) for other in others):
            mechanisms["own"] = custom_mechanism
    return {name: mechanisms[name] for name in _TITLES if name in mechanisms}


def build_rows(
    mechanisms: Mapping[str, MechanismOrError],
    context: Context,
    target: Target,
    decoder: str,
    risk_bound: float,
    on_draw: Callable[[], None],
) -> list[PlanRow]:
    """Build a row for each mechanism, without figures.

    ``risk_bound``: a lower bound on the risk of any mechanism.
    ``on_draw``: called after each decoded tally.

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
        forecast = None
        if target.p is not None and target.measure in DECODED_MEASURES:
            forecast = DecodedForecast(
                mechanism, target.measure, target.confidence, target.p, decoder, on_draw=on_draw
            )
        row = _build_row(name, title, mechanism, target, forecast, risk_bound)
        if name == "classical" and math.isinf(context.smallest_epsilon) and context.size > 1:
            row = replace(row, reason=_NO_PROMISE_REASON)
        rows.append(row)
    return rows


def _build_row(
    name: str,
    title: str,
    mechanism: Mechanism,
    target: Target,
    decoded_forecast: DecodedForecast | None,
    risk_bound: float,
) -> PlanRow:
    risk = mechanism.scores.worst_risk()
    risk_ratio = None
    if 0 < risk_bound < math.inf:
        risk_ratio = risk / risk_bound
    return PlanRow(
        name,
        title,
        mechanism,
        bits=mechanism.bits,
        leverage=float(mechanism.scores.leverage),
        risk=risk,
        risk_ratio=risk_ratio,
        unbiased_forecast=UnbiasedForecast.for_target(mechanism, target),
        decoded_forecast=decoded_forecast,
    )


def _build_or_error(build: Callable[[], Mechanism]) -> MechanismOrError:
    try:
        return build()
    except SfumatoError as error:
        return error


def _build_exponential(context: Context) -> Mechanism:
    """Build the exponential mechanism; raise an error if inverting it fails or would take too long.

    Symbols with a small ε between them have similar rows in the channel, and inverting a channel
    with similar rows requires exact arithmetic.
    """
    mechanism = exponential_response(context)
    is_large = mechanism.inputs > _MAX_EXACT_SIZE
    if is_large and np.linalg.cond(mechanism.matrix()) > _MAX_CONDITION_NUMBER:
        raise NothingToLearn(
            f"the {mechanism.inputs} rows of the channel are so similar that inverting it takes "
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
