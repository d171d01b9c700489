"""Pool several predictions of every cell into one: the cell's prior.

Each expert gives every cell a distribution without looking at the cell itself. The pool is

    prior_x ∝ exp(a₁ · mean of logarithms + a₂ · logarithm of the mean + a₃ · log crowd)

The mean over experts is too wide; the mean of their logarithms may be too narrow or too wide. The
crowd is the mean posterior of all cells. The reports determine a, which maximizes
``Σ_x log Σ_j prior_xj · likelihood_xj``, with a unit ridge around (½, ½, 0).
"""

from dataclasses import dataclass

import numpy as np

from sfumato.estimation.decoders.intensities import Floats32
from sfumato.foundation.arrays import Floats

__all__ = ["PredictionPool"]

_START = np.array([0.5, 0.5, 0.0])
_FLOOR = np.float32(1e-7)
_MAX_CELLS_IN_FIT = 12_000
_MAX_STEPS = 8
_MIN_STEP_LENGTH = 0.05
_MIN_GAIN = 0.1
_CHUNK_ROWS = 1 << 16


class PredictionPool:
    """Predictions are added one after the other; ``prior`` returns the pooled ones."""

    def __init__(self, rows: Floats32) -> None:
        """``rows``: the likelihoods of the cells."""
        self._rows = rows
        self._mean = np.zeros_like(rows)
        self._mean_log = np.zeros_like(rows)
        self._mean_score = 0.0

    def add(self, predictions: Floats32, weight: float) -> None:
        """Add predictions with this weight; all weights must add up to 1."""
        score = 0.0
        for start in range(0, self._rows.shape[0], _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            P = predictions[chunk]
            self._mean[chunk] += np.float32(weight) * P
            self._mean_log[chunk] += np.float32(weight) * np.log(P + _FLOOR)
            z = np.einsum("ij,ij->i", P, self._rows[chunk])
            score += float(np.log(z).sum(dtype=np.float64))
        self._mean_score += weight * score

    def prior(self) -> tuple[Floats32, float]:
        """Return each cell's prior, and what the pool gains over its members.

        The gain is the sum over cells of the log density of a cell's report given the others, less
        the mean of this sum over the members. The pool's memory is used for the result.
        """
        logs = self._mean_log
        means = np.log(self._mean + _FLOOR, out=self._mean)
        crowd = self._crowd()
        sample = slice(None, None, max(1, self._rows.shape[0] // _MAX_CELLS_IN_FIT))
        a = _Fit(self._rows[sample], (logs[sample], means[sample], crowd)).best_weights()
        score = 0.0
        for start in range(0, logs.shape[0], _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            P = _combine(a, (logs[chunk], means[chunk], crowd))
            z = np.einsum("ij,ij->i", P, self._rows[chunk])
            score += float(np.log(z).sum(dtype=np.float64))
            logs[chunk] = P
        return logs, score - self._mean_score

    def _crowd(self) -> Floats32:
        """Return the log of the mean posterior of all cells."""
        total = np.zeros(self._rows.shape[1])
        for start in range(0, self._rows.shape[0], _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            P = np.exp(self._mean_log[chunk]) * self._rows[chunk]
            total += (P / P.sum(axis=1, keepdims=True)).sum(axis=0, dtype=np.float64)
        crowd: Floats32 = np.log(total / self._rows.shape[0] + _FLOOR).astype(np.float32)
        return crowd


def _combine(a: Floats, experts: tuple[Floats32, Floats32, Floats32]) -> Floats32:
    logs, means, crowd = experts
    P = np.float32(a[0]) * logs
    P += np.float32(a[1]) * means
    P += np.float32(a[2]) * crowd
    P -= P.max(axis=1, keepdims=True)
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    return P


@dataclass(frozen=True, eq=False)
class _Fit:
    """The search for the weights a, by Newton steps."""

    rows: Floats32
    experts: tuple[Floats32, Floats32, Floats32]

    def best_weights(self) -> Floats:
        a = _START
        P, Q, objective = self._evaluate(a)
        for _ in range(_MAX_STEPS):
            D = Q - P
            gradients = np.stack([(D * x).sum(axis=1, dtype=np.float64) for x in self.experts], 1)
            H = gradients.T @ gradients + np.eye(3)
            step = np.linalg.solve(H, gradients.sum(axis=0) - (a - _START))
            length = 1.0
            while length > _MIN_STEP_LENGTH and self._evaluate(a + length * step)[2] <= objective:
                length /= 2
            if length <= _MIN_STEP_LENGTH:
                return a
            a = a + length * step
            previous = objective
            P, Q, objective = self._evaluate(a)
            if objective - previous < _MIN_GAIN:
                return a
        return a

    def _evaluate(self, a: Floats) -> tuple[Floats32, Floats32, float]:
        """Return the priors, the posteriors, and the objective."""
        P = _combine(a, self.experts)
        Q = P * self.rows
        z = Q.sum(axis=1, keepdims=True)
        Q /= z
        ridge = 0.5 * float(((a - _START) ** 2).sum())
        return P, Q, float(np.log(z).sum(dtype=np.float64)) - ridge
