"""Simulate attacks by fake people: how far they move an estimate, and whether they are detected.

Simulations are seeded, so they are NOT PRIVATE. Fake people ignore their own answers and send
reports that serve their purpose. They know the mechanism and its scores, they agree on a target
label, and no single report can be verified. There are four kinds of attack:

``raise``
    Every fake person sends the report with the highest score for the target. No other reports raise
    the unbiased estimate of the target's share more.
``lower``
    Every fake person sends the report with the lowest score for the target. No other reports lower
    the unbiased estimate of the target's share more.
``blend``
    Every fake person draws uniformly from all reports with a positive score for the target, so no
    single report stands out.
``pretend``
    Every fake person answers through the mechanism as if the target were their answer. This is
    equivalent to lying in any survey: no test of the reports can distinguish it from honest
    answers.

The measured effect is compared with the bounds in ``estimation/uncertainty/manipulation.py``. For
decoders without a bound, only the measured effect is known. The goodness-of-fit test shows whether
the attack is detected.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains import Label, require_symbols
from sfumato.errors import InvalidArgument, NotEnoughReports
from sfumato.estimation import FitResult, ManipulationBounds, check_fake_count, check_fit
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.tally import Tally

__all__ = ["KINDS", "AttackResult", "attack"]

KINDS = ("raise", "lower", "blend", "pretend")
"""The kinds of attack."""

_ROUNDING_TOLERANCE = 1e-9  # relative to 1 plus the bound


@dataclass(frozen=True, eq=False)
class AttackResult(FieldsView):
    """The effect of an attack, and bounds on it.

    ``shift``: the change in the unbiased estimate of the target's share, compared with counting the
    fake people's true answers.
    ``bound``: a bound on the absolute value of ``shift``.
    ``total_variation``: the change in the unbiased estimate of all shares, measured in total
    variation.
    ``total_variation_bound``: a bound on ``total_variation``.
    ``decoded_shift``: the change in the decoded estimate of the target's share, compared with the
    estimate if the fake people had answered honestly.
    ``decoded_total_variation``: the same for all shares, measured in total variation.
    ``decoded_bound``: a bound on ``decoded_total_variation``; ``None`` if no bound is known for the
    decoder.
    ``fit``: the result of the goodness-of-fit test on all reports.
    """

    kind: str
    target: Label
    fake_count: int
    people: int
    shift: float
    bound: float
    total_variation: float
    total_variation_bound: float
    decoder: str
    decoded_shift: float
    decoded_total_variation: float
    decoded_bound: float | None
    fit: FitResult

    @property
    def is_detected(self) -> bool:
        """Whether the goodness-of-fit test rejects the reports."""
        return not self.fit.is_possible

    @property
    def is_within_bounds(self) -> bool:
        """Whether every change is within its bound, up to rounding."""
        changes = [
            (abs(self.shift), self.bound),
            (self.total_variation, self.total_variation_bound),
        ]
        if self.decoded_bound is not None:
            changes.append((self.decoded_total_variation, self.decoded_bound))
        return all(change <= bound + _ROUNDING_TOLERANCE * (1 + bound) for change, bound in changes)


def attack(
    mechanism: Mechanism,
    symbols: ArrayLike,
    *,
    fake_count: int,
    target: Label,
    kind: str = "raise",
    decoder: str = "projection",
    seed: int = 0,
) -> AttackResult:
    """Let the last ``fake_count`` people in ``symbols`` attack the share of ``target``.

    Return the effect of the attack. Everyone else's reports are the same with and without it, and
    depend only on the seed.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> result = attack(mechanism, [0, 1, 2, 1] * 2500, fake_count=100, target="a")
    >>> round(result.shift, 4), round(result.bound, 4), result.is_detected
    (0.0297, 0.0322, False)
    """
    if kind not in KINDS:
        raise InvalidArgument(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    decoder_object = get_decoder(decoder)
    true_symbols = require_symbols(symbols, mechanism.inputs).ravel()
    n = true_symbols.size
    if n == 0:
        raise NotEnoughReports("the population is empty.")
    m = check_fake_count(fake_count, n)
    x = int(mechanism.context.domain.label_symbols([target], "target")[0])

    reports = mechanism.privatize(true_symbols, SeededWords(seed))
    honest_counts = np.bincount(reports, minlength=mechanism.outputs)
    unchanged_counts = np.bincount(reports[: n - m], minlength=mechanism.outputs)
    fake_report_counts = np.zeros_like(honest_counts)
    if m > 0:
        words = SeededWords(seed, run=1)
        fake_reports = _forge_reports(kind, mechanism, x, m, words)
        fake_report_counts = np.bincount(fake_reports, minlength=mechanism.outputs)
    honest_tally = Tally(honest_counts, mechanism.fingerprint)
    attacked_tally = Tally(unchanged_counts + fake_report_counts, mechanism.fingerprint)

    shift = _shift_in_counts(mechanism, fake_report_counts, true_symbols[n - m :]) / n
    tally_bounds = ManipulationBounds.from_tally(mechanism, attacked_tally, decoder_object)
    bounds = tally_bounds.for_fake_count(m)
    bound = bounds.up if shift[x] >= 0 else bounds.down
    decoded_before = decoder_object.decode(mechanism, honest_tally).frequencies
    decoded_after = decoder_object.decode(mechanism, attacked_tally).frequencies
    return AttackResult(
        kind=kind,
        target=target,
        fake_count=m,
        people=n,
        shift=float(shift[x]),
        bound=float(bound[x]),
        total_variation=float(np.abs(shift).sum()) / 2,
        total_variation_bound=bounds.total_variation,
        decoder=decoder_object.name,
        decoded_shift=float(decoded_after[x] - decoded_before[x]),
        decoded_total_variation=total_variation(decoded_after, decoded_before),
        decoded_bound=bounds.decoded,
        fit=check_fit(mechanism, attacked_tally),
    )


def _forge_reports(
    kind: str, mechanism: Mechanism, x: int, fake_count: int, words: SeededWords
) -> Symbols:
    """Return the reports that fake people send to attack the share of symbol x."""
    if kind == "pretend":
        return mechanism.privatize(np.full(fake_count, x), words).astype(np.int64)
    indicator = np.zeros(mechanism.inputs)
    indicator[x] = 1.0
    scores = mechanism.scores.totals(indicator)  # A[x, ·]
    if kind == "raise":
        return np.full(fake_count, np.argmax(scores))
    if kind == "lower":
        return np.full(fake_count, np.argmin(scores))
    favourable_reports = np.flatnonzero(scores > 0)
    indices = words.take(fake_count)[:, 0] % np.uint64(favourable_reports.size)
    return favourable_reports[indices.astype(np.int64)]


def _shift_in_counts(
    mechanism: Mechanism, fake_report_counts: Symbols, true_symbols: Symbols
) -> Floats:
    """Return the shift in the unbiased estimate of the number of people with each symbol.

    The shift is the total score of the fake reports, minus the number of fake people who truly have
    the symbol.
    ``fake_report_counts``: how often each report was forged.
    ``true_symbols``: the true symbols of the fake people.
    """
    if true_symbols.size == 0:
        return np.zeros(mechanism.inputs)
    fake_count = fake_report_counts.sum()
    total_scores = fake_count * mechanism.scores.mean(fake_report_counts / fake_count)
    return total_scores - np.bincount(true_symbols, minlength=mechanism.inputs)
