"""Goodness of fit: whether the reports in a tally could have come from a mechanism at all.

A broken or outdated client, or a forger, may send reports whose distribution no population can
produce. Four tests detect such reports. None of them depends on the true distribution.

*Impossible reports.* The tally must not contain reports that no symbol can produce.

*Residuals.* ``r = f − Qᵀ A f`` has mean 0 for every p, because A inverts Q. With ``P = I − Qᵀ A``
and weights ``W = 1/q̂``, the statistic is Pearson's, ``T = n Σ_y W r²``. It measures deviations in
the dimensions that p does not determine; their number is outputs minus inputs. T is a quadratic
form in means of independent reports. With ``M = √W P D Pᵀ √W``, its moments are:

    mean  tr M at D = diag f      (T minus this is a U-statistic: exactly centred for any counts)
    variance  2 tr M² at D = diag q̂
    third cumulant  8 (tr M²)²/tr M + (4/n) Σ_y q̂² ρ³,   ρ = the diagonal of Pᵀ W P

If there are few reports, the last term accounts for reports that are equal by chance. p-values are
those of a gamma distribution with these three moments. It is a chi-square distribution if all
outputs have many reports. It is still accurate if most outputs have none, so outputs need not be
merged.

*Noise.* Reports drawn uniformly at random, without a value behind them, move the residuals in one
direction. That direction has its own test, because among thousands of other directions the shift
would go unnoticed. This test and the test of the residuals require at least 100 reports.

*Impossible shares.* The unbiased estimate of the share of a symbol or a group may be below 0, but
no further than chance allows. The same holds for estimates above 1, because they leave a negative
share for everyone else; that share is the mean of the scores ``1 − A``.

The overall p-value is the smallest of the tests' p-values, times the number of tests (Bonferroni).
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from sfumato.estimation.uncertainty.intervals import probability_below
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.foundation.formatting import format_count, format_number
from sfumato.foundation.notebook import facts_html
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.randomness import words_from
from sfumato.tally import Tally

__all__ = ["REJECTION_THRESHOLD", "FitResult", "FitWarning", "check_fit"]

REJECTION_THRESHOLD = 1e-6
"""Below this p-value, the verdict is that the reports did not come from the mechanism."""

_DOUBT_THRESHOLD = 1e-3
_KEY = hashlib.sha256(b"sfumato/fit").digest()
_MAX_EXACT_OUTPUTS = 256  # up to this many outputs, compute traces exactly
_MANY_OUTPUTS = 2**17  # above this many outputs, use the reduced number of probes
_PROBE_COUNT = 16  # random directions for estimating traces; the variance includes their error
_REDUCED_PROBE_COUNT = 4
_MIN_REPORTS = 100  # with fewer reports, p-values as small as 1e-6 are not reliable
_MAX_GROUPS = 64
_MIN_UNIFORM_SHARE = 0.1  # minimum weight of the uniform part of q̂, so no expected count is 0

_REASONS = {
    "residuals": "no distribution of symbols produces such a histogram",
    "noise": "some reports look uniformly random, without a value behind them",
    "impossible shares": "some share would have to be far below 0, or far above 1",
}


class FitWarning(UserWarning):
    """A warning that the reports cannot have come from the mechanism used to decode them."""


@dataclass(frozen=True)
class FitResult:
    """How well the reports fit the mechanism.

    ``p_value``: the probability that honest reports fit at least this badly.
    ``verdict``: a sentence that states the conclusion.
    ``statistic``: Pearson's statistic of the residuals.
    ``degrees_of_freedom``: the number of possible outputs minus the number of inputs.
    ``impossible_count``: the number of reports that no symbol can produce.
    ``tests``: a mapping from test name to p-value, before the Bonferroni correction.
    """

    p_value: float
    statistic: float
    degrees_of_freedom: int
    impossible_count: int
    verdict: str
    tests: Mapping[str, float] = field(repr=False)

    @property
    def is_possible(self) -> bool:
        """Whether the reports could have come from the mechanism."""
        return self.p_value >= REJECTION_THRESHOLD

    def _repr_html_(self) -> str:
        """Return the verdict and the p-value of each test as HTML, for notebooks."""
        facts = {"p-value": format_number(self.p_value)}
        for name, p_value in self.tests.items():
            facts[f"test of {name}"] = f"p = {format_number(p_value)}"
        facts["Pearson’s statistic"] = format_number(self.statistic, digits=4)
        facts["degrees of freedom"] = format_count(self.degrees_of_freedom)
        facts["impossible reports"] = format_count(self.impossible_count)
        return facts_html("FitResult", facts, self.verdict)


def check_fit(mechanism: Mechanism, tally: Tally) -> FitResult:
    """Test whether a tally could have come from the mechanism for some distribution of symbols.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> honest = mechanism.forward([0.5, 0.3, 0.2]) * 100_000
    >>> tally = Tally(honest.round().astype(int), mechanism.fingerprint)
    >>> check_fit(mechanism, tally).verdict
    'The reports fit the mechanism.'
    >>> forged = Tally(np.array([0, 50_000, 50_000, 0]), mechanism.fingerprint)
    >>> check_fit(mechanism, forged).is_possible
    False
    """
    n = tally.reports
    uniform = np.full(mechanism.inputs, 1 / mechanism.inputs)
    can_be_sent = mechanism.forward(uniform) > 0
    impossible_count = int(tally.counts[~can_be_sent].sum())
    degrees_of_freedom = int(can_be_sent.sum()) - mechanism.inputs
    statistic = 0.0
    tests = {}
    if impossible_count:
        tests["impossible reports"] = 0.0
    if degrees_of_freedom > 0 and n >= _MIN_REPORTS:
        residuals = _Residuals(mechanism, tally, can_be_sent)
        statistic, tests["residuals"] = residuals.pearson_test()
        tests["noise"] = residuals.noise_test()
    if mechanism.inputs > 1:
        tests["impossible shares"] = _share_test(mechanism, tally.counts / n, n)
    p_value = 1.0
    if tests:
        p_value = min(1.0, len(tests) * min(tests.values()))
    verdict = _verdict(p_value, tests, impossible_count, n)
    return FitResult(p_value, statistic, degrees_of_freedom, impossible_count, verdict, tests)


def _verdict(p_value: float, tests: Mapping[str, float], impossible_count: int, n: int) -> str:
    if not tests:
        return "Any reports would fit this mechanism."
    if impossible_count:
        return (
            f"The reports cannot have come from this mechanism: {impossible_count} of the {n} "
            "reports cannot come from any symbol."
        )
    if p_value >= _DOUBT_THRESHOLD:
        return "The reports fit the mechanism."
    reason = _REASONS[min(tests, key=lambda name: tests[name])]
    if p_value >= REJECTION_THRESHOLD:
        return f"The fit is doubtful (p = {p_value:.1g}): {reason}."
    return f"The reports cannot have come from this mechanism (p = {p_value:.1g}): {reason}."


class _Residuals:
    """The projection ``P = I − Qᵀ A`` and the weights of Pearson's statistic for one tally."""

    def __init__(self, mechanism: Mechanism, tally: Tally, can_be_sent: Booleans) -> None:
        self.mechanism = mechanism
        self.reports = tally.reports
        self.can_be_sent = can_be_sent
        self.f = tally.counts / tally.reports
        self.q = _q_with_smoothing(mechanism, tally)
        weights = np.zeros(self.q.size)
        np.divide(1.0, self.q, out=weights, where=can_be_sent & (self.q > 0))
        self.sqrt_weights = np.sqrt(weights)

    def project(self, u: Floats) -> Floats:
        """Return ``P u``."""
        return u - self.mechanism.forward(self.mechanism.scores.mean(u))

    def project_adjoint(self, v: Floats) -> Floats:
        """Return ``Pᵀ v``: a function of the report with mean 0 for every symbol."""
        return v - self.mechanism.scores.totals(self.mechanism.adjoint(v))

    def residual_norm_squared(self, u: Floats) -> float:
        """Return ``Σ_y W (P u)²``."""
        return float(((self.sqrt_weights * self.project(u)) ** 2).sum())

    def pearson_test(self) -> tuple[float, float]:
        """Return Pearson's statistic and its p-value."""
        from scipy.special import gammaincc

        n = self.reports
        q = self.q
        T = n * self.residual_norm_squared(self.f)
        rho = np.zeros(q.size)
        trace_of_square = 0.0  # tr M²
        probe_count = 0
        for g in _probes(q.size):
            h = self.project_adjoint(self.sqrt_weights * g)
            rho += h**2
            trace_of_square += self.residual_norm_squared(q * h)
            probe_count += 1
        probe_factor = 1.0
        if q.size > _MAX_EXACT_OUTPUTS:
            rho = rho / probe_count
            trace_of_square = trace_of_square / probe_count
            probe_factor = 1 + 1 / probe_count
        trace_at_f = float(self.f @ rho)  # tr M at D = diag f, the mean of T
        trace_at_q = float(q @ rho)
        if trace_at_q <= 1e-9:  # the residuals are always 0
            return T, 1.0
        variance = 2 * trace_of_square * probe_factor
        coincidences = 4 / n * float(q**2 @ rho**3)
        third_cumulant = 8 * trace_of_square**2 / trace_at_q + coincidences
        skewness = third_cumulant / variance**1.5
        z = (T - trace_at_f) / np.sqrt(variance)
        shape = 4 / skewness**2
        return T, float(gammaincc(shape, max(shape + 2 * z / skewness, 0.0)))

    def noise_test(self) -> float:
        """Return the p-value of the test for a shift towards uniformly random reports."""
        uniform = self.can_be_sent / self.can_be_sent.sum()
        v = self.project_adjoint(self.sqrt_weights**2 * self.project(uniform))
        if float(np.abs(v).max()) <= 1e-9 * float(self.sqrt_weights.max()) ** 2:
            return 1.0  # some distribution of symbols produces uniform reports
        return float(probability_below(ScoreMoments.for_total(-v, self.f), self.reports, 0.0)[0])


