"""The comparison: a mechanism beside k-RR, Hadamard response, OUE and OLH, on one crowd, for one promise."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Context, Uniform
from sfumato.designer import mechanism_for
from sfumato.errors import ContextMismatch, InvalidSymbols, NotEnoughReports, NothingToLearn
from sfumato.estimation.decoders import Decoder, decoder_named
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.formatting import format_number
from sfumato.foundation.simplex import project, total_variation
from sfumato.mechanisms import Mechanism, PlainResponse
from sfumato.simulation.baselines import LocalHashing, Rival, UnaryEncoding
from sfumato.simulation.comparison_text import in_text
from sfumato.simulation.draws import Draws, crowd_tally
from sfumato.simulation.seeded import SeededWords

__all__ = ["Comparison", "Row", "Spread", "compare"]

_WHAT = {
    "sfumato": "Sfumato",
    "k-rr": "k-RR",
    "hadamard": "Hadamard response",
    "oue": "OUE",
    "olh": "OLH",
}
_ROUNDING = 1e-12  # what a difference of ones leaves where there is no error


class Spread(NamedTuple):
    """The mean of a figure over runs, and its standard error; ``None`` for a single run."""

    mean: float
    standard_error: float | None

    @classmethod
    def of(cls, figures: Floats) -> "Spread":
        """The spread of one figure per run."""
        runs = figures.size
        return cls(
            float(figures.mean()),
            float(figures.std(ddof=1) / math.sqrt(runs)) if runs > 1 else None,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Row:
    """One participant and its figures.

    ``errors`` are the total variation errors of the runs, of the unbiased estimate projected on the simplex: the same
    for everybody. ``decoded`` are those of the chosen decoder, for mechanisms of this package alone.
    ``l2`` is the Euclidean error of the unbiased estimate, root of its exact mean square over all draws.
    ``leverage`` is the most that one fake report adds to a label, or takes from it, in people; ``reach`` is how many
    people's worth of total variation it moves the whole unbiased estimate by, in the place of an honest one.
    """

    name: str
    epsilon: float
    bits: int
    leverage: float
    reach: float
    l2: float
    errors: Floats
    decoded: Floats | None

    @property
    def what(self) -> str:
        """The name as tables write it."""
        return _WHAT[self.name]

    @property
    def error(self) -> Spread:
        """The error when all are decoded alike."""
        return Spread.of(self.errors)

    @property
    def decoded_error(self) -> Spread | None:
        """The error of the chosen decoder."""
        return None if self.decoded is None else Spread.of(self.decoded)

    def in_json(self) -> dict[str, object]:
        """The row in the words of the command."""
        return {
            "name": self.name,
            "epsilon": self.epsilon,
            "total_variation": self.error._asdict(),
            "decoded_total_variation": None
            if self.decoded_error is None
            else self.decoded_error._asdict(),
            "l2": self.l2,
            "bits": self.bits,
            "leverage": self.leverage,
            "reach": self.reach,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A row per participant, one's own first; printed, it is a table with a legend.

    ``epsilon`` is the one that classical peers take: the smallest that the context owes to any pair.
    """

    people: int
    size: int
    epsilon: float
    uniform: bool
    decoder: str
    draws: Draws
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row:
        """The row of that name: sfumato, k-rr, hadamard, oue or olh."""
        return next(row for row in self.rows if row.name == name)

    def people_needed(self, row: Row) -> float | None:
        """How many times as many people as one's own it needs for the same mean squared error, exactly.

        Of the unbiased estimate, and for people spread as they are. ``None`` where one's own makes no error.
        """
        own = self.rows[0].l2
        return (row.l2 / own) ** 2 if own > 0 else None

    def in_json(self) -> dict[str, object]:
        """The comparison in the words of the command."""
        rows = [{**row.in_json(), "people_needed": self.people_needed(row)} for row in self.rows]
        return {
            "people": self.people,
            "labels": self.size,
            "classical_epsilon": self.epsilon,
            "runs": self.draws.runs,
            "seed": self.draws.seed,
            "decoder": self.decoder,
            "mechanisms": rows,
        }

    def __repr__(self) -> str:
        return in_text(self)


