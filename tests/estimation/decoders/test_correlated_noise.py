"""Correlated errors: sums of neighbours have the variance that the channel gives them."""

from types import SimpleNamespace

import numpy as np
import pytest

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain, IntegerDomain
from sfumato.domains.layout import Line
from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.estimation.decoders.correlated_noise import variance_ratio, widen_for_correlation
from sfumato.estimation.decoders.decoder import Pools
from sfumato.mechanisms import BlockResponse, PlainResponse
from sfumato.tally import Tally

MECHANISMS = {
    "line": PlainResponse(Uniform(IntegerDomain(24), 1)),
    "plane": PlainResponse(Uniform(GridDomain(0, 4, 0, 6, 1, other="elsewhere"), 1)),
    "blocks": BlockResponse(Blocks(np.arange(24) // 6, 1, domain=IntegerDomain(24))),
}


def _case(mechanism):
    rng = np.random.default_rng(0)
    q = np.maximum(mechanism.forward(rng.dirichlet(np.ones(mechanism.inputs))), 0)
    tally = Tally(rng.multinomial(5_000, q / q.sum()), mechanism.fingerprint)
    pools = Pools.from_tally(mechanism, tally)
    domain = mechanism.context.domain
    errors = mechanism.scores.standard_errors(tally)
    return pools, CellShares.from_pools(domain.layout, domain.cells, pools, errors)


def _nodes(layout):
    """Return the cells of every node half-way up a tree."""
    tree = layout.tree(0)
    nodes = [[x] for x in range(layout.size)]
    for merge in tree[: len(tree) // 2]:
        below = [*nodes, []]  # −1 is a missing child
        nodes = [below[i] + below[j] for i, j in zip(merge.first, merge.second, strict=True)]
    return nodes


def _naive_ratio(mechanism, pools, shares):
    """Use the covariance matrix of the unbiased shares, ``(A diag(q) Aᵀ − p pᵀ)/n``."""
    A = mechanism.scores.matrix()
    p = pools.means
    q = p @ mechanism.matrix()
    covariance = (A * q @ A.T - np.outer(p, p)) / pools.report_count
    ratios = []
    for node in _nodes(shares.layout):
        part = covariance[np.ix_(shares.symbols[node], shares.symbols[node])]
        ratios.append(part.sum() / np.trace(part))
    return float(np.mean(ratios))


@pytest.mark.parametrize("name", MECHANISMS)
def test_ratio_matches_the_covariance_matrix(name):
    mechanism = MECHANISMS[name]
    pools, shares = _case(mechanism)
    assert len(_nodes(shares.layout)) <= 8  # more nodes are sampled
    result = variance_ratio(shares, pools, mechanism)
    assert result == pytest.approx(_naive_ratio(mechanism, pools, shares), rel=1e-6)


@pytest.mark.parametrize("name", MECHANISMS)
def test_codes_leave_the_errors_as_they_are(name):
    """Errors of cells are negatively correlated, through their total."""
    mechanism = MECHANISMS[name]
    pools, shares = _case(mechanism)
    assert variance_ratio(shares, pools, mechanism) < 1
    assert widen_for_correlation(shares, pools, mechanism) is shares


class _Planted:
    """A channel whose errors have the same sign in four successive cells."""

    inputs = 16

    def __init__(self):
        rng = np.random.default_rng(1)
        scores = np.repeat(rng.normal(size=(4, 50)), 4, axis=0) + 0.3 * rng.normal(size=(16, 50))
        self._scores = 5 * scores
        self.scores = SimpleNamespace(totals=lambda weights: weights @ self._scores)

    def forward(self, p):
        return np.full(50, p.sum() / 50)

    def errors(self, report_count):
        p = 1 / 16
        return np.sqrt(((self._scores**2).mean(axis=1) - p**2) / report_count)


def test_errors_of_one_sign_are_widened():
    """Sums of cells then have the variance of independent errors."""
    mechanism = _Planted()
    errors = mechanism.errors(1_000)
    pools = SimpleNamespace(means=np.full(16, 1 / 16), errors=errors, report_count=1_000)
    shares = CellShares(
        layout=Line(16),
        y=np.ones(16),
        s=16 * errors,
        symbols=np.arange(16),
        mean_share=1 / 16,
        group_of=np.zeros(16, dtype=np.int64),
        totals=np.array([16.0]),
        movable_mask=np.ones(16, dtype=np.bool_),
    )
    ratio = variance_ratio(shares, pools, mechanism)
    assert 2 < ratio <= 4
    widened = widen_for_correlation(shares, pools, mechanism)
    assert widened.s == pytest.approx(shares.s * np.sqrt(ratio))
    assert widened.y is shares.y
