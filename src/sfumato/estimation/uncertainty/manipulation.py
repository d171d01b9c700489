"""Manipulation: how far m fake people among n could have moved an estimate.

*The unbiased estimate* is compared with what it would be, on average, if the m people had reported
honestly. The bounds, for each symbol and in total variation, are those in ``scores.reach`` times
m/n. Each bound is attained by some attack.

*The decoded estimate* is compared with the estimate that would result if any other m reports
replaced the fake ones, in total variation ``½ Σ_x |…|``. A decoder is not a sum over reports, so
each decoder needs its own proof.

``unbiased``
    ``½ Σ_x |A[x, y] − A[x, y2]| ≤ max_y Σ_x |A[x, y]|`` for each replaced report.

``projection``
    In a group with share τ, the projection is ``p_x = v_x − θ d_x`` on some set S of symbols and 0
    elsewhere, with weights d and ``Σ_S p = τ``. The scores of each report add up to 1, so τ is also
    ``Σ v``, and

        p_x = v_x + d_x/Σ_S d · (Σ of v outside S),   x ∈ S.

    Each unit of v either stays where it is or is shared among S: the columns of the derivative are
    non-negative, and each column adds up to 1. So projecting two points with the same d does not
    increase the total variation between them, and the bound on the unbiased estimate applies. If d
    depends on the reports, one more step is needed. Let N be the negative mass of v. For every d,
    ``0 ≤ p ≤ max(v, 0)``, where p has mass τ and max(v, 0) has mass τ + N. So projections of v with
    two different d are at most N apart. For mechanisms stored as tables, scores add up to 1 only up
    to rounding; a discrepancy of c adds at most 3c to the bound.

others
    No bound is known. Likelihood and empirical Bayes divide by estimated quantities, and the
    default decoder adapts to the reports. ``sfumato.simulation.attack`` measures the effect of
    specific attacks on these decoders, which is a lower bound on the effect of the worst attack.
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
from sfumato.foundation.notebook import facts_html
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Manipulation", "ManipulationBounds", "check_fake_count"]

_EQUALITY_TOLERANCE = 1e-9  # weights with a smaller relative difference are considered equal


@dataclass(frozen=True, eq=False, repr=False)
class Manipulation:
    """Bounds on the effect of ``fake_count`` fake people on an estimate from ``reports`` reports.

    ``up``, ``down``: how far the unbiased estimate of each label's share could have moved, compared
    with its average if the same people had reported honestly.
    ``total_variation``: how far the unbiased estimate of all shares could have moved, measured in
    total variation.
    ``decoded``: how far the decoded estimate could have moved in total variation, compared with any
    other reports in place of the fake ones; ``None`` if no bound is known for the decoder.
    """

    labels: Sequence[Label]
    fake_count: int
    reports: int
    up: Floats
    down: Floats
    total_variation: float
    decoder: str
    decoded: float | None

    @property
    def largest_shift(self) -> float:
        """The furthest that the unbiased estimate of any single share could have moved."""
        return float(max(self.up.max(), self.down.max()))

    def summary(self) -> str:
        """Return the bounds as a short paragraph."""
        if self.fake_count == 1:
            fake_people = "1 fake person"
            replacement = "report in place of the fake one"
        else:
            fake_people = f"{self.fake_count:,} fake people"
            replacement = f"{self.fake_count:,} reports in place of the fake ones"
        unbiased_text = (
            f"Compared with honest reporting, on average, {fake_people} among {self.reports:,} "
            f"could have moved the unbiased estimate of any single share by at most "
            f"{format_upper_bound(self.largest_shift)}, and of all shares together by at most "
            f"{format_upper_bound(self.total_variation)} in total variation."
        )
        if self.decoded is None:
            return f"{unbiased_text} No bound is known for the decoder {self.decoder!r}."
        return (
            f"{unbiased_text} Compared with any other {replacement}, the decoded estimate "
            f"({self.decoder}) could have moved by at most {format_upper_bound(self.decoded)}."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the bounds as a dictionary for JSON output."""
        return {
            "fakes": self.fake_count,
            "share": self.largest_shift,
            "total_variation": self.total_variation,
            "decoded": self.decoded,
        }

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Return the bounds as HTML, for notebooks."""
        decoded = "no bound is known"
        if self.decoded is not None:
            decoded = f"moved by at most {format_upper_bound(self.decoded)}"
        shift = format_upper_bound(self.largest_shift)
        total_variation = format_upper_bound(self.total_variation)
        facts = {
            "fake people": f"{self.fake_count:,} among {self.reports:,}",
            "any single share (unbiased)": f"moved by at most {shift}",
            "all shares (unbiased, total variation)": f"moved by at most {total_variation}",
            f"all shares ({self.decoder}, total variation)": decoded,
        }
        return facts_html("Manipulation", facts)


@dataclass(frozen=True, eq=False)
class ManipulationBounds:
    """Bounds on the effect of fake people on the estimates from one tally.

    Fake reports move the decoded estimate by at most ``decoded_slope/n`` each, plus
    ``decoded_offset`` for all of them together, but never by more than ``decoded_limit``.
    ``decoded_slope`` is ``None`` if no bound is known for the decoder.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> tally = Tally(np.array([400, 200, 200, 200]), mechanism.fingerprint)
    >>> ManipulationBounds.from_tally(mechanism, tally, Projection()).for_fake_count(10)
    Compared with honest reporting, on average, 10 fake people among 1,000 could have moved the
    unbiased estimate of any single share by at most 0.0322, and of all shares together by at most
    0.0322 in total variation. Compared with any other 10 reports in place of the fake ones, the
    decoded estimate (projection) could have moved by at most 0.0544.
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
        """Derive the bounds for a tally and the decoder that is applied to it."""
        if not isinstance(decoder, Projection | Unbiased):
            return cls(mechanism, tally.reports, decoder.name, None)
        scores = mechanism.scores
        slope = scores.reach.max_absolute_sum if mechanism.inputs > 1 else 0.0
        if isinstance(decoder, Unbiased):
            return cls(mechanism, tally.reports, decoder.name, slope)
        rounding_error = float(np.abs(scores.totals(np.ones(mechanism.inputs)) - 1).max())
        offset = 0.0
        if not _weights_are_fixed(mechanism, tally):
            offset = float(np.maximum(-scores.unbiased(tally), 0.0).sum())
        return cls(mechanism, tally.reports, decoder.name, slope + 3 * rounding_error, offset, 1.0)

    def for_fake_count(self, fake_count: int) -> Manipulation:
        """Return the bounds for this many fake people."""
        m = check_fake_count(fake_count, self.reports)
        n = self.reports
        reach = self.mechanism.scores.reach
        return Manipulation(
            labels=self.mechanism.context.domain.labels,
            fake_count=m,
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


def check_fake_count(fake_count: int, report_count: int) -> int:
    """Return ``fake_count`` as an ``int``.

    Raise ``InvalidArgument`` if it is not an integer from 0 to ``report_count``.
    """
    is_integer = isinstance(fake_count, int | np.integer) and not isinstance(fake_count, bool)
    if not is_integer or not 0 <= fake_count <= report_count:
        raise InvalidArgument(
            f"fake_count must be an integer from 0 to the number of reports, {report_count}; got "
            f"{fake_count!r}."
        )
    return int(fake_count)


def _weights_are_fixed(mechanism: Mechanism, tally: Tally) -> bool:
    """Return whether the weights of the projection are independent of the reports.

    The weights are the variances for people spread evenly within every group. With one group, these
    variances are always the same. If groups are observed, as blocks are, a group's total only
    scales the number of reports from its symbols. So if variances are equal within a group for one
    distribution, they are equal for every distribution.
    """
    observed_groups, shares = mechanism.scores.observed_shares(tally)
    if Pools.from_tally(mechanism, tally).totals.size != shares.size:
        return False
    if shares.size == 1:
        return True
    even = np.full(mechanism.inputs, 1 / mechanism.inputs)
    variances = mechanism.scores.variances(even, 1)
    smallest = np.full(shares.size, np.inf)
    largest = np.zeros(shares.size)
    np.minimum.at(smallest, observed_groups, variances)
    np.maximum.at(largest, observed_groups, variances)
    has_peers = np.bincount(observed_groups, minlength=shares.size) > 1
    are_equal = largest - smallest <= _EQUALITY_TOLERANCE * largest
    return bool(are_equal[has_peers].all())
