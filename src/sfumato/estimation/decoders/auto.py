"""The default decoder: empirical Bayes, unless the tally itself shows that projection is better.

Split the reports at random into two halves A and B, which are independent tallies of the same
population. Both decoders read A, and B judges them without bias. For estimates e (Bayes) and o
(projection) from A, the mixture ``λe + (1 − λ)o`` that is nearest to the truth p, in squares
weighted by 1/ω_x, has

    λ = Σ_x D_x (o_x − p_x)/ω_x / Σ_x D_x²/ω_x,    D = o − e.

Replacing p by B's unbiased estimate leaves λ right on average, with a known error. With ω_x about
the size of ``|D_x|``, squares approximate absolute values, which total variation adds up. Empirical
Bayes gives way to projection as far as λ is below 1 by more than its standard error.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.estimation.decoders.decoder import Decoded, Decoder, Projection
from sfumato.estimation.decoders.empirical_bayes import (
    EmpiricalBayes,
    SpatialBayes,
    has_neighbours,
)
from sfumato.estimation.decoders.histograms import halve_counts
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Auto", "bayes_weight", "split_in_half"]

_PRECISE_ENOUGH = 0.3  # up to this standard error of λ, one split is enough
_OMEGA_FLOOR = 0.1
"""Share of the mean |D| that keeps ω from 0. Tuned on simulated maps of towns, where 0.03 to 1 did
about equally well."""
_MIN_SIZE = 2  # fewer reports cannot be split; fewer symbols need no decoder
_KEY = hashlib.sha256(b"sfumato/estimation/halves").digest()


@dataclass(frozen=True, eq=False)
class Auto:
    """Empirical Bayes, moved towards projection as far as the reports suggest.

    It is spatial where symbols have neighbours.
    ``covariate``: one public number for each symbol, to use instead of neighbours.
    """

    covariate: ArrayLike | None = None
    name: ClassVar[str] = "auto"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return the mixture of both decoders that the halves of the tally support."""
        projected = Projection().decode(mechanism, tally).frequencies
        if tally.reports < _MIN_SIZE or mechanism.inputs < _MIN_SIZE:
            return Decoded(projected, {"chosen": "projection"})
        decoder = self._bayes(mechanism)
        decoded = decoder.decode(mechanism, tally)
        weight, error = bayes_weight(_with_chosen_widths(decoder, decoded), mechanism, tally)
        weight = min(max(weight + error, 0.0), 1.0)
        details = {"chosen": decoder.name, "share": round(weight, 4), **decoded.details}
        return Decoded(weight * decoded.frequencies + (1 - weight) * projected, details)

    def _bayes(self, mechanism: Mechanism) -> Decoder:
        if self.covariate is None and has_neighbours(mechanism.context.domain):
            return SpatialBayes()
        return EmpiricalBayes(self.covariate)


def bayes_weight(decoder: Decoder, mechanism: Mechanism, tally: Tally) -> tuple[float, float]:
    """Return λ and its standard error.

    If B's judgement of A is not precise enough, A judges B as well.
    """
    a, b = split_in_half(tally)
    if a.reports == 0 or b.reports == 0:
        return 1.0, np.inf
    weight, error = _judge(decoder, mechanism, a, b)
    if error <= _PRECISE_ENOUGH:
        return weight, error
    weight2, error2 = _judge(decoder, mechanism, b, a)
    return (weight + weight2) / 2, float(np.hypot(error, error2)) / 2


def split_in_half(tally: Tally) -> tuple[Tally, Tally]:
    """Deal the reports to two tallies by fair coins, the same coins every time."""
    heads = halve_counts(tally.counts, _KEY)
    tails = tally.counts - heads
    return Tally(heads, tally.fingerprint), Tally(tails, tally.fingerprint)


def _with_chosen_widths(decoder: Decoder, decoded: Decoded) -> Decoder:
    """Fix the neighbourhoods that all reports chose, because half of them might choose others."""
    widths = decoded.details.get("widths")
    if not isinstance(decoder, SpatialBayes) or not isinstance(widths, Mapping):
        return decoder
    chosen = tuple(width for width in widths if width > 0)
    return SpatialBayes(chosen) if chosen else EmpiricalBayes()


def _judge(decoder: Decoder, mechanism: Mechanism, a: Tally, b: Tally) -> tuple[float, float]:
    """Return λ and its error for estimates from ``a``, judged by ``b``."""
    o = Projection().decode(mechanism, a).frequencies
    D = o - decoder.decode(mechanism, a).frequencies
    if not np.abs(D).max() > 0:
        return 1.0, np.inf
    noise = np.sqrt(np.maximum(mechanism.scores.variances(o / o.sum(), b.reports), 0.0))
    omega = np.abs(D) + _OMEGA_FLOOR * float(np.abs(D).mean())
    denominator = float((D**2 / omega).sum())
    weight = float((D * (o - mechanism.scores.unbiased(b)) / omega).sum()) / denominator
    error = float(np.sqrt(((D * noise / omega) ** 2).sum())) / denominator
    return weight, error
