"""The default decoder: empirical Bayes, unless the tally itself shows that plain projection is better.

Reports are split at random into two halves A and B, which are independent tallies of the same crowd. Both decoders
read A; B judges them without bias. For estimates e (Bayes) and o (projection) of A, the mixture ``λe + (1 − λ)o`` that
is nearest to the truth p, in squares weighted by 1/ω_x, has

    λ = Σ_x D_x (o_x − p_x)/ω_x / Σ_x D_x²/ω_x,    D = o − e,

and putting B's unbiased estimate in the place of p leaves it right on average, with a known error. With ω_x about the
size of ``|D_x|``, squares stand for absolute values, which is what total variation counts. Empirical Bayes gives way
by as much as λ is below 1 by more than its standard error.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.estimation.decoders.decoder import Decoded, Decoder, Projection
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes, SpatialBayes
from sfumato.estimation.decoders.histograms import halve_counts
from sfumato.estimation.decoders.strata import has_neighbours
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Auto", "halved"]

_DECIDED = 0.3  # a standard error of λ at which one split is enough
_FLOOR = 0.1
"""Of the mean |D|: what keeps ω from 0. Fixed on simulated maps of towns, where .03 to 1 did nearly equally well."""
_FEWEST = 2  # reports that can be split
_KEY = hashlib.sha256(b"sfumato/estimation/halves").digest()


@dataclass(frozen=True, eq=False)
class Auto:
    """Empirical Bayes, spatial where symbols have neighbours; moved towards projection where the reports say so.

    With a ``covariate``, that takes the place of neighbours.
    """

    covariate: ArrayLike | None = None
    name: ClassVar[str] = "auto"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """The mixture of both decoders that the halves of the tally speak for."""
        projected = Projection().decode(mechanism, tally).frequencies
        if tally.reports < _FEWEST or mechanism.inputs < _FEWEST:
            return Decoded(projected, {"chosen": "projection"})
        decoder = self._decoder(mechanism)
        decoded = decoder.decode(mechanism, tally)
        share, error = bayes_share(_as_chosen(decoder, decoded), mechanism, tally)
        share = min(max(share + error, 0.0), 1.0)
        details = {"chosen": decoder.name, "share": round(share, 4), **decoded.details}
        return Decoded(share * decoded.frequencies + (1 - share) * projected, details)

    def _decoder(self, mechanism: Mechanism) -> Decoder:
        if self.covariate is None and has_neighbours(mechanism.context.domain):
            return SpatialBayes()
        return EmpiricalBayes(self.covariate)


def _as_chosen(decoder: Decoder, decoded: Decoded) -> Decoder:
    """What is judged: the neighbourhoods that all reports chose, not all that half of them might choose among."""
    widths = decoded.details.get("widths")
    if not isinstance(decoder, SpatialBayes) or not isinstance(widths, Mapping):
        return decoder
    chosen = tuple(width for width in widths if width > 0)
    return SpatialBayes(chosen) if chosen else EmpiricalBayes()


def bayes_share(decoder: Decoder, mechanism: Mechanism, tally: Tally) -> tuple[float, float]:
    """λ and its standard error, from one split of the reports; if that leaves it open, each half judges the other."""
    a, b = halved(tally)
    if not (a.reports and b.reports):
        return 1.0, np.inf
    share, error = _judged(decoder, mechanism, a, b)
    if error <= _DECIDED:
        return share, error
    share2, error2 = _judged(decoder, mechanism, b, a)
    return (share + share2) / 2, float(np.hypot(error, error2)) / 2


def _judged(decoder: Decoder, mechanism: Mechanism, a: Tally, b: Tally) -> tuple[float, float]:
    """λ of estimates from a, judged by b."""
    o = Projection().decode(mechanism, a).frequencies
    D = o - decoder.decode(mechanism, a).frequencies
    if not np.abs(D).max() > 0:
        return 1.0, np.inf
    noise = np.sqrt(np.maximum(mechanism.scores.variances(o / o.sum(), b.reports), 0.0))
    omega = np.abs(D) + _FLOOR * float(np.abs(D).mean())
    weight = float((D**2 / omega).sum())
    share = float((D * (o - mechanism.scores.unbiased(b)) / omega).sum()) / weight
    return share, float(np.sqrt(((D * noise / omega) ** 2).sum())) / weight


def halved(tally: Tally) -> tuple[Tally, Tally]:
    """The reports dealt to two tallies by fair coins: the same coins every time."""
    heads = halve_counts(tally.counts, _KEY)
    return Tally(heads, tally.fingerprint), Tally(tally.counts - heads, tally.fingerprint)
