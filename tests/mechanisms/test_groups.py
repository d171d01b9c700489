"""Group response: closed-form risks, with the paper's and Mangat's as special cases; records."""

import copy
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import ClearCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.codes.singer import SingerDesign, singer_set
from sfumato.designer.frames import FrameGroup, frame_risks
from sfumato.errors import ContextMismatch, InvalidSurvey, NothingToLearn
from sfumato.mechanisms import mechanism_from_record
from sfumato.mechanisms.group_levels import GroupLevels

inf = math.inf
N = 1 << 64
FANO = CyclicDesign(7, ((0, 1, 3),))
PLANE = CyclicDesign.from_base_blocks(13, singer_set(SingerDesign(3, 3)))


def frame_of(mechanism):
    """Return the groups of a mechanism for the closed form, and the group of each symbol.

    Free symbols have group −1.
    """
    groups = mechanism.context.groups
    owing = [g for g, outward in enumerate(groups.outward) if outward < inf]
    frame = []
    for number, g in enumerate(owing):
        code = mechanism._codes[mechanism._code_index_of_group[number]]
        size = int(groups.sizes[g])
        raised_share = code.raised / code.outputs
        shared_share = float(code.shared) / code.outputs
        outward = float(groups.outward[g])
        inside = min(float(groups.inside[g]), 2 * outward) if size > 1 else outward
        frame.append(FrameGroup(size, inside, outward, raised_share, shared_share))
    return frame, [owing.index(g) if g in owing else -1 for g in groups.group_of.tolist()]


def closed_form(mechanism, p):
    """Return ``Σ p_i R_i + p_F R_F − ‖p‖²``."""
    frame, group_of = frame_of(mechanism)
    risks, free = frame_risks(frame)
    return (
        sum(share * (risks[g] if g >= 0 else free) for share, g in zip(p, group_of, strict=True))
        - p @ p
    )


def crowds(k, seed):
    """Return a uniform crowd, a skewed one, and one on a single symbol."""
    rng = np.random.default_rng(seed)
    return [np.full(k, 1 / k), rng.dirichlet(np.full(k, 0.4)), np.eye(k)[rng.integers(k)]]


