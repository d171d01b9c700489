"""Blocks with their own ε, promises across, tiers and unions: structure, records, errors."""

import base64
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.contexts import (
    Blocks,
    ContextUnion,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
    context_from_record,
    union,
)
from sfumato.domains import Domain, GridDomain, IntegerDomain
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSurvey
from sfumato.foundation.canonical import pack_u32

INF = math.inf
MILLION = 1_000_000
ONE = Fraction(1)
TWO = Fraction(2)
THREE = Fraction(3)
COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"


def _describe(groups):
    return groups.group_of.tolist(), groups.inside, groups.outward


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "described"),
    [
        (Uniform(3, 2), ([0, 0, 0], (TWO,), (INF,))),
        (HighLow(4, [1, 3], 1), ([0, 1, 0, 1], (INF, ONE), (INF, ONE))),
        (HighLow(3, [0], 1), ([0, 1, 1], (ONE, INF), (ONE, INF))),
        (HighLow(2, [0, 1], 1), ([0, 0], (ONE,), (ONE,))),
        (HighLow(2, [], 1), ([0, 0], (INF,), (INF,))),
        (Blocks([7, 3, 7], 1), ([0, 1, 0], (ONE, ONE), (INF, INF))),
        (
            Blocks(["b", "a", "b"], {"a": 3, "b": 1}, across=2),
            ([0, 1, 0], (ONE, THREE), (TWO, TWO)),
        ),
        (Tiers([0, 1, 2, 1], [1, 3, INF]), ([0, 1, 2, 1], (ONE, THREE, INF), (ONE, THREE, INF))),
        (Tiers(["x", "y", "z"], [1, 2, "1.0"]), ([0, 1, 0], (ONE, TWO), (ONE, TWO))),
        (Tiers(["z", "y", "x"], [2, 2, 1]), ([0, 0, 1], (TWO, ONE), (TWO, ONE))),
    ],
    ids=repr,
)
def test_groups_are_numbered_by_first_label(context, described):
    assert _describe(context.groups) == described


@pytest.mark.parametrize(
    "context",
    [PrivacyMatrix([[0, 1], [1, 0]]), Metric([[0, 1], [1, 0]]), Uniform(2, 1) + Uniform(2, 1)],
    ids=["matrix", "metric", "sum"],
)
def test_matrix_contexts_have_no_groups(context):
    assert context.groups is None


def test_union_has_no_groups():
    assert union([HighLow(2, [0], 1), Uniform(2, 1)]).groups is None


@pytest.mark.parametrize("size", [1, 2, 3])
def test_smallest_epsilon_ignores_empty_pairs(size):
    context = Blocks([0] * size, TWO, across=ONE)
    assert context.exact_minimum == (TWO if size > 1 else INF)


def test_exact_matrices_store_fractions_beyond_64_bits():
    """The common denominator of coprime primes has more than 64 bits."""
    epsilons = [Fraction(1, 999_999_999_989), Fraction(1, 999_999_999_961), Fraction(40)]
    context = Blocks([0, 0, 1, 1, 2, 2], epsilons, across=Fraction(1, 999_999_999_937))
    exact = context.exact_matrix()
    for x in range(6):
        for x2 in range(6):
            assert exact.entry(x, x2) == context.exact_epsilon(x, x2)
    combined = union([Tiers([0, 1], epsilons[:2]), Tiers([0, 1], epsilons[1:])])
    for x in range(4):
        for x2 in range(4):
            assert combined.exact_matrix().entry(x, x2) == combined.exact_epsilon(x, x2)


# --- one ε for each block -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon",
    [
        {"Paris": 1, "Rome": "0.5"},
        {"Rome": 0.5, "Paris": Fraction(1)},
        [1, 0.5],
        (1, "0.5"),
        np.array([1.0, 0.5]),
    ],
    ids=["mapping", "another order", "list", "tuple", "array"],
)
def test_blocks_may_have_their_own_epsilon(epsilon):
    context = Blocks({"Rue A": "Paris", "Via C": "Rome", "Rue B": "Paris"}, epsilon)
    assert context.exact_epsilons == (1, Fraction(1, 2))
    assert context.exact_across == INF
    assert context.exact_minimum == 1  # Rome has one symbol only


def test_block_names_are_normalised():
    assert Blocks([COMPOSED, "b"], {DECOMPOSED: 1, "b": 2}).exact_epsilons == (1, 2)


