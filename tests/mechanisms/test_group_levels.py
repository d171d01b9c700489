"""The integers of groups that give each other cover keep their promises, for random shapes."""

from fractions import Fraction
from math import exp

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.errors import NothingToLearn
from sfumato.mechanisms.group_levels import GroupLevels, GroupShape, find_levels
from sfumato.randomness import within_odds

N = 1 << 64


@st.composite
def shapes(draw):
    """Return one to five shapes with the promises of a closed context: ε_in ≤ 2·ε_out."""
    results = []
    for _ in range(draw(st.integers(1, 5))):
        outputs = draw(st.one_of(st.integers(1, 12), st.integers(1, 3000)))
        raised = draw(st.integers(1, outputs - 1)) if outputs > 1 else 1
        outward = Fraction(draw(st.integers(20, 800)), 100)
        factor = draw(st.one_of(st.integers(10, 200), st.sampled_from([50, 100, 200])))
        inside = outward * Fraction(factor, 100) if outputs > 1 else outward
        results.append(
            GroupShape(outputs, raised, inside, outward, draw(st.sampled_from([1, 1, 2, 7, 1000])))
        )
    assume(all(float(shape.gain) > 1e-3 for shape in results))
    return results


def beta(shapes):
    """Return β by the formula, in floats."""
    gains = []
    for shape in shapes:
        A = exp(shape.epsilon_out)
        B = exp(shape.epsilon_out - shape.epsilon_in)
        f = shape.raised / shape.outputs
        gains.append(f * A + (1 - f) * B - 1)
    return 1 / (
        1 + sum(shape.group_count / gain for shape, gain in zip(shapes, gains, strict=True))
    ), gains


def demand_whole(shapes, clear, levels, word_bits):
    """Check the two equations and the two promises, in integers."""
    covered = 0
    for shape, level in zip(shapes, levels, strict=True):
        b = shape.outputs
        r = shape.raised
        assert r * level.high + (b - r) * level.low - b * level.cover == clear
        assert within_odds(level.high, level.cover, shape.epsilon_out)
        assert level.high > level.low >= 0 < level.cover or b == 1
        if b > r:
            assert within_odds(level.high, level.low, shape.epsilon_in)
            # Cover must not favour the symbol that takes it, even if a closed context permits it.
            owed = [
                other.epsilon_out for other in shapes if other is not shape or other.group_count > 1
            ]
            assert all(
                within_odds(level.cover, level.low, e)
                for e in owed
                if shape.epsilon_in <= shape.epsilon_out + e
            )
        covered += shape.group_count * b * level.cover
    leftover = (1 << word_bits) - covered - clear
    assert leftover >= 0 < clear
    return leftover


USUAL = settings(max_examples=60, deadline=None, derandomize=True, database=None)
DEEP = settings(max_examples=500, deadline=None, derandomize=True, database=None)


@USUAL
@given(shapes())
def test_levels_add_up_and_keep_their_promises(shapes):
    clear, levels = find_levels(shapes, 64)
    leftover = demand_whole(shapes, clear, levels, 64)
    assert leftover < N >> 20
    ideal, _ = beta(shapes)
    assert clear <= ideal * N * (1 + 1e-9)


@USUAL
@given(shapes())
def test_levels_match_the_formula_to_a_billionth(shapes):
    """Cover and odds determine the risk; both match the ideal row, except in vast frames."""
    assume(sum(shape.group_count * shape.outputs for shape in shapes) < 10**5)
    clear, levels = find_levels(shapes, 64)
    ideal, gains = beta(shapes)
    assert clear / N == pytest.approx(ideal, rel=1e-9)
    for shape, gain, level in zip(shapes, gains, levels, strict=True):
        cover = ideal / gain / shape.outputs
        assert level.cover / N == pytest.approx(cover, rel=1e-9)
        assert level.high / N == pytest.approx(cover * exp(shape.epsilon_out), rel=1e-9)
        if shape.outputs > shape.raised:
            assert level.low / N == pytest.approx(
                cover * exp(shape.epsilon_out - shape.epsilon_in), rel=1e-9
            )


@USUAL
@given(shapes(), st.integers(6, 20))
def test_short_words_are_correct_or_rejected(shapes, word_bits):
    demand_whole_or_rejected(shapes, word_bits)


@pytest.mark.slow
@DEEP
@given(shapes(), st.integers(6, 64))
def test_words_of_any_length_are_correct_or_rejected(shapes, word_bits):
    demand_whole_or_rejected(shapes, word_bits)


def demand_whole_or_rejected(shapes, word_bits):
    try:
        clear, levels = find_levels(shapes, word_bits)
    except NothingToLearn as refusal:
        assert f"{word_bits}-bit words" in str(refusal)
    else:
        demand_whole(shapes, clear, levels, word_bits)


def test_too_short_words_are_rejected():
    shape = GroupShape(100, 27, Fraction(1), Fraction(2), 10)
    assert find_levels([shape], 32)[0] > 0
    for word_bits in (1, 4, 8):
        with pytest.raises(NothingToLearn, match=f"{word_bits}-bit words cannot represent"):
            find_levels([shape], word_bits)


def test_too_strong_promise_across_is_rejected():
    """With f = 1/10, ε_in = 1.9 and ε_out = 1, a member would use its range less than others."""
    shape = GroupShape(10, 1, Fraction(19, 10), Fraction(1))
    assert float(shape.gain) < 0
    with pytest.raises(NothingToLearn, match="too strong"):
        find_levels([shape], 64)


def test_contexts_without_groups_are_unrandomized():
    assert find_levels([], 20) == (1 << 20, [])


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(5)])
def test_single_symbol_gives_mangats_response(epsilon):
    """A group of one report is unrandomized with probability 1 − e^−ε, the most that ε permits."""
    clear, (level,) = find_levels([GroupShape(1, 1, epsilon, epsilon)], 64)
    assert level == GroupLevels(clear + level.cover, level.cover, level.cover)
    assert clear / N == pytest.approx(1 - exp(-epsilon), rel=1e-12)
    assert not within_odds(level.high, level.cover - 1, epsilon)


def test_equal_groups_are_counted_not_listed():
    one = GroupShape(7, 3, Fraction(1), Fraction(2))
    listed = find_levels([one] * 5, 64)
    grouped = find_levels([GroupShape(7, 3, Fraction(1), Fraction(2), 5)], 64)
    assert (listed[0], listed[1][0]) == (grouped[0], grouped[1][0])
