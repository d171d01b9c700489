"""Check a saved Sfumato mechanism, survey or certificate without Sfumato: `python check_certificate.py FILE.json`.

Standard library only, no code shared with the package; `saved_promise.py` beside it reads contexts. Checks in integers
that Q(y|x) <= exp(E[x][x2]) * Q(y|x2) for all symbols x, x2 and reports y. Exit code 0: kept; 1: broken; 2: not read.

Tables are compared entry by entry. Other mechanisms consist of ranges of reports: on its own range a row holds `high`
or `low` words, and every other row `cover`; leftover words are on a report that both rows share. So the odds of any
report are at most high/low for two symbols of one range, and high/cover or cover/low for symbols of two ranges.
"""

import itertools
import json
import sys
from pathlib import Path

from saved_promise import demand, demand_known, exceeded, groups, number, promise, ranks, size_of, u32


def raised(code):
    """How many outputs each point of a code favours."""
    kind, K, n = code["kind"], code["outputs"], code["points"]
    if kind == "cyclic":
        base, t = u32(code["base"]), code["base_blocks"]
        distinct = {(i * t // len(base), d) for i, d in enumerate(base)}
        demand(len(distinct) == len(base) == len(base) // t * t, "base blocks must be equally large sets")
        demand(t * n == K and max(base) < n, "base blocks must lie on the circle")
        return len(base)
    if kind == "hadamard":
        demand(n == K - 1 > 0 == K & n, "Hadamard needs a power of two")
        return K // 2
    demand(kind in ("randomized", "clear") and n == K, "a code that this checker does not know")
    return 1


def answering(mechanism, of, outward):
    """The symbols of each range: everybody, each block, the sensitive ones, or each group that owes something."""
    if mechanism["kind"] == "plain":
        return [list(range(len(of)))]
    if mechanism["kind"] == "high-low":
        return [[x for x, group in enumerate(of) if group == 0]]
    members = {}
    for x, group in enumerate(of):
        members.setdefault(group, []).append(x)
    return [symbols for g, symbols in members.items() if mechanism["kind"] == "blocks" or outward[g] is not None]


def ranges(mechanism, of, outward):
    """{symbol: (number of its range, high, low, cover)}, once every row is known to have all words of a word."""
    kind, codes, parts = mechanism["kind"], mechanism["codes"], []
    numbers = mechanism.get("code_of_block", mechanism.get("code_of_group", [0]))
    for symbols, n in zip(answering(mechanism, of, outward), numbers, strict=True):
        cover = codes[n]["low"] if kind == "high-low" else 0
        levels = {"cover": cover, **codes[n], **mechanism.get("levels", codes)[n]}
        parts.append((symbols, codes[n], *(int(levels[name]) for name in ("high", "low", "cover"))))
    covered = sum(cover * code["outputs"] for _, code, _, _, cover in parts)
    total = 2 ** (mechanism.get("word_bits") or codes[0]["word_bits"])
    for symbols, code, high, low, cover in parts:
        r, K = raised(code), code["outputs"]
        leftover = total - (r * high + (K - r) * low) - (covered - cover * K)
        stated = total - covered - int(mechanism["clear"]) if kind == "groups" else int(code["leftover"])
        demand(leftover == stated >= 0 and high >= low >= 0 and cover >= 0, "words do not add up")
        demand(int(mechanism.get("clear", 1)) > 0, "an own report without words")
        demand(len(symbols) <= code["points"], "more symbols than points")
    return {x: (i, *levels) for i, (symbols, _, *levels) in enumerate(parts) for x in symbols}


def odds(mechanism, frame):
    """The odds (a, b) that reports can have for x against x2, as a function of the two."""
    kind = mechanism["kind"]
    if kind in ("binary", "table"):
        table = [[int(entry) for entry in row] for row in mechanism["rows"]]
        shapes = {(len(row), sum(row), min(row) >= 0) for row in table}
        demand(shapes == {(len(table[0]), 2 ** mechanism["word_bits"], True)}, "rows that are no channel")
        demand(len(table) == size_of(frame), "every symbol needs a row")
        return lambda x, x2: set(zip(table[x], table[x2], strict=True))
    if kind == "union":  # a report shows the block
        (block, rank), pairs = ranks(frame), zip(mechanism["parts"], frame["parts"], strict=True)
        inside = [odds(part, its_frame) for part, its_frame in pairs]
        return lambda x, x2: inside[block[x]](rank[x], rank[x2]) if block[x] == block[x2] else {(1, 0)}
    (of, _, outward), plain = groups(frame), {"kind": "plain"}
    if kind == "product":  # two answers, about the block and about the symbol: odds multiply
        answers = zip(([*{*of}], of), mechanism["codes"], strict=True)
        (_, h1, l1, _), (_, h2, l2, _) = (ranges({**plain, "codes": [code]}, of1, [])[0] for of1, code in answers)
        return lambda x, x2: {(h2, l2) if of[x] == of[x2] else (h1 * h2, l1 * l2)}
    demand(kind in ("plain", "blocks", "high-low", "groups"), "a mechanism that this checker does not know")
    part = ranges(mechanism, of, outward)

    def between(x, x2):
        # Who has no range sends cover, and a report of its own: odds of 1 to 0 for it, nothing against it.
        (i, high, low, cover), (i2, _, low2, cover2) = part.get(x, (-1, 1, 0, 0)), part.get(x2, (-2, 0, 1, 0))
        return {(high, low)} if i == i2 else {(high, cover), (cover2, low2)}

    return between


def broken(context, mechanism, frame):
    """The first place where the promise is broken, or None; frame is the context that the mechanism was made for."""
    if mechanism["kind"] == context["kind"] == "union" and ranks(context) == ranks(frame):
        parts = zip(context["parts"], mechanism["parts"], frame["parts"], strict=True)
        return next(filter(None, itertools.starmap(broken, parts)), None)
    E, between, symbols = promise(context), odds(mechanism, frame), range(size_of(context))
    if len(symbols) > 1000:
        symbols = few_of_each_kind(context, frame, between)
    for x, x2 in itertools.permutations(symbols, 2):
        if exceeded(between(x, x2), E(x, x2)):
            return f"some report says more for symbol {x} against {x2} than promised"
    return None


def few_of_each_kind(context, frame, between):
    """Two symbols of the two largest groups of each kind stand for all, if the mechanism was made for these groups."""
    of, inside, outward = groups(context)
    stronger = frame["kind"] == "uniform" and all(e is None or e >= number(frame["epsilon"]) for e in inside + outward)
    demand(context == frame or stronger, "too large for this context")
    kinds = {}
    for x, g in enumerate(of):
        kind = (inside[g], outward[g], *sorted(between(x, -1)), *sorted(between(-1, x)))
        kinds.setdefault(kind, {}).setdefault(g, []).append(x)
    largest = (sorted(alike.values(), key=len)[-2:] for alike in kinds.values())
    return [x for both in largest for members in both for x in members[:2]]


if __name__ == "__main__":
    try:
        saved = json.loads(Path(sys.argv[1]).read_bytes())
        saved = saved.get("promise", saved)
        demand(saved["format"] == 1, "a format that this checker does not know")
        demand_known([saved["context"], saved["mechanism"], saved.get("mechanism_context")])
        verdict = broken(saved["context"], saved["mechanism"], saved.get("mechanism_context") or saved["context"])
    except (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        print(f"cannot be read: {problem!r}" if sys.argv[1:] else __doc__.splitlines()[0], file=sys.stderr)
        sys.exit(2)
    print("kept: every pair, every report" if verdict is None else f"BROKEN: {verdict}")
    sys.exit(verdict is not None)
