"""Check a saved Sfumato mechanism, survey or certificate without Sfumato: `python check_certificate.py FILE.json`.

Standard library only, no code shared with the package. Checks in integers that Q(y|x) <= exp(E[x][x2]) * Q(y|x2) for
all symbols x, x2 and reports y. Exit code 0: kept; 1: broken; 2: not read. Small channels are compared wholly. Large
ones consist of ranges of reports, on which a row holds `high` or `low` words and `leftover` more on the first: rows
differ by at most (high + leftover)/(low + leftover) <= high/low there, so one comparison per range decides.
"""

import base64
import itertools
import json
import struct
import sys
from fractions import Fraction
from pathlib import Path


def demand(condition, what):
    if not condition:
        raise ValueError(what)


def exceeds(a, b, eps):
    """Whether a > e^eps * b, exactly: e^eps is bounded by more and more of its Taylor series until that decides."""
    if eps is None or a <= b or b == 0 or eps == 0:
        return eps is not None and a > b
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
    return [n for (n,) in struct.iter_unpack("<I", base64.b64decode(text))]


def size_of(context):
    d = context["terms"][0]["domain"] if context["kind"] == "sum" else context["domain"]
    if d["kind"] == "grid":
        south, north, west, east, step = (Fraction(d[edge]) for edge in ("south", "north", "west", "east", "step"))
        return int((north - south) / step) * int((east - west) / step) + (d["other"] is not None)
    listed = {"range": lambda: range(d["size"]), "labels": lambda: d["labels"], "h3": lambda: d["cells"]}[d["kind"]]()
    return len(listed) + (d["kind"] == "h3" and d["other"] is not None)


def promise(context):
    """E as a function of two different symbols; None stands for inf."""
    kind = context["kind"]
    if kind == "sum":
        terms = [promise(term) for term in context["terms"]]
        return lambda x, x2: None if None in [E(x, x2) for E in terms] else sum(E(x, x2) for E in terms)
    if kind in ("matrix", "metric"):
        table = [[number(entry) for entry in row] for row in context["matrix" if kind == "matrix" else "distances"]]
        eps = number(context["epsilon"]) if kind == "metric" else 1
        return lambda x, x2: 0 if table[x][x2] == 0 else None if None in (eps, table[x][x2]) else eps * table[x][x2]
    eps, k = number(context["epsilon"]), size_of(context)
    block = {"uniform": [0] * k, "high-low": [0] * k, "blocks": u32(context.get("block_of", ""))}[kind]
    owing = set(u32(context["sensitive"])) if kind == "high-low" else range(k)
    return lambda x, x2: eps if x in owing and block[x] == block[x2] else None


def ranges(context, mechanism):
    """Plain, blocks, high-low: (code, the symbols that answer through it), range by range, each a channel."""
    block = u32(context["block_of"]) if mechanism["kind"] == "blocks" else [0] * size_of(context)
    answering = set(u32(context["sensitive"])) if mechanism["kind"] == "high-low" else range(size_of(context))
    demand(len(block) == size_of(context), "every symbol needs a block")
    members = {j: [] for j in block}
    for x in sorted(answering):
        members[block[x]].append(x)
    found = [(mechanism["codes"][mechanism.get("code_of_block", [0])[j]], members[j]) for j in sorted(members)]
    for code, symbols in found:
        K, high, low, left = (int(code[name]) for name in ("outputs", "high", "low", "leftover"))
        raised, points = {"hadamard": (K // 2, K - 1), "randomized": (1, K), "clear": (1, K)}[code["kind"]]
        demand(code["kind"] != "hadamard" or (K > 1 and K & (K - 1) == 0), "Hadamard needs a power of two")
        demand(0 <= low <= high and left >= 0 and len(symbols) <= points, "a code that cannot be")
        demand(K == 0 or raised * high + (K - raised) * low + left == 2 ** code["word_bits"], "words do not add up")
    return found


def code_row(code, point):
    """The row of a point of a code; point None takes cover: low throughout."""
    K, high, low, left = (int(code[name]) for name in ("outputs", "high", "low", "leftover"))
    hadamard = code["kind"] == "hadamard" and point is not None
    favoured = {y for y in range(K) if ((point + 1) & y).bit_count() % 2 == 0} if hadamard else {point}
    return [(high if y in favoured else low) + left * (y == 0) for y in range(K)]


def rows(context, mechanism):
    """The whole channel, in integers."""
    k, table, start = size_of(context), {}, 0
    if mechanism["kind"] in ("binary", "table"):
        return whole(mechanism["rows"], 2 ** mechanism["word_bits"], k)
    for code, symbols in ranges(context, mechanism):
        table |= {x: [0] * start + code_row(code, i) for i, x in enumerate(symbols)}
        start += code["outputs"]
    for x in sorted(set(range(k)) - set(table)):  # high-low: the others take cover, or send a report of their own
        cover = code_row(code, None)
        table[x] = cover + [0] * (start - len(cover)) + [2 ** code["word_bits"] - sum(cover)]
        start += 1
    return whole([table[x] + [0] * (start - len(table[x])) for x in sorted(table)], 2 ** code["word_bits"], k)


def whole(table, total, k):
    """A table of k rows of integers, once they are known to be equally long, non-negative and to add up to total."""
    table = [[int(entry) for entry in row] for row in table]
    shapes = {(len(row), sum(row), min(row) >= 0) for row in table}
    demand(shapes == {(len(table[0]), total, True)} and len(table) == k, "no channel")
    return table


def broken(context, mechanism, frame):
    """The first place where the promise is broken, or None; frame is the context that the mechanism was made for."""
    fits = {"plain": ("uniform", "blocks", "high-low"), "blocks": ("blocks",), "high-low": ("high-low",)}
    parts = ranges(frame, mechanism) if mechanism["kind"] in fits else []
    demand(mechanism["kind"] in (*fits, "binary", "table"), "a mechanism that this checker does not know")
    if parts and (sum(code["outputs"] for code, _ in parts) + size_of(context)) * size_of(context) > 100_000:
        demand(frame == context and context["kind"] in fits[mechanism["kind"]], "too large for this context")
        for code, symbols in parts:
            alone = len(symbols) < 2 and mechanism["kind"] != "high-low"
            if symbols and not alone and exceeds(int(code["high"]), int(code["low"]), number(context["epsilon"])):
                return f"symbol {symbols[0]} has odds of {code['high']}:{code['low']}"
        return None
    table, E = rows(frame, mechanism), promise(context)
    for x, x2, y in itertools.product(range(len(table)), range(len(table)), range(len(table[0]))):
        if x != x2 and exceeds(table[x][y], table[x2][y], E(x, x2)):
            return f"report {y} says more for symbol {x} against {x2} than promised"
    return None


if __name__ == "__main__":
    try:
        saved = json.loads(Path(sys.argv[1]).read_bytes())
        saved = saved.get("promise", saved)
        demand(saved["format"] == 1, "a format that this checker does not know")
        verdict = broken(saved["context"], saved["mechanism"], saved.get("mechanism_context") or saved["context"])
    except (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        print(f"cannot be read: {problem!r}" if sys.argv[1:] else __doc__.splitlines()[0], file=sys.stderr)
        sys.exit(2)
    print("kept: every pair, every report" if verdict is None else f"BROKEN: {verdict}")
    sys.exit(verdict is not None)