def _q_with_smoothing(mechanism: Mechanism, tally: Tally) -> Floats:
    """Return q̂: the distribution of reports for the projected estimate, mixed with a uniform one.

    The weights in Pearson's statistic should depend as little as possible on the reports that they
    weight. So with few reports, q̂ is the distribution of reports for people spread uniformly
    within each block.
    """
    groups, shares = mechanism.scores.observed_shares(tally)
    p = project_groups(mechanism.scores.unbiased(tally), groups, shares)
    uniform = (shares / np.bincount(groups, minlength=shares.size))[groups]
    uniform_share = math.sqrt(mechanism.inputs / tally.reports)
    uniform_share = min(max(uniform_share, _MIN_UNIFORM_SHARE), 1.0)
    return np.maximum(mechanism.forward((1 - uniform_share) * p + uniform_share * uniform), 0.0)


def _probes(size: int) -> Iterator[Floats]:
    """Yield all unit vectors if ``size`` is small, otherwise a few vectors of random signs.

    For unit vectors g, the sum of ``(v·g)²`` is ‖v‖². For random signs, the mean is ‖v‖².
    """
    if size <= _MAX_EXACT_OUTPUTS:
        yield from np.eye(size)
        return
    for probe in range(_PROBE_COUNT if size <= _MANY_OUTPUTS else _REDUCED_PROBE_COUNT):
        bits = words_from(_KEY, probe * size, size)[:, 0] >> np.uint64(63)
        yield 2.0 * bits.astype(np.float64) - 1


