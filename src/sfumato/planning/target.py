"""The target of a plan: the error measure, the confidence, and the distribution of people."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.domains import Label
from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats
from sfumato.foundation.numpy_values import is_collection, require_unmasked

__all__ = ["DECODED_MEASURES", "MEASURES", "Measure", "Target", "check_goal"]

Measure = Literal["tv", "symbol", "total", "l2"]
"""The name of an error measure."""

MEASURES: tuple[str, ...] = get_args(Measure)
"""The error measures: total variation, the error of the least certain share, the error of a
weighted total of shares, and Euclidean distance."""

DECODED_MEASURES = ("tv", "l2")
"""The measures that a plan also predicts for the decoded estimate. The other measures describe
intervals, which come from the unbiased estimate."""

_MAX_ERRORS = {"tv": 1.0, "symbol": 1.0, "l2": math.sqrt(2)}
_SUM_TOLERANCE = 1e-6  # how far a sum of shares may deviate from 1


@dataclass(frozen=True, eq=False)
class Target:
    """The error that a plan predicts.

    ``measure``: one of ``MEASURES``.
    ``confidence``: the probability that the actual error does not exceed the predicted one.
    ``p``: the distribution that people are drawn from, or ``None`` for the one that is hardest for
    each mechanism.
    ``weights``: the weight of each symbol in the total, for the measure "total" only.
    """

    measure: str
    confidence: float
    p: Floats | None = None
    weights: Floats | None = None

    @classmethod
    def parse(
        cls,
        context: Context,
        *,
        measure: str,
        confidence: float,
        distribution: str | ArrayLike | Mapping[Label, float],
        labels: Iterable[Label] | Mapping[Label, float] | None,
    ) -> "Target":
        """Validate the arguments of ``plan`` and convert labels to symbols."""
        if measure not in MEASURES:
            raise InvalidArgument(f"measure must be one of {', '.join(MEASURES)}; got {measure!r}.")
        if not _is_number(confidence) or not 0 < confidence < 1:
            raise InvalidArgument(
                f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}."
            )
        weights = None
        if labels is not None:
            weights = _parse_weights(context, labels)
        if (measure == "total") != (weights is not None):
            raise InvalidArgument(
                'the measure "total" requires labels=, the labels to add up; other measures do not '
                "accept labels=."
            )
        p = _parse_distribution(context, distribution)
        return cls(measure, float(confidence), p, weights)


def check_goal(error: float, measure: str) -> float:
    """Return the error to plan for as a ``float``.

    Raise ``InvalidArgument`` if it is not a positive, finite number, or if every estimate achieves
    it.
    """
    if not _is_number(error) or not 0 < error < math.inf:
        raise InvalidArgument(f"error must be a positive number such as 0.05; got {error!r}.")
    max_error = _MAX_ERRORS.get(measure, math.inf)
    if error >= max_error:
        raise InvalidArgument(
            f"no {measure} error exceeds {max_error:.3g}, so an error of {error:g} does not "
            "require a survey. Choose a smaller error."
        )
    return float(error)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _parse_weights(context: Context, labels: Iterable[Label] | Mapping[Label, float]) -> Floats:
    if isinstance(labels, bytes) or not is_collection(labels):
        raise InvalidArgument("labels must be a list of labels or a mapping from label to weight.")
    label_list = list(labels)
    symbols = context.domain.label_symbols(label_list, "labels")
    if symbols.size == 0 or np.unique(symbols).size != symbols.size:
        raise InvalidArgument("labels must contain at least one label and no duplicates.")
    weights = np.zeros(context.size)
    if isinstance(labels, Mapping):
        weights[symbols] = list(map(float, labels.values()))
    else:
        weights[symbols] = 1.0
    if not np.isfinite(weights).all() or not weights.any():
        raise InvalidArgument("the weights of labels must be finite numbers that are not all 0.")
    return weights


def _parse_distribution(
    context: Context, distribution: str | ArrayLike | Mapping[Label, float]
) -> Floats | None:
    """Return the share of each symbol in domain order, or ``None`` for "worst"."""
    k = context.size
    if isinstance(distribution, str):
        if distribution == "worst":
            return None
        if distribution == "uniform":
            return np.full(k, 1 / k)
        raise InvalidArgument(
            f'distribution must be "worst", "uniform" or {k} shares or counts; got '
            f"{distribution!r}."
        )
    if isinstance(distribution, Mapping):
        shares = np.zeros(k)
        symbols = context.domain.label_symbols(distribution, "distribution")
        shares[symbols] = list(map(float, distribution.values()))
    else:
        require_unmasked(distribution, "distribution", InvalidArgument)
        shares = np.asarray(distribution, dtype=np.float64)
    total = shares.sum()
    if shares.shape != (k,) or not np.isfinite(shares).all() or (shares < 0).any() or total <= 0:
        raise InvalidArgument(
            f"distribution must be {k} shares or counts in domain order. They must be finite and "
            "non-negative, and not all 0."
        )
    are_counts = (shares == np.rint(shares)).all()
    if abs(total - 1) > _SUM_TOLERANCE and not are_counts:
        raise InvalidArgument(
            f"the shares of a distribution must add up to 1; these add up to {total:.6g}. "
            "You can also pass counts."
        )
    return shares / total