def blocks(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


CASES = {
    "unequal blocks": sf.GroupResponse(
        sf.Blocks(blocks(3, 4, 7), 1, across=2), [RandomizedCode, HadamardCode, FANO]
    ),
    "padded": sf.GroupResponse(sf.Blocks(blocks(5, 6, 9), 1, across=1.5), [FANO, FANO, PLANE]),
    "a promise for each block": sf.GroupResponse(
        sf.Blocks(blocks(3, 4, 7), [1, 0.5, 2], across=2), HadamardCode
    ),
    "free symbols": sf.GroupResponse(sf.Tiers(blocks(3, 4, 5), [1, 2, inf]), [FANO, HadamardCode]),
    "single symbols": sf.GroupResponse(
        sf.Tiers([0, 1, 1, 2, 3, 3], [1, 3, 0.5, inf]), RandomizedCode
    ),
    "all alone": sf.GroupResponse(sf.Tiers([0, 1, 2], [1, 2, 3])),
    "inside above outward": sf.GroupResponse(
        sf.Blocks(blocks(3, 7), [1.5, 2], across=1), [RandomizedCode, FANO]
    ),
    "inside twice outward": sf.GroupResponse(sf.Blocks(blocks(2, 2), 2, across=1), RandomizedCode),
    "a detour counts": sf.GroupResponse(sf.Blocks(blocks(3, 3), 5, across=1), HadamardCode),
    "high-low": sf.GroupResponse(sf.HighLow(9, range(5), 1), FANO),
    "high-low, one symbol": sf.GroupResponse(sf.HighLow(4, [2], 1)),
    "small promises": sf.GroupResponse(sf.Blocks(blocks(3, 4), 0.05, across=0.1), HadamardCode),
    "large promises": sf.GroupResponse(sf.Blocks(blocks(3, 4), 6, across=9), RandomizedCode),
}


@pytest.mark.parametrize("name", CASES)
def test_paper_estimate_risk_is_the_closed_form(name):
    mechanism = CASES[name]
    for p in crowds(mechanism.inputs, 1):
        simple = mechanism.scores.paper_variances(p, 1).sum()
        # Tolerance: a squared score, which cancels if the crowd is on one symbol.
        scale = max(simple, 1 / float(mechanism._beta))
        assert simple == pytest.approx(closed_form(mechanism, p), abs=1e-12 * scale), name


@pytest.mark.parametrize("seed", range(40))
def test_closed_form_holds_for_random_frames(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(2, 5))
    families = [
        [RandomizedCode, HadamardCode, FANO, PLANE][rng.integers(2 if size > 7 else 4)]
        for size in sizes
    ]
    if seed % 2:
        epsilons = rng.permutation([0.4, 1.1, 2.3, inf])[: sizes.size]
        context = sf.Tiers(blocks(*sizes), epsilons.tolist())
        families = [
            family for family, epsilon in zip(families, epsilons, strict=True) if epsilon < inf
        ]
    else:
        across = float(rng.choice([0.7, 1.5, 3]))
        context = sf.Blocks(
            blocks(*sizes), (across * rng.uniform(0.2, 1.2, sizes.size)).tolist(), across=across
        )
    mechanism = sf.GroupResponse(context, families)
    for p in crowds(context.size, seed):
        simple = mechanism.scores.paper_variances(p, 1).sum()
        scale = max(simple, 1 / float(mechanism._beta))
        assert simple == pytest.approx(closed_form(mechanism, p), abs=1e-12 * scale), context


def test_wrong_closed_form_is_detected():
    mechanism = CASES["unequal blocks"]
    frame, _ = frame_of(mechanism)
    wrong = [FrameGroup(g.size, g.inside, g.outward, g.f, g.l * (1 + 1e-9)) for g in frame]
    assert frame_risks(wrong)[0] != pytest.approx(frame_risks(frame)[0], rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_rounding_to_words_costs_less_than_a_billionth_of_the_risk(name):
    """The realised mechanism against the formula, both with the best linear estimate for p."""
    mechanism = CASES[name]
    k = mechanism.inputs
    ideal = np.array([mechanism.ideal_row(x) for x in range(k)])
    realised, formula = (
        np.trace(np.linalg.inv((Q / np.maximum(Q.mean(axis=0), 1e-300)) @ Q.T))
        for Q in (mechanism.matrix(), ideal)
    )
    assert realised == pytest.approx(formula, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_simple_estimate_is_unbiased(name):
    mechanism = CASES[name]
    for p in crowds(mechanism.inputs, 2):
        scores = mechanism.scores
        result = scores._moments_from(scores._paper_score_parts, mechanism.forward(p), 1)
        np.testing.assert_allclose(result, p, atol=1e-12 / float(mechanism._beta))


UNCORRECTED = [
    sf.PlainResponse(sf.Uniform(5, 1), FANO),
    sf.PlainResponse(sf.Uniform(9, 3), PLANE),
    sf.PlainResponse(sf.Uniform(2, 0.1)),
    sf.BlockResponse(sf.Blocks(blocks(5, 6, 1), [1, 2, 1]), FANO),
    sf.BlockResponse(sf.Blocks(blocks(9, 3), 0.5), PLANE),
]


@pytest.mark.parametrize("mechanism", UNCORRECTED, ids=repr)
def test_total_correction_lowers_the_risk_for_every_crowd(mechanism):
    k = mechanism.inputs
    for p in [*crowds(k, 3), *np.eye(k), *np.random.default_rng(4).dirichlet(np.full(k, 0.5), 30)]:
        assert mechanism.scores.risk(p) <= mechanism.scores.paper_variances(p, 1).sum() * (
            1 + 1e-12
        )


def test_design_without_spare_points_needs_no_correction():
    mechanism = sf.PlainResponse(sf.Uniform(13, 1), PLANE)
    p = crowds(13, 5)[1]
    np.testing.assert_allclose(
        mechanism.scores.variances(p, 1), mechanism.scores.paper_variances(p, 1), rtol=1e-9
    )


def test_unbalanced_code_in_a_frame_has_no_paper_estimate():
    mechanism = sf.GroupResponse(
        sf.Blocks(blocks(6, 6), 1, across=2), CyclicDesign(6, ((0, 1), (0, 2)))
    )
    with pytest.raises(ContextMismatch, match="share the same number"):
        mechanism.scores.paper_variances(np.full(12, 1 / 12), 1)


# --- high-low -------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [2, 3, 7, 10])
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_paper_high_low_risks(s, epsilon):
    """Section 5.1 with the Hadamard code: ``R_A = s c²``, ``R_B = 2 s c²/(e + 1) + c``."""
    e = math.exp(epsilon)
    k = s + 3
    c = (e + 1) / (e - 1)
    mechanism = sf.HighLowResponse(sf.HighLow(k, range(s), epsilon))
    for p in crowds(k, s):
        expected = p[:s].sum() * s * c**2 + p[s:].sum() * (2 * s * c**2 / (e + 1) + c) - p @ p
        assert mechanism.scores.paper_variances(p, 1).sum() == pytest.approx(expected, rel=1e-9)


def naive_high_low_risks(s, b, r, shared, e):
    """Return R_A and R_B of any design by summing squared scores over each kind of report."""
    Z = r * e + b - r
    G = Z / ((r - shared) * (e - 1))
    u = (r + shared * (e - 1)) / Z
    beta = r * (e - 1) / Z
    inside = (r * e + (s - 1) * (shared * e + r - shared)) / Z
    R_A = G**2 * (inside * (1 - 2 * u) + s * u**2)
    R_B = (
        b / Z * G**2 * (s * r / b * (1 - 2 * u) + s * u**2)
        + beta * s * G**2 * (u - shared / r) ** 2
        + 1 / beta
    )
    return R_A, R_B


@pytest.mark.parametrize(
    ("family", "b", "r", "shared"), [(FANO, 7, 3, 1), (PLANE, 13, 4, 1), (HadamardCode, 8, 4, 2)]
)
@pytest.mark.parametrize("epsilon", [0.25, 1, 4])
def test_high_low_risks_of_any_design(family, b, r, shared, epsilon):
    for s in (5, 7):
        mechanism = sf.HighLowResponse(sf.HighLow(s + 2, range(s), epsilon), family)
        R_A, R_B = naive_high_low_risks(s, b, r, shared, math.exp(epsilon))
        for p in crowds(s + 2, s):
            expected = p[:s].sum() * R_A + p[s:].sum() * R_B - p @ p
            assert mechanism.scores.paper_variances(p, 1).sum() == pytest.approx(expected, rel=1e-9)
            group = sf.GroupResponse(mechanism.context, family)
            assert group.scores.paper_variances(p, 1).sum() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
@pytest.mark.parametrize(("k", "x"), [(2, 0), (2, 1), (5, 3)])
def test_one_sensitive_symbol_is_mangats_response(epsilon, k, x):
    """It always reports itself; the others report it with probability e^−ε, else themselves."""
    e = math.exp(float(epsilon))
    context = sf.HighLow(k, [x], epsilon)
    for mechanism in (sf.HighLowResponse(context, RandomizedCode), sf.GroupResponse(context)):
        assert mechanism.outputs == k
        assert mechanism.exact_row(x) == [1] + [0] * (k - 1)
        for number, free in enumerate(y for y in range(k) if y != x):
            row = mechanism.matrix()[free]
            assert row[0] == pytest.approx(1 / e, rel=1e-12)
            assert row[1 + number] == pytest.approx(1 - 1 / e, rel=1e-12)
            assert (row > 0).sum() == 2
        beta = 1 - 1 / e
        R_A = 1.0
        R_B = 1 / e + (1 - beta) ** 2 / beta + 1 / beta
        for p in crowds(k, k):
            assert mechanism.scores.risk(p) == pytest.approx(
                p[x] * R_A + (1 - p[x]) * R_B - p @ p, rel=1e-9, abs=1e-9
            )
    if k == 2:
        E = [[0, inf], [inf, 0]]
        E[x][1 - x] = epsilon
        binary = sf.BinaryResponse(sf.PrivacyMatrix(E))
        p = np.array([0.3, 0.7])
        assert sf.HighLowResponse(context, RandomizedCode).scores.risk(p) == pytest.approx(
            binary.scores.risk(p), rel=1e-9
        )


# --- invalid input --------------------------------------------------------------------------------


def test_contexts_without_groups_are_rejected():
    for context in (
        sf.PrivacyMatrix([[0, 1], [2, 0]]),
        sf.Metric([[0, 1], [1, 0]]),
        sf.Uniform(2, 1) + sf.Uniform(2, 1),
    ):
        with pytest.raises(ContextMismatch, match="context of groups"):
            sf.GroupResponse(context)


def test_group_response_rejects_contexts_that_show_groups():
    with pytest.raises(ContextMismatch, match="block"):
        sf.GroupResponse(sf.Blocks([0, 0, 1], 1))


def test_codes_are_one_or_one_each():
    context = sf.Tiers([0, 0, 1, 1, 2], [1, 2, inf])
    for families in ([HadamardCode], [HadamardCode] * 3, []):
        with pytest.raises(ContextMismatch, match="one for each of the 2"):
            sf.GroupResponse(context, families)


def test_frame_rejects_too_strong_promise_across():
    with pytest.raises(NothingToLearn, match="too strong"):
        sf.GroupResponse(sf.Blocks(blocks(20, 20), 1, across=0.6), RandomizedCode)
    # Larger sets can keep the same promises.
    sf.certify(sf.GroupResponse(sf.Blocks(blocks(20, 20), 1, across=0.6), HadamardCode))


# --- records --------------------------------------------------------------------------------------

CONTEXT = sf.Tiers(blocks(3, 5, 1), [1, 2, inf])
RECORDED = sf.GroupResponse(CONTEXT, RandomizedCode)


def restore(context=CONTEXT, **changes):
    """Return the mechanism with the integers of RECORDED, some of them changed."""
    integers = replace(RECORDED._integers, **changes)
    return sf.GroupResponse.from_integers(context, integers)


def test_of_integers_restores_the_mechanism():
    for mechanism in CASES.values():
        restored = mechanism_from_record(mechanism.to_record(), mechanism.context)
        assert restored.fingerprint == mechanism.fingerprint
        p = crowds(mechanism.inputs, 6)[1]
        np.testing.assert_array_equal(restored.forward(p), mechanism.forward(p))
        assert restored.scores.risk(p) == mechanism.scores.risk(p)


first, second = RECORDED._levels
GONE = GroupLevels(RECORDED._clear_words + 1, 0, 1)
INCONSISTENT = {
    "a context without groups": {"context": sf.PrivacyMatrix(np.ones((9, 9)) - np.eye(9))},
    "a group without a code": {"code_index_of_group": [0]},
    "a code for no group": {"code_index_of_group": [0, 1, 1]},
    "levels for one code": {"levels": [first]},
    "no levels": {"levels": []},
    "more symbols than points": {"code_index_of_group": [0, 0]},
    "levels exchanged": {"levels": [second, first]},
    "codes exchanged": {"codes": RECORDED._codes[::-1]},
    "one unit more": {"levels": [GroupLevels(first.high + 1, first.low, first.cover), second]},
    "one unit of cover less": {
        "levels": [first, GroupLevels(second.high, second.low, second.cover - 1)]
    },
    "more clear": {"clear_words": RECORDED._clear_words + 1},
    "no contrast": {
        "codes": [ClearCode(9), RECORDED._codes[1]],
        "levels": [GroupLevels(0, RECORDED._clear_words, 0), second],
    },
    "words that are too short": {"word_bits": 63},
    "nothing clear": {
        "clear_words": 0,
        "levels": [GroupLevels(level.cover * 2, 0, level.cover) for level in RECORDED._levels],
    },
}


# These are rejected too, but not by a dedicated check.
REFUSED_BY_ACCIDENT = {
    "negative cover": {
        "levels": [
            GroupLevels(first.high - first.cover - 1, first.low - first.cover - 1, -1),
            second,
        ],
    },
    "cover beyond the word": {
        "levels": [
            GroupLevels(*(words + N for words in (first.high, first.low, first.cover))),
            second,
        ],
    },
    "a code that no group uses": {
        "codes": [*RECORDED._codes, ClearCode(1)],
        "levels": [first, second, GONE],
    },
}


@pytest.mark.parametrize("name", REFUSED_BY_ACCIDENT)
def test_impossible_integers_are_rejected(name):
    with pytest.raises((ValueError, OverflowError)):
        restore(**REFUSED_BY_ACCIDENT[name])


@pytest.mark.parametrize("name", INCONSISTENT)
def test_inconsistent_integers_are_rejected(name):
    assert restore().fingerprint == RECORDED.fingerprint
    with pytest.raises(ContextMismatch):
        restore(**INCONSISTENT[name])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kind",), "group"),
        (("clear",), "-1"),
        (("clear",), 5),
        (("clear",), str(1 << 64)),
        (("word_bits",), 65),
        (("word_bits",), "64"),
        (("code_of_group",), [0, 2]),
        (("code_of_group",), [0, -1]),
        (("code_of_group",), [0, True]),
        (("code_of_group",), "01"),
        (("code_of_group", 0), 0.0),
        (("levels", 0), {"high": "1", "low": "0"}),
        (("levels", 0, "cover"), "01"),
        (("levels", 1), {"high": "1", "low": "0", "cover": "0", "own": "1"}),
        (("codes",), []),
        (("codes", 0, "kind"), "moon"),
        (("codes", 0, "points"), 2),
    ],
)  # fmt: skip
def test_corrupt_record_is_rejected(path, value):
    record = copy.deepcopy(RECORDED.to_record())
    mechanism_from_record(record, CONTEXT)
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises((InvalidSurvey, ContextMismatch)):
        mechanism_from_record(record, CONTEXT)


def test_record_for_another_context_is_rejected():
    with pytest.raises(ContextMismatch):
        mechanism_from_record(RECORDED.to_record(), sf.Tiers(blocks(6, 2, 1), [1, 2, inf]))
    with pytest.raises(InvalidSurvey, match="needs a context of groups"):
        mechanism_from_record(RECORDED.to_record(), sf.PrivacyMatrix(np.ones((9, 9)) - np.eye(9)))
    # Integers that add up may still break the promise: the certificate detects it.
    stricter = sf.Tiers(blocks(3, 5, 1), [Fraction(99, 100), 2, inf])
    with pytest.raises(sf.errors.PrivacyViolation):
        sf.certify(mechanism_from_record(RECORDED.to_record(), stricter))
