"""The comparison: what other mechanisms for the same promise would make of a plan."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sfumato.contexts import Context, Metric, Uniform
from sfumato.designer import mechanism_for
from sfumato.designer.exponential import exponential_response
from sfumato.errors import InvalidContext, NoClosedForm, NothingToLearn, SfumatoError
from sfumato.foundation.formatting import format_number
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.mechanism import people_count
from sfumato.mechanisms.union import holds_table
from sfumato.planning.predict import (
    DECODED_MEASURES,
    MOST_PEOPLE,
    Aim,
    DecodedForecast,
    Figures,
    UnbiasedForecast,
)

__all__ = ["Compared", "compared", "mechanisms_compared"]

_WHAT = {
    "classical": "classical LDP, ε = {epsilon}",
    "exponential": "exponential mechanism",
    "hadamard": "Hadamard code",
    "best": "best on the shelf",
    "own": "the survey's own",
}
_DESIGNED = "designed for this matrix"
_QUICK = 48  # symbols up to which exact arithmetic undoes any channel within seconds
_ALIKE = 2e4  # the condition number of a channel from which floats may not be enough to undo it


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

    def at(self, people: int) -> "Compared":
        """The row with its figures for so many people."""
        if self.unbiased_forecast is None:
            return self
        decoded = None if self.decoded_forecast is None else self.decoded_forecast.at(people)
        return replace(self, unbiased=self.unbiased_forecast.at(people), decoded=decoded)

    def for_error(self, error: float, ratio: float = 1.0) -> "Compared":
        """The row with its figures for as many people as the error needs.

        ``ratio`` is a guess of how many people the decoded picture needs, over those of the unbiased estimate.
        """
        if self.unbiased_forecast is None:
            return self
        alone = self.unbiased_forecast.people_for(error)
        unbiased = None if alone is None else self.unbiased_forecast.at(alone)
        decoded = None
        if self.decoded_forecast is not None:
            start = min(max(round((alone or MOST_PEOPLE // 2) * ratio), 1), MOST_PEOPLE // 2)
            found = self.decoded_forecast.people_for(error, start)
            decoded = None if found is None else self.decoded_forecast.at(found)
        return replace(self, unbiased=unbiased, decoded=decoded)

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


def mechanisms_compared(
    context: Context, own: Mechanism | None
) -> dict[str, Mechanism | SfumatoError]:
    """Who is compared, or why not: classical LDP at the least ε that keeps every pair, Hadamard, the best; one's own.

    The exponential mechanism is what people use for metrics, and for matrices that nothing on the shelf fits.
    """
    made = {
        "classical": _made(lambda: mechanism_for(Uniform(context.domain, context.exact_smallest))),
        "hadamard": _made(lambda: mechanism_for(context, code="hadamard")),
        "best": _made(lambda: mechanism_for(context)),
    }
    if isinstance(context, Metric) or isinstance(made["best"], NoClosedForm):
        made["exponential"] = _made(lambda: _exponential(context))
    if own is not None:
        if own.context.domain != context.domain:
            raise InvalidContext("the mechanism must be for the domain of the context.")
        if not any(_same(made.get(name), own) for name in ("best", "exponential")):
            made["own"] = own
    return {name: made[name] for name in _WHAT if name in made}


def compared(
    mechanisms: Mapping[str, Mechanism | SfumatoError],
    context: Context,
    aim: Aim,
    decoder: str,
    bound: float,
) -> list[Compared]:
    """A row per mechanism, without figures yet; two that are the same channel are looked at once."""
    rows: list[Compared] = []
    for name, made in mechanisms.items():
        what = _what(name, context, mechanisms)
        twin = (
            None
            if isinstance(made, SfumatoError)
            else next((row for row in rows if _same(row.mechanism, made)), None)
        )
        if isinstance(made, SfumatoError):
            rows.append(Compared(name, what, None, reason=str(made)))
        elif twin is not None:
            rows.append(replace(twin, name=name, what=what, reason=""))
        else:
            rows.append(_row(name, what, made, aim, decoder, bound))
    return rows


def _made(make: Callable[[], Mechanism]) -> Mechanism | SfumatoError:
    try:
        return make()
    except SfumatoError as problem:
        return problem


def _exponential(context: Context) -> Mechanism:
    """Refused where nothing undoes it, or nothing does in good time: short distances make its rows alike."""
    made = exponential_response(context)
    if made.inputs > _QUICK and np.linalg.cond(made.matrix()) > _ALIKE:
        raise NothingToLearn(
            f"rows so alike, of more than {_QUICK} symbols, take longer to undo than a plan may. Merge labels, or "
            "allow a larger ε."
        )
    made.worst_risk()
    return made


def _same(made: Mechanism | SfumatoError | None, own: Mechanism) -> bool:
    return isinstance(made, Mechanism) and made.record() == own.record()


def _what(name: str, context: Context, mechanisms: Mapping[str, Mechanism | SfumatoError]) -> str:
    if (
        name == "own"
        and isinstance(mechanisms["best"], NoClosedForm)
        and holds_table(mechanisms["own"])
    ):
        return _DESIGNED
    return _WHAT[name].format(epsilon=format_number(context.smallest_epsilon))


def _row(name: str, what: str, made: Mechanism, aim: Aim, decoder: str, bound: float) -> Compared:
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
        reason="the context promises nothing for any pair, so everybody may answer in clear."
        if free
        else "",
    )


def _figures_json(figures: Figures | None) -> dict[str, object] | None:
    return (
        None
        if figures is None
        else {"people": figures.people, "mean": figures.mean, "error": figures.error}
    )
