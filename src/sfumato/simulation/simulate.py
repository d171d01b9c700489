"""Simulate: privatise and estimate data one already has, again and again, against the truth."""

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Symbols
from sfumato.errors import InvalidContext, NotEnoughReports
from sfumato.estimation.decoders import decoder_named
from sfumato.simulation.seeded import SeededWords
from sfumato.survey import Survey
from sfumato.tally import Tally

__all__ = ["Simulation", "simulate"]


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


def simulate(
    survey: Survey,
    batches: Iterable[Symbols],
    *,
    runs: int = 10,
    seed: int = 0,
    decoder: str = "auto",
    workers: int = 1,
) -> Simulation:
    """Privatise batches of symbols ``runs`` times and compare each estimate with the data.

    Memory is that of one batch and ``runs`` tallies. The same seed gives the same numbers however the input is cut
    into batches and however many workers there are.
    """
    if runs < 1 or workers < 1:
        raise InvalidContext("runs and workers must be at least 1.")
    decoder_named(decoder)  # refused before any data are read
    mechanism, people = survey.mechanism, 0
    truth = np.zeros(mechanism.inputs, dtype=np.int64)
    counts = np.zeros((runs, mechanism.outputs), dtype=np.int64)
    with ThreadPoolExecutor(workers) as pool:
        for symbols in batches:
            truth += np.bincount(symbols, minlength=mechanism.inputs)
            added = pool.map(
                lambda run, symbols=symbols, at=people: _one_run(survey, symbols, seed, run, at), range(runs)
            )
            for run, histogram in enumerate(added):
                counts[run] += histogram
            people += symbols.size
    if people == 0:
        raise NotEnoughReports("there is nobody to simulate: the input has no rows.")
    p = truth / people
    decode = [survey.estimate(Tally(row, survey.fingerprint), decoder=decoder).frequencies for row in counts]
    errors = np.array([np.abs(frequencies - p).sum() / 2 for frequencies in decode])
    return Simulation(survey.fingerprint, decoder, people, p, errors, np.array(decode))


def _one_run(survey: Survey, symbols: Symbols, seed: int, run: int, position: int) -> NDArray[np.int64]:
    if symbols.size == 0:
        return np.zeros(survey.mechanism.outputs, dtype=np.int64)
    reports = survey.mechanism.privatize(symbols, SeededWords(seed, run=run, position=position))
    return np.bincount(reports, minlength=survey.mechanism.outputs)
