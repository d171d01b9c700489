"""The posterior of a smooth curve with a given scale τ: its mode, draws from it, its evidence.

The coefficients are independent standard normal beforehand. Gauss–Newton steps find the mode. Draws
from the normal distribution around the mode (Laplace's approximation) are then moved to the
posterior by annealed importance sampling (Neal, 2001), which also gives the evidence.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.estimation.decoders.curve_basis import CurveBasis
from sfumato.estimation.decoders.seeded_variates import SeededVariates
from sfumato.foundation.arrays import Floats

__all__ = ["CurvePosterior"]

_DRAW_COUNT = 96
_MAX_NEWTON_STEPS = 40
_MIN_NEWTON_GAIN = 0.01
_MIN_STEP_LENGTH = 1e-3
_MAX_ROUNDS = 12
_MIN_EFFECTIVE_SHARE = 0.5
_MIN_TEMPERING = 1e-3
_MOVES_PER_ROUND = 2
_FIRST_PERSISTENCE = 0.7
_START_LIMIT = 5.0


@dataclass(frozen=True, eq=False)
class CurvePosterior:
    """Equally likely draws of the log intensities of merged cells, and the log evidence.

    ``mode`` is that of the coefficients, in units that do not depend on τ: a start for another τ.
    """

    basis: CurveBasis
    tau: float
    mode: Floats
    draws: Floats
    log_evidence: float

    @classmethod
    def fit(
        cls, basis: CurveBasis, tau: float, start: Floats, variates: SeededVariates
    ) -> "CurvePosterior":
        """Find the mode, beginning at ``start``, and draw from the posterior."""
        scales = tau * basis.unit_scales
        design = basis.design * scales
        start = np.clip(start / scales, -_START_LIMIT, _START_LIMIT)
        mode, H = _find_mode(basis, design, start)
        annealing = _Annealing(basis, design, mode, H, variates)
        annealing.run()
        log_evidence = annealing.log_evidence + basis.shares.constant
        f = annealing.coefficients() @ design.T
        return cls(basis, tau, mode * scales, f, log_evidence)

    def intensities(self) -> Floats:
        """Return the share of a single cell: a row for each draw, a column per merged cell."""
        return self.basis.intensities(self.draws)

    def mean(self) -> Floats:
        """Return the mean curve, at the merged cells."""
        mean: Floats = self.intensities().mean(axis=0)
        return mean

    def cost_of_mean(self) -> float:
        """Return the log evidence less the log density of the reports, given the mean curve.

        That is what it costs not to have known the curve beforehand.
        """
        log_density = float(self.basis.log_density(self.mean()))
        return self.log_evidence - self.basis.shares.constant - log_density


def _find_mode(basis: CurveBasis, design: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Return the most likely coefficients, and minus the second derivatives there."""
    shares = basis.shares

    def evaluate(c: Floats) -> tuple[Floats, float]:
        p = basis.intensities(design @ c)
        return p, float(basis.log_density(p) - 0.5 * c @ c)

    def derivatives(p: Floats) -> tuple[Floats, Floats]:
        J = p[:, None] * (design - (p * shares.counts) @ design)
        return J, (J * shares.precision[:, None]).T @ J + np.eye(design.shape[1])

    c = start
    p, objective = evaluate(c)
    flat_p, flat_objective = evaluate(np.zeros_like(c))
    if flat_objective > objective:
        c = np.zeros_like(c)
        p = flat_p
        objective = flat_objective
    for _ in range(_MAX_NEWTON_STEPS):
        J, H = derivatives(p)
        step = np.linalg.solve(H, J.T @ ((shares.u - p) * shares.precision) - c)
        length = 1.0
        next_p, next_objective = evaluate(c + step)
        while next_objective <= objective and length > _MIN_STEP_LENGTH:
            length /= 2
            next_p, next_objective = evaluate(c + length * step)
        if next_objective <= objective:
            break
        gain = next_objective - objective
        c = c + length * step
        p = next_p
        objective = next_objective
        if gain < _MIN_NEWTON_GAIN:
            break
    return c, derivatives(p)[1]


