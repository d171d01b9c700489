"""Figure 2: the scheme follows the paper's formula, and the numbers match its figure."""

import json
import math

import numpy as np
import pytest

from sfumato.codes import HadamardCode
from sfumato.contexts import Blocks
from sfumato.errors import InvalidArgument
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import BlockResponse
from sfumato.paper.experiment import RunOptions
from sfumato.paper.schemes import paper_estimate
from sfumato.paper.synthetic import (
    BLOCK_COUNTS,
    DISTRIBUTIONS,
    _Job,
    _measure_population,
    _probabilities,
    geometric,
    space_out,
    synthetic,
)
from sfumato.simulation import draw_order, draw_people, experiment_words, run_jobs

EXPECTED_ERRORS = {
    "Uniform": {1: 0.62, 10: 0.34, 100: 0.12},
    "Geo(0.95)": {1: 0.22, 10: 0.11, 100: 0.035},
    "Zipf(1)": {1: 0.40, 10: 0.22, 100: 0.083},
}


@pytest.fixture(scope="module")
def tiny():
    messages = []
    options = RunOptions(runs=1, seed=3, on_progress=messages.append)
    return synthetic(options, sizes=(200,), workers=1), messages


def nearest_probabilities(v):
    """Project onto the simplex by bisection on θ in max(v − θ, 0)."""
    low = v.min() - 1
    high = v.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(v - middle, 0).sum() > 1:
            low = middle
        else:
            high = middle
    return np.maximum(v - low, 0)


def paper_formula(reports, sizes, epsilon):
    """Return 2(e+1)/(e−1) · (share of reports in S_x − half the share of the block), for each x."""
    e = math.exp(epsilon)
    n = len(reports)
    first = 0
    estimates = []
    for size in sizes:
        K = 2 ** size.bit_length()
        inside = [int(y) - first for y in reports if first <= y < first + K]
        for x in range(size):
            in_set = sum(((x + 1) & y).bit_count() % 2 == 0 for y in inside)
            estimates.append(2 * (e + 1) / (e - 1) * (in_set - len(inside) / 2) / n)
        first += K
    return np.array(estimates)


def test_paper_scheme_is_its_formula_and_one_projection():
    sizes = (3, 4, 6)
    mechanism = BlockResponse(Blocks(np.repeat(np.arange(3), sizes), 1), HadamardCode)
    symbols = draw_people(geometric(13, 0.8), 400, "test", 0, 0)
    reports = mechanism.privatize(symbols, experiment_words("test", 0, 0))
    expected = nearest_probabilities(paper_formula(reports, sizes, 1))
    estimate = paper_estimate(mechanism, symbols, "test", 0, 0)
    np.testing.assert_allclose(estimate, expected, atol=1e-12)
    # Correcting the totals of blocks first would have given something else.
    unbiased = mechanism.scores.unbiased(mechanism.tally(reports))
    assert np.abs(nearest_probabilities(unbiased) - expected).max() > 1e-3


def test_distributions_match_the_figure():
    uniform, falling, shuffled, zipf = (_probabilities(name, 0) for name in DISTRIBUTIONS)
    assert np.ptp(uniform) == 0
    np.testing.assert_allclose(falling[1:] / falling[:-1], 0.95)
    np.testing.assert_allclose(zipf * np.arange(1, 1001), zipf[0])
    assert sorted(shuffled.tolist()) == sorted(falling.tolist())
    assert not np.array_equal(shuffled, _probabilities(DISTRIBUTIONS[2], 1))
    for p in (uniform, falling, shuffled, zipf):
        assert p.size == 1000
        assert p.sum() == pytest.approx(1)


