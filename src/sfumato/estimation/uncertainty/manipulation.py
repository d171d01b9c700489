"""Manipulation: how far m fake people among n could have moved an estimate.

*The unbiased estimate* is compared with the one in which the m are counted as what they hold, which is where honest
reports would have left it on average. Symbol by symbol and in total variation the bounds are those of
``mechanisms/reach.py``, times m/n, and an attacker can attain each of them.

*The decoded picture* is compared with the one from other reports in the place of the m fake ones, whatever they had
been; in total variation, ``½ Σ_x |…|``. A decoder is no sum over reports, so each needs an argument of its own.

``unbiased``
    ``½ Σ_x |A[x, y] − A[x, y2]| ≤ max_y Σ_x |A[x, y]|`` for each report that is exchanged.

``projection``
    In a group of share τ the projection is ``p_x = v_x − θ d_x`` on some set S of symbols, 0 elsewhere, with weights d
    and ``Σ_S p = τ``. Scores add up to 1 report by report, so τ is also ``Σ v``, and

        p_x = v_x + d_x/Σ_S d · (Σ of v outside S),   x ∈ S.

    Each unit of v goes to itself, or is shared out among S: the derivative is a matrix of columns that are not negative
    and add up to 1. So the projection moves no two points further apart in total variation, and the bound of the
    unbiased estimate holds for it, if d is the same for both. Where d itself depends on the reports, one step is added:
    whatever d is, ``0 ≤ p ≤ max(v, 0)`` and both have mass τ and τ + N, N being the negative mass of v; so two such
    pictures are at most N apart. Scores of tables add up to 1 but for rounding: a discrepancy c costs at most 3c.

others
    None is known. Likelihood and empirical Bayes divide by what they estimate, and the default decoder chooses by the
    reports. What attacks do to them can be measured (``sfumato.simulation.attack``), which is a bound from below.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.domains import Label
from sfumato.errors import InvalidContext
from sfumato.estimation.decoders.decoder import Decoder, Projection, Unbiased
from sfumato.estimation.decoders.pools import Pools
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import format_upper_bound
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Forgeries", "Manipulation", "checked_fakes", "manipulation_of"]

_ALIKE = 1e-9  # relative, for weights that are equal but for rounding


@dataclass(frozen=True, eq=False, repr=False)
class Manipulation:
    """What ``fakes`` of the ``reports`` could have done, at most: shares, not percentage points.

    ``up`` and ``down`` bound the unbiased share of each label and ``total_variation`` the whole unbiased estimate,
    compared with what honest reports of the same people would have meant on average. ``decoded`` bounds the decoded
    picture, compared with any other reports in their place; it is ``None`` where no bound is known for the decoder.
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
        """The furthest that any one share could have been moved, up or down."""
        return float(max(self.up.max(), self.down.max()))

    def in_words(self) -> str:
        """The bounds as a short paragraph."""
        one = self.fakes == 1
        people = "1 fake person" if one else f"{self.fakes:,} fake people"
        honest = "an honest report" if one else "their honest reports"
        others = "report in its place" if one else f"{self.fakes:,} reports in their place"
        told = (
            f"{people} among {self.reports:,}, compared with what {honest} would have meant on average, could have "
            f"moved any one unbiased share by at most {format_upper_bound(self.share)}, and all shares together by at most "
            f"{format_upper_bound(self.total_variation)} in total variation."
        )
        if self.decoded is None:
            return f"{told} No bound is known for what they do to the decoder {self.decoder!r}."
        return (
            f"{told} Compared with any other {others}, the decoded picture ({self.decoder}) moved by at most "
            f"{format_upper_bound(self.decoded)}."
        )

    def in_json(self) -> dict[str, object]:
        """The bounds in the words of results."""
        return {
            "fakes": self.fakes,
            "share": self.share,
            "total_variation": self.total_variation,
            "decoded": self.decoded,
        }

    def __repr__(self) -> str:
        return self.in_words()


