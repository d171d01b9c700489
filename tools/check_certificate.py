#!/usr/bin/env python3
"""Check a saved Sfumato mechanism without Sfumato: `python check_certificate.py mechanism.json`.

Standard library only, no code shared with the package: to be read by someone who trusts neither. It rebuilds the
channel from the file's integers and checks in integers that Q(y|x) <= exp(E[x][x2]) * Q(y|x2) for all symbols x, x2
and all reports y. Exit code 0: kept; 1: broken, with the place; 2: the file cannot be read.

Up to 512 reports everything is compared. Larger channels (plain, blocks, high-low) consist of ranges of K reports, in
which a row holds `high` words on `raised` reports, `low` on the others, `leftover` more on the first. Two rows of a
range then differ by at most (high + leftover)/(low + leftover) <= high/low, so one comparison per range decides.
"""

import base64
import itertools
import json
import sys
from fractions import Fraction
from pathlib import Path


def exceeds(a, b, eps):
    """Whether a > e^eps * b, exactly: e^eps is bounded by more and more of its Taylor series until that decides."""
    if eps is None or a <= b:
        return False
    if b == 0 or eps == 0:
        return True
    partial = term = Fraction(1)
    for i in itertools.count(1):
        term = term * eps / i
        partial += term
        if a <= partial * b:
            return False
        if 2 * eps <= i + 1 and a > (partial + term) * b:  # terms halve from here on: the rest is at most one term
            return True


def number(text):
    return None if text == "inf" else Fraction(text)


def u32(text):
    raw = base64.b64decode(text)
    return [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]


def size_of(context):
    context = context["terms"][0] if context["kind"] == "sum" else context
    return context["domain"].get("size") or len(context["domain"]["labels"])


def promise(context):
    """E as a function of two different symbols; None stands for inf."""
    kind = context["kind"]
    if kind == "sum":
        terms = [promise(term) for term in context["terms"]]
        return lambda x, x2: None if None in [E(x, x2) for E in terms] else sum(E(x, x2) for E in terms)
    if kind in ("matrix", "metric"):
        table = [[number(entry) for entry in row] for row in context["matrix" if kind == "matrix" else "distances"]]
        eps = number(context.get("epsilon", "1"))
        return lambda x, x2: 0 if table[x][x2] == 0 else None if None in (eps, table[x][x2]) else eps * table[x][x2]
    eps, k = number(context["epsilon"]), size_of(context)
    block = {"uniform": [0] * k, "high-low": [0] * k, "blocks": u32(context.get("block_of", ""))}[kind]
    owing = set(u32(context["sensitive"])) if kind == "high-low" else range(k)
    return lambda x, x2: eps if x in owing and block[x] == block[x2] else None


def levels(code, symbols):
    """(K, raised, high, low, leftover) of a code, after checking that it makes a channel for so many symbols."""
    K, high, low, left = code["outputs"], int(code["high"]), int(code["low"]), int(code["leftover"])
    raised, points = {"hadamard": (K // 2, K - 1), "randomized": (1, K), "clear": (1, K)}[code["kind"]]
    whole = K == 0 or raised * high + (K - raised) * low + left == 2 ** code["word_bits"]
    if not (whole and 0 <= low <= high and left >= 0 and symbols <= points):
        raise ValueError("a code that cannot be")
    return K, raised, high, low, left


def code_row(code, point):
    """The row of a point of a code; point None takes cover: low throughout."""
    K, _, high, low, left = levels(code, 0)
    hadamard = code["kind"] == "hadamard" and point is not None
    favoured = {y for y in range(K) if ((point + 1) & y).bit_count() % 2 == 0} if hadamard else {point}
    return [(high if y in favoured else low) + left * (y == 0) for y in range(K)]


def ranges(context, mechanism):
    """Plain, blocks, high-low: (code, the symbols that answer through it), range by range."""
    if mechanism["kind"] == "high-low":
        return [(mechanism["codes"][0], sorted(u32(context["sensitive"])))]
    block = {"plain": [0] * size_of(context), "blocks": u32(context.get("block_of", ""))}[mechanism["kind"]]
    members = {}
    for x, j in enumerate(block):
        members.setdefault(j, []).append(x)
    return [(mechanism["codes"][mechanism["code_of_block"][j]], members[j]) for j in sorted(members)]


def rows(context, mechanism):
    """The whole channel, in integers."""
    kind, k = mechanism["kind"], size_of(context)
    if kind in ("binary", "table"):
        return [[int(entry) for entry in row] for row in mechanism["rows"]]
    if kind == "processed":
        first, columns = rows(context, mechanism["mechanism"]), list(zip(*mechanism["then"], strict=True))
        return [[sum(q * int(w) for q, w in zip(row, W, strict=True)) for W in columns] for row in first]
    if kind == "composed":
        first = rows(context["terms"][0], mechanism["first"])
        stages = [rows(each["context"], each["mechanism"]) for each in mechanism["seconds"]]
        width = max(len(stage[0]) for stage in stages)
        after = [[row + [0] * (width - len(row)) for row in stages[i]] for i in mechanism["second_of"]]
        return [[q * q2 for y, q in enumerate(first[x]) for q2 in after[y][x]] for x in range(k)]
    table, start = {x: [] for x in range(k)}, 0
    for code, symbols in ranges(context, mechanism):
        K, raised, high, low, _ = levels(code, len(symbols))
        table |= {x: [0] * start + code_row(code, i) for i, x in enumerate(symbols)}
        start += K
    if kind == "high-low":
        for x in sorted(set(range(k)) - set(symbols)):
            table[x] = code_row(code, None) + [0] * (start - K) + [raised * (high - low)]
            start += 1
    return [row + [0] * (start - len(row)) for row in table.values()]


def broken(context, mechanism):
    """The first place where the promise is broken, in words, or None."""
    framed = mechanism["kind"] in ("plain", "blocks", "high-low")
    if framed and sum(code["outputs"] for code, _ in ranges(context, mechanism)) + size_of(context) > 512:
        for code, symbols in ranges(context, mechanism):
            K, _, high, low, _ = levels(code, len(symbols))
            if (len(symbols) > 1 or mechanism["kind"] == "high-low") and exceeds(high, low, number(context["epsilon"])):
                return f"symbol {symbols[0]} has odds of {high}:{low} in a range of {K} reports"
        return None
    table, E = rows(context, mechanism), promise(context)
    if len({(len(row), sum(row)) for row in table}) != 1 or min(map(min, table)) < 0 or len(table) != size_of(context):
        raise ValueError("rows that make no channel")
    for x, x2, y in itertools.product(range(len(table)), range(len(table)), range(len(table[0]))):
        if x != x2 and exceeds(table[x][y], table[x2][y], E(x, x2)):
            return f"report {y} says more for symbol {x} against {x2} than promised"
    return None


if __name__ == "__main__":
    try:
        saved = json.loads(Path(sys.argv[1]).read_bytes())
        verdict = {1: broken}[saved["format"]](saved["context"], saved["mechanism"])
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as problem:
        print(f"cannot be read: {problem!r}", file=sys.stderr)
        sys.exit(2)
    print("kept: every pair, every report" if verdict is None else f"BROKEN: {verdict}")
    sys.exit(verdict is not None)