def test_table_can_be_reproduced_by_hand(tiny):
    p = _probabilities("Zipf(1)", 3)
    symbols = draw_people(p, 200, "synthetic/Zipf(1)/200", 0, 3)
    mechanism = BlockResponse(Blocks(np.arange(1000) // 20, 1), HadamardCode)
    estimate = paper_estimate(mechanism, symbols, "synthetic/Zipf(1)/200/50/paper", 0, 3)
    row = next(row for row in tiny[0].rows if row[:3] == ("Zipf(1)", 50, 200))
    assert row[3] == round(total_variation(estimate, p), 5)


def test_result_is_complete(tiny, tmp_path):
    result, messages = tiny
    expected = [(distribution, m, 200) for distribution in DISTRIBUTIONS for m in BLOCK_COUNTS]
    assert [row[:3] for row in result.rows] == expected
    for row in result.rows:
        assert len(row) == len(result.columns)
        assert 0 <= row[3] <= 1
        assert 0 <= row[5] <= 1
        assert row[4] is None  # a single run has no standard error
        assert row[6] is None
    assert messages[-1] == "4 of 4 runs"
    paths = result.save(tmp_path)
    names = [path.name for path in paths]
    assert names == ["synthetic.png", "synthetic.pdf", "synthetic.csv", "synthetic.json"]
    data = json.loads(paths[3].read_text(encoding="utf-8"))
    by_name = {(curve["distribution"], curve["blocks"]): curve for curve in data["curves"]}
    assert by_name["Uniform", 1]["bits"]["paper"] == 10
    assert by_name["Uniform", 100]["bits"]["paper"] == 11  # 100 blocks of 16 outputs
    assert by_name["Zipf(1)", 10]["total_variation"][0]["paper"]["standard_error"] is None


def test_people_and_words_depend_on_the_seed(tiny):
    errors = [row[3] for row in tiny[0].rows if row[0] == "Uniform"]
    assert _measure_population(_Job("Uniform", 200, 0, seed=3))[:, 0].round(5).tolist() == errors
    assert not set(_measure_population(_Job("Uniform", 200, 0, seed=4))[:, 0].round(5)) & set(
        errors
    )
    words = experiment_words("a", 0, 0).take(3)
    for other in (
        experiment_words("b", 0, 0),
        experiment_words("a", 1, 0),
        experiment_words("a", 0, 1),
    ):
        assert not (other.take(3) == words).any()


def test_jobs_finish_in_order_and_bad_options_are_rejected():
    done = []
    assert run_jobs(abs, [-1, 2, -3], workers=1, on_progress=done.append) == [1, 2, 3]
    assert done == [1, 2, 3]
    assert run_jobs(abs, []) == []
    with pytest.raises(InvalidArgument, match="positive integer; got 0"):
        run_jobs(abs, [1], workers=0)
    for sizes in ((), (0, 10)):
        with pytest.raises(InvalidArgument, match="sizes must be a non-empty list"):
            synthetic(RunOptions(), sizes=sizes)


def test_names_keep_their_distance_and_stay_close():
    np.testing.assert_allclose(space_out([0.1, 0.5, 0.9], 0.1), [0.1, 0.5, 0.9])
    places = space_out([0.5, 0.5, 0.5, 0.9], 0.1)
    np.testing.assert_allclose(places, [0.4, 0.5, 0.6, 0.9])
    assert space_out([], 0.1) == []


def test_order_is_a_permutation_that_depends_on_its_name():
    order = draw_order(50, "a", 0)
    assert sorted(order.tolist()) == list(range(50))
    assert order.tolist() == draw_order(50, "a", 0).tolist()
    assert order.tolist() != draw_order(50, "b", 0).tolist()


@pytest.mark.slow
def test_results_do_not_depend_on_workers(tiny):
    assert synthetic(RunOptions(runs=1, seed=3), sizes=(200,), workers=2).rows == tiny[0].rows


@pytest.mark.slow
def test_curves_end_where_figure_2_shows():
    result = synthetic(RunOptions(), sizes=(512_000,))
    errors = {(row[0], row[1]): row[3:] for row in result.rows}
    for name, by_blocks in EXPECTED_ERRORS.items():
        for m, expected in by_blocks.items():
            mean, error, *_ = errors[name, m]
            assert abs(mean - expected) <= 3 * error + 0.01, (name, m, mean, error)
    for name in DISTRIBUTIONS:  # finer blocks, smaller errors
        curve = [errors[name, m][0] for m in BLOCK_COUNTS]
        assert curve == sorted(curve, reverse=True)
    for (name, m), (paper, paper_error, here, here_error) in errors.items():
        assert here < paper + 3 * math.hypot(paper_error, here_error), (name, m)