def test_single_epsilon_gives_the_papers_context():
    assert Blocks([0, 0, 1], [2, 2]).exact_inside == 2
    for other in (
        Blocks([0, 0, 1], [2, 1]),
        Blocks([0, 0, 1], 2, across=2),
        Blocks([0, 0, 1], 2, across=3),
    ):
        with pytest.raises(ContextMismatch, match="exact_epsilons and exact_across"):
            _ = other.exact_inside


@pytest.mark.parametrize(
    ("context", "least"),
    [
        (Blocks([0, 0, 1, 1], [3, 2]), 2),
        (Blocks([0, 0, 1], [3, 2]), 3),
        (Blocks([0, 1, 2], [3, 2, 1]), INF),
        (Blocks([0, 1, 2], [3, 2, 1], across=5), 5),
        (Blocks([0, 0, 1], 3, across=1), 1),
        (Blocks([0, 0], 3, across=1), 3),
        (Blocks([0], 3, across=1), INF),
        (Tiers([0, 1, 1], [3, 2]), 2),
        (Tiers([0, 1], [3, INF]), 3),
        (Tiers([0], [3]), INF),
    ],
    ids=repr,
)
def test_smallest_epsilon_by_hand(context, least):
    assert context.exact_minimum == least


def test_detour_through_another_block_may_be_shorter():
    context = Blocks(["a", "a", "b", "b", "c"], {"a": 5, "b": 1, "c": 9}, across=2)
    # A single symbol has no detour to itself.
    assert context.closure().exact_epsilons == (
        4,
        1,
        9,
    )
    assert context.closure().exact_across == 2
    assert context.closure().domain == context.domain
    assert context.exact_epsilons == (5, 1, 9)


def test_single_block_has_no_detour():
    assert Blocks([0, 0], 5, across=1).closure().exact_epsilons == (5,)


def test_detour_may_exceed_forty():
    closed = Blocks([0, 0, 1], INF, across=30).closure()
    assert closed.exact_epsilon(0, 1) == 60
    assert closed.closure() is closed


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        ([1], "each of the 2 blocks; got 1"),
        ([1, 2, 3], "each of the 2 blocks; got 3"),
        ([], "each of the 2 blocks; got 0"),
        ({"a": 1}, "epsilon must contain an ε for every block; 'b' has none"),
        ({}, "'a' has none"),
        ({"a": 1, "b": 2, "c": 3}, "epsilon contains 'c', but no label belongs to that block"),
        ({"a": 1, "b": 2, 0: 3}, "epsilon contains 0, but no label"),
    ],
    ids=repr,
)
def test_epsilons_must_fit_the_blocks(epsilon, words):
    with pytest.raises(ContextMismatch, match=words):
        Blocks(["a", "a", "b"], epsilon)


@pytest.mark.parametrize("epsilon", [{1, 2}, b"12", {1.5: 1, "b": 2}, {"a": 1, None: 2}], ids=repr)
def test_invalid_block_epsilons_are_rejected(epsilon):
    with pytest.raises(InvalidContext):
        Blocks(["a", "a", "b"], epsilon)


def test_duplicate_epsilon_is_rejected():
    with pytest.raises(InvalidContext, match="once"):
        Blocks([COMPOSED, "b"], {COMPOSED: 1, DECOMPOSED: 2, "b": 1})


def test_invalid_epsilon_error_names_the_block():
    with pytest.raises(InvalidContext, match="epsilon of block 'b' must be above 0"):
        Blocks(["a", "b"], {"a": 1, "b": 0})
    with pytest.raises(InvalidContext, match="epsilons of tier 7 must be at most 40"):
        Tiers([3, 7], [1, 50])
    with pytest.raises(InvalidContext, match="across must be above 0"):
        Blocks(["a", "b"], 1, across=0)


@pytest.mark.parametrize("names", [[1, 0, 1], [5, 2, 9], np.array([3, 1, 3])], ids=repr)
def test_ambiguous_sequences_are_rejected(names):
    """Block 0 comes second, so a list of ε could mean two things, and one would be a leak."""
    m = len(set(names))
    for make in (
        lambda: Blocks(names, list(range(1, m + 1))),
        lambda: Tiers(names, list(range(1, m + 1))),
        lambda: union([HighLow(1, [], 1)] * m, block_of=names),
    ):
        with pytest.raises(InvalidContext, match=r"ambiguous.*Pass a mapping"):
            make()
    assert Blocks(names, dict.fromkeys(names, 1)) == Blocks(names, 1)
    assert Blocks([2, 5, 9], [1, 2, 3]).exact_epsilons == (1, 2, 3)


# --- tiers ----------------------------------------------------------------------------------------


