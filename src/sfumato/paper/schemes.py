"""The two ways through a survey that the experiments compare: the paper's, and the best that is known here.

Both are measured on reports that were really made: people are drawn, and every one of them answers.
"""

import hashlib

from sfumato.estimation.decoders import Auto
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import project
from sfumato.mechanisms import BlockResponse, HighLowResponse, Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.tally import Tally

__all__ = ["answered", "best_estimate", "named_words", "paper_estimate"]


def answered(mechanism: Mechanism, symbols: Symbols, name: str, run: int, seed: int) -> Tally:
    """Everybody's reports, counted; another name, run or seed means other coins."""
    return mechanism.tally(mechanism.privatize(symbols, named_words(name, run, seed)))


def named_words(name: str, run: int, seed: int) -> SeededWords:
    """Words that no other name, run or seed has. NOT PRIVATE."""
    number = hashlib.sha256(f"sfumato/paper/{name}/{run}".encode()).digest()[:8]
    return SeededWords(seed, run=int.from_bytes(number, "big"))


def paper_estimate(mechanism: BlockResponse | HighLowResponse, tally: Tally) -> Floats:
    """The paper's own estimator, and once, over all symbols, the nearest distribution to it.

    The frames here would correct the totals of groups first. A code that is not balanced is refused: the paper's
    estimator would be wrong for it.
    """
    return project(mechanism.scores.paper_estimate(tally))


def best_estimate(mechanism: Mechanism, tally: Tally) -> Floats:
    """What ``estimate`` does unless told otherwise: empirical Bayes, moved towards projection if reports say so."""
    return Auto().decode(mechanism, tally).frequencies
