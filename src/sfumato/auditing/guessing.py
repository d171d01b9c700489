"""Guess the symbols behind reports, and bet on the guesses at the odds that a promise allows.

Let s be everything that an observer knows about a report: the report itself, and perhaps earlier
symbols and reports. If the promise holds at all times, however reports depend on earlier ones, then
knowing s changes the odds of symbol g against symbol r by at most a factor of ``e^E[g, r]``:

    P(g | s) / P(r | s)  ≤  (w_g/w_r) · e^E[g, r]            w: how often each symbol is asked

So among queries for g or for a symbol of a set R, a guess of g is right with probability at most

    q = 1 / (1 + Σ_{r in R} (w_r/w_g) e^−E[g, r])

A *game* bets on such guesses. It multiplies its capital, which is 1 at first, by ``a/q`` if the
guess is right, by ``(1 − a)/(1 − q)`` if it is wrong, and by 1 if the symbol is another, for some
a > q. As long as the promise holds, the capital cannot be expected to grow, whichever bets are
chosen from the past: it is a supermartingale. So it ever reaches 1/α with probability at most α
(Ville, 1939). This needs no approximation and no correction for the number of bets.

**The bets.** The game counts how often each symbol was behind each s so far. In each s, it bets on
the guess (g, R) that would have won most, where R is a single symbol or all that g is protected
against. A guess that would have won little did so by chance; one that would have won much has
little to lose from being left out. So the capital is divided among five players, who bet only on
guesses that would have won at least a certain amount.

References: J. Ville, Étude critique de la notion de collectif (1939); G. Shafer, Testing by betting
(2021).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Booleans, Floats, Symbols

__all__ = ["GuessingGame"]

_MIN_WINS = np.array([0.5, 2.0, 5.0, 10.0, 20.0])  # of each player: log of the capital so far
_PRIOR_COUNT = 2.0  # imaginary queries, for which the promise is used up exactly
_MAX_PROMISE = 20.0  # larger promises allow almost every guess to be right
_MAX_TABLE_SIZE = 2**21  # states times pairs of symbols; the most frequent states are kept


@dataclass(frozen=True, eq=False)
class _Bets:
    """One bet for each state: guess ``guess``, against the symbols of ``opponents``.

    ``excess`` is the estimated odds of the guess, divided by the largest odds that keep the
    promise. ``wins`` is the logarithm of what the bet would have won so far.
    """

    states: Symbols
    guess: Symbols
    opponents: Booleans
    excess: Floats
    wins: Floats


class GuessingGame:
    """Bets on guesses of symbols; its capital becomes large only if the promise is broken.

    ``E`` is the promise for the audited symbols. ``states`` are integers that stand for what an
    observer knows, and ``rows`` are the positions of the symbols among the audited ones.

    >>> from sfumato.simulation import SeededWords
    >>> rows = (SeededWords(1).take(200, 1)[:, 0] % 2).astype(np.int64)
    >>> game = GuessingGame(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> for start in range(0, 200, 20):  # every state gives its symbol away
    ...     game.play(rows[start : start + 20], rows[start : start + 20], np.ones(2))
    ...     game.learn(rows[start : start + 20], rows[start : start + 20])
    >>> game.log_capital > 30
    True
    """

    def __init__(self, E: Floats) -> None:
        k = len(E)
        self._symbol_count = k
        is_promised = (_MAX_PROMISE >= E) & ~np.eye(k, dtype=bool)
        # e^−E[g, r], or 0 if r is no opponent of g
        self._inverse_odds = np.where(is_promised, np.exp(-np.minimum(E, _MAX_PROMISE)), 0.0)
        self._learned: list[Symbols] = []
        self._bets: _Bets | None = None  # chosen from all that was learned
        self._log_capitals = np.zeros(_MIN_WINS.size)
        self.log_capital = 0.0
        """The logarithm of the largest capital so far, after any call of ``play``."""

    def learn(self, states: Symbols, rows: Symbols) -> None:
        """Add queries to the past. Every symbol must have been asked equally often on average."""
        self._learned.append(states * self._symbol_count + rows)
        self._bets = None

    def play(self, states: Symbols, rows: Symbols, weights: Floats) -> None:
        """Bet on queries that were not learned before.

        Their symbols must have been drawn independently, with probabilities in proportion to
        ``weights``. Their order does not matter, because the bets do not change.
        """
        bets = self._bets or self._choose_bets()
        self._bets = bets
        if not bets.states.size or not states.size:
            return
        index = np.minimum(np.searchsorted(bets.states, states), bets.states.size - 1)
        is_known = bets.states[index] == states
        index = index[is_known]
        rows = rows[is_known]
        is_right = rows == bets.guess[index]
        is_wrong = bets.opponents[index, rows]
        rights = np.bincount(index[is_right], minlength=bets.states.size)
        wrongs = np.bincount(index[is_wrong], minlength=bets.states.size)
        # The largest odds of each guess that keep the promise, and the odds to bet on
        against = bets.opponents * self._inverse_odds[bets.guess] * weights
        odds = weights[bets.guess] / against.sum(axis=1)
        q = odds / (1 + odds)
        a = bets.excess * odds / (1 + bets.excess * odds)
        gains = rights * np.log(a / q) + wrongs * np.log((1 - a) / (1 - q))
        for player, min_wins in enumerate(_MIN_WINS):
            self._log_capitals[player] += gains[bets.wins >= min_wins].sum()
        largest = float(self._log_capitals.max())
        mean = float(np.exp(self._log_capitals - largest).mean())
        self.log_capital = max(self.log_capital, largest + math.log(mean))

    def _choose_bets(self) -> _Bets:
        """Return the bet of each state that would have won most so far."""
        states, counts = self._count_states()
        k = self._symbol_count
        inverse_odds = self._inverse_odds
        is_opponent = inverse_odds > 0
        # The last column of each table stands for the set of all opponents.
        against = np.concatenate([inverse_odds, inverse_odds.sum(axis=1, keepdims=True)], axis=1)
        q = np.where(against > 0, 1 / (1 + against), 1.0)
        wrongs = np.empty((len(counts), k, k + 1))
        wrongs[:, :, :k] = counts[:, None, :]
        wrongs[:, :, k] = counts @ is_opponent.T
        totals = counts[:, :, None] + wrongs
        a = (counts[:, :, None] + _PRIOR_COUNT * q) / (totals + _PRIOR_COUNT)
        is_allowed = (against > 0) & (a > q)
        with np.errstate(divide="ignore", invalid="ignore"):
            divergence = a * np.log(a / q) + (1 - a) * np.log((1 - a) / (1 - q))
            excess = a / (1 - a) * against
        wins = np.where(is_allowed, totals * divergence, 0.0).reshape(len(counts), k * (k + 1))
        best = wins.argmax(axis=1)
        best_wins = np.take_along_axis(wins, best[:, None], axis=1)[:, 0]
        best_excess = np.take_along_axis(excess.reshape(wins.shape), best[:, None], axis=1)[:, 0]
        guess, opponent = np.divmod(best, k + 1)
        opponents = is_opponent[guess]
        is_single = opponent < k
        opponents[is_single] = np.eye(k, dtype=bool)[opponent[is_single]]
        is_bet = best_wins >= _MIN_WINS[0]
        return _Bets(
            states[is_bet],
            guess[is_bet],
            opponents[is_bet],
            best_excess[is_bet],
            best_wins[is_bet],
        )

    def _count_states(self) -> tuple[Symbols, NDArray[np.float64]]:
        """Return the most frequent states, in ascending order, and the counts of their symbols."""
        k = self._symbol_count
        codes = np.concatenate([*self._learned, np.empty(0, dtype=np.int64)])
        values, counts = np.unique(codes, return_counts=True)
        states, index = np.unique(values // k, return_inverse=True)
        table = np.zeros((states.size, k))
        table[index, values % k] = counts
        max_states = max(_MAX_TABLE_SIZE // (k * (k + 1)), 1)
        most_frequent = np.argsort(-table.sum(axis=1), kind="stable")[:max_states]
        kept = np.sort(most_frequent)
        return states[kept], table[kept]