def test_tiers_know_their_names_and_epsilons():
    context = Tiers({"park": "public", "bar": "private", "clinic": "secret", "club": "private"},
                    {"secret": 0.5, "private": 2, "public": INF})  # fmt: skip
    assert context.tier_names == ("public", "private", "secret")
    assert context.tier_of.tolist() == [0, 1, 2, 1]
    assert context.exact_epsilons == (INF, 2, Fraction(1, 2))
    assert context.domain == Domain(["park", "bar", "clinic", "club"])
    assert context.closure() is context


@pytest.mark.parametrize(
    ("tier_of", "epsilons", "error", "words"),
    [
        (
            [0, 1],
            1,
            InvalidContext,
            "epsilons must be a sequence in tier order, or a mapping from tier to an ε",
        ),
        ([0, 1], "12", InvalidContext, "epsilons must be a sequence"),
        ([0, 1], None, InvalidContext, "epsilons must be a sequence"),
        ([0, 1], [1], ContextMismatch, "each of the 2 tiers; got 1"),
        (["a", "b"], {"a": 1}, ContextMismatch, "an ε for every tier; 'b' has none"),
        (
            ["a", "b"],
            {"a": 1, "b": 2, "c": 3},
            ContextMismatch,
            "contains 'c', but no label belongs to that tier",
        ),
        (
            "ab",
            [1, 2],
            InvalidContext,
            "tier_of must be a sequence in domain order, or a mapping from label to tier",
        ),
        ([0.5, 1], [1, 2], InvalidContext, "a tier name must be text or an integer"),
        ([], [], InvalidContext, "1 to 2"),
    ],
    ids=repr,
)
def test_invalid_tiers_are_rejected(tier_of, epsilons, error, words):
    with pytest.raises(error, match=words):
        Tiers(tier_of, epsilons)


def test_tiers_must_fit_their_domain():
    with pytest.raises(ContextMismatch, match="tier_of has 2 entries; the domain has 3"):
        Tiers([0, 1], [1, 2], domain=3)
    with pytest.raises(InvalidContext, match="tier_of contains 'c'"):
        Tiers({"a": 0, "c": 1}, [1, 2], domain=["a", "b"])


# --- unions ---------------------------------------------------------------------------------------


def test_union_of_uniform_contexts_is_blocks():
    context = union([Uniform(2, 1), Uniform(3, 0.5), Uniform(1, INF)])
    assert context == Blocks([0, 0, 1, 1, 1, 2], [1, 0.5, INF])
    assert context.domain == IntegerDomain(6)
    assert union([Uniform(2, 1), Uniform(1, 1)]) == Blocks([0, 0, 1], 1)
    assert union({"Rome": Uniform(["a"], 2), "Paris": Uniform(["b"], 1)}).block_names == (
        "Rome",
        "Paris",
    )


def test_union_with_given_blocks_follows_the_domain_order():
    context = union(
        {"Rome": HighLow(2, [1], 1), "Paris": Uniform(2, 3)},
        block_of={"c": "Rome", "a": "Paris", "d": "Rome", "b": "Paris"},
        domain=["a", "b", "c", "d"],
    )
    assert isinstance(context, ContextUnion)
    assert context.block_of.tolist() == [0, 0, 1, 1]
    assert context.parts == (Uniform(2, 3), HighLow(2, [1], 1))
    assert context.exact_epsilon(3, 2) == 1
    assert context.exact_epsilon(2, 3) == INF


def test_union_knows_its_symbols():
    context = union([HighLow(2, [0], 1), Uniform(3, 1)], block_of=["x", "y", "y", "x", "y"])
    assert context.sizes.tolist() == [2, 3]
    assert context.rank.tolist() == [0, 0, 1, 1, 2]
    assert context.exact_minimum == 1
    assert (
        repr(context) == "ContextUnion(2 blocks of IntegerDomain(5, start=0): 1 HighLow, 1 Uniform)"
    )


@pytest.mark.parametrize(
    ("domains", "joined"),
    [
        ([2, 3], IntegerDomain(5)),
        ([["a", "b"], ["c"]], Domain(["a", "b", "c"])),
        ([["a"], 2], Domain(["a", 0, 1])),
        ([IntegerDomain(2, start=5), IntegerDomain(2)], Domain([5, 6, 0, 1])),
        ([Domain(["a"], other="b"), ["c"]], Domain(["a", "b", "c"], other="b")),
    ],
    ids=repr,
)
def test_union_labels_are_concatenated(domains, joined):
    assert union([HighLow(domain, [], 1) for domain in domains]).domain == joined