@dataclass(frozen=True, eq=False)
class Forgeries:
    """What any number of fake people could have done to one tally: worked out once, asked for several numbers.

    Each report that is exchanged moves the decoded picture by at most ``weight/n``, and all of them together by
    ``least`` more; ``weight`` is ``None`` where no bound is known for the decoder.
    """

    mechanism: Mechanism
    reports: int
    decoder: str
    weight: float | None
    least: float
    largest: float

    @classmethod
    def of(cls, mechanism: Mechanism, tally: Tally, decoder: Decoder) -> "Forgeries":
        """The forgeries of a tally that is read by this decoder."""
        weight, least, largest = None, 0.0, np.inf
        if isinstance(decoder, Projection | Unbiased):
            weight = mechanism.scores.reach.heaviest if mechanism.inputs > 1 else 0.0
        if weight is not None and isinstance(decoder, Projection):
            weight += 3 * float(
                np.abs(mechanism.scores.totals(np.ones(mechanism.inputs)) - 1).max()
            )
            least = (
                0.0 if _weights_are_fixed(mechanism, tally) else _negative_mass(mechanism, tally)
            )
            largest = 1.0
        return cls(mechanism, tally.reports, decoder.name, weight, least, largest)

    def by(self, fakes: int) -> Manipulation:
        """What so many fake people among the reports could have done, at most."""
        m, n, reach = checked_fakes(fakes, self.reports), self.reports, self.mechanism.scores.reach
        return Manipulation(
            labels=self.mechanism.context.domain.labels,
            fakes=m,
            reports=n,
            up=m / n * reach.up,
            down=m / n * reach.down,
            total_variation=m / n * reach.total_variation,
            decoder=self.decoder,
            decoded=self._decoded(m),
        )

    def _decoded(self, m: int) -> float | None:
        if self.weight is None:
            return None
        return min(m / self.reports * self.weight + self.least, self.largest) if m else 0.0


def manipulation_of(
    mechanism: Mechanism, tally: Tally, decoder: Decoder, fakes: int
) -> Manipulation:
    """What ``fakes`` of the reports of a tally could have done, at most.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> tally = Tally(np.array([400, 200, 200, 200]), mechanism.fingerprint)
    >>> manipulation_of(mechanism, tally, Projection(), 10)
    10 fake people among 1,000, compared with what their honest reports would have meant on average, could have moved
    any one unbiased share by at most 0.0322, and all shares together by at most 0.0322 in total variation. Compared
    with any other 10 reports in their place, the decoded picture (projection) moved by at most 0.0544.
    """
    return Forgeries.of(mechanism, tally, decoder).by(fakes)


def _negative_mass(mechanism: Mechanism, tally: Tally) -> float:
    return float(np.maximum(-mechanism.scores.unbiased(tally), 0.0).sum())


def _weights_are_fixed(mechanism: Mechanism, tally: Tally) -> bool:
    """Whether the projection weighs symbols alike whatever the reports.

    Its weights are the variances in a crowd that is even inside every group. With one group that crowd is always the
    same. With groups that are observed, as blocks are, a group's total scales what its own symbols send; so variances
    that are equal inside a group in one crowd are equal in all.
    """
    observed, shares = mechanism.scores.observed_shares(tally)
    if Pools.from_tally(mechanism, tally).totals.size != shares.size:
        return False
    if shares.size == 1:
        return True
    variances = mechanism.scores.variances(np.full(mechanism.inputs, 1 / mechanism.inputs), 1)
    least, most = np.full(shares.size, np.inf), np.zeros(shares.size)
    np.minimum.at(least, observed, variances)
    np.maximum.at(most, observed, variances)
    sizes = np.bincount(observed, minlength=shares.size)
    return bool((most - least <= _ALIKE * most)[sizes > 1].all())


def checked_fakes(fakes: int, reports: int) -> int:
    """A number of fake people among so many reports."""
    if (
        isinstance(fakes, bool)
        or not isinstance(fakes, int | np.integer)
        or not 0 <= fakes <= reports
    ):
        raise InvalidContext(
            f"fakes must be a whole number of reports, from 0 to all {reports} of them; found {fakes!r}."
        )
    return int(fakes)
