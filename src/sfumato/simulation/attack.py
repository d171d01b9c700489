"""Attack: fake people among honest ones, to see what they achieve and what gives them away. Repeatable, NOT PRIVATE.

Some people of a crowd send what serves them instead of what they hold. They know the mechanism and its scores, they
agree on a target, and nobody can check a report. Four ways to do it:

``raise``
    All send the one report with the highest score for the target. Nothing moves its unbiased share further up.
``lower``
    All send the one report with the lowest score for the target. Nothing moves it further down.
``blend``
    Each draws evenly from all reports that score above 0 for the target, so that no single report stands out.
``pretend``
    All answer through the mechanism, as if they held the target. This is what lying amounts to in any survey, and
    no test of the reports can tell it from people who do hold it.

What they achieve is compared with the bounds of ``estimation/manipulation.py``; for decoders without one, it is all
that is known of them. The test of fit says whether anybody could have noticed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.domains.symbols import checked_symbols
from sfumato.errors import InvalidContext, NotEnoughReports
from sfumato.estimation import Fit
from sfumato.estimation.decoders import decoder_named
from sfumato.estimation.uncertainty.fit import fit_of
from sfumato.estimation.uncertainty.manipulation import checked_fakes, manipulation_of
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.tally import Tally

__all__ = ["KINDS", "Attacked", "attack"]

Forged = NDArray[np.int64]
"""The reports of the fake people, counted."""


@dataclass(frozen=True, eq=False)
class Attacked:
    """What an attack achieved, beside what it could have achieved at most.

    ``moved`` is what it did to the unbiased share of the target, compared with the fake people counted as what they
    hold, and ``total_variation`` what it did to all shares together; ``bound`` and ``total_variation_bound`` are how
    far either could have gone. ``decoded_moved`` and ``decoded_total_variation`` compare the decoded picture with that
    of the same people answering honestly; ``decoded_bound`` is ``None`` where none is known for the decoder.
    """

    kind: str
    target: Label
    fakes: int
    people: int
    moved: float
    bound: float
    total_variation: float
    total_variation_bound: float
    decoder: str
    decoded_moved: float
    decoded_total_variation: float
    decoded_bound: float | None
    fit: Fit

    @property
    def noticed(self) -> bool:
        """Whether the test of fit says that the reports cannot have come from the mechanism."""
        return not self.fit.possible

    @property
    def within(self) -> bool:
        """Whether everything stayed within its bound, but for rounding."""
        pairs = [(abs(self.moved), self.bound), (self.total_variation, self.total_variation_bound)]
        if self.decoded_bound is not None:
            pairs.append((self.decoded_total_variation, self.decoded_bound))
        return all(found <= bound + 1e-9 * (1 + bound) for found, bound in pairs)


def attack(
    mechanism: Mechanism,
    symbols: object,
    *,
    fakes: int,
    target: Label,
    kind: str = "raise",
    decoder: str = "projection",
    seed: int = 0,
) -> Attacked:
    """Let the last ``fakes`` of these people attack the share of ``target``.

    The other people's reports are the same with and without the attack, and the same for the same seed.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> found = attack(mechanism, [0, 1, 2, 1] * 2500, fakes=100, target="a")
    >>> round(found.moved, 4), round(found.bound, 4), found.noticed
    (0.0297, 0.0322, False)
    """
    if kind not in KINDS:
        raise InvalidContext(f"kind must be one of {', '.join(KINDS)}; found {kind!r}.")
    chosen, people = decoder_named(decoder), checked_symbols(symbols, mechanism.inputs).ravel()
    if people.size == 0:
        raise NotEnoughReports("there is nobody to attack: the crowd is empty.")
    m = checked_fakes(fakes, people.size)
    x = int(mechanism.context.domain.label_symbols([target], "target")[0])
    honest = mechanism.privatize(people, SeededWords(seed))
    rest = np.bincount(honest[: people.size - m], minlength=mechanism.outputs)
    forged = KINDS[kind](mechanism, x, m, SeededWords(seed, run=1))
    before, after = (
        Tally(counts, mechanism.fingerprint)
        for counts in (np.bincount(honest, minlength=mechanism.outputs), rest + forged)
    )
    shift = _shift(mechanism, forged, people[people.size - m :]) / people.size
    at_most = manipulation_of(mechanism, after, chosen, m)
    pictures = [chosen.decode(mechanism, tally).frequencies for tally in (before, after)]
    return Attacked(
        kind=kind,
        target=target,
        fakes=at_most.fakes,
        people=people.size,
        moved=float(shift[x]),
        bound=float((at_most.up if shift[x] >= 0 else at_most.down)[x]),
        total_variation=float(np.abs(shift).sum()) / 2,
        total_variation_bound=at_most.total_variation,
        decoder=chosen.name,
        decoded_moved=float(pictures[1][x] - pictures[0][x]),
        decoded_total_variation=total_variation(pictures[1], pictures[0]),
        decoded_bound=at_most.decoded,
        fit=fit_of(mechanism, after),
    )


def _shift(mechanism: Mechanism, forged: Forged, held: Symbols) -> Floats:
    """By how many people each count is off: the scores of the forged reports, less what honest ones mean."""
    if held.size == 0:
        return np.zeros(mechanism.inputs)
    scores = forged.sum() * mechanism.scores.mean(forged / forged.sum())
    return scores - np.bincount(held, minlength=mechanism.inputs)


# --- what fake people send -------------------------------------------------------------------------------------------


def _raise(mechanism: Mechanism, x: int, fakes: int, source: SeededWords) -> Forged:
    return _all_send(int(np.argmax(_scores_for(mechanism, x))), mechanism, fakes)


def _lower(mechanism: Mechanism, x: int, fakes: int, source: SeededWords) -> Forged:
    return _all_send(int(np.argmin(_scores_for(mechanism, x))), mechanism, fakes)


def _blend(mechanism: Mechanism, x: int, fakes: int, source: SeededWords) -> Forged:
    speaking = np.flatnonzero(_scores_for(mechanism, x) > 0)
    drawn = speaking[(source.take(fakes)[:, 0] % np.uint64(speaking.size)).astype(np.int64)]
    return np.bincount(drawn, minlength=mechanism.outputs)


def _pretend(mechanism: Mechanism, x: int, fakes: int, source: SeededWords) -> Forged:
    if fakes == 0:
        return np.zeros(mechanism.outputs, dtype=np.int64)
    return np.bincount(mechanism.privatize(np.full(fakes, x), source), minlength=mechanism.outputs)


def _all_send(y: int, mechanism: Mechanism, fakes: int) -> Forged:
    counts = np.zeros(mechanism.outputs, dtype=np.int64)
    counts[y] = fakes
    return counts


def _scores_for(mechanism: Mechanism, x: int) -> Floats:
    """``A[x, ·]``."""
    unit = np.zeros(mechanism.inputs)
    unit[x] = 1.0
    return mechanism.scores.totals(unit)


KINDS: dict[str, Callable[[Mechanism, int, int, SeededWords], Forged]] = {
    "raise": _raise,
    "lower": _lower,
    "blend": _blend,
    "pretend": _pretend,
}
"""The ways to attack, by name."""
