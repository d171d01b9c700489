"""Attacks: they stay within the bounds, the worst attain them, and the test of fit notices some."""

from functools import cached_property

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, InvalidContext, InvalidSymbols, NotEnoughReports
from sfumato.mechanisms import Reach
from sfumato.mechanisms.blocks import BlockScores
from sfumato.simulation import SeededWords
from sfumato.simulation.attack import KINDS, attack
from support.mechanism_examples import REPRESENTATIVES

SEVERAL = []
for examples in REPRESENTATIVES.values():
    SEVERAL += [mechanism for mechanism in examples if mechanism.inputs > 1]
HADAMARD = sf.PlainResponse(sf.Uniform(60, 1.0))
RANDOMISED = sf.PlainResponse(sf.Uniform(60, 1.0), sf.RandomizedCode)


def _population(mechanism, people, seed=0):
    """Draw people with all symbols, sorted, so that the last ones do not have symbol 0."""
    random = np.random.default_rng(seed)
    symbols = random.choice(mechanism.inputs, people, p=random.dirichlet(np.ones(mechanism.inputs)))
    return np.sort(symbols)


def _target(mechanism, x=0):
    return mechanism.context.domain.labels[x]


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_attacks_stay_within_their_bounds(mechanism, kind):
    people = _population(mechanism, 300)
    for m, x, decoder in (
        (1, 0, "unbiased"),
        (30, 0, "projection"),
        (30, -1, "projection"),
        (300, -1, "unbiased"),
    ):
        result = attack(
            mechanism,
            people,
            fake_count=m,
            target=_target(mechanism, x),
            kind=kind,
            decoder=decoder,
        )
        assert result.is_within_bounds, result


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
def test_worst_attacks_attain_the_bound(mechanism):
    """Upwards if no fake person has the target, downwards if all of them do."""
    target = _target(mechanism)
    others = attack(
        mechanism, np.repeat([0, 1], [180, 20]), fake_count=20, target=target, kind="raise"
    )
    assert others.shift == pytest.approx(others.bound, rel=1e-9)
    holders = attack(
        mechanism, np.repeat([1, 0], [180, 20]), fake_count=20, target=target, kind="lower"
    )
    assert -holders.shift == pytest.approx(holders.bound, rel=1e-9)


def test_attack_exceeds_a_bound_that_is_too_small():
    """The planted fault: nine tenths of the reach."""

    class NineTenths(BlockScores):
        def _compute_reach(self):
            reach = super()._compute_reach()
            return Reach(0.9 * reach.highest, 0.9 * reach.lowest, 0.9 * reach.max_absolute_sum)

    class Modest(sf.PlainResponse):
        @cached_property
        def scores(self):
            return NineTenths(self)

    symbols = np.repeat([0, 1], [180, 20])
    context = sf.Uniform(8, 1.0)
    assert attack(sf.PlainResponse(context), symbols, fake_count=20, target=0).is_within_bounds
    assert not attack(Modest(context), symbols, fake_count=20, target=0).is_within_bounds


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
def test_pretending_moves_a_share_by_the_share_of_fakes(mechanism):
    """An honest report of the target means 1 on average; allow six standard errors."""
    m = 400
    n = 1000
    people = np.ones(n, dtype=int)
    target = _target(mechanism)
    shifts = []
    for seed in range(4):
        result = attack(mechanism, people, fake_count=m, target=target, kind="pretend", seed=seed)
        shifts.append(result.shift)
    error = np.sqrt(mechanism.scores.variances(np.eye(mechanism.inputs)[0], m * len(shifts))[0])
    assert np.mean(shifts) * n / m == pytest.approx(1, abs=6 * error + 1e-9)


def test_fit_notices_repeated_reports_but_not_pretending():
    people = _population(HADAMARD, 50_000)
    results = {
        kind: attack(HADAMARD, people, fake_count=1500, target=_target(HADAMARD), kind=kind)
        for kind in KINDS
    }
    assert results["raise"].is_detected
    assert results["lower"].is_detected
    assert not results["pretend"].is_detected
    assert not results["blend"].is_detected
    # Blending in moves the target nearly as far as the best report, and is not noticed.
    assert results["blend"].shift > 0.75 * results["raise"].shift > 0.05


def test_randomised_response_hides_small_attacks():
    """With as many reports as symbols, every histogram fits until some share is far above 1."""
    people = _population(RANDOMISED, 50_000)
    result = attack(RANDOMISED, people, fake_count=100, target=_target(RANDOMISED))
    assert not result.is_detected
    assert result.shift > 0.06  # with two fake people in a thousand
    flood = attack(RANDOMISED, people, fake_count=2500, target=_target(RANDOMISED))
    assert flood.is_detected
    assert flood.shift > 1.5


@pytest.mark.parametrize("decoder", ["auto", "likelihood", "empirical-bayes"])
def test_attack_measures_decoders_without_a_bound(decoder):
    people = _population(HADAMARD, 20_000)
    result = attack(
        HADAMARD, people, fake_count=800, target=_target(HADAMARD), kind="blend", decoder=decoder
    )
    assert result.decoded_bound is None
    assert result.decoder == decoder
    assert 0.01 < result.decoded_shift <= result.decoded_total_variation <= 1
    assert result.is_within_bounds


@pytest.mark.parametrize("m", [1, 50, 2000])
def test_honest_reports_are_the_same_with_and_without_an_attack(m):
    """The unbiased estimate moves only by what replaces the last m reports."""
    people = _population(HADAMARD, 2000)
    x = 3
    seed = 4
    A = HADAMARD.scores.matrix()
    honest = HADAMARD.privatize(people, SeededWords(seed))
    result = attack(
        HADAMARD, people, fake_count=m, target=x, kind="raise", decoder="unbiased", seed=seed
    )
    change = m * A[x].max() - A[x, honest[-m:]].sum()
    assert result.decoded_shift == pytest.approx(change / 2000, rel=0, abs=1e-9)


def test_same_seed_gives_the_same_attack():
    people = _population(HADAMARD, 2000)
    first = attack(HADAMARD, people, fake_count=50, target=3, kind="blend", seed=4)
    second = attack(HADAMARD, people, fake_count=50, target=3, kind="blend", seed=4)
    other = attack(HADAMARD, people, fake_count=50, target=3, kind="blend", seed=5)
    assert first.fit == second.fit
    assert first.shift == second.shift
    assert other.shift != first.shift


def test_without_fakes_nothing_moves():
    result = attack(HADAMARD, _population(HADAMARD, 500), fake_count=0, target=3)
    assert (result.shift, result.bound) == (0, 0)
    assert (result.decoded_total_variation, result.decoded_bound) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"kind": "bribe"}, InvalidArgument, "kind must be one of raise, lower, blend, pretend"),
        ({"target": "nowhere"}, InvalidContext, "target contains"),
        ({"fake_count": 4}, InvalidArgument, "from 0 to the number of reports, 3"),
        ({"fake_count": -1}, InvalidArgument, "from 0 to the number of reports, 3"),
        ({"decoder": "nonsense"}, InvalidArgument, "decoder must be one of"),
        ({"symbols": [0, 99]}, InvalidSymbols, "must be in"),
        ({"symbols": np.empty(0, dtype=int)}, NotEnoughReports, "population is empty"),
    ],
)
def test_invalid_arguments_are_rejected(changes, error, message):
    arguments = {"symbols": [0, 1, 2], "fake_count": 1, "target": 0, **changes}
    with pytest.raises(error, match=message):
        attack(HADAMARD, arguments.pop("symbols"), **arguments)
