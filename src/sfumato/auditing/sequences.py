"""Test what single reports cannot show: successive reports, and the first report after a restart.

Each report of a client may keep the promise by itself, and two of them may break it: if the second
uses the randomness of the first again, both together can prove a symbol. And a client may answer in
clear before its generator is seeded, once per start. A table of single reports shows neither.

Each test is a game of ``guessing.py``. The games differ in what their guesses are based on:

- *successive reports* of a command, a mechanism or a survey: the previous symbol and its report,
  and the report itself. A second game also knows whether it is the first or the second of two, for
  clients that use their randomness twice. The games learn from the samples that events are chosen
  from, and bet on those of the test. They draw no others.
- *successive calls* of a function: the same, for calls that ask for a single report.
- *reports of one call* of a function: both reports of a call that asks for two. Together, they may
  use up the promise twice.
- *first reports* of a command: the report, of a process that has just been started.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.black_box import Randomizer, list_reports
from sfumato.auditing.guessing import GuessingGame
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.randomness import WordSource

__all__ = [
    "LEVEL_SHARE",
    "MAX_SEQUENCE_TESTS",
    "SequencePlayer",
    "SequenceTest",
    "SuccessiveReports",
]

LEVEL_SHARE = 0.1
"""The share of α for each test of sequences."""

MAX_SEQUENCE_TESTS = 2
"""The maximum number of tests of sequences in one audit."""

_CALL_SHARE = 0.02
_MAX_CALL_REPORTS = 10_000

_MAX_CODES = 256  # more different reports are not told apart
_FIRST_ROUND = 8  # queries to learn from before the first bet
_ROUND_GROWTH = 1.5


@dataclass(frozen=True)
class SequenceTest(FieldsView):
    """The result of one game.

    ``subject`` says which reports were tested, and ``reports`` how many. The promise is broken
    unless the game was lucky, which has a probability of at most ``p_value``. The verdict needs a
    probability of at most ``level``.
    """

    subject: str
    reports: int
    level: float
    log_capital: float

    @property
    def p_value(self) -> float:
        """The largest probability of such a capital if the promise holds."""
        return min(math.exp(-max(self.log_capital, 0.0)), 1.0)

    @property
    def violates(self) -> bool:
        """Whether the capital shows that the promise is broken."""
        return self.log_capital >= -math.log(self.level)

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON-compatible data."""
        return {
            "subject": self.subject,
            "reports": self.reports,
            "level": self.level,
            "p_value": self.p_value,
            "violates": self.violates,
        }


class ReportCodes:
    """Numbers for reports, in order of appearance; the last number stands for all further reports.

    >>> ReportCodes().read(["yes", "no", "yes"])
    array([0, 1, 0])
    """

    def __init__(self) -> None:
        self._code_of: dict[Hashable, int] = {}

    def read(self, reports: Sequence[Hashable] | NDArray[Any]) -> Symbols:
        """Return the number of each report."""
        if isinstance(reports, np.ndarray):
            values, index = np.unique(reports, return_inverse=True)
            return self.read(values.tolist())[index]
        return np.fromiter(map(self._read_one, reports), dtype=np.int64)

    def _read_one(self, report: Hashable) -> int:
        code = self._code_of.get(report)
        if code is None:
            code = min(len(self._code_of), _MAX_CODES - 1)
            if code < _MAX_CODES - 1:
                self._code_of[report] = code
        return code