def compare(
    context: Context,
    counts: ArrayLike,
    *,
    mechanism: Mechanism | None = None,
    decoder: str | Decoder = "auto",
    draws: Draws | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Let ``counts[x]`` people with symbol x answer through each participant, again and again, and compare.

    ``mechanism`` is one's own, by default ``mechanism_for(context)``. Its classical peers know one ε for all pairs; to
    keep the context they take the smallest, ``context.smallest_epsilon``. Everybody is decoded alike, by Euclidean
    projection of the unbiased estimate on the simplex; mechanisms of this package by ``decoder`` as well.
    Errors are against the people who are there, not against a distribution that they were drawn from.

    >>> from sfumato.contexts import HighLow
    >>> places = HighLow(["park", "café", "clinic", "bar"], sensitive=["clinic", "bar"], epsilon=1)
    >>> found = compare(places, [4000, 3000, 1000, 2000], decoder="projection")
    >>> for row in found.rows:
    ...     print(f"{row.what:18} {row.bits:3} {row.leverage:5.2f} {found.people_needed(row):5.2f}")
    Sfumato              2  2.16  1.00
    k-RR                 2  2.75  2.84
    Hadamard response    3  3.50  4.68
    OUE                  4  3.16  5.92
    OLH                 66  3.33  6.02
    """
    crowd = _checked_crowd(context, counts)
    own = mechanism_for(context) if mechanism is None else mechanism
    if own.context.domain != context.domain:
        raise ContextMismatch("the mechanism must be for the domain of the context.")
    chosen, runs = decoder_named(decoder), Draws() if draws is None else draws
    rows = []
    for number, (name, entered) in enumerate(_participants(context, own).items()):
        on_progress(_WHAT[name])
        contest = _Contest(crowd, chosen, runs, number)
        rows.append(
            contest.rival(name, entered)
            if isinstance(entered, Rival)
            else contest.mechanism(name, entered)
        )
    return Comparison(
        people=int(crowd.sum()),
        size=context.size,
        epsilon=context.smallest_epsilon,
        uniform=context.uniform_epsilon is not None,
        decoder=chosen.name,
        draws=runs,
        rows=tuple(rows),
    )


def _participants(context: Context, own: Mechanism) -> dict[str, Mechanism | Rival]:
    """One's own, and four that keep the smallest ε of the context for every pair."""
    k, epsilon = context.size, context.smallest_epsilon
    if not 0 < epsilon < math.inf:
        raise NothingToLearn(
            "classical mechanisms need an ε above 0 that is finite; the smallest of this context is "
            f"{format_number(epsilon)}. Compare a survey that promises something, and not everything."
        )
    classical = Uniform(context.domain, context.exact_smallest)
    return {
        "sfumato": own,
        "k-rr": PlainResponse(classical, RandomizedCode),
        "hadamard": PlainResponse(classical, HadamardCode),
        "oue": UnaryEncoding(k, epsilon),
        "olh": LocalHashing(k, epsilon),
    }


@dataclass(frozen=True, eq=False)
class _Contest:
    """What one participant meets: the crowd, and words of its own."""

    counts: Symbols
    decoder: Decoder
    draws: Draws
    number: int

    def mechanism(self, name: str, entered: Mechanism) -> Row:
        """A mechanism of this package; the mean square is ``(Σ_y q(y) Σ_x A[x, y]² − 1)/n``, as people are given."""

        def run(words: SeededWords) -> tuple[float, float]:
            tally = crowd_tally(entered, self.counts, words)
            pictures = (
                project(entered.scores.unbiased(tally)),
                self.decoder.decode(entered, tally).frequencies,
            )
            return self._error(pictures[0]), self._error(pictures[1])

        errors, decoded = self.draws.each(self.number, 2, run)
        square = float(entered.forward(self._truth) @ entered.scores.squares()) - 1
        l2 = math.sqrt(square / self.counts.sum()) if square > _ROUNDING else 0.0
        epsilon, reach = entered.context.smallest_epsilon, entered.scores.reach.total_variation
        return Row(
            name, epsilon, entered.bits, float(entered.scores.leverage), reach, l2, errors, decoded
        )

    def rival(self, name: str, entered: Rival) -> Row:
        """A peer that this package has no mechanism for, and no decoder."""

        def run(words: SeededWords) -> tuple[float]:
            return (self._error(project(entered.draw(self.counts, words.take(entered.size)))),)

        (errors,) = self.draws.each(self.number, 1, run)
        l2 = math.sqrt(entered.variances(self.counts).sum())
        return Row(
            name, entered.epsilon, entered.bits, entered.leverage, entered.reach, l2, errors, None
        )

    @property
    def _truth(self) -> Floats:
        return self.counts / self.counts.sum()

    def _error(self, picture: Floats) -> float:
        return total_variation(picture, self._truth)


def _checked_crowd(context: Context, counts: ArrayLike) -> Symbols:
    crowd = np.asarray(counts)
    if (
        crowd.shape != (context.size,)
        or not np.issubdtype(crowd.dtype, np.integer)
        or (crowd < 0).any()
    ):
        raise InvalidSymbols(
            f"counts must hold a whole number of people for each of the {context.size} symbols."
        )
    if not crowd.any():
        raise NotEnoughReports("there is nobody to compare with: all counts are 0.")
    return crowd.astype(np.int64)