@pytest.mark.parametrize(
    ("contexts", "options", "error", "words"),
    [
        ([], {}, InvalidContext, "at least one context"),
        (None, {}, InvalidContext, "sequence of contexts or a mapping"),
        ("ab", {}, InvalidContext, "sequence of contexts"),
        (Uniform(2, 1), {}, InvalidContext, "sequence of contexts"),
        ([Uniform(2, 1), 3], {}, InvalidContext, "must be a Context; got int"),
        ({"a": Uniform(2, 1), "b": None}, {}, InvalidContext, "must be a Context; got NoneType"),
        (
            [Uniform(["a"], 1), Uniform(["a"], 1)],
            {},
            InvalidContext,
            "the label 'a' is in two contexts.*domain=",
        ),
        (
            [Uniform(["a", 0], 1), Uniform(1, 1)],
            {},
            InvalidContext,
            "the label 0 is in two contexts",
        ),
        (
            [Uniform(Domain(["a"], other="a"), 1), Uniform(Domain(["b"], other="b"), 1)],
            {},
            InvalidContext,
            "`other`",
        ),
        ([Uniform(2, 1)], {"domain": 3}, ContextMismatch, "2 entries; the domain has 3"),
        (
            [Uniform(2, 1)],
            {"block_of": [0, 0, 0]},
            ContextMismatch,
            "block 0 has 3 symbols; its context has 2",
        ),
        ([Uniform(2, 1)], {"block_of": [0, 1]}, ContextMismatch, "each of the 2 blocks; got 1"),
        (
            {"a": Uniform(1, 1)},
            {"block_of": ["a", "b"]},
            ContextMismatch,
            "a context for every block; 'b' has none",
        ),
        (
            {"a": Uniform(1, 1), "b": Uniform(1, 1)},
            {"block_of": ["a"]},
            ContextMismatch,
            "contains 'b', but no label",
        ),
        ({1.5: Uniform(1, 1)}, {}, InvalidContext, "a block name must be text or an integer"),
    ],
    ids=repr,
)
def test_invalid_unions_are_rejected(contexts, options, error, words):
    with pytest.raises(error, match=words):
        union(contexts, **options)


def test_parts_must_be_contexts():
    with pytest.raises(InvalidContext, match="must be a Context; got str"):
        ContextUnion(["a"], [0])


def test_large_union_needs_no_matrix():
    half = MILLION // 2
    context = union([HighLow(half, range(0, half, 10), 1.5), Uniform(half, 2)])
    rng = np.random.default_rng(0)
    x, x2 = rng.integers(0, MILLION, (2, 10_000))
    inside = np.where(x < half, np.where(x % 10 == 0, 1.5, INF), 2)
    expected = np.where((x < half) == (x2 < half), inside, INF)
    assert np.array_equal(context.epsilon(x, x2), np.where(x == x2, 0, expected))
    assert context.smallest_epsilon == 1.5
    assert context.closure() is context
    with pytest.raises(InvalidContext, match="4096"):
        context.exact_matrix()


# --- other labels ---------------------------------------------------------------------------------


def test_with_domain_requires_a_domain_of_the_same_size():
    with pytest.raises(ContextMismatch, match="3 symbols; the domain has 2"):
        Uniform(3, 1).with_domain(Domain(["a", "b"]))


def test_with_domain_applies_to_every_term_of_a_sum():
    labels = Domain(["a", "b"])
    total = (Uniform(2, 1) + HighLow(2, [0], 1)).with_domain(labels)
    assert total == Uniform(labels, 1) + HighLow(labels, ["a"], 1)


# --- records --------------------------------------------------------------------------------------


def test_blocks_of_one_epsilon_have_the_short_record():
    assert Blocks(["x", "y", "x"], [1, 1], across=INF).to_record() == {
        "kind": "blocks",
        "domain": {"kind": "range", "size": 3, "start": 0},
        "epsilon": "1",
        "block_of": pack_u32([0, 1, 0]),
    }


def test_promises_across_and_tiers_are_recorded():
    assert Blocks([0, 1, 0], ["0.5", INF], across=2).to_record() == {
        "kind": "blocks",
        "domain": {"kind": "range", "size": 3, "start": 0},
        "epsilons": ["0.5", "inf"],
        "across": "2",
        "block_of": pack_u32([0, 1, 0]),
    }
    assert Blocks([0, 1, 0], 1, across="1/3").to_record()["across"] == "1/3"
    assert Tiers(["b", "a"], {"a": 1, "b": INF}, domain=["u", "v"]).to_record() == {
        "kind": "tiers",
        "domain": {"kind": "labels", "labels": ["u", "v"], "other": None},
        "epsilons": ["inf", "1"],
        "tier_of": pack_u32([0, 1]),
    }
    assert union([HighLow(["a"], ["a"], 1), Uniform(["b"], 2)]).to_record() == {
        "kind": "union",
        "domain": {"kind": "labels", "labels": ["a", "b"], "other": None},
        "parts": [HighLow(1, [0], 1).to_record(), Uniform(1, 2).to_record()],
        "block_of": pack_u32([0, 1]),
    }


