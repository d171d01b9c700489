"""Attacks stay within the bounds, the worst of them get there, and the test of fit notices what it can."""

from functools import cached_property

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, InvalidContext, InvalidSymbols, NotEnoughReports
from sfumato.mechanisms import Reach
from sfumato.mechanisms.blocks import BlockScores
from sfumato.simulation import SeededWords
from sfumato.simulation.attack import KINDS, attack
from support.mechanism_examples import EXAMPLES

SEVERAL = [
    mechanism for examples in EXAMPLES.values() for mechanism in examples if mechanism.inputs > 1
]
HADAMARD = sf.PlainResponse(sf.Uniform(60, 1.0))
RANDOMISED = sf.PlainResponse(sf.Uniform(60, 1.0), sf.RandomizedCode)


def _crowd(mechanism, people, seed=0):
    """People of every kind, the last of whom do not hold symbol 0."""
    random = np.random.default_rng(seed)
    symbols = random.choice(mechanism.inputs, people, p=random.dirichlet(np.ones(mechanism.inputs)))
    return np.sort(symbols)


def _target(mechanism, x=0):
    return mechanism.context.domain.labels[x]


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_every_attack_on_every_mechanism_stays_within_its_bounds(mechanism, kind):
    crowd = _crowd(mechanism, 300)
    for m, x, decoder in (
        (1, 0, "unbiased"),
        (30, 0, "projection"),
        (30, -1, "projection"),
        (300, -1, "unbiased"),
    ):
        found = attack(
            mechanism, crowd, fakes=m, target=_target(mechanism, x), kind=kind, decoder=decoder
        )
        assert found.is_within_bounds, found


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
def test_the_worst_attacks_attain_the_bound(mechanism):
    """Up where nobody who was replaced holds the target, down where everybody does."""
    target, n, m = _target(mechanism), 200, 20
    others = attack(mechanism, np.repeat([0, 1], [n - m, m]), fakes=m, target=target, kind="raise")
    assert others.shift == pytest.approx(others.bound, rel=1e-9)
    holders = attack(mechanism, np.repeat([1, 0], [n - m, m]), fakes=m, target=target, kind="lower")
    assert -holders.shift == pytest.approx(holders.bound, rel=1e-9)


def test_a_bound_that_is_too_small_is_exceeded():
    """The planted fault: a reach of nine tenths."""

    class NineTenths(BlockScores):
        def _reach(self):
            whole = super()._reach()
            return Reach(0.9 * whole.highest, 0.9 * whole.lowest, 0.9 * whole.heaviest)

    class Modest(sf.PlainResponse):
        @cached_property
        def scores(self):
            return NineTenths(self)

    symbols = np.repeat([0, 1], [180, 20])
    honest, modest = (cls(sf.Uniform(8, 1.0)) for cls in (sf.PlainResponse, Modest))
    assert attack(honest, symbols, fakes=20, target=0).is_within_bounds
    assert not attack(modest, symbols, fakes=20, target=0).is_within_bounds


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
def test_pretending_moves_a_share_by_the_share_of_fakes_on_average(mechanism):
    """An honest report of the target means 1; the mean over seeds is that, to six standard errors."""
    m, n = 400, 1000
    runs = [
        attack(
            mechanism,
            np.ones(n, dtype=int),
            fakes=m,
            target=_target(mechanism),
            kind="pretend",
            seed=s,
        ).shift
        for s in range(4)
    ]
    error = np.sqrt(mechanism.scores.variances(np.eye(mechanism.inputs)[0], m * len(runs))[0])
    assert np.mean(runs) * n / m == pytest.approx(1, abs=6 * error + 1e-9)


def test_one_report_sent_again_and_again_is_noticed_and_pretending_is_not():
    crowd = _crowd(HADAMARD, 50_000)
    found = {
        kind: attack(HADAMARD, crowd, fakes=1500, target=_target(HADAMARD), kind=kind)
        for kind in KINDS
    }
    assert found["raise"].is_noticed
    assert found["lower"].is_noticed
    assert not found["pretend"].is_noticed
    assert not found["blend"].is_noticed
    # Blending in moves the target nearly as far as the one best report does, and is not noticed.
    assert found["blend"].shift > 0.75 * found["raise"].shift > 0.05


def test_randomised_response_leaves_nothing_to_notice_by():
    """It has as many reports as symbols: every histogram is some crowd's, until a share is far above one."""
    crowd = _crowd(RANDOMISED, 50_000)
    found = attack(RANDOMISED, crowd, fakes=100, target=_target(RANDOMISED))
    assert not found.is_noticed
    assert found.shift > 0.06  # by two people in a thousand
    flood = attack(RANDOMISED, crowd, fakes=2500, target=_target(RANDOMISED))
    assert flood.is_noticed
    assert flood.shift > 1.5


@pytest.mark.parametrize("decoder", ["auto", "likelihood", "empirical-bayes"])
def test_decoders_without_a_bound_are_measured(decoder):
    crowd = _crowd(HADAMARD, 20_000)
    found = attack(
        HADAMARD, crowd, fakes=800, target=_target(HADAMARD), kind="blend", decoder=decoder
    )
    assert found.decoded_bound is None
    assert found.decoder == decoder
    assert 0.01 < found.decoded_shift <= found.decoded_total_variation <= 1
    assert found.is_within_bounds


@pytest.mark.parametrize("m", [1, 50, 2000])
def test_honest_people_report_the_same_with_and_without_an_attack(m):
    """So the unbiased picture moves by what the last m reports were exchanged for, and by nothing else."""
    crowd, n, x, seed = _crowd(HADAMARD, 2000), 2000, 3, 4
    A, honest = HADAMARD.scores.matrix(), HADAMARD.privatize(crowd, SeededWords(seed))
    found = attack(HADAMARD, crowd, fakes=m, target=x, kind="raise", decoder="unbiased", seed=seed)
    exchanged = m * A[x].max() - A[x, honest[-m:]].sum()
    assert found.decoded_shift == pytest.approx(exchanged / n, rel=0, abs=1e-9)


def test_the_same_seed_is_the_same_attack():
    crowd = _crowd(HADAMARD, 2000)
    first, second = (
        attack(HADAMARD, crowd, fakes=50, target=3, kind="blend", seed=4) for _ in range(2)
    )
    assert first.fit == second.fit
    assert first.shift == second.shift
    assert attack(HADAMARD, crowd, fakes=50, target=3, kind="blend", seed=5).shift != first.shift


def test_without_fakes_nothing_moves():
    found = attack(HADAMARD, _crowd(HADAMARD, 500), fakes=0, target=3)
    assert (found.shift, found.bound, found.decoded_total_variation, found.decoded_bound) == (
        0,
        0,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"kind": "bribe"}, InvalidArgument, "kind must be one of raise, lower, blend, pretend"),
        ({"target": "nowhere"}, InvalidContext, "target names"),
        ({"fakes": 4}, InvalidArgument, "from 0 to all 3"),
        ({"fakes": -1}, InvalidArgument, "from 0 to all 3"),
        ({"decoder": "nonsense"}, InvalidArgument, "decoder must be one of"),
        ({"symbols": [0, 99]}, InvalidSymbols, "must lie in"),
        ({"symbols": np.empty(0, dtype=int)}, NotEnoughReports, "population is empty"),
    ],
)
def test_bad_questions_are_refused(changed, error, said):
    asked = {"symbols": [0, 1, 2], "fakes": 1, "target": 0, **changed}
    with pytest.raises(error, match=said):
        attack(HADAMARD, asked.pop("symbols"), **asked)
