"""Comparing the extremes of groups gives the same verdicts and odds as comparing pairs."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import PrivacyViolation
from sfumato.mechanisms import TableResponse
from sfumato.promises import enumeration
from sfumato.promises.enumeration import enumerate_cases
from support.mechanism_examples import REPRESENTATIVES
from support.slow import slow_except

ONE_OF_EACH = [instances[0] for instances in REPRESENTATIVES.values()]
N = 2**64


def verdict(mechanism, context):
    """Return the least slack, or that the promise is broken."""
    try:
        place = enumerate_cases(mechanism, context)
    except PrivacyViolation as broken:
        row, row2 = (mechanism.integer_row(x) for x in (broken.x, broken.x2))
        assert row[broken.output] > row2[broken.output]
        assert context.exact_epsilon(broken.x, broken.x2) < np.inf
        return "broken"
    if place is None:
        return None
    assert context.exact_epsilon(place.x, place.x2) == place.promised
    assert mechanism.integer_row(place.x)[place.output] == place.high
    assert mechanism.integer_row(place.x2)[place.output] == place.low
    return float(place.promised) - place.realised


def grouped_contexts(domain, generator):
    """Return contexts of groups over a domain, most of them not the mechanism's own."""
    k = domain.size
    groups = np.unique(generator.integers(0, 3, k), return_inverse=True)[1]
    _, groups = np.unique(
        [int(np.flatnonzero(groups == g)[0]) for g in groups], return_inverse=True
    )
    count = int(groups.max()) + 1
    epsilons = [str(generator.choice(["0.3", "1", "3", "inf"])) for _ in range(count)]
    return [
        sf.Uniform(domain, str(generator.choice(["0.2", "1", "4"]))),
        sf.HighLow(
            domain, [domain.labels[x] for x in range(0, k, 2)], str(generator.choice(["0.5", "2"]))
        ),
        sf.Blocks(
            groups, epsilons, across=str(generator.choice(["0.7", "2", "inf"])), domain=domain
        ),
        sf.Tiers(groups, epsilons, domain=domain),
    ]


@pytest.mark.parametrize("mechanism", ONE_OF_EACH, ids=repr)
def test_extremes_and_pairs_agree(mechanism, monkeypatch):
    generator = np.random.default_rng(20261116)
    own = [mechanism.context] if mechanism.context.groups is not None else []
    contexts = [
        *own,
        *(c for _ in range(5) for c in grouped_contexts(mechanism.context.domain, generator)),
    ]
    by_pairs = [verdict(mechanism, context) for context in contexts]
    monkeypatch.setattr(enumeration, "_MAX_PAIRWISE_SYMBOLS", 0)
    assert [verdict(mechanism, context) for context in contexts] == by_pairs


def test_extremes_and_pairs_agree_on_random_tables(monkeypatch):
    """Tables near the promise, with ties and zeros, keep and break it about equally often."""
    generator = np.random.default_rng(7)
    outcomes = []
    for _ in range(200):
        k = int(generator.integers(2, 7))
        weights = generator.integers(3 if generator.random() < 0.7 else 0, 9, (k, 4))
        weights[:, 0] += 64 - weights.sum(axis=1)
        context = grouped_contexts(sf.Domain([f"label {x}" for x in range(k)]), generator)[
            generator.integers(4)
        ]
        table = TableResponse(
            context, [[int(entry) * (N // 64) for entry in row] for row in weights]
        )
        with monkeypatch.context() as patch:
            by_pairs = verdict(table, context)
            patch.setattr(enumeration, "_MAX_PAIRWISE_SYMBOLS", 0)
            assert verdict(table, context) == by_pairs
        outcomes.append(by_pairs)
    assert 40 < outcomes.count("broken") < 160


def test_extremes_of_the_wrong_group_are_noticed(monkeypatch):
    """A planted fault: a group's own minimum counts among the others'."""
    monkeypatch.setattr(
        enumeration,
        "_smallest_ranks_outside",
        lambda smallest: np.broadcast_to(smallest.min(axis=0), smallest.shape),
    )
    context = sf.Blocks([0, 0, 1], 3, across="0.5")
    table = TableResponse(
        context, [[N // 64 * entry, N // 64 * (64 - entry)] for entry in (10, 20, 14)]
    )
    assert verdict(table, context) != "broken"
    monkeypatch.setattr(enumeration, "_MAX_PAIRWISE_SYMBOLS", 0)
    # No symbol outside the group has the integer that seems to break the promise.
    with pytest.raises(IndexError):
        verdict(table, context)


@pytest.mark.parametrize("k", slow_except({4_375}, [4_375, 43_750]))
def test_large_tables_are_enumerated(k):
    """All rows are different, and every pair is compared."""
    context = sf.Blocks(np.arange(k) // 25, "0.5")
    bits = (np.arange(k)[:, None] >> np.arange(16)) & 1
    rows = [[(N >> 5) + (N >> 9) * int(bit) for bit in row[:15]] for row in bits]
    table = TableResponse(context, [[*row, N - sum(row)] for row in rows])
    certificate = sf.certify(table, context)
    assert (certificate.method, certificate.rows) == ("enumerated", k)
    # One block reveals slightly too much.
    rows = [list(table.integer_row(x)) for x in range(k)]
    rows[4_000][0] = N >> 4
    rows[4_000][15] = N - sum(rows[4_000][:15])
    with pytest.raises(PrivacyViolation) as broken:
        sf.certify(TableResponse(context, rows), context)
    assert 4_000 in (broken.value.x, broken.value.x2)
