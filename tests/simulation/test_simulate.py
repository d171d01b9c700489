"""Simulation: seeded words, and results that do not depend on batches."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, NotEnoughReports
from sfumato.simulation import SeededWords, simulate
from sfumato.survey import Survey

SYMBOLS = np.arange(5000) ** 2 % 7
FAST = "projection"  # in tests where the decoder does not matter


@pytest.fixture(scope="module")
def survey():
    return Survey("s", sf.Uniform(7, 1))


def test_repr_says_not_private_and_hides_the_seed():
    assert "NOT PRIVATE" in repr(SeededWords(1))
    assert "1234" not in repr(SeededWords(1234))


def test_words_depend_only_on_the_position():
    at_once = SeededWords(3, run=2).take(100)
    parts = SeededWords(3, run=2)
    np.testing.assert_array_equal(np.concatenate([parts.take(n) for n in (1, 0, 49, 50)]), at_once)
    np.testing.assert_array_equal(SeededWords(3, run=2, position=60).take(40), at_once[60:])


def test_seeds_and_runs_do_not_share_words():
    words = {SeededWords(seed, run=run).take(4).tobytes() for seed in range(5) for run in range(5)}
    assert len(words) == 25


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True, "1", None])
def test_invalid_seeds_are_rejected(seed):
    with pytest.raises(InvalidArgument, match="seed must be an integer"):
        SeededWords(seed)


@pytest.mark.parametrize("cuts", [[0, 0, 17], [1000, 4999]])
def test_results_do_not_depend_on_batches(survey, cuts):
    at_once = simulate(survey, [SYMBOLS], runs=2, seed=1, decoder=FAST)
    parts = simulate(survey, np.split(SYMBOLS, cuts), runs=2, seed=1, decoder=FAST)
    np.testing.assert_array_equal(parts.estimates, at_once.estimates)
    np.testing.assert_array_equal(parts.errors, at_once.errors)
    assert parts.to_dict() == at_once.to_dict()


def test_first_runs_do_not_depend_on_the_number_of_runs(survey):
    few = simulate(survey, [SYMBOLS], runs=2, seed=1, decoder=FAST)
    many = simulate(survey, [SYMBOLS], runs=5, seed=1, decoder=FAST)
    np.testing.assert_array_equal(many.errors[:2], few.errors)


def test_error_is_the_total_variation_from_the_data(survey):
    result = simulate(survey, [SYMBOLS[:500]], runs=2, seed=2)
    truth = np.bincount(SYMBOLS[:500], minlength=7) / 500
    np.testing.assert_allclose(result.truth, truth)
    np.testing.assert_allclose(result.errors, np.abs(result.estimates - truth).sum(axis=1) / 2)
    np.testing.assert_allclose(result.error.mean, result.errors.mean())
    np.testing.assert_allclose(
        result.error.standard_error, np.std(result.errors, ddof=1) / np.sqrt(2)
    )


@pytest.mark.parametrize("runs", [0, -1])
def test_runs_must_be_positive(survey, runs):
    with pytest.raises(InvalidArgument, match="at least 1"):
        simulate(survey, [SYMBOLS], runs=runs)


@pytest.mark.parametrize("batches", [[], [np.empty(0, dtype=np.int64)]])
def test_empty_input_is_rejected(survey, batches):
    with pytest.raises(NotEnoughReports, match="the input contains no answers"):
        simulate(survey, batches)


def test_unknown_decoder_is_rejected_before_reading_data(survey):
    def never():
        pytest.fail("the data were read")
        yield SYMBOLS

    with pytest.raises(InvalidArgument, match="decoder must be one of"):
        simulate(survey, never(), decoder="nonsense")
