"""Certificates by structure for groups, unions and cyclic codes, and forged claims."""

import math
from dataclasses import replace
from fractions import Fraction
from math import gcd

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import BestCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.contexts import ContextUnion
from sfumato.errors import ContextMismatch, NoClosedForm, PrivacyViolation
from sfumato.mechanisms import RowClass, TableResponse
from sfumato.mechanisms.group_levels import GroupLevels
from sfumato.promises import structure
from sfumato.promises.structure import RANDOM_ROW_COUNT, check_structure
from sfumato.randomness import within_odds
from support.mechanism_examples import REPRESENTATIVES

inf = math.inf
LARGE = 8_750
STRUCTURED = [
    mechanism
    for instances in REPRESENTATIVES.values()
    for mechanism in instances
    if mechanism.row_classes() and mechanism.inputs > 1
]


def blocks(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


# --- against enumeration --------------------------------------------------------------------------


def strangers(mechanism):
    """Return contexts of groups over the mechanism's domain that are not its own."""
    k = mechanism.inputs
    domain = mechanism.context.domain
    halves = [2 * x // k for x in range(k)]
    thirds = [x % 3 for x in range(k)]
    for inside, across in ((1, 2), (3, 6), (0.5, inf)):
        yield sf.Blocks(halves, inside, across=across, domain=domain)
        yield sf.Blocks(thirds, inside, across=across, domain=domain)
    for epsilons in ([1, 2, 3], [6, inf, 6], [inf, 0.5, 4]):
        yield sf.Tiers(thirds, epsilons[: len(set(thirds))], domain=domain)
    yield sf.Blocks(halves, 1, domain=domain) + sf.Uniform(domain, 1)
    yield mechanism.context + sf.Uniform(domain, 0.1)


@pytest.mark.parametrize("mechanism", STRUCTURED, ids=repr)
def test_structure_agrees_with_enumeration_or_raises(mechanism):
    for context in strangers(mechanism):
        try:
            sf.certify(mechanism, context)
            keeps = True
        except PrivacyViolation:
            keeps = False
        try:
            check_structure(mechanism, context, mechanism.row_classes())
        except PrivacyViolation as violation:
            assert not keeps
            x = violation.x
            x2 = violation.x2
            y = violation.output
            q = mechanism.integer_row(x)[y]
            q2 = mechanism.integer_row(x2)[y]
            assert not within_odds(q, q2, context.exact_epsilon(x, x2))
        except NoClosedForm:
            continue
        else:
            assert keeps, context


def test_structure_decides_nearly_all_pairs():
    """Without this, the test above could be vacuous."""
    verdicts = []
    for mechanism in STRUCTURED:
        for context in strangers(mechanism):
            try:
                check_structure(mechanism, context, mechanism.row_classes())
                verdicts.append("kept")
            except PrivacyViolation:
                verdicts.append("broken")
            except NoClosedForm:
                verdicts.append("open")
    assert verdicts.count("kept") > 25
    assert verdicts.count("broken") > 25
    assert verdicts.count("open") < 0.1 * len(verdicts)


# --- large instances ------------------------------------------------------------------------------

TWO_LEVELS = sf.Blocks(np.arange(LARGE) // 25, 1, across=2)
MANY_TIERS = sf.Tiers(np.arange(10_000) % 4, [1, 2, 3, inf])
UNION = sf.union(
    [
        sf.Uniform(3000, 1),
        sf.HighLow(2000, range(40), 1),
        sf.Tiers(np.arange(900) % 3, [1, 2, inf]),
        sf.Uniform(3, 2),
    ]
)


@pytest.mark.parametrize("family", [RandomizedCode, BestCode()], ids=repr)
def test_blocks_with_two_levels_are_certified(family):
    certificate = sf.certify(sf.GroupResponse(TWO_LEVELS, family))
    assert (certificate.method, certificate.rows) == ("structural", RANDOM_ROW_COUNT)
    assert 0 <= certificate.slack < 1e-9
    assert sum(premise.to_record()["rows"] for premise in certificate.premises) == LARGE


@pytest.mark.parametrize("context", [MANY_TIERS, UNION], ids=repr)
def test_large_tiers_and_unions_are_certified(context):
    certificate = sf.certify(sf.mechanism_for(context), context)
    assert certificate.method == "structural"
    assert 0 <= certificate.slack < 1e-9


@pytest.mark.parametrize(
    ("context", "stricter"),
    [
        (
            sf.Blocks(blocks(*[25] * 60), 1, across=2),
            sf.Blocks(blocks(*[25] * 60), "0.999", across=2),
        ),
        (
            sf.Blocks(blocks(*[25] * 60), 1, across=2),
            sf.Blocks(blocks(*[25] * 60), 1, across="1.999"),
        ),
        (
            sf.Tiers(np.arange(1200) % 3, [1, 2, inf]),
            sf.Tiers(np.arange(1200) % 3, [1, "1.999", inf]),
        ),
        (
            sf.Tiers(np.arange(1200) % 3, [1, 2, inf]),
            sf.Tiers(np.arange(1200) % 3, ["0.999", 2, inf]),
        ),
        (sf.Tiers(np.arange(1200) % 3, [1, 2, inf]), sf.Tiers(np.arange(1200) % 3, [1, 2, 40])),
    ],
    ids=["inside", "across", "second tier", "first tier", "free tier"],
)
def test_slightly_stricter_promises_are_broken_at_scale(context, stricter):
    mechanism = sf.GroupResponse(context, HadamardCode)
    assert mechanism.outputs > 512
    sf.certify(mechanism, context)
    with pytest.raises(PrivacyViolation) as violation:
        sf.certify(mechanism, stricter)
    x = violation.value.x
    x2 = violation.value.x2
    y = violation.value.output
    q = mechanism.integer_row(x)[y]
    q2 = mechanism.integer_row(x2)[y]
    assert not within_odds(q, q2, stricter.exact_epsilon(x, x2))


def with_steps_more(mechanism, kind, steps):
    """Return the mechanism with the odds of one kind of group some steps higher."""
    codes = mechanism._codes
    levels = list(mechanism._levels)
    b = codes[kind].outputs
    r = codes[kind].raised
    step = gcd(r, b - r)
    old = levels[kind]
    levels[kind] = GroupLevels(
        old.high + steps * (b - r) // step, old.low - steps * r // step, old.cover
    )
    integers = replace(mechanism._integers, levels=levels)
    return sf.GroupResponse.from_integers(mechanism.context, integers)


@pytest.mark.parametrize("kind", [0, 1])
def test_one_step_too_much_in_one_code_is_found_at_scale(kind):
    """Raise odds up to the first step that breaks a promise: only that one is refused."""
    context = sf.Blocks(blocks(*[9, 20] * 20), 1, across=2)
    mechanism = sf.GroupResponse(context, RandomizedCode)

    def keeps_promises(steps):
        level = with_steps_more(mechanism, kind, steps)._levels[kind]
        return within_odds(level.high, level.low, Fraction(1)) and within_odds(
            level.high, level.cover, Fraction(2)
        )

    first = next(steps for steps in range(1000) if not keeps_promises(steps))
    assert sf.certify(with_steps_more(mechanism, kind, first - 1)).method == "structural"
    # There is no witness if the tightest report of the first pair has the leftover words.
    with pytest.raises((PrivacyViolation, NoClosedForm)):
        sf.certify(with_steps_more(mechanism, kind, first))


def test_broken_part_of_a_large_union_is_named_by_its_symbols():
    context = sf.union([sf.Uniform(800, 1), sf.HighLow(700, range(600), 1), sf.Uniform(9, 1)])
    mechanism = sf.mechanism_for(context)
    stricter = context.with_parts(
        [context.parts[0], sf.HighLow(700, range(600), "0.999"), context.parts[2]]
    )
    with pytest.raises(PrivacyViolation) as violation:
        sf.certify(mechanism, stricter)
    assert 800 <= violation.value.x < 1400  # a sensitive symbol of the second part
    place = sf.certify(mechanism, context).tightest
    assert context.exact_epsilon(place.x, place.x2) == place.promised


def test_large_unions_need_the_same_blocks():
    context = sf.union([sf.HighLow(1500, [0], 1), sf.HighLow(1500, [0], 1)])
    interleaved = ContextUnion(context.parts, np.arange(3000) % 2)
    with pytest.raises(ContextMismatch, match="same blocks"):
        sf.certify(sf.mechanism_for(context), interleaved)


# --- forged claims --------------------------------------------------------------------------------


class Forger(sf.GroupResponse):
    """Claims what the test supplies."""

    forge = staticmethod(lambda claims: claims)

    def row_classes(self):
        return tuple(self.forge(list(super().row_classes())))


def change_claim(number, **changes):
    """Return a forgery that changes some numbers of one claim."""

    def forge(claims):
        claims[number] = replace(
            claims[number],
            **{name: change(getattr(claims[number], name)) for name, change in changes.items()},
        )
        return claims

    return forge


def move_symbol(claims):
    """Claim a symbol of one group for another."""
    a = claims[1]
    b = claims[2]
    claims[1] = replace(a, symbols=a.symbols[:-1], first_reports=a.first_reports[:-1])
    claims[2] = replace(
        b,
        symbols=np.append(b.symbols, a.symbols[-1]),
        first_reports=np.append(b.first_reports, b.first_reports[-1]).astype(np.int64),
    )
    return claims


def exchange_levels(claims):
    a = claims[1]
    b = claims[2]
    claims[1] = replace(a, high=b.high, low=b.low)
    claims[2] = replace(b, high=a.high, low=a.low)
    return claims


FORGERIES = {
    "gentler odds": change_claim(1, high=lambda high: high - 3, low=lambda low: low + 1),
    "a lower high": change_claim(1, high=lambda high: high - 1),
    "a higher low": change_claim(2, low=lambda low: low + 1),
    "a higher cover": change_claim(1, cover=lambda cover: cover + 1),
    "no cover": change_claim(1, cover=lambda cover: 0),
    "no leftover": change_claim(1, leftover=lambda leftover: leftover + 1),
    "one favoured output more": change_claim(1, raised=lambda raised: raised + 1),
    "a shorter range": change_claim(1, outputs=lambda outputs: outputs - 1),
    "a longer range": change_claim(2, outputs=lambda outputs: outputs + 1),
    "a range elsewhere": change_claim(1, first_reports=lambda first: first + 1),
    "ranges on each other": change_claim(2, first_reports=lambda first: np.zeros_like(first)),
    "a range before the first report": change_claim(1, first_reports=lambda first: first - 1),
    "more of its own": change_claim(0, own_words=lambda own: own + 1),
    "nothing of its own": change_claim(0, own_words=lambda own: 0),
    "own words for members": change_claim(1, own_words=lambda own: own + 1),
    "a symbol less": change_claim(1, symbols=lambda s: s[1:], first_reports=lambda f: f[1:]),
    "a symbol twice": change_claim(
        1, symbols=lambda s: np.append(s, s[0]), first_reports=lambda f: np.append(f, f[0])
    ),
    "a symbol of another group": move_symbol,
    "levels exchanged": exchange_levels,
    "a class less": lambda claims: claims[:-1],
    "a class twice": lambda claims: [*claims, claims[-1]],
    "no symbols in a class": change_claim(
        1, symbols=lambda s: s[:0], first_reports=lambda f: f[:0]
    ),
    "free symbols as members": lambda claims: [
        replace(claims[1], symbols=claims[0].symbols, first_reports=claims[0].first_reports),
        *claims[1:],
    ],
}
FRAME = sf.Tiers(blocks(7, 9, 3), [1, 2, inf])


@pytest.mark.parametrize("word_bits", [20, 64])
@pytest.mark.parametrize("name", FORGERIES)
def test_forged_claims_raise(name, word_bits):
    families = [CyclicDesign(7, ((0, 1, 3),)), HadamardCode]
    mechanism = Forger(FRAME, families, word_bits=word_bits)
    check_structure(mechanism, FRAME, mechanism.row_classes())
    forged = FORGERIES[name](list(mechanism.row_classes()))
    with pytest.raises(PrivacyViolation, match="false or inconsistent"):
        check_structure(mechanism, FRAME, tuple(forged))


def test_certify_finds_forged_claims_at_scale():
    context = sf.Tiers(blocks(400, 300, 20), [1, 2, inf])
    honest = Forger(context, HadamardCode)
    assert sf.certify(honest).method == "structural"
    honest.forge = change_claim(1, high=lambda high: high - 1)
    with pytest.raises(PrivacyViolation, match="false or inconsistent"):
        sf.certify(honest)


class TwoLevelsInOneRange(TableResponse):
    """Two symbols use one range with their own levels: true of each, not of both."""

    def row_classes(self):
        alone = np.array([0])
        quarter = 1 << 60
        return (
            RowClass(alone, alone, 4, 1, 7 * quarter, 3 * quarter, 0, 0, 0),
            RowClass(alone + 1, alone, 4, 3, 5 * quarter, quarter, 0, 0, 0),
        )


def test_overlapping_classes_raise():
    """Each class has odds within 6 : 1; symbol 0 against symbol 1 has 7 : 1."""
    context = sf.Uniform(2, Fraction(179, 100))  # e^1.79 = 5.99
    quarter = 1 << 60
    mechanism = TwoLevelsInOneRange(
        context, [[n * quarter for n in row] for row in ([7, 3, 3, 3], [1, 5, 5, 5])]
    )
    with pytest.raises(PrivacyViolation):
        sf.certify(mechanism)
    with pytest.raises(PrivacyViolation, match="false or inconsistent"):
        check_structure(mechanism, context, mechanism.row_classes())


def test_claims_that_do_not_add_up_raise_without_checking_rows(monkeypatch):
    context = sf.Tiers([0] + [1] * 40 + [2] * 5, [1, 2, inf])
    mechanism = sf.GroupResponse(context, HadamardCode)
    alone = next(
        number for number, claim in enumerate(mechanism.row_classes()) if 0 in claim.symbols
    )
    forged = change_claim(alone, high=lambda high: high - 1)(list(mechanism.row_classes()))
    monkeypatch.setattr(structure, "_choose_rows", lambda inputs: np.arange(1, inputs))
    check_structure(mechanism, context, mechanism.row_classes())
    with pytest.raises(PrivacyViolation, match="false or inconsistent"):
        check_structure(mechanism, context, tuple(forged))


class FavoursOneMore(HadamardCode):
    """Point 17 favours one output more than it claims."""

    def contains(self, point, output):
        result = super().contains(point, output)
        return result | ((np.asarray(point) == 17) & (np.asarray(output) == 2))


def test_deviant_row_in_a_group_is_detected():
    context = sf.Tiers(blocks(300, 300), [1, 2])
    assert not HadamardCode(300, Fraction(1)).contains(np.uint64(17), np.uint64(2))
    with pytest.raises(PrivacyViolation):
        sf.certify(sf.GroupResponse(context, FavoursOneMore))
    sf.certify(sf.GroupResponse(context, HadamardCode))
