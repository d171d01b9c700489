"""Audits of successive reports and of first reports: exact games, planted faults, honest twins."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import sfumato as sf
from sfumato.auditing.black_box import BatchBox
from sfumato.auditing.guessing import GuessingGame
from sfumato.auditing.sequences import LEVEL_SHARE, ReportCodes, SuccessiveReports
from sfumato.errors import InvalidArgument
from sfumato.simulation import SeededWords

INF = math.inf


def _subjects(audit):
    return [test.subject for test in audit.sequence_violations]


# --- the game -------------------------------------------------------------------------------------


PROMISES = {
    "uniform": np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=float),
    "high-low": np.array([[0, INF, INF], [0.5, 0, 0.5], [0.5, 0.5, 0]]),
    "asymmetric": np.array([[0, 0.1, 2], [1.5, 0, 0.4], [INF, 0.2, 0]]),
    "zero": np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=float),
}


def _expected_gains(game, promise, weights, state):
    """Return, for each player, the largest expected factor of the capital that a promise allows.

    The worst case is a linear programme over the chances of the symbols, given the state.
    """
    k = len(promise)
    factors = []
    for row in range(k):
        before = game._log_capitals.copy()
        game.play(np.array([state]), np.array([row]), weights)
        factors.append(np.exp(game._log_capitals - before))
    inequalities = []
    for g in range(k):
        for r in range(k):
            if g != r and promise[g, r] < INF:
                # P(g|s)/w_g ≤ e^E P(r|s)/w_r
                inequality = np.zeros(k)
                inequality[g] = 1 / weights[g]
                inequality[r] = -math.exp(promise[g, r]) / weights[r]
                inequalities.append(inequality)
    expected = []
    for factor in np.array(factors).T:
        worst = linprog(
            -factor,
            A_ub=np.array(inequalities),
            b_ub=np.zeros(len(inequalities)),
            A_eq=np.ones((1, k)),
            b_eq=[1],
        )
        expected.append(-worst.fun)
    return np.array(expected)


def _trained_game(promise, seed):
    """A game that has learned from states which give symbols away to various extents."""
    rng = np.random.default_rng(seed)
    game = GuessingGame(promise)
    for state in range(6):
        shares = rng.dirichlet(np.full(len(promise), 0.3))
        rows = rng.choice(len(promise), size=40, p=shares)
        game.learn(np.full(rows.size, state), rows)
    return game


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("seed", range(3))
def test_capital_is_not_expected_to_grow_if_the_promise_holds(name, seed):
    promise = PROMISES[name]
    weights = np.random.default_rng(seed).uniform(0.2, 5, len(promise))
    game = _trained_game(promise, seed)
    gains = []
    for state in range(6):
        gains.append(_expected_gains(game, promise, weights, state))
    assert np.max(gains) <= 1 + 1e-9
    assert np.max(gains) == pytest.approx(1)  # the odds are the best that the promise allows


def test_capital_is_expected_to_grow_if_more_is_revealed():
    """The twin: the symbols follow a promise that is twice as weak as the game's."""
    promise = PROMISES["uniform"]
    game = _trained_game(promise, 1)
    gains = []
    for state in range(6):
        gains.append(_expected_gains(game, 2 * promise, np.ones(3), state))
    assert np.max(gains) > 1.1


def test_game_keeps_its_largest_capital():
    game = GuessingGame(PROMISES["uniform"])
    states = np.zeros(50, dtype=np.int64)
    game.learn(states, states)
    game.play(states, states, np.ones(3))
    won = game.log_capital
    assert won > 10
    game.play(states, states + 1, np.ones(3))
    assert game.log_capital == won


def test_symbols_without_a_promise_are_not_bet_on():
    game = GuessingGame(np.array([[0, INF], [INF, 0]]))
    states = np.array([0, 1] * 100)
    game.learn(states, states)
    game.play(states, states, np.ones(2))
    assert game.log_capital == 0


