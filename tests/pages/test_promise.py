"""The promise in words, for contexts with several ε: numbers are right, none promises too much."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.pages.promise import promise_facts, promise_sentences

INF = math.inf
LABELS = ["park", "café", "clinic", "bar"]
TIERS = sf.Tiers([0, 1, 2, 1], [INF, 2, 0.5], domain=LABELS)
MOVES = "one report can move the odds of any answer against any other from 1:1 to at most"
UNION = sf.union([sf.HighLow(3, [1], 1), sf.Uniform(2, INF), sf.Uniform(2, 2)])


def join_sentences(context):
    return " ".join(promise_sentences(context))


def test_tiers_come_from_the_strongest_to_the_unprotected():
    sentences = promise_sentences(TIERS)
    assert [sentence.split(",")[0] for sentence in sentences] == [
        "For 1 of 4 answers (“clinic”)",
        "For 2 of 4 answers (“café”",
        "For 1 of 4 answers (“park”)",
    ]
    assert "at most 1.65:1 (ε = 0.5)" in sentences[0]
    assert "at most 7.39:1 (ε = 2)" in sentences[1]
    assert "nothing is promised: a report may prove" in sentences[2]


def test_many_tiers_show_only_the_strongest_and_the_weakest():
    sentences = promise_sentences(sf.Tiers(range(10), range(1, 11)))
    assert len(sentences) == 3
    assert "(ε = 1)" in sentences[0]
    assert "8 more levels" in sentences[1]
    assert "(ε = 10)" in sentences[2]


def test_blocks_with_different_epsilons_show_the_strongest_and_the_weakest():
    text = join_sentences(sf.Blocks([0, 0, 1, 1, 2], [1, 2, 3]))
    assert "from 1:1 to at most 2.72:1 (ε = 1) where the promise is strongest" in text
    assert "7.39:1 (ε = 2) where it is weakest" in text
    assert "ε = 3" not in text  # the third block holds no pair
    assert "Between blocks nothing is promised" in text
    assert "One block has a single answer" in text


def test_blocks_without_a_promise_inside_are_counted():
    text = join_sentences(sf.Blocks([0, 0, 1, 1, 2, 2, 3], [1, INF, INF, INF]))
    assert "Inside 2 blocks nothing is promised." in text
    assert "(ε = 1)" in text


def test_promises_between_blocks_are_stated():
    text = join_sentences(sf.Blocks([0, 0, 1], 1, across=2))
    assert f"Inside a block, {MOVES} 2.72" in text
    assert f"Between blocks, {MOVES} 7.39" in text
    assert "nothing is promised" not in text


def test_promises_that_follow_from_others_are_stated():
    text = join_sentences(sf.Blocks([0, 0, 1], 9, across=1))
    assert f"Inside a block, {MOVES} 7.39" in text


def test_unions_state_their_extremes_and_unprotected_answers():
    text = join_sentences(UNION)
    assert "The 7 answers are in 3 blocks of 2 to 3, and each block has its own promise." in text
    strongest = "Where the promise is strongest, one report can move the odds from 1:1 to at most"
    assert f"{strongest} 2.72:1 (ε = 1)." in text
    assert "at most 7.39:1 (ε = 2)" in text
    assert "Between blocks nothing is promised" in text
    assert "For 4 of 7 answers nothing is promised" in text


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
def test_facts_match_the_matrix(context):
    E = context.closure().matrix()
    off = E[~np.eye(context.size, dtype=bool)]
    facts = dict(promise_facts(context))
    finite = off[np.isfinite(off)]
    assert facts["Ordered pairs with a promise"].startswith(f"{finite.size} of {off.size} ")
    assert facts["Ordered pairs without a promise"] == str(off.size - finite.size)
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
def test_contexts_without_any_promise_say_so(context):
    assert promise_sentences(context) == ["Nothing is promised: a report may reveal the answer."]


@pytest.mark.parametrize("context", [TIERS, UNION, sf.Blocks([0, 0, 1], 1, across=2)], ids=repr)
def test_facts_name_the_kind_of_context(context):
    assert dict(promise_facts(context))["Kind of promise"].split(":")[0] in (
        "tiers",
        "union",
        "blocks",
    )


def test_unions_count_only_direct_promises_of_a_matrix():
    """A matrix counts the same inside a union as on its own."""
    chain = sf.PrivacyMatrix([[0, 1, INF], [1, 0, 1], [INF, 1, 0]])
    facts = dict(promise_facts(sf.union([chain, sf.HighLow(1, [], 1)])))
    assert facts["Ordered pairs with a promise"].startswith("4 of 12")
