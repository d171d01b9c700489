"""Both schemes on a map: the paper's follows its formula, and runs can be repeated."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.paper.schemes import measure_contexts
from sfumato.simulation import experiment_words

BLOCKS = sf.Blocks([0, 0, 0, 1, 1, 2], epsilon=1)
CONTEXTS = {"all": sf.Uniform(6, 1), "blocks": BLOCKS}
PEOPLE = np.array([400, 50, 0, 300, 10, 40])


def slow_paper_estimate(reports, sizes, n):
    """Compute the paper's estimate by its formula, report by report, and project by bisection."""
    c = (np.e + 1) / (np.e - 1)
    estimates = []
    first = 0
    for size in sizes:
        K = 1 if size == 1 else 1 << size.bit_length()
        mine = [int(y) - first for y in reports if first <= y < first + K]
        if size == 1:
            estimates.append(len(mine) / n)
        else:
            for x in range(size):
                signs = [(-1) ** ((x + 1) & y).bit_count() for y in mine]
                estimates.append(c * sum(signs) / n)
        first += K
    v = np.array(estimates)
    low = -2.0
    high = 2.0
    for _ in range(100):
        theta = (low + high) / 2
        if np.maximum(v - theta, 0).sum() > 1:
            low = theta
        else:
            high = theta
    return np.maximum(v - low, 0)


@pytest.mark.parametrize(("name", "sizes"), [("all", [6]), ("blocks", [3, 2, 1])])
def test_paper_scheme_matches_its_formula(name, sizes):
    context = CONTEXTS[name]
    symbols = np.repeat(np.arange(6), PEOPLE)
    errors = measure_contexts({name: context}, PEOPLE, runs=1, seed=3, workers=1)[name]
    mechanism = sf.mechanism_for(context, code="hadamard")
    words = experiment_words(f"map/{name}/paper", 0, 3)
    counts = mechanism.privatize_and_tally(symbols, words).counts
    reports = np.repeat(np.arange(counts.size), counts)
    slow = slow_paper_estimate(reports, sizes, symbols.size)
    assert errors.paper_map == pytest.approx(slow, abs=1e-9)
    assert errors.paper_error.mean == pytest.approx(np.abs(slow - PEOPLE / 800).sum() / 2, abs=1e-9)


@pytest.mark.slow
def test_results_do_not_depend_on_workers():
    alone = measure_contexts(CONTEXTS, PEOPLE, runs=6, seed=1, workers=1)
    together = measure_contexts(CONTEXTS, PEOPLE, runs=6, seed=1, workers=2)
    for name in CONTEXTS:
        assert alone[name].paper_error == together[name].paper_error
        assert alone[name].best_error == together[name].best_error
        assert (alone[name].best_map == together[name].best_map).all()


def test_runs_and_seeds_differ_and_their_order_does_not_matter():
    one = measure_contexts(CONTEXTS, PEOPLE, runs=1, seed=0, workers=1)["all"]
    two = measure_contexts(CONTEXTS, PEOPLE, runs=2, seed=0, workers=1)["all"]
    other = measure_contexts(CONTEXTS, PEOPLE, runs=1, seed=1, workers=1)["all"]
    assert two.paper_error.standard_error > 0
    assert (one.paper_map == two.paper_map).all()
    assert not (one.paper_map == other.paper_map).all()


def test_progress_is_reported_to_the_end():
    messages = []
    measure_contexts(CONTEXTS, PEOPLE, runs=5, seed=0, workers=1, on_progress=messages.append)
    assert messages[0] == "all: 4 of 5 runs (25% overall)"
    assert messages[-1] == "blocks: 5 of 5 runs (100% overall)"
