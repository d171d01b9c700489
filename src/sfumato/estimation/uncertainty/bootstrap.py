"""A parametric bootstrap: how far the decoded estimate may be from the truth.

Decoders clip, shrink and smooth, so there is no formula for the standard errors of a decoded
estimate. Instead, simulate repetitions of the survey: draw reports from ``q = Qᵀ p̂``, as if the
estimate p̂ were the truth, and decode them. The results are typically as far from p̂ as p̂ is from
the truth, if p̂ and the truth are equally hard to estimate.

That condition is the limitation of the method. If a decoder leaves much of the noise, as projection
does with few reports per symbol, p̂ is rougher than the truth. If a decoder smooths, p̂ is smoother
than the truth. The mean error is then off by 10% to 20%, and the interval, which is narrow in large
domains, misses the actual error; see ``docs/uncertainty.md`` for measurements. The intervals of the
unbiased estimate are valid for every true distribution.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.decoder import Decoder
from sfumato.estimation.decoders.histograms import draw_tally
from sfumato.estimation.uncertainty.intervals import tail_probability
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import format_count, format_percent
from sfumato.foundation.notebook import facts_html
from sfumato.foundation.simplex import project_groups, total_variation
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Bootstrap"]


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """The errors of simulated surveys in which the decoded estimate is taken as the truth.

    ``errors``: the total variation error ``½ Σ|p̂* − p̂|`` of each run, where p̂* is its estimate.
    Errors are measured from the decoded estimate p̂, not from the actual truth.
    ``mean_error``: the mean of the errors.
    ``low``, ``high``: an interval that contains a fraction ``level`` of the errors.
    ``standard_errors``: the standard errors of the decoded frequencies.
    ``biases``: the mean deviation of each decoded frequency from p̂.
    """

    runs: int
    mean_error: float
    low: float
    high: float
    level: float
    errors: Floats
    standard_errors: Floats
    biases: Floats

    @classmethod
    def run(
        cls,
        mechanism: Mechanism,
        decoder: Decoder,
        tally: Tally,
        frequencies: Floats,
        *,
        runs: int,
        seed: int,
        level: float,
    ) -> "Bootstrap":
        """Draw and decode ``runs`` tallies of similar size, as if ``frequencies`` were the truth.

        If the frequencies are not a distribution, they are projected first.
        """
        if isinstance(runs, bool) or not isinstance(runs, int) or runs < 2:
            raise InvalidArgument(f"runs must be an integer of at least 2; got {runs!r}.")
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidArgument(f"seed must be an integer; got {type(seed).__name__}.")
        tail = tail_probability(level)
        p = _as_distribution(mechanism, tally, frequencies)
        q = mechanism.forward(p)
        key = hashlib.sha256(f"sfumato/bootstrap/{seed}".encode()).digest()
        errors = np.empty(runs)
        deviation_sums = np.zeros(p.size)
        square_sums = np.zeros(p.size)
        for run in range(runs):
            drawn_tally = draw_tally(mechanism, q, tally.reports, run, key)
            decoded = decoder.decode(mechanism, drawn_tally).frequencies
            errors[run] = total_variation(decoded, p)
            deviation_sums += decoded - p
            square_sums += (decoded - p) ** 2
        variances = np.maximum(square_sums - deviation_sums**2 / runs, 0.0) / (runs - 1)
        low, high = np.quantile(errors, [tail, 1 - tail]).tolist()
        return cls(
            runs=runs,
            mean_error=float(errors.mean()),
            low=low,
            high=high,
            level=level,
            errors=errors,
            standard_errors=np.sqrt(variances),
            biases=deviation_sums / runs,
        )

    def __repr__(self) -> str:
        return (
            f"Bootstrap(total variation {self.mean_error:.4f}, {100 * self.level:.4g}% interval "
            f"{self.low:.4f} to {self.high:.4f}, {self.runs} runs)"
        )

    def _repr_html_(self) -> str:
        """Return the total variation error and its interval as HTML, for notebooks."""
        facts = {
            "mean total variation error": f"{self.mean_error:.4f}",
            f"{format_percent(self.level)} of the errors": f"{self.low:.4f} to {self.high:.4f}",
            "runs": format_count(self.runs),
        }
        return facts_html("Bootstrap", facts)


def _as_distribution(mechanism: Mechanism, tally: Tally, frequencies: Floats) -> Floats:
    """Return the frequencies, projected if they are not a distribution."""
    if (frequencies >= 0).all() and abs(float(frequencies.sum()) - 1) < 1e-9:
        return frequencies
    groups, shares = mechanism.scores.observed_shares(tally)
    return project_groups(frequencies, groups, shares)