def test_codes_are_the_same_for_arrays_and_lists():
    codes = ReportCodes()
    assert codes.read(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert codes.read(np.array(["b", "c"])).tolist() == [1, 2]
    many = ReportCodes().read(np.arange(1000))
    assert many.max() == 255
    assert np.unique(many).size == 256


def test_states_continue_from_block_to_block():
    """Cutting a stream into blocks changes nothing, whether their sizes are odd or even."""
    symbols = np.array([2, 5])
    queries = np.array([2, 5, 5, 2, 5, 2, 2])
    reports = list("abbabca")
    whole = SuccessiveReports(symbols, PROMISES["uniform"][:2, :2])
    rows, states = whole._read(queries, reports)
    parts = SuccessiveReports(symbols, PROMISES["uniform"][:2, :2])
    read = [parts._read(queries[part], reports[part]) for part in (slice(0, 3), slice(3, 7))]
    assert rows.tolist() == [0, 1, 1, 0, 1, 0, 0]
    for game in range(2):
        joined = np.concatenate([states_by_game[game] for _, states_by_game in read])
        assert joined.tolist() == states[game].tolist()


# --- reports that depend on each other ------------------------------------------------------------


def _randomized_response(k, epsilon=1.0):
    """The cumulative channel of randomized response."""
    Q = np.ones((k, k)) + (math.exp(epsilon) - 1) * np.eye(k)
    return (Q / Q[0].sum()).cumsum(axis=1)


class Client:
    """Randomized response whose second report of two reuses the first one's randomness, or not.

    Each report by itself has exactly the right channel either way. With the antithetic pair of two
    symbols, the reports (0, 0) never occur under (1, 1).
    """

    def __init__(self, k, seed, *, is_coupled):
        self._channel = _randomized_response(k)
        self._rng = np.random.default_rng(seed)
        self._is_coupled = is_coupled
        self._spare = []

    def answer_all(self, symbols):
        """Answer symbols one after the other, as a process does."""
        return np.array([self._answer(symbol, self._draw()) for symbol in symbols.tolist()])

    def answer(self, symbol, count):
        """Answer one symbol often, with randomness that is shared over calls."""
        return self.answer_all(np.full(count, symbol))

    def answer_fresh(self, symbol, count):
        """Answer one symbol often, with randomness that is shared inside the call only."""
        self._spare = []
        return self.answer(symbol, count)

    def _draw(self):
        if self._is_coupled and self._spare:
            return 1 - self._spare.pop()
        uniform = self._rng.random()
        self._spare = [uniform]
        return uniform

    def _answer(self, symbol, uniform):
        return int((uniform > self._channel[symbol]).sum())


@pytest.mark.parametrize(("k", "samples"), [(2, 20_000), (4, 40_000), (8, 60_000)])
@pytest.mark.parametrize("is_coupled", [True, False])
def test_coupled_successive_reports_are_detected(k, samples, is_coupled):
    box = BatchBox(Client(k, 1, is_coupled=is_coupled).answer_all)
    audit = sf.audit(box, sf.Uniform(k, 1), samples=samples, source=SeededWords(2))
    assert not audit.violations  # each report by itself is right
    assert _subjects(audit) == ["successive reports"] * is_coupled
    assert audit.violates == is_coupled


@pytest.mark.parametrize("is_coupled", [True, False])
def test_coupled_calls_of_a_function_are_detected(is_coupled):
    for answer, subject in (("answer", "successive calls"), ("answer_fresh", "two reports")):
        client = Client(2, 3, is_coupled=is_coupled)
        audit = sf.audit(
            getattr(client, answer), sf.Uniform(2, 1), samples=100_000, source=SeededWords(4)
        )
        assert not audit.violations
        assert audit.violates == is_coupled
        assert any(text.startswith(subject) for text in _subjects(audit)) == is_coupled


def test_symbols_with_a_weak_promise_do_not_hide_a_coupled_pair():
    box = BatchBox(Client(3, 1, is_coupled=True).answer_all)
    context = sf.PrivacyMatrix([[0, 1, 5], [1, 0, 5], [5, 5, 0]])
    audit = sf.audit(box, context, samples=60_000, source=SeededWords(2))
    assert _subjects(audit) == ["successive reports"]


@pytest.mark.parametrize("code", [sf.RandomizedCode, sf.HadamardCode])
def test_honest_mechanisms_pass(code):
    mechanism = sf.PlainResponse(sf.Uniform(8, 1), code)
    words = SeededWords(5)
    box = BatchBox(lambda symbols: mechanism.privatize(symbols, words))
    audit = sf.audit(box, mechanism.context, samples=200_000, source=SeededWords(6))
    assert not audit.violates
    [test] = audit.sequences
    assert test.reports > 90_000


def test_false_alarms_are_rarer_than_stated():
    """At a confidence of 0.5, each game has a level of 0.05; both together have twice that."""
    wrong = 0
    runs = 100
    for seed in range(runs):
        client = Client(2, seed, is_coupled=False)
        audit = sf.audit(
            client.answer,
            sf.Uniform(2, 1),
            samples=2000,
            confidence=0.5,
            source=SeededWords(seed),
        )
        assert all(test.level == pytest.approx(0.5 * LEVEL_SHARE) for test in audit.sequences)
        wrong += bool(audit.sequence_violations)
    assert wrong <= binom.isf(1e-6, runs, 2 * 0.5 * LEVEL_SHARE)


def test_levels_of_pairs_and_games_add_up():
    client = Client(3, 1, is_coupled=False)
    audit = sf.audit(client.answer, sf.Uniform(3, 1), samples=2000, confidence=0.9)
    levels = [pair.level for pair in audit.pairs] + [test.level for test in audit.sequences]
    assert len(audit.sequences) == 2
    assert sum(levels) == pytest.approx(0.1)


# --- first reports --------------------------------------------------------------------------------


def _restarting_box(k, seed, *, leaks):
    """A client that keeps its promise, except perhaps in its first report after a start."""
    client = Client(k, seed, is_coupled=False)

    def restart(symbol):
        return symbol if leaks else int(client.answer(symbol, 1)[0])

    return BatchBox(client.answer_all, restart)


@pytest.mark.parametrize(("k", "restarts"), [(2, 80), (4, 60), (8, 80)])
@pytest.mark.parametrize("leaks", [True, False])
def test_leaks_in_first_reports_are_detected(k, restarts, leaks):
    for seed in range(5):
        audit = sf.audit(
            _restarting_box(k, seed, leaks=leaks),
            sf.Uniform(k, 1),
            samples=5000,
            restarts=restarts,
            source=SeededWords(seed),
        )
        assert not audit.violations
        assert _subjects(audit) == ["first reports after a restart"] * leaks


def test_restarts_depend_on_the_samples():
    for samples, restarts in ((30_000, 3), (9000, 0)):
        audit = sf.audit(_restarting_box(2, 1, leaks=False), sf.Uniform(2, 1), samples=samples)
        tests = [test for test in audit.sequences if "restart" in test.subject]
        assert [test.reports for test in tests] == [restarts] * (restarts > 0)
    audit = sf.audit(_restarting_box(2, 1, leaks=True), sf.Uniform(2, 1), samples=9000, restarts=0)
    assert not audit.violates
    for restarts in (-1, 1.5, True):
        with pytest.raises(InvalidArgument, match="restarts"):
            sf.audit(sf.mechanism_for(sf.Uniform(2, 1)), restarts=restarts)


# --- words ----------------------------------------------------------------------------------------


def test_verdict_names_what_was_tested():
    honest = sf.audit(sf.mechanism_for(sf.Uniform(2, 1)), samples=5000)
    assert "Also tested: successive reports (" in honest.verdict
    box = _restarting_box(2, 1, leaks=True)
    leaky = sf.audit(box, sf.Uniform(2, 1), samples=5000, restarts=100)
    assert "Violates its promise in first reports after a restart" in leaky.verdict
    assert "(p = " in leaky.verdict and ", 100 reports)" in leaky.verdict
    record = leaky.to_dict()["sequences"][1]
    assert record["violates"] and record["p_value"] < record["level"]