READ_BACK = {
    "own": Blocks([0, 0, 1], [1, 2], domain=["a", "b", "c"]),
    "across": Blocks([0, 0, 1], 1, across="0.7"),
    "both": Blocks([0, 0, 1], [1, "1/3"], across=2, domain=GridDomain(0, 1, 0, 3, 1)),
    "tiers": Tiers([0, 1, 0], [1, "inf"], domain=Domain(["a", "b"], other="c")),
    "union": union(
        [HighLow(["a", "b"], ["b"], 1), PrivacyMatrix([[0, 1], [2, 0]], domain=["c", "d"])]
    ),
    "nested": union([union([HighLow(2, [0], 1), Uniform(1, 1)]), Tiers([0, 1], [1, 2])]),
    "uniform parts": ContextUnion([Uniform(1, 1), Uniform(1, 1)], [0, 1]),
}


@pytest.mark.parametrize("context", READ_BACK.values(), ids=READ_BACK)
def test_records_round_trip(context):
    restored = context_from_record(context.to_record())
    assert restored == context
    assert type(restored) is type(context)


def _pack(numbers):
    return base64.b64encode(np.array(numbers, dtype="<u4").tobytes()).decode()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("own", {"epsilons": ["1", "1"]}),
        ("own", {"epsilons": ["1", "2.0"]}),
        ("own", {"epsilons": ["1"]}),
        ("own", {"epsilons": "1"}),
        ("own", {"epsilons": {"0": "1", "1": "2"}}),
        ("own", {"epsilons": [1, 2]}),
        ("own", {"epsilon": "1"}),
        ("own", {"across": "inf"}),
        ("own", {"across": None}),
        ("own", {"block_of": _pack([1, 1, 0])}),
        ("own", {"surprise": 1}),
        ("across", {"across": "inf"}),
        ("across", {"across": "0.70"}),
        ("across", {"across": "0"}),
        ("across", {"across": ["1"]}),
        ("across", {"epsilon": ["1", "1"]}),
        ("tiers", {"tier_of": _pack([1, 0, 1])}),
        ("tiers", {"tier_of": _pack([0, 2, 0])}),
        ("tiers", {"tier_of": _pack([0, 1])}),
        ("tiers", {"epsilons": ["1", "Infinity"]}),
        ("tiers", {"epsilons": ["1"]}),
        ("tiers", {"epsilon": "1"}),
        ("union", {"parts": []}),
        ("union", {"parts": {}}),
        ("union", {"parts": None}),
        ("union", {"parts": [Uniform(2, 1).to_record()]}),
        ("union", {"parts": [Uniform(2, 1).to_record(), Uniform(3, 1).to_record()]}),
        ("union", {"parts": [Uniform(["x", "y"], 1).to_record(), Uniform(2, 1).to_record()]}),
        ("union", {"parts": [None, Uniform(2, 1).to_record()]}),
        ("union", {"parts": [{"kind": "sum", "terms": []}, Uniform(2, 1).to_record()]}),
        ("union", {"block_of": _pack([1, 1, 0, 0])}),
    ],
    ids=repr,
)
def test_modified_record_is_rejected(name, changes):
    with pytest.raises((InvalidSurvey, InvalidContext, ContextMismatch)):
        context_from_record({**READ_BACK[name].to_record(), **changes})


@pytest.mark.parametrize("name", READ_BACK)
def test_record_without_a_field_is_rejected(name):
    record = READ_BACK[name].to_record()
    for field in record:
        if field != "across":  # without it, the record is valid: no promise across
            with pytest.raises(InvalidSurvey):
                context_from_record({key: value for key, value in record.items() if key != field})


def test_unions_nest_at_most_eight_deep():
    context = Uniform(1, 1)
    for _ in range(8):
        context = ContextUnion([context], [0])
    assert context_from_record(context.to_record()) == context
    with pytest.raises(InvalidSurvey, match="nested at most 8 levels deep"):
        context_from_record(ContextUnion([context], [0]).to_record())
