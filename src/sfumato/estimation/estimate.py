"""Estimates: the distribution that the reports speak for, with honest error bars."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import NormalDist

import numpy as np

from sfumato.arrays import Floats
from sfumato.domains import Label
from sfumato.errors import InvalidContext
from sfumato.estimation.decoders import decoder_named
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Estimate", "estimate"]

_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Two readings of one tally, not to be confused.

    ``frequencies`` is the decoded picture: a distribution, shaped by the decoder, the better guess.
    ``unbiased`` with ``standard_errors`` is what intervals come from: right on average, entry by entry,
    even where it is negative. ``fingerprint`` names the mechanism or survey whose reports were read.
    """

    labels: Sequence[Label]
    frequencies: Floats
    unbiased: Floats
    standard_errors: Floats
    reports: int
    decoder: str
    leverage: float = 1.0
    fingerprint: str = ""

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """For each symbol on its own, an interval that covers its frequency with probability ``level``.

        ``p̂_x ± z · standard error`` (Wald), cut to [0, 1] and never without width. Where all reports say the same
        of a symbol, because nobody seems to hold it, there is no error to be seen: a share of which a single report
        would add ``leverage`` is then bounded as in ``(1 − share)^n ≥ (1 − level)/2`` (Clopper, Pearson 1934).
        """
        if not 0 < level < 1:
            raise InvalidContext(f"level must lie between 0 and 1; found {level}. Pass e.g. 0.95.")
        z = -NormalDist().inv_cdf((1 - level) / 2)
        known = np.isfinite(self.standard_errors)
        reach = np.multiply(z, self.standard_errors, out=np.full(known.shape, np.inf), where=known)
        unseen = -math.expm1(math.log((1 - level) / 2) / self.reports)
        reach = np.where(self.standard_errors == 0, self.leverage * unseen, reach)
        # Measured from the nearest share that can be: an estimate below 0 must not leave an interval without width.
        low, high = np.minimum(self.unbiased, 1) - reach, np.maximum(self.unbiased, 0) + reach
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    def __repr__(self) -> str:
        low, high = self.interval()
        width = max(len(str(label)) for label in (*self.labels[:_SHOWN], "label"))
        header = f"{'label':<{width}}  frequency     low    high   ({self.reports} reports; frequency: {self.decoder};"
        lines = [header + " low and high: 95 % interval of the unbiased estimate)"]
        for x in range(min(len(self.labels), _SHOWN)):
            figures = f"{self.frequencies[x]:9.4f} {low[x]:7.4f} {high[x]:7.4f}"
            lines.append(f"{self.labels[x]!s:<{width}}  {figures}")
        if len(self.labels) > _SHOWN:
            lines.append(f"… {len(self.labels) - _SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show: the most frequent symbols, with 95 % intervals of the unbiased estimate."""
        low, high = self.interval()
        order = np.lexsort((-self.unbiased, -self.frequencies))[:_SHOWN].tolist()
        head = "".join(f'<th scope="col">{name}</th>' for name in ("label", "frequency", "unbiased", "low", "high"))
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(str(self.labels[x]))}</th>'
            + "".join(f"<td>{v:.4f}</td>" for v in (self.frequencies[x], self.unbiased[x], low[x], high[x]))
            + "</tr>"
            for x in order
        )
        more = f"; the {_SHOWN} most frequent of {len(self.labels):,}" if len(self.labels) > _SHOWN else ""
        line = f"<p><b>Estimate</b> from {self.reports:,} reports ({escape(self.decoder)}){more}</p>"
        return f"{line}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def estimate(mechanism: Mechanism, tally: Tally, *, decoder: str = "projection") -> Estimate:
    """The distribution that a tally speaks for.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> estimate(mechanism, mechanism.tally([0, 0, 0, 2, 2, 1])).frequencies.round(3)
    array([0.861, 0.139, 0.   ])
    """
    decoded = decoder_named(decoder).decode(mechanism, tally)
    return Estimate(
        labels=mechanism.context.domain.labels,
        frequencies=decoded.frequencies,
        unbiased=mechanism.unbiased(tally),
        standard_errors=mechanism.standard_errors(tally),
        reports=tally.reports,
        decoder=decoder,
        leverage=mechanism.leverage,
        fingerprint=tally.fingerprint,
    )
