"""Symbols without order: empirical Bayes, unless the tally shows that projection is better.

Split the reports at random into two halves A and B, which are independent tallies of the same
population. Decode A with both decoders, and use B as an unbiased reference. Let e (Bayes) and o
(projection) be the estimates from A. Among the mixtures ``λe + (1 − λ)o``, the one that is closest
to the truth p, in squared error with weights 1/ω_x, has

    λ = Σ_x D_x (o_x − p_x)/ω_x / Σ_x D_x²/ω_x,    D = o − e.

Replacing p with B's unbiased estimate gives an unbiased λ with a known standard error. If ω_x is
close to ``|D_x|``, the weighted squares approximate absolute values, as in the total variation.
The weight of empirical Bayes is λ plus one standard error, clipped to [0, 1].
"""

import hashlib

import numpy as np

from sfumato.estimation.decoders.decoder import Decoder, DecoderResult, Projection
from sfumato.estimation.decoders.histograms import halve_counts
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["bayes_weight", "mix_with_projection", "split_in_half"]

_MAX_ONE_WAY_ERROR = 0.3  # up to this standard error of λ, comparing A with B is enough
_OMEGA_FLOOR = 0.1
"""Fraction of the mean |D| that is added to ω to keep it above 0. Tuned on simulated maps of towns,
where values from 0.03 to 1 performed about equally well."""
_ROUNDING_ERROR = 1e-12  # estimates that differ by less are equal, and any weight would be noise
_MIN_SIZE = 2  # fewer reports cannot be split; with fewer symbols, there is nothing to decode
_KEY = hashlib.sha256(b"sfumato/estimation/halves").digest()


def mix_with_projection(decoder: Decoder, mechanism: Mechanism, tally: Tally) -> DecoderResult:
    """Return the mixture of the decoder's estimate and the projection.

    If there are too few reports or symbols, return the projection.
    """
    projected = Projection().decode(mechanism, tally).frequencies
    if tally.reports < _MIN_SIZE or mechanism.inputs < _MIN_SIZE:
        return DecoderResult(projected, {"chosen": "projection"})
    decoded = decoder.decode(mechanism, tally)
    weight = 1.0
    if np.abs(decoded.frequencies - projected).max() > _ROUNDING_ERROR:
        weight, weight_error = bayes_weight(decoder, mechanism, tally)
        weight = min(max(weight + weight_error, 0.0), 1.0)
    details = {"chosen": decoder.name, "share": round(weight, 4), **decoded.details}
    return DecoderResult(weight * decoded.frequencies + (1 - weight) * projected, details)


def bayes_weight(decoder: Decoder, mechanism: Mechanism, tally: Tally) -> tuple[float, float]:
    """Return λ, the weight of empirical Bayes before clipping, and its standard error.

    If comparing A with B is not precise enough, also compare B with A, and average the results.
    """
    a, b = split_in_half(tally)
    if a.reports == 0 or b.reports == 0:
        return 1.0, np.inf
    weight, error = _one_way_weight(decoder, mechanism, a, b)
    if error <= _MAX_ONE_WAY_ERROR:
        return weight, error
    reverse_weight, reverse_error = _one_way_weight(decoder, mechanism, b, a)
    return (weight + reverse_weight) / 2, float(np.hypot(error, reverse_error)) / 2


def split_in_half(tally: Tally) -> tuple[Tally, Tally]:
    """Split the reports pseudo-randomly into two tallies; the split is reproducible."""
    first_half = halve_counts(tally.counts, _KEY)
    second_half = tally.counts - first_half
    return Tally(first_half, tally.fingerprint), Tally(second_half, tally.fingerprint)


def _one_way_weight(
    decoder: Decoder, mechanism: Mechanism, a: Tally, b: Tally
) -> tuple[float, float]:
    """Return λ and its standard error for estimates from ``a``, compared with ``b``."""
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
