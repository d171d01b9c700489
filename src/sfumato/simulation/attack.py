"""Attack: fake people among honest ones, to see what they achieve and what gives them away.

Seeded, so NOT PRIVATE. Some people send what serves them instead of their own answer. They know the
mechanism and its scores, they agree on a target, and no report can be checked. Four kinds:

``raise``
    All send the one report with the highest score for the target. Nothing moves its unbiased share
    further up.
``lower``
    All send the one report with the lowest score for the target. Nothing moves it further down.
``blend``
    Each draws evenly from all reports that score above 0 for the target, so that no single report
    stands out.
``pretend``
    All answer through the mechanism as if the target were their answer. This is what lying amounts
    to in any survey: no test of the reports can tell it from honest people.

The result is compared with the bounds of ``estimation/uncertainty/manipulation.py``. For decoders
without a bound it is all that is known. The test of fit says whether the attack shows.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.domains import Label, require_symbols
from sfumato.errors import InvalidArgument, NotEnoughReports
from sfumato.estimation import FitResult, ManipulationBounds, check_fakes, check_fit
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.tally import Tally

__all__ = ["KINDS", "AttackResult", "attack"]

KINDS = ("raise", "lower", "blend", "pretend")
"""The kinds of attack."""

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class AttackResult:
    """What an attack achieved, and the most it could have achieved.

    ``shift``: the change of the target's unbiased share, compared with counting the fake people by
    their own answers.
    ``bound``: the furthest it could have gone.
    ``total_variation``, ``total_variation_bound``: the same for all shares together.
    ``decoded_shift``, ``decoded_total_variation``: the change of the decoded estimate, compared
    with that of the same people answering honestly.
    ``decoded_bound``: the furthest that could have gone; ``None`` if no bound is known for the
    decoder.
    """

    kind: str
    target: Label
    fakes: int
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
    def is_noticed(self) -> bool:
        """Whether the test of fit says that the reports cannot have come from the mechanism."""
        return not self.fit.is_possible

    @property
    def is_within_bounds(self) -> bool:
        """Whether everything stayed within its bound, up to rounding."""
        pairs = [(abs(self.shift), self.bound), (self.total_variation, self.total_variation_bound)]
        if self.decoded_bound is not None:
            pairs.append((self.decoded_total_variation, self.decoded_bound))
        return all(value <= bound + _ROUNDING * (1 + bound) for value, bound in pairs)


def attack(
    mechanism: Mechanism,
    symbols: object,
    *,
    fakes: int,
    target: Label,
    kind: str = "raise",
    decoder: str = "projection",
    seed: int = 0,
) -> AttackResult:
    """Let the last ``fakes`` of these people attack the share of ``target``.

    The other people's reports are the same with and without the attack, and the same for the same
    seed.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> result = attack(mechanism, [0, 1, 2, 1] * 2500, fakes=100, target="a")
    >>> round(result.shift, 4), round(result.bound, 4), result.is_noticed
    (0.0297, 0.0322, False)
    """
    if kind not in KINDS:
        raise InvalidArgument(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    chosen = get_decoder(decoder)
    people = require_symbols(symbols, mechanism.inputs).ravel()
    n = people.size
    if n == 0:
        raise NotEnoughReports("the population is empty.")
    m = check_fakes(fakes, n)
    x = int(mechanism.context.domain.label_symbols([target], "target")[0])

    reports = mechanism.privatize(people, SeededWords(seed))
    honest = np.bincount(reports, minlength=mechanism.outputs)
    unchanged = np.bincount(reports[: n - m], minlength=mechanism.outputs)
    forged = np.zeros_like(honest)
    if m > 0:
        fake_reports = _forge_reports(kind, mechanism, x, m, SeededWords(seed, run=1))
        forged = np.bincount(fake_reports, minlength=mechanism.outputs)
    before = Tally(honest, mechanism.fingerprint)
    after = Tally(unchanged + forged, mechanism.fingerprint)

    shift = _shift(mechanism, forged, people[n - m :]) / n
    bounds = ManipulationBounds.from_tally(mechanism, after, chosen).for_fakes(m)
    bound = bounds.up if shift[x] >= 0 else bounds.down
    decoded_before = chosen.decode(mechanism, before).frequencies
    decoded_after = chosen.decode(mechanism, after).frequencies
    return AttackResult(
        kind=kind,
        target=target,
        fakes=bounds.fakes,
        people=n,
        shift=float(shift[x]),
        bound=float(bound[x]),
        total_variation=float(np.abs(shift).sum()) / 2,
        total_variation_bound=bounds.total_variation,
        decoder=chosen.name,
        decoded_shift=float(decoded_after[x] - decoded_before[x]),
        decoded_total_variation=total_variation(decoded_after, decoded_before),
        decoded_bound=bounds.decoded,
        fit=check_fit(mechanism, after),
    )


def _forge_reports(
    kind: str, mechanism: Mechanism, x: int, fakes: int, source: SeededWords
) -> Symbols:
    """Return what this many fake people send to attack the share of symbol x."""
    if kind == "pretend":
        return mechanism.privatize(np.full(fakes, x), source).astype(np.int64)
    unit = np.zeros(mechanism.inputs)
    unit[x] = 1.0
    scores = mechanism.scores.totals(unit)  # A[x, ·]
    if kind == "raise":
        return np.full(fakes, np.argmax(scores))
    if kind == "lower":
        return np.full(fakes, np.argmin(scores))
    favourable = np.flatnonzero(scores > 0)
    indices = source.take(fakes)[:, 0] % np.uint64(favourable.size)
    return favourable[indices.astype(np.int64)]


def _shift(mechanism: Mechanism, forged: Symbols, symbols: Symbols) -> Floats:
    """Return by how many people each count is off.

    This is the scores of the forged reports, minus what honest reports of these people would mean.
    """
    if symbols.size == 0:
        return np.zeros(mechanism.inputs)
    scores = forged.sum() * mechanism.scores.mean(forged / forged.sum())
    return scores - np.bincount(symbols, minlength=mechanism.inputs)
