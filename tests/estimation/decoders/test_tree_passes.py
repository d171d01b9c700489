"""Passes over trees give what summing over the states of all nodes gives."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.domains.layout import Circle, Line, Nested, Plane
from sfumato.estimation.decoders import tree_passes
from sfumato.estimation.decoders.tree_passes import UpwardPass, evidence_of_shapes

PAIRS = Nested.from_groups([np.array([1, 0, 1, 0, 2])], 5)
LAYOUTS = [
    *(Line(size) for size in range(1, 6)),
    *(Circle(size) for size in (2, 3, 5)),
    Plane(1, 4),
    Plane(2, 2),
    Plane(1, 1),
    Nested(1, ()),
    Nested(4, ()),
    PAIRS,
]
every_layout = pytest.mark.parametrize(
    "layout", LAYOUTS, ids=[f"{type(layout).__name__}-{layout.size}" for layout in LAYOUTS]
)
NUMBERS = (0, 1, 3)
_MAX_STATES = 300_000  # of all nodes together


def _state_count(tree, size):
    nodes = size + sum(merge.first.size for merge in tree)
    return max(states for states in (2, 3, 4) if states == 2 or states**nodes <= _MAX_STATES)


def _random_inputs(tree, size, seed):
    """Return likelihoods, transitions that differ from level to level, and a root."""
    states = _state_count(tree, size)
    rng = np.random.default_rng(seed)
    rows = rng.random((size, states)).astype(np.float32)
    matrices = [rng.dirichlet(np.full(states, 0.5), states) for _ in range(len(tree) + 2)]
    root = rng.dirichlet(np.ones(states)).astype(np.float32)
    return rows, [T.astype(np.float32) for T in matrices], root


def _brute_force(rows, tree, matrices, root):
    """Return the log evidence and the predictions, by a loop over the states of all nodes."""
    size, states = rows.shape
    counts = [size, *(merge.first.size for merge in tree)]
    starts = np.concatenate([[0], np.cumsum(counts)])
    z = np.indices((states,) * int(starts[-1])).reshape(int(starts[-1]), -1)
    chances = root.astype(np.float64)[z[-1]]
    for level, merge in enumerate(tree):
        for parent, children in enumerate(zip(merge.first, merge.second, strict=True)):
            above = z[starts[level + 1] + parent]
            for child in children:
                if child >= 0:
                    chances *= matrices[level].astype(np.float64)[above, z[starts[level] + child]]
    likelihoods = rows.astype(np.float64)[np.arange(size)[:, None], z[:size]]
    log_evidence = np.log(chances @ likelihoods.prod(axis=0))
    predictions = np.empty((size, states))
    for x in range(size):
        others = chances * np.delete(likelihoods, x, axis=0).prod(axis=0)
        predictions[x] = np.bincount(z[x], others, minlength=states)
    return log_evidence, predictions / predictions.sum(axis=1, keepdims=True)


def _check_pass(upward, expected):
    log_evidence, predictions = expected
    assert upward.log_evidence == pytest.approx(log_evidence, rel=1e-5, abs=1e-5)
    result = np.broadcast_to(upward.predictions(), predictions.shape)
    assert result == pytest.approx(predictions, rel=1e-5, abs=1e-6)


@every_layout
def test_passes_match_a_loop_over_all_states(layout):
    for number in NUMBERS:
        tree = layout.tree(number)
        rows, matrices, root = _random_inputs(tree, layout.size, number)
        upward = UpwardPass.run(rows, tree, matrices, root)
        _check_pass(upward, _brute_force(rows, tree, matrices, root))


@pytest.mark.parametrize("layout", [Line(4), Circle(3), Plane(2, 2), PAIRS], ids=repr)
def test_test_detects_transposed_transitions(layout):
    tree = layout.tree(0)
    rows, matrices, root = _random_inputs(tree, layout.size, 0)
    expected = _brute_force(rows, tree, matrices, root)
    transposed = [(T.T / T.T.sum(axis=1, keepdims=True)).copy() for T in matrices]
    with pytest.raises(AssertionError):
        _check_pass(UpwardPass.run(rows, tree, transposed, root), expected)


@pytest.mark.parametrize("layout", [Line(4), Circle(3), Plane(2, 2), PAIRS], ids=repr)
def test_test_detects_a_sibling_without_message(layout):
    tree = layout.tree(0)
    rows, matrices, root = _random_inputs(tree, layout.size, 0)
    expected = _brute_force(rows, tree, matrices, root)
    upward = UpwardPass.run(rows, tree, matrices, root)
    _check_pass(upward, expected)
    silent = [np.ones_like(M) for M in upward.messages]
    with pytest.raises(AssertionError):
        _check_pass(replace(upward, messages=silent), expected)


def test_long_rows_stay_finite():
    """The evidence of 10,000 cells is far below the smallest float."""
    layout = Line(10_000)
    rng = np.random.default_rng(0)
    rows = (1e-8 + rng.random((10_000, 4)) ** 40).astype(np.float32)
    matrices = [np.full((4, 4), 0.25, dtype=np.float32)] * 20
    root = np.full(4, 0.25, dtype=np.float32)
    upward = UpwardPass.run(rows, layout.tree(3), matrices, root)
    # Every cell is independent of the others.
    expected = float(np.log(rows.mean(axis=1, dtype=np.float64)).sum())
    assert upward.log_evidence == pytest.approx(expected, rel=1e-5)
    assert upward.predictions() == pytest.approx(np.full((10_000, 4), 0.25), rel=1e-5)


# --- many shapes ----------------------------------------------------------------------------------


@every_layout
def test_shapes_passed_up_together_have_their_own_evidence(layout, monkeypatch):
    """All together, and two by two."""
    tree = layout.tree(1)
    rows, _, root = _random_inputs(tree, layout.size, 0)
    rng = np.random.default_rng(1)
    states = root.size
    shapes = [
        [rng.dirichlet(np.ones(states), states).astype(np.float32) for _ in range(len(tree) + 2)]
        for _ in range(5)
    ]
    expected = [UpwardPass.run(rows, tree, each, root).log_evidence for each in shapes]
    together = evidence_of_shapes(rows, tree, shapes, root)
    assert together == pytest.approx(expected, rel=1e-5, abs=1e-5)
    monkeypatch.setattr(tree_passes, "_MAX_ENTRIES", 2 * rows.size)
    in_pairs = evidence_of_shapes(rows, tree, shapes, root)
    assert in_pairs == pytest.approx(expected, rel=1e-5, abs=1e-5)
