"""Theorem 2 of Acharya et al. (2020), for two symbols.

Every E-LDP channel for two symbols is a garbling of the binary optimum.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import ContextMismatch, NothingToLearn, PrivacyViolation
from sfumato.foundation.arrays import Floats

Channel = Sequence[Sequence[Fraction]]


def binary_optimum(odds_factor: Fraction, reverse_odds_factor: Fraction) -> list[list[Fraction]]:
    """Return the optimal Q* for rational odds factors ``A = e^E[0,1]`` and ``B = e^E[1,0]``.

        Q* = [[A(B − 1), A − 1], [B − 1, B(A − 1)]] / (AB − 1)

    >>> binary_optimum(Fraction(2), Fraction(4))
    [[Fraction(6, 7), Fraction(1, 7)], [Fraction(3, 7), Fraction(4, 7)]]
    """
    A = Fraction(odds_factor)
    B = Fraction(reverse_odds_factor)
    if A <= 1 or B <= 1:
        raise NothingToLearn(
            "both odds factors must be above 1; with a factor of 1, the two rows of any channel "
            "are equal."
        )
    denominator = A * B - 1
    row0 = [A * (B - 1) / denominator, (A - 1) / denominator]
    row1 = [(B - 1) / denominator, B * (A - 1) / denominator]
    return [row0, row1]


def factor(Q: Channel, optimum: Channel) -> list[list[Fraction]]:
    """Return the stochastic matrix W with ``Q = Q* W`` exactly: Q is Q* followed by W.

    W never sees the symbol, so Q* is at least as useful as Q for any purpose. ``W = Q*⁻¹ Q``: its
    row 0 is ``(Q*[1][1] Q[0] − Q*[0][1] Q[1])/det``, and row 1 is similar. W is non-negative if and
    only if no output of Q distinguishes the symbols better than Q* does. Otherwise, raise
    ``PrivacyViolation`` with the first output that does.

    >>> half = [Fraction(1, 2), Fraction(1, 2)]
    >>> factor([half, half], binary_optimum(2, 4))
    [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 2), Fraction(1, 2)]]
    """
    has_two_equal_length_rows = len(Q) == 2 and len(Q[0]) == len(Q[1])
    if not has_two_equal_length_rows or any(sum(row) != 1 for row in Q):
        raise ContextMismatch(
            "Q must have two rows of the same length, and each row must add up to exactly 1."
        )
    (s, t), (u, v) = optimum
    determinant = s * v - t * u
    if determinant == 0:
        raise NothingToLearn("the rows of the optimum must differ; they are equal.")
    row0: list[Fraction] = []
    row1: list[Fraction] = []
    for y, (q, q2) in enumerate(zip(*Q, strict=True)):
        w = (v * q - t * q2) / determinant
        w2 = (s * q2 - u * q) / determinant
        if w < 0 or w2 < 0:
            x = 1 if w < 0 else 0
            raise PrivacyViolation(
                f"output {y} distinguishes symbol {x} from symbol {1 - x} better than the "
                "optimum does.",
                x=x,
                x2=1 - x,
                output=y,
            )
        row0.append(w)
        row1.append(w2)
    return [row0, row1]


def mutual_information(Q: ArrayLike, p: float = 0.5) -> float:
    """Return ``I(X; Y)`` in nats, where p is the probability of symbol 1."""
    rows = np.asarray(Q, dtype=np.float64)
    prior = np.array([1 - p, p])
    q = prior @ rows
    joint = prior[:, None] * rows
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = joint * np.log(rows / q)
    return float(np.where(joint > 0, terms, 0.0).sum())


def minimax_risk(Q: ArrayLike, grid_size: int = 201) -> float:
    """Return ``max_p 1/I(p)``: for large n, the worst ``n · E(p̂ − p)²`` of the best estimator.

    ``I(p) = Σ_y (Q(y|1) − Q(y|0))²/q(y)`` is the Fisher information, which post-processing can only
    reduce. The maximum is taken over ``grid_size`` equally spaced values of p in [0, 1].
    """
    row0, row1 = np.asarray(Q, dtype=np.float64)
    p = np.linspace(0, 1, grid_size)[:, None]
    q: Floats = (1 - p) * row0 + p * row1
    squared_difference = np.broadcast_to((row1 - row0) ** 2, q.shape)
    terms = np.divide(squared_difference, q, out=np.zeros_like(q), where=q > 0)
    information = terms.sum(axis=1)
    # At p = 0 or 1, a report that only the absent symbol produces makes the information infinite.
    is_infinite = (q == 0) & (squared_difference > 0)
    information[is_infinite.any(axis=1)] = np.inf
    minimum = float(information.min())
    return np.inf if minimum == 0 else 1 / minimum
