"""Saved groups, products, unions and cyclic codes with one fault: the checker refuses every one.

Exit code 0 is "kept", 1 "broken", 2 "not read". The checker runs in this process; a kept and a
broken file are checked in an isolated process, too.
"""

import base64
import json
import math
from fractions import Fraction
from math import gcd

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import BestCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.foundation.canonical import canonical_bytes
from sfumato.randomness import two_levels, within_odds
from support.lone_checker import check_file, check_file_alone

inf = math.inf
N = 1 << 64


def verdict(saved, folder):
    path = folder / "saved.json"
    path.write_bytes(canonical_bytes(saved))
    return check_file(path)[0]


def record_of(mechanism):
    """Return the content of a file with the mechanism's own record, as in resolved surveys."""
    return json.loads(
        json.dumps(
            {
                "format": 1,
                "context": mechanism.context.to_record(),
                "mechanism": mechanism.to_record(),
            }
        )
    )


def blocks(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def pack(*numbers):
    return base64.b64encode(np.array(numbers, dtype="<u4").tobytes()).decode()


FANO = CyclicDesign(7, ((0, 1, 3),))
ORIGINALS = {
    "groups": sf.GroupResponse(sf.Tiers(blocks(3, 5, 2), [1, 2, inf]), RandomizedCode),
    "large groups": sf.GroupResponse(
        sf.Blocks(blocks(*[20, 31] * 25), [1, 2] * 25, across=2), HadamardCode
    ),
    "two levels": sf.GroupResponse(sf.Blocks(blocks(7, 7, 1), 1, across=2), FANO),
    "product": sf.ProductResponse(sf.Blocks(blocks(3, 3), 1, across=2), RandomizedCode),
    "union": sf.mechanism_for(sf.union([sf.Tiers(blocks(3, 4), [1, 2]), sf.HighLow(5, [0, 1], 1)])),
    "cyclic": sf.PlainResponse(sf.Uniform(6, 1), CyclicDesign(6, ((0, 1), (0, 2)))),
    "padded cyclic": sf.PlainResponse(sf.Uniform(5, 1), FANO),
    "large cyclic": sf.PlainResponse(sf.Uniform(2000, 1), BestCode()),
    "cyclic high-low": sf.HighLowResponse(sf.HighLow(9, range(7), 1), FANO),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_the_originals_are_kept(name, tmp_path):
    assert verdict(record_of(ORIGINALS[name]), tmp_path) == 0


def test_a_file_is_saved_as_it_is_checked_here(tmp_path):
    for name in ("groups", "union", "cyclic"):
        ORIGINALS[name].save(tmp_path / "m.json")
        assert json.loads((tmp_path / "m.json").read_text()) == record_of(ORIGINALS[name])


# --- forgeries ------------------------------------------------------------------------------------


def add(saved, *path, by):
    """Move a number, written as text, at a place of the mechanism."""
    place = saved["mechanism"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = str(int(place[path[-1]]) + by)


def set_to(saved, *path, value):
    place = saved["mechanism"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value


def swap(saved, *path):
    """Exchange the first two entries of a list of the mechanism."""
    place = saved["mechanism"]
    for step in path:
        place = place[step]
    place[0], place[1] = place[1], place[0]


def too_much(levels, b, r, inside, outward):
    """Raise levels to the first step that breaks a promise. Words still add up."""
    step = gcd(r, b - r)
    steps = 0
    high, low, cover = (int(levels[name]) for name in ("high", "low", "cover"))
    while steps < 1000 and within_odds(high, low, inside) and within_odds(high, cover, outward):
        high += (b - r) // step
        low -= r // step
        steps += 1
    assert 0 < steps < 1000
    levels.update(high=str(high), low=str(low))


def code_too_much(code, r, epsilon):
    """Raise a code's levels to the first step that breaks ε. Words still add up."""
    b = code["outputs"]
    high = int(code["high"])
    low = int(code["low"])
    steps = 0
    step = gcd(r, b - r)
    while steps < 1000 and within_odds(high, low, epsilon):
        high += (b - r) // step
        low -= r // step
        steps += 1
    assert 0 < steps < 1000
    code.update(high=str(high), low=str(low))


def more_odds(code, epsilon):
    """A randomized response to another ε."""
    levels = two_levels(code["outputs"], 1, epsilon, 64)
    code.update(high=str(levels.high), low=str(levels.low), leftover=str(levels.leftover))


def lower_covers(saved):
    """Take words of cover from each report of each group: the odds across are too high."""
    mechanism = saved["mechanism"]
    for level in mechanism["levels"]:
        level["cover"] = str(int(level["cover"]) - 10**6)


def lower_covers_and_balance(saved):
    """Lower covers so that the sums are right: members lose as many words in low."""
    for level, code in zip(saved["mechanism"]["levels"], saved["mechanism"]["codes"], strict=True):
        for name in ("low", "cover"):
            level[name] = str(int(level[name]) - code["outputs"] * 10**6)
        r = 1  # randomized response: high falls by less than low, so the sum follows the cover
        level["high"] = str(int(level["high"]) - r * code["outputs"] * 10**6)


ONE = Fraction(1)
TWO = Fraction(2)
FORGERIES = {
    "groups: one step too much inside": (
        "groups",
        lambda s: too_much(s["mechanism"]["levels"][0], 3, 1, ONE, ONE),
    ),
    "groups: one step too much in the second group": (
        "groups",
        lambda s: too_much(s["mechanism"]["levels"][1], 5, 1, TWO, TWO),
    ),
    "large groups: one step too much": (
        "large groups",
        lambda s: too_much(s["mechanism"]["levels"][0], 32, 16, ONE, TWO),
    ),
    "large groups: one step too much in the others": (
        "large groups",
        lambda s: too_much(s["mechanism"]["levels"][1], 32, 16, TWO, TWO),
    ),
    "groups: one unit more on high alone": (
        "groups",
        lambda s: add(s, "levels", 0, "high", by=1),
    ),
    "groups: one unit less on low alone": ("groups", lambda s: add(s, "levels", 1, "low", by=-1)),
    "groups: levels swapped": ("groups", lambda s: swap(s, "levels")),
    "groups: codes swapped": ("groups", lambda s: swap(s, "codes")),
    "groups: codes and levels swapped": (
        "groups",
        lambda s: (swap(s, "codes"), swap(s, "levels")),
    ),
    "groups: numbers swapped": ("groups", lambda s: swap(s, "code_of_group")),
    "groups: a group without a code": ("groups", lambda s: s["mechanism"]["code_of_group"].pop()),
    "groups: a code without a group": (
        "groups",
        lambda s: s["mechanism"]["code_of_group"].append(1),
    ),
    "groups: no groups": ("groups", lambda s: set_to(s, "code_of_group", value=[])),
    "groups: an unknown code": ("groups", lambda s: set_to(s, "code_of_group", 0, value=7)),
    "groups: one unit more clear": ("groups", lambda s: add(s, "clear", by=1)),
    "groups: one unit less clear": ("groups", lambda s: add(s, "clear", by=-1)),
    "groups: covers lowered": ("groups", lower_covers),
    "groups: everything lowered together": ("groups", lower_covers_and_balance),
    "groups: one cover lowered by one": ("groups", lambda s: add(s, "levels", 0, "cover", by=-1)),
    "groups: longer words": ("groups", lambda s: set_to(s, "word_bits", value=63)),
    "groups: the free tier promises": (
        "groups",
        lambda s: s["context"].update(epsilons=["1", "2", "40"]),
    ),
    "groups: a stricter tier": (
        "groups",
        lambda s: s["context"].update(epsilons=["0.999", "2", "inf"]),
    ),
    "groups: another symbol in the strict tier": (
        "groups",
        lambda s: s["context"].update(tier_of=pack(0, 0, 0, 0, 1, 1, 1, 1, 2, 2)),
    ),
    "groups: a free symbol in the lax tier": (
        "groups",
        lambda s: s["context"].update(tier_of=pack(0, 0, 0, 1, 1, 1, 1, 1, 1, 2)),
    ),
    "groups: as if they were blocks": ("groups", lambda s: set_to(s, "kind", value="blocks")),
    "two levels: a number of a base block dropped": (
        "two levels",
        lambda s: set_to(s, "codes", 0, "base", value=pack(0, 1)),
    ),
    "two levels: a number twice in a base block": (
        "two levels",
        lambda s: set_to(s, "codes", 0, "base", value=pack(0, 1, 1)),
    ),
    "two levels: a stricter promise across": (
        "two levels",
        lambda s: s["context"].update(across="1.999"),
    ),
    "two levels: a stricter promise inside": (
        "two levels",
        lambda s: s["context"].update(epsilon="0.999"),
    ),
    "product: more odds in the first answer": (
        "product",
        lambda s: more_odds(s["mechanism"]["codes"][0], Fraction("1.001")),
    ),
    "product: more odds in the second answer": (
        "product",
        lambda s: more_odds(s["mechanism"]["codes"][1], Fraction("1.001")),
    ),
    "product: answers swapped": ("product", lambda s: swap(s, "codes")),
    "product: one answer": ("product", lambda s: s["mechanism"]["codes"].pop()),
    "product: three answers": (
        "product",
        lambda s: s["mechanism"]["codes"].append(s["mechanism"]["codes"][0]),
    ),
    "product: words that do not add up": ("product", lambda s: add(s, "codes", 1, "high", by=1)),
    "product: other blocks": (
        "product",
        lambda s: s["context"].update(block_of=pack(0, 1, 2, 3, 4, 5)),
    ),
    "product: a stricter promise inside": (
        "product",
        lambda s: s["context"].update(epsilon="0.999"),
    ),
    "union: one step too much in a part": (
        "union",
        lambda s: too_much(s["mechanism"]["parts"][0]["levels"][0], 3, 1, ONE, ONE),
    ),
    "union: a part less": ("union", lambda s: s["mechanism"]["parts"].pop()),
    "union: a part more": (
        "union",
        lambda s: s["mechanism"]["parts"].append(s["mechanism"]["parts"][0]),
    ),
    "union: parts swapped": ("union", lambda s: swap(s, "parts")),
    "union: a part promises less": (
        "union",
        lambda s: s["context"]["parts"][0].update(epsilons=["1", "1.5"]),
    ),
    "cyclic: one step too much": (
        "cyclic",
        lambda s: code_too_much(s["mechanism"]["codes"][0], 4, ONE),
    ),
    "cyclic: one step too much at size": (
        "large cyclic",
        lambda s: code_too_much(
            s["mechanism"]["codes"][0],
            len(base64.b64decode(s["mechanism"]["codes"][0]["base"])) // 4,
            ONE,
        ),
    ),
    "cyclic: a number dropped": (
        "cyclic",
        lambda s: set_to(s, "codes", 0, "base", value=pack(0, 1, 0)),
    ),
    "cyclic: a number doubled": (
        "cyclic",
        lambda s: set_to(s, "codes", 0, "base", value=pack(0, 0, 0, 2)),
    ),
    "cyclic: a number outside": (
        "cyclic",
        lambda s: set_to(s, "codes", 0, "base", value=pack(0, 1, 0, 6)),
    ),
    "cyclic: no numbers": ("cyclic", lambda s: set_to(s, "codes", 0, "base", value="")),
    "cyclic: half a number": ("cyclic", lambda s: set_to(s, "codes", 0, "base", value="AAAA")),
    "cyclic: three base blocks": (
        "cyclic",
        lambda s: set_to(s, "codes", 0, "base_blocks", value=3),
    ),
    "cyclic: no base blocks": ("cyclic", lambda s: set_to(s, "codes", 0, "base_blocks", value=0)),
    "cyclic: one base block": ("cyclic", lambda s: set_to(s, "codes", 0, "base_blocks", value=1)),
    "cyclic: a smaller circle": ("cyclic", lambda s: set_to(s, "codes", 0, "points", value=5)),
    "cyclic: fewer outputs": ("cyclic", lambda s: set_to(s, "codes", 0, "outputs", value=6)),
    "cyclic: more symbols than points": (
        "padded cyclic",
        lambda s: s["context"]["domain"].update(size=8),
    ),
    "cyclic: as randomized response": (
        "cyclic",
        lambda s: set_to(s, "codes", 0, "kind", value="randomized"),
    ),
    "cyclic high-low: a stricter promise": (
        "cyclic high-low",
        lambda s: s["context"].update(epsilon="0.999"),
    ),
    "cyclic high-low: one more is sensitive": (
        "cyclic high-low",
        lambda s: s["context"].update(sensitive=pack(*range(8))),
    ),
    "cyclic high-low: words that do not add up": (
        "cyclic high-low",
        lambda s: add(s, "codes", 0, "leftover", by=1),
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(name, tmp_path):
    original, forge = FORGERIES[name]
    saved = record_of(ORIGINALS[original])
    before = json.dumps(saved)
    forge(saved)
    assert json.dumps(saved) != before
    assert verdict(saved, tmp_path) in (1, 2)


@pytest.mark.parametrize(("forgery", "code"), [(None, 0), ("cyclic: one step too much at size", 1)])
def test_the_checker_says_the_same_alone(forgery, code, tmp_path):
    saved = record_of(ORIGINALS["large cyclic"])
    if forgery:
        FORGERIES[forgery][1](saved)
    path = tmp_path / "saved.json"
    path.write_bytes(canonical_bytes(saved))
    assert check_file_alone(path) == check_file(path)
    assert check_file(path)[0] == code


def test_odds_that_break_the_promise_are_broken_and_not_merely_unread(tmp_path):
    """Where all words add up, the verdict must be about the promise."""
    for name, (original, forge) in FORGERIES.items():
        if "one step too much" in name or "stricter" in name:
            saved = record_of(ORIGINALS[original])
            forge(saved)
            assert verdict(saved, tmp_path) == 1, name


def hidden(saved):
    """Give codes odds of e^5, and put the promised ones in `levels`, which are not read."""
    code = saved["mechanism"]["codes"][0]
    wild = two_levels(3, 1, Fraction(5), 64)
    saved["mechanism"]["levels"] = [{"high": code["high"], "low": code["low"]}]
    code.update(high=str(wild.high), low=str(wild.low))


def hidden_cover(saved):
    """Leave one word of cover in 2^64, and claim more in `cover`, which is not read."""
    code = saved["mechanism"]["codes"][0]
    code.update(cover=code["low"], low="1")


READ_PAST = {
    "levels of a plain response": (sf.PlainResponse(sf.Uniform(3, 1), RandomizedCode), hidden),
    "cover of a code": (sf.HighLowResponse(sf.HighLow(3, [0], 1), RandomizedCode), hidden_cover),
    "blocks of groups": (
        sf.GroupResponse(sf.Tiers(blocks(3, 5), [1, 2]), RandomizedCode),
        lambda s: s["mechanism"].update(code_of_block=[0, 1], code_of_group=[1, 0]),
    ),
    "parts of a uniform promise": (
        ORIGINALS["union"],
        lambda s: s["context"].update(kind="uniform", epsilon="1"),
    ),
    "more symbols in a block than its part speaks of": (
        ORIGINALS["union"],
        lambda s: (
            s["context"]["domain"].update(size=13),
            s["context"].update(block_of=pack(*[0] * 8, *[1] * 5)),
        ),
    ),
    "a second epsilon": (
        sf.PlainResponse(sf.Uniform(3, 5), RandomizedCode),
        lambda s: s["context"].update(epsilon="1", epsilons=["5"]),
    ),
    "a field that nobody knows": (
        sf.PlainResponse(sf.Uniform(3, 1)),
        lambda s: s["mechanism"].update(more=""),
    ),
}


@pytest.mark.parametrize("name", READ_PAST)
def test_what_does_not_belong_where_it_stands_is_refused(name, tmp_path):
    mechanism, forge = READ_PAST[name]
    saved = record_of(mechanism)
    assert verdict(saved, tmp_path) == 0
    forge(saved)
    assert verdict(saved, tmp_path) in (1, 2)
