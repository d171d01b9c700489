"""Simulation: addressed words, the same numbers for any cut of the input."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, NotEnoughReports
from sfumato.simulation import SeededWords, simulate
from sfumato.survey import Survey

SYMBOLS = np.arange(5000) ** 2 % 7


@pytest.fixture(scope="module")
def survey():
    return Survey("s", sf.Uniform(7, 1))


def test_the_seeded_source_says_that_it_is_not_private():
    assert "NOT PRIVATE" in repr(SeededWords(1))
    assert "1234" not in repr(SeededWords(1234))


def test_words_depend_on_the_position_alone():
    whole = SeededWords(3, run=2).take(100)
    parts = SeededWords(3, run=2)
    np.testing.assert_array_equal(np.concatenate([parts.take(n) for n in (1, 0, 49, 50)]), whole)
    np.testing.assert_array_equal(SeededWords(3, run=2, position=60).take(40), whole[60:])


def test_seeds_and_runs_have_words_of_their_own():
    taken = {SeededWords(seed, run=run).take(4).tobytes() for seed in range(5) for run in range(5)}
    assert len(taken) == 25


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True, "1", None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidArgument, match="seed must be an integer"):
        SeededWords(seed)


@pytest.mark.parametrize("cuts", [[], [1], [0, 0, 17], [1000, 4999], list(range(0, 5000, 250))])
def test_cuts_change_nothing(survey, cuts):
    whole = simulate(survey, [SYMBOLS], runs=3, seed=1)
    parts = simulate(survey, np.split(SYMBOLS, cuts), runs=3, seed=1)
    np.testing.assert_array_equal(parts.estimates, whole.estimates)
    np.testing.assert_array_equal(parts.errors, whole.errors)
    assert parts.in_json() == whole.in_json()


def test_more_runs_begin_like_fewer(survey):
    few, many = (simulate(survey, [SYMBOLS], runs=runs, seed=1) for runs in (2, 5))
    np.testing.assert_array_equal(many.errors[:2], few.errors)


def test_the_error_is_the_total_variation_from_the_data(survey):
    found = simulate(survey, [SYMBOLS], runs=4, seed=2)
    truth = np.bincount(SYMBOLS, minlength=7) / SYMBOLS.size
    np.testing.assert_allclose(found.truth, truth)
    np.testing.assert_allclose(found.errors, np.abs(found.estimates - truth).sum(axis=1) / 2)
    np.testing.assert_allclose(found.error.mean, found.errors.mean())
    np.testing.assert_allclose(found.error.standard_error, np.std(found.errors, ddof=1) / 2)


@pytest.mark.parametrize("runs", [0, -1])
def test_at_least_one_run(survey, runs):
    with pytest.raises(InvalidArgument, match="at least 1"):
        simulate(survey, [SYMBOLS], runs=runs)


@pytest.mark.parametrize("batches", [[], [np.empty(0, dtype=np.int64)]])
def test_nobody_to_simulate(survey, batches):
    with pytest.raises(NotEnoughReports, match="no rows to simulate"):
        simulate(survey, batches)


def test_an_unknown_decoder_is_refused_before_any_data_are_read(survey):
    def never():
        pytest.fail("the data were read")
        yield SYMBOLS

    with pytest.raises(InvalidArgument, match="decoder must be one of"):
        simulate(survey, never(), decoder="nonsense")
