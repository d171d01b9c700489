"""The least risk in a high-low context: sharper than what its sensitive symbols alone imply.

Let the people be spread evenly over the s sensitive symbols, with share π, and evenly over the t free ones. Among the
best mechanisms there is then one that treats all sensitive symbols alike, and all free ones. Its information has three
numbers: one about directions among sensitive symbols, one about those among free symbols, one about π. They are a
mixture of s triples, one for each number w of sensitive symbols that a report can speak for. See docs/bounds.md.
"""

import math

import numpy as np

from sfumato.foundation.arrays import Floats

__all__ = ["high_low_floor"]

_ROUNDS = 60  # of the search for the best mixture; a bound is valid after every round


def high_low_floor(sensitive: int, free: int, epsilon: float, share: float) -> float:
    """A floor under ``risk(p)`` of every high-low mechanism and unbiased estimate, at p spread evenly with share π.

        risk ≥ min over mixtures of   (s − 1)/j_A + (t − 1)/j_B + 1/j_AB

    For one sensitive symbol Mangat's response stands on it.

    >>> round(high_low_floor(1, 1, 1.0, 0.5), 4)
    1.082
    """
    J = _informations(sensitive, free, epsilon, share)
    D = np.array([sensitive - 1, free - 1, 1])
    J, D = J[D > 0], D[D > 0][:, None]
    j = J[:, [int(np.argmin((D / J).sum(axis=0)))]]
    floor = 0.0
    for done in range(_ROUNDS):
        # Cauchy and Schwarz: (Σ D/j)² ≤ (Σ D/J)(Σ D J/j²) for every mixture J, whatever j.
        slopes = (D * J / j**2).sum(axis=0)
        floor = max(floor, float((D / j).sum() ** 2 / slopes.max()))
        j = j + 2 / (done + 3) * (J[:, [int(np.argmax(slopes))]] - j)
    return floor


def _informations(s: int, t: int, epsilon: float, share: float) -> Floats:
    """The triples (j_A, j_B, j_AB) for w = 1 … s, a column each; infinitely good ones are cut off.

    Reports of w raised symbols have chances 1 on these and 1/e on all others, and total weight μ; what is left to a
    free symbol, ν, is sent in clear.
    """
    w, shrink = np.arange(1, s + 1), math.exp(-epsilon)
    raised = w + (s - w) * shrink
    mu, nu = s / raised, w * (1 - shrink) / raised
    q = share * raised / s + (1 - share) * shrink
    among_sensitive = mu * w * (s - w) * (1 - shrink) ** 2 / (s * max(s - 1, 1) * q)
    among_free = t * nu / (1 - share)
    between = (mu * (w * (1 - shrink) / s) ** 2 / q + nu / (1 - share)) / (1 / s + 1 / t)
    # Raising all sensitive symbols says nothing among them: next to nothing keeps the arithmetic finite.
    return np.maximum(np.array([among_sensitive, among_free, between]), 1e-300)
