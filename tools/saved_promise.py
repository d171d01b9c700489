"""What a saved Sfumato context promises, read without Sfumato: the half of `check_certificate.py` about contexts.

Standard library only, no code shared with the package. None stands for an infinite epsilon: nothing is promised.
"""

import base64
import functools
import itertools
import struct
from fractions import Fraction

BITS = 128
ROW = "high leftover low outputs points word_bits"
FORMS = {  # the fields of each kind of record beside its kind, in alphabetical order; levels have no kind
    "uniform": ["domain epsilon"],
    "high-low": ["domain epsilon sensitive", "codes"],
    "tiers": ["domain epsilons tier_of"],
    "blocks": [f"{a}block_of domain {e}" for a in ("", "across ") for e in ("epsilon", "epsilons")]
    + ["code_of_block codes"],
    "metric": ["distances domain epsilon"],
    "matrix": ["domain matrix"],
    "sum": ["terms"],
    "union": ["block_of domain parts", "parts"],
    **{"range": ["size start"], "labels": ["labels other"], "h3": ["cells other"]},
    "grid": ["east north other south step west"],
    **{"plain": ["code_of_block codes"], "product": ["codes"]},
    "groups": ["clear code_of_group codes levels word_bits"],
    **{"table": ["rows word_bits", "crowd rows word_bits"], "binary": ["rows word_bits"]},  # a crowd is for estimates
    **{"hadamard": [ROW], "randomized": [ROW], "clear": [ROW], "cyclic": [f"base base_blocks {ROW}"]},
    "levels": ["cover high low"],
}


def demand_known(record):
    """Refuse fields that a kind does not have: what is read past here, somebody else may read."""
    if isinstance(record, dict):
        fields = " ".join(sorted({*record} - {"kind"}))
        demand(fields in FORMS[record.get("kind", "levels")], "a field that does not belong where it stands")
    for value in record.values() if isinstance(record, dict) else record if isinstance(record, list) else ():
        demand_known(value)


def demand(condition, what):
    """Refuse to read on."""
    if not condition:
        raise ValueError(what)


def number(text):
    """An epsilon or a distance, exactly."""
    return None if text == "inf" else Fraction(text)


def u32(text):
    """A packed array of integers."""
    return [n for (n,) in struct.iter_unpack("<I", base64.b64decode(text))]


def size_of(context):
    """The number of symbols."""
    d = context["terms"][0]["domain"] if context["kind"] == "sum" else context["domain"]
    if d["kind"] == "grid":
        south, north, west, east, step = (Fraction(d[edge]) for edge in ("south", "north", "west", "east", "step"))
        return int((north - south) / step) * int((east - west) / step) + (d["other"] is not None)
    listed = {"range": lambda: range(d["size"]), "labels": lambda: d["labels"], "h3": lambda: d["cells"]}[d["kind"]]()
    return len(listed) + (d["kind"] == "h3" and d["other"] is not None)


def groups(context):
    """The group of each symbol, the promise inside each group, and that from each group to all others."""
    kind, k = context["kind"], size_of(context)
    eps = [number(text) for text in context.get("epsilons", [context.get("epsilon", "inf")])]
    if kind == "tiers":  # tiers of equal epsilon are one group
        found = [eps.index(eps[tier]) for tier in u32(context["tier_of"])], eps, eps
    elif kind == "high-low":
        sensitive = set(u32(context["sensitive"]))
        found = [int(x not in sensitive) for x in range(k)], [*eps, None], [*eps, None]
    else:
        demand(kind in ("uniform", "blocks"), "a context that this checker does not know here")
        of = u32(context["block_of"]) if kind == "blocks" else [0] * k
        m = max(of) + 1
        found = of, eps * m if len(eps) == 1 else eps, [number(context.get("across", "inf"))] * m
    demand(len(found[0]) == k and max(found[0]) < len(found[1]), "every symbol needs a group, every group an epsilon")
    return found


def ranks(union):
    """The block of each symbol of a union, and its number there; every block must be as large as its part."""
    block, seen, rank = u32(union["block_of"]), [0] * len(union["parts"]), []
    for j in block:
        rank.append(seen[j])
        seen[j] += 1
    demand(seen == [size_of(part) for part in union["parts"]], "every part needs its symbols")
    return block, rank


def promise(context):
    """E as a function of two different symbols."""
    kind = context["kind"]
    if kind == "sum":
        terms = [promise(term) for term in context["terms"]]
        return lambda x, x2: None if None in [E(x, x2) for E in terms] else sum(E(x, x2) for E in terms)
    if kind == "union":
        block, rank = ranks(context)
        parts = [promise(part) for part in context["parts"]]
        return lambda x, x2: parts[block[x]](rank[x], rank[x2]) if block[x] == block[x2] else None
    if kind in ("matrix", "metric"):
        table = [[number(entry) for entry in row] for row in context["matrix" if kind == "matrix" else "distances"]]
        eps = number(context["epsilon"]) if kind == "metric" else 1
        return lambda x, x2: 0 if table[x][x2] == 0 else None if None in (eps, table[x][x2]) else eps * table[x][x2]
    of, inside, outward = groups(context)
    return lambda x, x2: inside[of[x]] if of[x] == of[x2] else outward[of[x]]


def exceeded(pairs, eps):
    """Whether a > e^eps * b for some of the pairs (a, b); few are so close that a lower bound does not decide."""
    if eps is None:
        return False
    most, unit = odds_below(eps), 1 << BITS
    return any(a * unit > most * b and exceeds(a, b, eps) for a, b in pairs)


@functools.cache
def odds_below(eps):
    """An integer over 2^BITS that is at most e^eps: 200 terms of its Taylor series, each rounded down."""
    total = term = 1 << BITS
    for i in range(1, 200):
        term = term * eps.numerator // (eps.denominator * i)
        total += term
    return total


@functools.cache
def exceeds(a, b, eps):
    """Whether a > e^eps * b, exactly: e^eps is bounded by more and more of its Taylor series until that decides."""
    if a <= b or b == 0 or eps == 0:
        return a > b
    partial = term = Fraction(1)
    for i in itertools.count(1):
        term = term * eps / i
        partial += term
        if a <= partial * b:
            return False
        if 2 * eps <= i + 1 and a > (partial + term) * b:  # terms halve from here on: the rest is at most one term
            return True