class _Annealing:
    """Draws z, standard normal at first; the coefficients are ``mode + z H^(−½)``.

    ``h`` is the log density of the posterior less that of the normal. In every round, the draws are
    weighted towards the posterior as far as at least half of them still count; then they are
    resampled, and moved by a few Metropolis steps.
    """

    def __init__(
        self,
        basis: CurveBasis,
        design: Floats,
        mode: Floats,
        H: Floats,
        variates: SeededVariates,
    ) -> None:
        from scipy.linalg import solve_triangular

        root = np.linalg.cholesky(H)
        self._basis = basis
        self._design = design
        self._mode = mode
        self._back = solve_triangular(root, np.eye(mode.size), lower=True)
        self._variates = variates
        half = variates.normals(_DRAW_COUNT // 2, mode.size)
        self._z = np.concatenate([half, -half])
        self._h = self._excess(self._z)
        self._persistence = _FIRST_PERSISTENCE
        self.log_evidence = -float(np.log(np.diag(root)).sum())

    def coefficients(self) -> Floats:
        """Return the draws of the coefficients."""
        coefficients: Floats = self._mode + self._z @ self._back
        return coefficients

    def run(self) -> None:
        """Move the draws from the normal distribution to the posterior."""
        tempering = 0.0
        for round_number in range(_MAX_ROUNDS + 1):
            remaining = 1 - tempering
            part = remaining
            if round_number < _MAX_ROUNDS and self._effective_share(part) < _MIN_EFFECTIVE_SHARE:
                part = self._largest_part(remaining)
            self._resample(part)
            tempering += part
            for _ in range(_MOVES_PER_ROUND):
                self._move(tempering)
            if part >= remaining:
                return

    def _excess(self, z: Floats) -> Floats:
        c = self._mode + z @ self._back
        p = self._basis.intensities(c @ self._design.T)
        excess: Floats = (
            self._basis.log_density(p) - 0.5 * (c * c).sum(axis=1) + 0.5 * (z * z).sum(axis=1)
        )
        return excess

    def _effective_share(self, part: float) -> float:
        w = np.exp(part * (self._h - self._h.max()))
        return float(w.sum() ** 2 / (w * w).sum() / w.size)

    def _largest_part(self, remaining: float) -> float:
        low = 0.0
        high = remaining
        for _ in range(16):
            middle = (low + high) / 2
            if self._effective_share(middle) >= _MIN_EFFECTIVE_SHARE:
                low = middle
            else:
                high = middle
        return min(max(low, _MIN_TEMPERING), remaining)

    def _resample(self, part: float) -> None:
        h = self._h
        w = np.exp(part * (h - h.max()))
        self.log_evidence += part * float(h.max()) + float(np.log(w.mean()))
        positions = (np.arange(w.size) + self._variates.uniforms(w.size)) / w.size
        chosen = np.searchsorted(np.cumsum(w) / w.sum(), positions).clip(0, w.size - 1)
        self._z = self._z[chosen]
        self._h = h[chosen]

    def _move(self, tempering: float) -> None:
        persistence = self._persistence
        noise = self._variates.normals(*self._z.shape)
        moved = persistence * self._z + np.sqrt(1 - persistence**2) * noise
        moved_h = self._excess(moved)
        threshold = np.log(self._variates.uniforms(self._h.size))
        is_accepted = threshold < tempering * (moved_h - self._h)
        self._z = np.where(is_accepted[:, None], moved, self._z)
        self._h = np.where(is_accepted, moved_h, self._h)
        accepted_share = float(is_accepted.mean())
        if accepted_share < 0.25:
            self._persistence = min(0.98, persistence + 0.2 * (1 - persistence))
        elif accepted_share > 0.6:
            self._persistence = max(0.0, persistence - 0.1)
