"""Simulate: privatise and estimate data one already has, again and again, against the truth."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidContext, NotEnoughReports
from sfumato.estimation.decoders import decoder_named
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.survey import Survey
from sfumato.tally import Tally

__all__ = [
    "SeededCounts",
    "Simulation",
    "check_simulation",
    "seeded_counts",
    "simulate",
    "simulation_of",
]


@dataclass(frozen=True, eq=False)
class Simulation:
    """The total variation error of every run, ``½ Σ|p̂ − p|`` against the data's own distribution p."""

    survey: str
    decoder: str
    people: int
    truth: Floats
    errors: Floats
    estimates: Floats

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; ``nan`` for a single run."""
        runs = self.errors.size
        return float(self.errors.std(ddof=1) / math.sqrt(runs)) if runs > 1 else math.nan

    def in_json(self) -> dict[str, object]:
        """The result in the words of the command."""
        spread = self.standard_error
        error = {"mean": self.mean, "standard_error": None if math.isnan(spread) else spread}
        return {
            "survey": self.survey,
            "runs": int(self.errors.size),
            "people": self.people,
            "decoder": self.decoder,
            "total_variation": error,
        }


@dataclass(frozen=True, eq=False)
class SeededCounts:
    """People as they are, and the tallies of their reports in every run: a row for each. They add up, in place."""

    truth: NDArray[np.int64]
    reports: NDArray[np.int64]

    def __iadd__(self, other: "SeededCounts") -> Self:
        self.truth.__iadd__(other.truth)
        self.reports.__iadd__(other.reports)
        return self


def simulate(
    survey: Survey,
    batches: Iterable[Symbols],
    *,
    runs: int = 10,
    seed: int = 0,
    decoder: str = "auto",
) -> Simulation:
    """Privatise batches of symbols ``runs`` times and compare each estimate with the data.

    Memory is that of one batch and ``runs`` tallies. The same seed gives the same numbers however the input is cut
    into batches; ``sfumato.engines.simulated`` gives them for files, over any number of workers.
    """
    check_simulation(runs, decoder)
    return simulation_of(
        survey, seeded_counts(survey.mechanism, batches, runs=runs, seed=seed), decoder
    )


def check_simulation(runs: int, decoder: str) -> None:
    """Refuse a wrong call before any data are read."""
    if runs < 1:
        raise InvalidContext("runs must be at least 1.")
    decoder_named(decoder)


def seeded_counts(
    mechanism: Mechanism, batches: Iterable[Symbols], *, runs: int, seed: int, first_row: int = 0
) -> SeededCounts:
    """What ``runs`` runs count of people whose first stands in row ``first_row`` of the whole input."""
    truth = np.zeros(mechanism.inputs, dtype=np.int64)
    reports = np.zeros((runs, mechanism.outputs), dtype=np.int64)
    sources = [SeededWords(seed, run=run, position=first_row) for run in range(runs)]
    for symbols in batches:
        if symbols.size:
            truth += np.bincount(symbols, minlength=mechanism.inputs)
            for row, source in zip(reports, sources, strict=True):
                row += mechanism.privatize_and_tally(symbols, source).counts
    return SeededCounts(truth, reports)


def simulation_of(survey: Survey, counted: SeededCounts, decoder: str) -> Simulation:
    """The estimate of every run, and how far it is from the data."""
    people = int(counted.truth.sum())
    if people == 0:
        raise NotEnoughReports("there is nobody to simulate: the input has no rows.")
    p = counted.truth / people
    decode = [
        survey.estimate(Tally(row, survey.fingerprint), decoder=decoder).frequencies
        for row in counted.reports
    ]
    errors = np.array([total_variation(frequencies, p) for frequencies in decode])
    return Simulation(survey.fingerprint, decoder, people, p, errors, np.array(decode))
