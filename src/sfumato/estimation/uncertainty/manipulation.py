"""Manipulation: how far m fake people among n could have moved an estimate.

*The unbiased estimate* is compared with where honest reports of the m people would have left it on
average. The bounds, for each symbol and in total variation, are those of ``scores.reach`` times
m/n, and an attacker can attain each of them.

*The decoded estimate* is compared with the one from any other reports in place of the m fake ones,
in total variation ``½ Σ_x |…|``. A decoder is not a sum over reports, so each needs its own
argument.

``unbiased``
    ``½ Σ_x |A[x, y] − A[x, y2]| ≤ max_y Σ_x |A[x, y]|`` for each report that is replaced.

``projection``
    In a group of share τ the projection is ``p_x = v_x − θ d_x`` on some set S of symbols, 0
    elsewhere, with weights d and ``Σ_S p = τ``. Scores add up to 1 report by report, so τ is also
    ``Σ v``, and

        p_x = v_x + d_x/Σ_S d · (Σ of v outside S),   x ∈ S.

    Each unit of v stays where it is or is shared among S: the columns of the derivative are
    non-negative and add up to 1. So the projection moves no two points further apart in total
    variation, and the bound of the unbiased estimate holds for it, if d is the same for both. If d
    itself depends on the reports, there is one more step. For every d, ``0 ≤ p ≤ max(v, 0)``, where
    p has mass τ and max(v, 0) has mass τ + N, with N the negative mass of v. So two such estimates
    are at most N apart. Scores of tables add up to 1 up to rounding; a discrepancy c costs at most
    3c.

others
    No bound is known. Likelihood and empirical Bayes divide by what they estimate, and the default
    decoder chooses by the reports. ``sfumato.simulation.attack`` measures what attacks do to them,
    which is a lower bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.domains import Label
from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.decoder import Decoder, Pools, Projection, Unbiased
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import format_upper_bound
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Manipulation", "ManipulationBounds", "check_fakes"]

_ROUNDING = 1e-9  # relative difference of weights that are equal up to rounding


@dataclass(frozen=True, eq=False, repr=False)
class Manipulation:
    """The most that ``fakes`` of the ``reports`` could have done, in shares (not per cent).

    ``up``, ``down``: bounds for the unbiased share of each label, compared with where honest
    reports of the same people would have left it on average.
    ``total_variation``: the same for all unbiased shares together.
    ``decoded``: a bound for the decoded estimate, compared with any other reports in their place;
    ``None`` if no bound is known for the decoder.
    """

    labels: Sequence[Label]
    fakes: int
    reports: int
    up: Floats
    down: Floats
    total_variation: float
    decoder: str
    decoded: float | None

    @property
    def share(self) -> float:
        """The furthest that any single share could have moved, up or down."""
        return float(max(self.up.max(), self.down.max()))

    def summary(self) -> str:
        """Return the bounds as a short paragraph."""
        if self.fakes == 1:
            people = "1 fake person"
            honest = "an honest report"
            replacement = "report in its place"
        else:
            people = f"{self.fakes:,} fake people"
            honest = "their honest reports"
            replacement = f"{self.fakes:,} reports in their place"
        unbiased = (
            f"{people} among {self.reports:,}, compared with what {honest} would have meant on "
            f"average, could have moved any one unbiased share by at most "
            f"{format_upper_bound(self.share)}, and all shares together by at most "
            f"{format_upper_bound(self.total_variation)} in total variation."
        )
        if self.decoded is None:
            return f"{unbiased} No bound is known for the decoder {self.decoder!r}."
        return (
            f"{unbiased} Compared with any other {replacement}, the decoded picture "
            f"({self.decoder}) moved by at most {format_upper_bound(self.decoded)}."
        )

    def in_json(self) -> dict[str, object]:
        """Return the bounds for JSON results."""
        return {
            "fakes": self.fakes,
            "share": self.share,
            "total_variation": self.total_variation,
            "decoded": self.decoded,
        }

    def __repr__(self) -> str:
        return self.summary()


@dataclass(frozen=True, eq=False)
class ManipulationBounds:
    """The most that any number of fake people could have done to one tally.

    Each fake report moves the decoded estimate by at most ``decoded_slope/n``, and all of them
    together by ``decoded_offset`` more, up to ``decoded_limit``. ``decoded_slope`` is ``None`` if
    no bound is known for the decoder.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> tally = Tally(np.array([400, 200, 200, 200]), mechanism.fingerprint)
    >>> ManipulationBounds.from_tally(mechanism, tally, Projection()).for_fakes(10)
    10 fake people among 1,000, compared with what their honest reports would have meant on average,
    could have moved any one unbiased share by at most 0.0322, and all shares together by at most
    0.0322 in total variation. Compared with any other 10 reports in their place, the decoded
    picture (projection) moved by at most 0.0544.
    """

    mechanism: Mechanism
    reports: int
    decoder: str
    decoded_slope: float | None
    decoded_offset: float = 0.0
    decoded_limit: float = math.inf

    @classmethod
    def from_tally(
        cls, mechanism: Mechanism, tally: Tally, decoder: Decoder
    ) -> "ManipulationBounds":
        """Bound manipulation of a tally that this decoder decodes."""
        if not isinstance(decoder, Projection | Unbiased):
            return cls(mechanism, tally.reports, decoder.name, None)
        scores = mechanism.scores
        slope = scores.reach.max_absolute_sum if mechanism.inputs > 1 else 0.0
        if isinstance(decoder, Unbiased):
            return cls(mechanism, tally.reports, decoder.name, slope)
        rounding = float(np.abs(scores.totals(np.ones(mechanism.inputs)) - 1).max())
        offset = 0.0
        if not _weights_are_fixed(mechanism, tally):
            offset = float(np.maximum(-scores.unbiased(tally), 0.0).sum())
        return cls(mechanism, tally.reports, decoder.name, slope + 3 * rounding, offset, 1.0)

    def for_fakes(self, fakes: int) -> Manipulation:
        """Return the most that this many fake people could have done."""
        m = check_fakes(fakes, self.reports)
        n = self.reports
        reach = self.mechanism.scores.reach
        return Manipulation(
            labels=self.mechanism.context.domain.labels,
            fakes=m,
            reports=n,
            up=m / n * reach.up,
            down=m / n * reach.down,
            total_variation=m / n * reach.total_variation,
            decoder=self.decoder,
            decoded=self._bound_decoded(m),
        )

    def _bound_decoded(self, m: int) -> float | None:
        if self.decoded_slope is None:
            return None
        if m == 0:
            return 0.0
        return min(m / self.reports * self.decoded_slope + self.decoded_offset, self.decoded_limit)


def check_fakes(fakes: int, reports: int) -> int:
    """Return a number of fake people among ``reports``."""
    is_integer = isinstance(fakes, int | np.integer) and not isinstance(fakes, bool)
    if not is_integer or not 0 <= fakes <= reports:
        raise InvalidArgument(
            f"fakes must be an integer from 0 to all {reports} reports; got {fakes!r}."
        )
    return int(fakes)


def _weights_are_fixed(mechanism: Mechanism, tally: Tally) -> bool:
    """Return whether the projection uses the same weights for all reports.

    Its weights are the variances for people spread evenly inside every group. With one group they
    are always the same. With groups that are observed, as blocks are, a group's total scales the
    reports of its own symbols. So variances that are equal inside a group for one distribution are
    equal for all.
    """
    observed, shares = mechanism.scores.observed_shares(tally)
    if Pools.from_tally(mechanism, tally).totals.size != shares.size:
        return False
    if shares.size == 1:
        return True
    even = np.full(mechanism.inputs, 1 / mechanism.inputs)
    variances = mechanism.scores.variances(even, 1)
    least = np.full(shares.size, np.inf)
    most = np.zeros(shares.size)
    np.minimum.at(least, observed, variances)
    np.maximum.at(most, observed, variances)
    has_peers = np.bincount(observed, minlength=shares.size) > 1
    are_equal = most - least <= _ROUNDING * most
    return bool(are_equal[has_peers].all())