class SuccessiveReports:
    """The game on successive reports of one process.

    The state of a query is the previous symbol and report, and its own report. A second game also
    knows whether the query is the first or the second of two. Each game has half of the level.
    """

    def __init__(self, symbols: Symbols, E: Floats) -> None:
        self._symbols = symbols
        self._games = (GuessingGame(E), GuessingGame(E))
        self._codes = ReportCodes()
        self._position = 0
        self._previous = 0  # the previous symbol and report
        self._reports = 0

    def learn(self, queries: Symbols, reports: Sequence[Hashable] | NDArray[Any]) -> None:
        """Learn from the next queries, which contain every symbol equally often on average."""
        rows, states_by_game = self._read(queries, reports)
        for game, states in zip(self._games, states_by_game, strict=True):
            game.learn(states, rows)

    def play(
        self, queries: Symbols, reports: Sequence[Hashable] | NDArray[Any], weights: Floats
    ) -> None:
        """Bet on the next queries, whose symbols were drawn in proportion to ``weights``."""
        rows, states_by_game = self._read(queries, reports)
        for game, states in zip(self._games, states_by_game, strict=True):
            game.play(states, rows, weights)
        self._reports += queries.size

    def play_and_learn(self, queries: Symbols, reports: Sequence[Hashable]) -> None:
        """Bet on the next queries, whose symbols were drawn uniformly, and then learn from them."""
        rows, states_by_game = self._read(queries, reports)
        for game, states in zip(self._games, states_by_game, strict=True):
            game.play(states, rows, np.ones(self._symbols.size))
            game.learn(states, rows)
        self._reports += queries.size

    def result(self, level: float, subject: str = "successive reports") -> SequenceTest:
        """Return the result of both games."""
        log_capital = max(game.log_capital for game in self._games) - math.log(len(self._games))
        return SequenceTest(subject, self._reports, level, log_capital)

    def _read(
        self, queries: Symbols, reports: Sequence[Hashable] | NDArray[Any]
    ) -> tuple[Symbols, tuple[Symbols, Symbols]]:
        """Return the symbol of each query, and its state in each of the games."""
        rows = np.searchsorted(self._symbols, queries)
        codes = self._codes.read(reports)
        answers = rows * _MAX_CODES + codes
        previous = np.concatenate([[self._previous], answers])[:-1]
        parity = (self._position + np.arange(rows.size)) % 2
        self._position += rows.size
        if answers.size:
            self._previous = int(answers[-1])
        states = previous * _MAX_CODES + codes
        return rows, (states, 2 * states + parity)


class SequencePlayer:
    """Plays games on extra samples, whose symbols it draws uniformly; each has the same level."""

    def __init__(self, symbols: Symbols, E: Floats, level: float, source: WordSource) -> None:
        self._symbols = symbols
        self._E = E
        self._level = level
        self._source = source

    def play_function(self, randomize: Randomizer, samples: int) -> tuple[SequenceTest, ...]:
        """Test calls of a function, with few reports in proportion to the audit's samples."""
        count = min(int(samples * _CALL_SHARE), _MAX_CALL_REPORTS)
        return self.play_calls(randomize, count), self.play_pairs(randomize, count // 2)

    def play_calls(self, randomize: Randomizer, count: int) -> SequenceTest:
        """Test successive calls of a function, each for one report."""
        successive = SuccessiveReports(self._symbols, self._E)
        for rows in self._draw_rounds(count):
            queries = self._symbols[rows]
            reports: list[Hashable] = []
            for symbol in queries.tolist():
                reports += list_reports(randomize(symbol, 1), 1)
            successive.play_and_learn(queries, reports)
        return successive.result(self._level, "successive calls")

    def play_pairs(self, randomize: Randomizer, count: int) -> SequenceTest:
        """Test calls of a function for two reports of one symbol: together, they are one report."""

        def draw_pairs(queries: Symbols) -> list[Hashable]:
            return [tuple(list_reports(randomize(x, 2), 2)) for x in queries.tolist()]

        log_capital = self._play_reports(draw_pairs, 2 * self._E, count)
        return SequenceTest("two reports of one call", 2 * count, self._level, log_capital)

    def play_first_reports(self, restart: Callable[[int], Hashable], count: int) -> SequenceTest:
        """Test the first reports of processes that have just been started."""

        def draw_first_reports(queries: Symbols) -> list[Hashable]:
            return list(map(restart, queries.tolist()))

        log_capital = self._play_reports(draw_first_reports, self._E, count)
        return SequenceTest("first reports after a restart", count, self._level, log_capital)

    def _play_reports(
        self, draw: Callable[[Symbols], list[Hashable]], E: Floats, count: int
    ) -> float:
        """Play a game whose guesses are based on single reports; return its log-capital."""
        game = GuessingGame(E)
        codes = ReportCodes()
        weights = np.ones(self._symbols.size)
        for rows in self._draw_rounds(count):
            states = codes.read(draw(self._symbols[rows]))
            game.play(states, rows, weights)
            game.learn(states, rows)
        return game.log_capital

    def _draw_rounds(self, count: int) -> Iterator[Symbols]:
        """Draw positions of symbols independently and uniformly (to within 2^−58), in rounds."""
        words = self._source.take(count, 1)[:, 0]
        rows = (words % np.uint64(self._symbols.size)).astype(np.int64)
        for part in _rounds(count):
            yield rows[part]


def _rounds(count: int) -> list[slice]:
    """Divide queries into rounds that grow with what was learned before.

    >>> [(part.start, part.stop) for part in _rounds(30)]
    [(0, 8), (8, 12), (12, 18), (18, 27), (27, 30)]
    """
    rounds = []
    start = 0
    stop = min(_FIRST_ROUND, count)
    while start < count:
        rounds.append(slice(start, stop))
        start = stop
        stop = min(max(int(stop * _ROUND_GROWTH), stop + 1), count)
    return rounds
