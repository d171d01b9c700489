"""What decoders are compared with, beyond those of the package: global projection, and EMS."""

from collections.abc import Callable

import numpy as np

from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import project
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["RIVALS", "decode"]

_THRESHOLD = 1e-3  # EMS stops when a step changes the log-likelihood by less
_MAX_ITERATIONS = 10_000
_MIN_PROBABILITY = 1e-300


def decode(decoder: str, mechanism: Mechanism, tally: Tally) -> Floats:
    """Return the frequencies according to a rival, or to a decoder of the package."""
    if decoder in RIVALS:
        return RIVALS[decoder](mechanism, tally)
    return get_decoder(decoder).decode(mechanism, tally).frequencies


def global_projection(mechanism: Mechanism, tally: Tally) -> Floats:
    """Return the projection onto the simplex, which ignores blocks."""
    return project(mechanism.scores.unbiased(tally))


def ems(mechanism: Mechanism, tally: Tally) -> Floats:
    """Expectation–maximization with smoothing, as published for Square Wave.

    After each step, the estimate is smoothed with weights ¼, ½, ¼. Reference: Li, Wang, Lopuhaä-
    Zwakenberg, Škorić, Li (2020), "Estimating numerical distributions under local differential
    privacy". Here it works on the reports of any mechanism.
    """
    p = np.full(mechanism.inputs, 1 / mechanism.inputs)
    q = np.maximum(mechanism.forward(p), _MIN_PROBABILITY)
    previous = -np.inf
    for _ in range(_MAX_ITERATIONS):
        p = p * mechanism.adjoint(tally.counts / q)
        p = _smooth(p / p.sum())
        q = np.maximum(mechanism.forward(p), _MIN_PROBABILITY)
        log_likelihood = float(tally.counts @ np.log(q))
        if abs(log_likelihood - previous) < _THRESHOLD:
            break
        previous = log_likelihood
    return p


def _smooth(p: Floats) -> Floats:
    """Average each share with its neighbours; the two ends weight their one neighbour by ⅓."""
    result = p / 2
    result[1:] += p[:-1] / 4
    result[:-1] += p[1:] / 4
    result[0] /= 0.75
    result[-1] /= 0.75
    return result / result.sum()


RIVALS: dict[str, Callable[[Mechanism, Tally], Floats]] = {
    "global projection": global_projection,
    "EMS": ems,
}
