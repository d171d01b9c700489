"""The promise in words, for contexts of several ε: every number is right, and none promises too much."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.pages.promise import promise_facts, promise_sentences

INF = math.inf
LABELS = ["park", "café", "clinic", "bar"]
TIERS = sf.Tiers([0, 1, 2, 1], [INF, 2, 0.5], domain=LABELS)
UNION = sf.union([sf.HighLow(3, [1], 1), sf.Uniform(2, INF), sf.Uniform(2, 2)])


def _told(context):
    return " ".join(promise_sentences(context))


def test_tiers_are_told_from_the_strongest_to_the_free():
    sentences = promise_sentences(TIERS)
    assert [sentence.split(",")[0] for sentence in sentences] == [
        "For 1 of 4 answers (“clinic”)",
        "For 2 of 4 answers (“café”",
        "For 1 of 4 answers (“park”)",
    ]
    assert "at most 1.65:1 (ε = 0.5)" in sentences[0]
    assert "at most 7.39:1 (ε = 2)" in sentences[1]
    assert "nothing is promised: a report may prove" in sentences[2]


def test_of_many_tiers_the_ends_are_told():
    sentences = promise_sentences(sf.Tiers(range(10), range(1, 11)))
    assert len(sentences) == 3
    assert "(ε = 1)" in sentences[0]
    assert "8 more levels" in sentences[1]
    assert "(ε = 10)" in sentences[2]


def test_blocks_of_their_own_epsilon_are_told_by_their_ends():
    told = _told(sf.Blocks([0, 0, 1, 1, 2], [1, 2, 3]))
    assert "from 1:1 to at most 2.72:1 (ε = 1) where the promise is strongest" in told
    assert "7.39:1 (ε = 2) at the weakest" in told
    assert "ε = 3" not in told  # the third block holds no pair
    assert "Between blocks nothing is promised" in told
    assert "One block holds a single answer" in told


def test_blocks_in_clear_inside_are_counted():
    told = _told(sf.Blocks([0, 0, 1, 1, 2, 2, 3], [1, INF, INF, INF]))
    assert "Inside 2 blocks nothing is promised." in told
    assert "(ε = 1)" in told


def test_a_promise_across_is_told():
    told = _told(sf.Blocks([0, 0, 1], 1, across=2))
    assert (
        "Inside a block, one report can move the odds of any answer against any other from 1:1 to at most 2.72"
        in told
    )
    assert (
        "Between blocks, one report can move the odds of any answer against any other from 1:1 to at most 7.39"
        in told
    )
    assert "nothing is promised" not in told


def test_a_detour_that_is_promised_is_told():
    told = _told(sf.Blocks([0, 0, 1], 9, across=1))
    assert (
        "Inside a block, one report can move the odds of any answer against any other from 1:1 to at most 7.39"
        in told
    )


def test_a_union_tells_its_ends_and_who_is_owed_nothing():
    told = _told(UNION)
    assert (
        "The 7 answers lie in 3 blocks of 2 to 3, and inside each block the promise is its own."
        in told
    )
    assert "At the strongest, one report can move odds from 1:1 to at most 2.72:1 (ε = 1)." in told
    assert "at most 7.39:1 (ε = 2)" in told
    assert "Between blocks nothing is promised" in told
    assert "For 4 of 7 answers nothing is promised" in told


@pytest.mark.parametrize(
    "context",
    [
        TIERS,
        UNION,
        sf.Tiers([0, 1], [1, 2]),
        sf.Blocks([0, 0, 1, 1, 2], [1, 2, 3]),
        sf.Blocks([0, 0, 1, 1, 2], [1, INF, 3], across=2),
        sf.Blocks([0, 0, 1], Fraction(4, 3), across=Fraction(5, 3)),
        sf.Blocks([0, 0, 0], 1, across=2),
        sf.union([UNION, sf.Tiers([0, 1], [1, 3])]),
        sf.union(
            [sf.PrivacyMatrix([[0, 1, INF], [INF, 0, INF], [1, 3, 0]]), sf.HighLow(2, [0], 1)]
        ),
        sf.HighLow(4, [0, 1], 1),
        sf.Uniform(4, 1),
    ],
    ids=repr,
)
def test_the_facts_are_those_of_the_matrix(context):
    E = context.closure().matrix()
    off = E[~np.eye(context.size, dtype=bool)]
    facts = dict(promise_facts(context))
    finite = off[np.isfinite(off)]
    assert facts["Ordered pairs with a promise"].startswith(f"{finite.size} of {off.size} ")
    assert facts["Ordered pairs without"] == str(off.size - finite.size)
    if finite.min() == finite.max():
        assert "Every promise" in facts
    else:
        assert f"{finite.min():.4g}" in facts["Strongest promise"]
        assert f"{finite.max():.4g}" in facts["Weakest promise"]


@pytest.mark.parametrize(
    "context",
    [sf.Tiers([0, 1], [INF, INF]), sf.Blocks([0, 1], [1, 2]), sf.union([sf.HighLow(2, [], 1)])],
    ids=repr,
)
def test_where_nothing_is_promised_the_page_says_so(context):
    assert promise_sentences(context) == [
        "Nothing is promised: a report may show the answer openly."
    ]


@pytest.mark.parametrize("context", [TIERS, UNION, sf.Blocks([0, 0, 1], 1, across=2)], ids=repr)
def test_every_kind_has_its_name(context):
    assert dict(promise_facts(context))["Kind of promise"].split(":")[0] in (
        "tiers",
        "union",
        "blocks",
    )


def test_a_union_with_a_closed_matrix_counts_what_is_said_directly():
    """Parts that are written out are counted as they are written, as a matrix on its own is."""
    chain = sf.PrivacyMatrix([[0, 1, INF], [1, 0, 1], [INF, 1, 0]])
    facts = dict(promise_facts(sf.union([chain, sf.HighLow(1, [], 1)])))
    assert facts["Ordered pairs with a promise"].startswith("4 of 12")
