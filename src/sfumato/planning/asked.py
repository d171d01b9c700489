"""What a plan is asked for: the goal, the measure, the labels and the distribution, checked before anything is made."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from sfumato.contexts import Context
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats
from sfumato.planning.predict import MEASURES, Aim

__all__ = ["checked_aim", "checked_goal"]

_LARGEST_ERROR = {"tv": 1.0, "symbol": 1.0, "l2": math.sqrt(2)}


def checked_goal(error: float | None, measure: str) -> float | None:
    """The error that is asked for, if any: above 0, and below what no estimate exceeds."""
    if error is None:
        return None
    if (
        isinstance(error, bool)
        or not isinstance(error, int | float | np.number)
        or not 0 < error < math.inf
    ):
        raise InvalidContext(
            f"error must be a number above 0, such as 0.05; found {error!r}. No survey is exact."
        )
    if measure in _LARGEST_ERROR and error >= _LARGEST_ERROR[measure]:
        raise InvalidContext(
            f"no {measure} error exceeds {_LARGEST_ERROR[measure]:.3g}; an error of {error:g} needs no survey."
        )
    return float(error)


def checked_aim(
    context: Context, measure: str, confidence: float, distribution: object, labels: object
) -> Aim:
    """Which error, how surely, for whom, and of which total."""
    if measure not in MEASURES:
        raise InvalidContext(f"measure must be one of {', '.join(MEASURES)}; found {measure!r}.")
    if (
        isinstance(confidence, bool)
        or not isinstance(confidence, int | float)
        or not 0 < confidence < 1
    ):
        raise InvalidContext(
            f"confidence must lie between 0 and 1; found {confidence!r}. Pass e.g. 0.95."
        )
    if (measure == "total") != (labels is not None):
        raise InvalidContext(
            'measure "total" needs labels, the labels to add up; other measures take none.'
        )
    weights = None if labels is None else _weights(context, labels)
    return Aim(measure, float(confidence), _distribution(context, distribution), weights)


def _weights(context: Context, labels: object) -> Floats:
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InvalidContext("labels must be a list of labels, or a mapping from label to weight.")
    listed = list(labels)
    symbols = context.domain.label_symbols(listed, "labels")
    if symbols.size == 0 or np.unique(symbols).size != symbols.size:
        raise InvalidContext("labels must name at least one label, and each once.")
    weights = np.zeros(context.size)
    weights[symbols] = list(map(float, labels.values())) if isinstance(labels, Mapping) else 1.0
    if not np.isfinite(weights).all() or not weights.any():
        raise InvalidContext("the weights of labels must be finite numbers, and not all 0.")
    return weights


def _distribution(context: Context, distribution: object) -> Floats | None:
    """The shares in domain order; ``None`` for the hardest."""
    k = context.size
    if isinstance(distribution, str):
        if distribution not in ("worst", "uniform"):
            raise InvalidContext(
                f'distribution must be "worst", "uniform" or {k} shares; found {distribution!r}.'
            )
        return np.full(k, 1 / k) if distribution == "uniform" else None
    if isinstance(distribution, Mapping):
        given = np.zeros(k)
        given[context.domain.label_symbols(distribution, "distribution")] = list(
            map(float, distribution.values())
        )
    else:
        given = np.asarray(distribution, dtype=np.float64)
    if given.shape != (k,) or not np.isfinite(given).all() or (given < 0).any() or given.sum() <= 0:
        raise InvalidContext(
            f"distribution must be {k} shares or counts of at least 0, not all 0, in domain order."
        )
    if abs(given.sum() - 1) > 1e-6 and not (given == np.rint(given)).all():
        raise InvalidContext(
            f"the shares of a distribution must add up to 1; these add up to {given.sum():.6g}. Counts are fine too."
        )
    return given / given.sum()