def _share_test(mechanism: Mechanism, f: Floats, n: int) -> float:
    """Return the smallest p-value of any symbol or group, times the number of p-values.

    Each share is tested twice: for being too far below 0 and for being too far above 1.
    """
    if n == 1:
        return 1.0
    share_moments = [ScoreMoments.for_symbols(mechanism.scores, f)]
    groups = mechanism.context.groups
    if groups is not None and 1 < groups.sizes.size <= _MAX_GROUPS:
        for group in range(groups.sizes.size):
            members = (groups.group_of == group).astype(np.float64)
            share_moments.append(ScoreMoments.for_total(mechanism.scores.totals(members), f))
    p_values = []
    for moments in share_moments:
        p_values.append(probability_below(moments, n, 0.0))
        p_values.append(probability_below(_complement(moments), n, 0.0))
    all_p_values = np.concatenate(p_values)
    return min(1.0, float(all_p_values.min()) * all_p_values.size)


def _complement(moments: ScoreMoments) -> ScoreMoments:
    """Return the moments of the scores ``1 − A``, given those of A."""
    m1 = moments.first
    m2 = moments.second
    m3 = moments.third
    m4 = moments.fourth
    return ScoreMoments(
        first=1 - m1,
        second=1 - 2 * m1 + m2,
        third=1 - 3 * m1 + 3 * m2 - m3,
        fourth=1 - 4 * m1 + 6 * m2 - 4 * m3 + m4,
        lowest=1 - moments.highest,
        highest=1 - moments.lowest,
    )
