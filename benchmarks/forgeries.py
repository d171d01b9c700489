"""Forge surveys and let three judges decide: the standalone checker, `certify` and JavaScript.

    python benchmarks/forgeries.py --count 5000 --seed 1 [--node] [--json summary.json]

Every forgery is canonical, so its fingerprint is right. Not every one breaks its promise. The truth
comes from a fourth implementation: it writes out the channel by the rules of the client
specification, compares all pairs of different rows on every report, and takes exp(ε) from the
decimal module to 80 digits. A judge that accepts a broken promise is wrong.
"""

import argparse
import base64
import copy
import decimal
import hashlib
import importlib.util
import itertools
import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.codes import BestCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.errors import NoClosedForm, PrivacyViolation, SfumatoError
from sfumato.foundation.canonical import canonical_bytes, decimal_text

ROOT = Path(__file__).parents[1]
CHECKER = ROOT / "tools" / "check_certificate.py"
CLIENT = ROOT / "clients" / "javascript" / "conformance.js"
N = 1 << 64
LARGE = 1000
Json = Any
Judge = Callable[[bytes], str]

# --- Surveys to start from ------------------------------------------------------------------------


def two_level_rows(k: int, epsilon: float, columns: int, patterns: int) -> list[list[int]]:
    """Return rows with odds of at most e^ε. Each pair of columns has its own weight."""
    low = int(N / 64 / (1 + np.exp(epsilon))) + 10**6
    levels = (low, N // 64 - low)
    weights = [2 ** (y // 2) for y in range(columns - 2)]
    weights += [64 - sum(weights) // 2] * 2
    raised = [[(x >> (y // 2)) & 1 == y % 2 for y in range(columns)] for x in range(patterns)]
    rows = [
        [weight * levels[up] for weight, up in zip(weights, row, strict=True)] for row in raised
    ]
    return [list(rows[x % patterns]) for x in range(k)]


def table(
    context: sf.Context, epsilon: float = 0.8, columns: int = 8, patterns: int = 16
) -> sf.Survey:
    rows = two_level_rows(context.size, epsilon, columns, patterns)
    return sf.Survey("table", context, sf.TableResponse(context, rows))


def flat_at_the_end(context: sf.Context) -> sf.Survey:
    """Return a table with a flat last row: no permutation of another row shows against it."""
    rows = two_level_rows(context.size - 1, 0.8, 8, 16)
    return sf.Survey("flat", context, sf.TableResponse(context, [*rows, [N // 8] * 8]))


def code_survey(context: sf.Context, mechanism: sf.Mechanism | None = None) -> sf.Survey:
    return sf.Survey("code", context, mechanism)


def small_surveys() -> list[sf.Survey]:
    fano = CyclicDesign(7, ((0, 1, 3),))
    tiers = sf.Tiers([0, 0, 0, 1, 1, 2], [1, 2, "inf"])
    streets = sf.Blocks([0, 0, 0, 1, 1, 1], 1, across=2)
    metric = sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    return [
        code_survey(sf.Uniform(6, 1)),
        code_survey(sf.Uniform(6, 1), sf.PlainResponse(sf.Uniform(6, 1), HadamardCode)),
        code_survey(sf.Uniform(5, 1), sf.PlainResponse(sf.Uniform(5, 1), fano)),
        code_survey(sf.Blocks([0, 0, 0, 1, 1, 2], [1, 2, 1])),
        code_survey(sf.HighLow(6, [0, 1, 4], 1)),
        code_survey(
            sf.HighLow(6, [1, 2], 1), sf.HighLowResponse(sf.HighLow(6, [1, 2], 1), RandomizedCode)
        ),
        code_survey(tiers, sf.GroupResponse(tiers, RandomizedCode)),
        code_survey(streets, sf.GroupResponse(streets, HadamardCode)),
        code_survey(streets, sf.ProductResponse(streets, RandomizedCode)),
        code_survey(sf.union([sf.Tiers([0, 0, 1], [1, 2]), sf.HighLow(3, [0], 1)])),
        code_survey(sf.Tiers([0, 0, 1, 1, 0, 1], [1, 2]), sf.PlainResponse(sf.Uniform(6, 1))),
        code_survey(sf.PrivacyMatrix([[0, 1], [2, 0]])),
        code_survey(
            metric,
            sf.TableResponse.from_fractions(
                metric, [["0.5", "0.3", "0.2"], ["0.3", "0.4", "0.3"], ["0.2", "0.3", "0.5"]]
            ),
        ),
        table(sf.Uniform(6, 1)),
        table(sf.Tiers([0, 1, 0, 1, 2, 2], [1, 2, "inf"])),
        table(sf.Blocks([0, 0, 1, 1, 2, 2], [1, 2, "0.9"], across=3)),
        table(
            sf.PrivacyMatrix(
                [[0 if x == x2 else 1 + (x + 2 * x2) % 3 for x2 in range(6)] for x in range(6)]
            )
        ),
        table(sf.HighLow(["a", "b", "c", "d", "e", "f"], ["b", "e"], 1)),
    ]


def large_surveys() -> list[sf.Survey]:
    k = 1010
    streets = sf.Blocks([x % 3 for x in range(k)], 1, across=2)
    return [
        table(sf.Uniform(k, 1)),
        flat_at_the_end(sf.Blocks([0] * (k - 1) + [1], 1)),
        table(sf.Blocks([x % 7 for x in range(k)], [1, 2, 1, 3, 1, 1, 1], across=2)),
        table(sf.Tiers([x % 3 for x in range(k)], [1, 2, "inf"])),
        table(sf.HighLow(k, range(0, k, 2), 1)),
        code_survey(sf.Uniform(k, 1), sf.PlainResponse(sf.Uniform(k, 1), HadamardCode)),
        code_survey(sf.Uniform(k, 1), sf.PlainResponse(sf.Uniform(k, 1), BestCode())),
        code_survey(sf.HighLow(k, range(300), 1)),
        code_survey(sf.Blocks([x // 101 for x in range(k)], 1)),
        code_survey(streets, sf.GroupResponse(streets, HadamardCode)),
    ]


# --- Forging --------------------------------------------------------------------------------------


class Unchanged(Exception):
    """This kind of forgery does not apply to this survey."""


def parts_of(data: Json) -> Iterator[tuple[Json, Json]]:
    """Yield every context with its mechanism, inside unions too."""
    promise = data["promise"]
    pairs = [(promise["mechanism_context"] or promise["context"], promise["mechanism"])]
    while pairs:
        context, mechanism = pairs.pop()
        if mechanism["kind"] == "union":
            pairs.extend(zip(context["parts"], mechanism["parts"], strict=True))
        else:
            yield context, mechanism


def some_table(data: Json, chance: random.Random) -> Json:
    tables = [mechanism for _, mechanism in parts_of(data) if mechanism["kind"] == "table"]
    if not tables:
        raise Unchanged
    return chance.choice(tables)["rows"]


def permute_rows(data: Json, chance: random.Random, _others: list[Json]) -> None:
    chance.shuffle(some_table(data, chance))


def swap_rows(data: Json, chance: random.Random, _others: list[Json]) -> None:
    rows = some_table(data, chance)
    x, x2 = chance.sample(range(len(rows)), 2)
    rows[x], rows[x2] = rows[x2], rows[x]


def permute_columns_of_a_row(data: Json, chance: random.Random, _others: list[Json]) -> None:
    chance.shuffle(chance.choice(some_table(data, chance)))


def permute_columns_of_late_rows(data: Json, chance: random.Random, _others: list[Json]) -> None:
    """Permute each row of the second half: symbols that a shortcut may not check."""
    rows = some_table(data, chance)
    for row in chance.sample(rows[len(rows) // 2 :], chance.randint(1, min(5, len(rows) // 2))):
        chance.shuffle(row)


def permute_columns_of_all_rows(data: Json, chance: random.Random, _others: list[Json]) -> None:
    rows = some_table(data, chance)
    order = list(range(len(rows[0])))
    chance.shuffle(order)
    rows[:] = [[row[y] for y in order] for row in rows]


def move_entries(data: Json, chance: random.Random, _others: list[Json]) -> None:
    row = chance.choice(some_table(data, chance))
    y, y2 = chance.sample(range(len(row)), 2)
    moved = int(row[y]) if chance.random() < 0.3 else min(int(row[y]), 2 ** chance.randrange(64))
    row[y] = str(int(row[y]) - moved)
    row[y2] = str(int(row[y2]) + moved)


def show_everything(data: Json, chance: random.Random, _others: list[Json]) -> None:
    """Let each symbol of a table, or half of them, always send the same report."""
    rows = some_table(data, chance)
    total = sum(int(entry) for entry in rows[0])
    for x in range(chance.choice([0, len(rows) // 2]), len(rows)):
        rows[x] = [str(total if y == x % len(rows[x]) else 0) for y in range(len(rows[x]))]


def lower_promise(data: Json, chance: random.Random, _others: list[Json]) -> None:
    context = data["promise"]["context"]
    factor = Fraction(chance.choice([5, 9, 99, 999999]), chance.choice([10, 100, 10**6]))
    factor = min(factor, Fraction(999_999, 10**6))
    places: list[tuple[Json, Any]] = [(context, "epsilon"), (context, "across")]
    places += [(context["epsilons"], i) for i in range(len(context.get("epsilons", [])))]
    places += [
        (row, x2)
        for x, row in enumerate(context.get("matrix", []))
        for x2 in range(len(row))
        if x != x2
    ]
    places += [(part, "epsilon") for part in context.get("parts", [])]
    usable = [(holder, key) for holder, key in places if isinstance(key, int) or key in holder]
    usable = [(holder, key) for holder, key in usable if holder[key] not in ("inf", "0")]
    if not usable:
        raise Unchanged
    holder, key = chance.choice(usable)
    if data["promise"]["mechanism_context"] is None and chance.random() < 0.5:
        data["promise"]["mechanism_context"] = copy.deepcopy(context)
    holder[key] = decimal_text(Fraction(holder[key]) * factor)


def swap_contexts(data: Json, chance: random.Random, others: list[Json]) -> None:
    """Take the promise of another survey over the same domain, and keep the mechanism."""
    promise = data["promise"]
    fitting = [
        other["promise"]["context"]
        for other in others
        if other["promise"]["context"]["domain"] == promise["context"]["domain"]
    ]
    fitting = [context for context in fitting if context != promise["context"]]
    if not fitting:
        raise Unchanged
    promise["mechanism_context"] = promise["mechanism_context"] or promise["context"]
    promise["context"] = copy.deepcopy(chance.choice(fitting))


def enlarge_domain(data: Json, chance: random.Random, _others: list[Json]) -> None:
    more = chance.choice([1, 1, 2, 50])
    for context in filter(None, (data["promise"]["context"], data["promise"]["mechanism_context"])):
        domain = context["domain"]
        if domain["kind"] == "range":
            domain["size"] += more
        else:
            domain["labels"] += [f"more {i}" for i in range(more)]
        for name in {"block_of", "tier_of"} & set(context):
            context[name] = pack([*unpack(context[name]), *([0] * more)])
    for _, mechanism in parts_of(data):
        if mechanism["kind"] == "table" and chance.random() < 0.8:
            mechanism["rows"] += [list(mechanism["rows"][-1]) for _ in range(more)]


def change_levels(data: Json, chance: random.Random, _others: list[Json]) -> None:
    """Raise the odds in a code, in the levels of a group or by leftover words. Sums stay right."""
    codes = [
        (mechanism, c)
        for _, mechanism in parts_of(data)
        for c in range(len(mechanism.get("codes", [])))
    ]
    if not codes:
        raise Unchanged
    mechanism, c = chance.choice(codes)
    code = mechanism["codes"][c]
    levels = mechanism["levels"][c] if mechanism["kind"] == "groups" else code
    b = code["outputs"]
    r = {"hadamard": b // 2, "cyclic": len(unpack(code.get("base", "")))}.get(code["kind"], 1)
    if r >= b:
        raise Unchanged
    step = gcd(r, b - r)
    steps = 2 ** chance.randrange(62) // max(b, 1) + 1
    high = int(levels["high"]) + steps * (b - r) // step * (2 if code["kind"] == "hadamard" else 1)
    low = int(levels["low"]) - steps * r // step * (2 if code["kind"] == "hadamard" else 1)
    if chance.random() < 0.25 and code["kind"] != "hadamard" and mechanism["kind"] != "groups":
        low += 1
        levels["leftover"] = str(int(levels["leftover"]) - (b - r))
    levels["high"] = str(high)
    levels["low"] = str(max(low, 0))


def change_cover(data: Json, chance: random.Random, _others: list[Json]) -> None:
    """Reduce the cover of a group, and the words of its members by as many."""
    groups = [mechanism for _, mechanism in parts_of(data) if mechanism["kind"] == "groups"]
    if not groups:
        raise Unchanged
    levels = chance.choice(chance.choice(groups)["levels"])
    less = min(int(levels["cover"]), int(levels["low"]), 2 ** chance.randrange(63))
    for name in ("high", "low", "cover"):
        levels[name] = str(int(levels[name]) - less)


def another_frame(data: Json, chance: random.Random, others: list[Json]) -> None:
    """Declare the mechanism made for another context, perhaps over another domain."""
    context = copy.deepcopy(chance.choice(others)["promise"]["context"])
    if context == data["promise"]["context"]:
        raise Unchanged
    data["promise"]["mechanism_context"] = context


WAYS: tuple[Callable[[Json, random.Random, list[Json]], None], ...] = (
    permute_rows,
    swap_rows,
    permute_columns_of_a_row,
    permute_columns_of_late_rows,
    permute_columns_of_all_rows,
    move_entries,
    show_everything,
    lower_promise,
    swap_contexts,
    enlarge_domain,
    change_levels,
    change_cover,
    another_frame,
)


def unpack(text: str) -> list[int]:
    return [number for (number,) in struct.iter_unpack("<I", base64.b64decode(text))]


def pack(numbers: list[int]) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}I", *numbers)).decode()


class Forger:
    """An endless supply of forgeries that depends on the seed. A third exceed 1,000 symbols."""

    def __init__(
        self, seed: int, small: list[sf.Survey] | None = None, large: list[sf.Survey] | None = None
    ) -> None:
        self._chance = random.Random(seed)  # noqa: S311
        self._small = [json.loads(survey.resolved()) for survey in small or small_surveys()]
        self._large = [json.loads(survey.resolved()) for survey in large or large_surveys()]

    def forge(self) -> tuple[str, Json]:
        """Return how a survey was forged, and the forged survey."""
        while True:
            originals = self._large if self._chance.random() < 1 / 3 else self._small
            data = copy.deepcopy(self._chance.choice(originals))
            ways = self._chance.choices(WAYS, k=self._chance.choice([1, 1, 2]))
            try:
                for way in ways:
                    way(data, self._chance, originals)
            except (Unchanged, KeyError):
                continue
            if data not in originals:
                return " + ".join(way.__name__ for way in ways), data


# --- The truth ------------------------------------------------------------------------------------


class Malformed(Exception):
    """The integers are not a channel, so the survey must be refused."""


def demand(condition: object) -> None:
    if not condition:
        raise Malformed


@cache
def exp_as_integer(epsilon: Fraction) -> int:
    with decimal.localcontext(prec=110):
        value = (decimal.Decimal(epsilon.numerator) / decimal.Decimal(epsilon.denominator)).exp()
        return int(value * decimal.Decimal(10) ** 80)


def within(a: int, b: int, epsilon: Fraction | None) -> bool:
    if epsilon is None or a <= b:
        return True
    if b == 0 or epsilon == 0:
        return False
    low = exp_as_integer(epsilon)
    if a * 10**80 <= low * b:
        return True
    if a * 10**80 <= (low + 2) * b:
        raise ArithmeticError("80 digits do not decide; take more.")
    return False


def number(text: str) -> Fraction | None:
    return None if text == "inf" else Fraction(text)


Owed = tuple[list[int], list[Fraction | None], list[Fraction | None]]


def size_of(domain: Json) -> int:
    return int(domain["size"]) if domain["kind"] == "range" else len(domain["labels"])


def group_promises(context: Json) -> Owed | None:
    """Return the group of each symbol, ε inside each group and ε outward; None without groups."""
    k = size_of(context["domain"])
    kind = context["kind"]
    if kind == "uniform":
        return [0] * k, [number(context["epsilon"])], [None]
    if kind == "high-low":
        sensitive = set(unpack(context["sensitive"]))
        epsilon = number(context["epsilon"])
        return [int(x not in sensitive) for x in range(k)], [epsilon, None], [epsilon, None]
    if kind in ("tiers", "blocks"):
        of = unpack(context["tier_of" if kind == "tiers" else "block_of"])
        demand(len(of) == k)
        m = max(of) + 1
        inside = [
            number(text) for text in context.get("epsilons", [context.get("epsilon", "inf")] * m)
        ]
        return of, inside, inside if kind == "tiers" else [number(context.get("across", "inf"))] * m
    return None


def epsilon_of(context: Json) -> Callable[[int, int], Fraction | None]:
    owed = group_promises(context)
    if owed is not None:
        of, inside, outward = owed
        return lambda x, x2: inside[of[x]] if of[x] == of[x2] else outward[of[x]]
    if context["kind"] == "union":
        block = unpack(context["block_of"])
        rank = ranks(block)
        parts = [epsilon_of(part) for part in context["parts"]]
        demand(len(block) == size_of(context["domain"]))
        return lambda x, x2: parts[block[x]](rank[x], rank[x2]) if block[x] == block[x2] else None
    rows = context["matrix" if context["kind"] == "matrix" else "distances"]
    factor = number(context.get("epsilon", "1"))
    demand(len(rows) == size_of(context["domain"]))

    def entry(x: int, x2: int) -> Fraction | None:
        distance = number(rows[x][x2])
        if distance == 0:
            return distance
        if distance is None or factor is None:
            return None
        return distance * factor

    return entry


def ranks(class_of: list[int]) -> list[int]:
    seen: Counter[int] = Counter()
    result = []
    for j in class_of:
        result.append(seen[j])
        seen[j] += 1
    return result


def output_sets(code: Json, points: list[int]) -> Any:
    """Return which outputs each point raises."""
    y = np.arange(code["outputs"])[None, :]
    x = np.array(points)[:, None]
    if code["kind"] == "hadamard":
        return np.bitwise_count((x + 1) & y) % 2 == 0
    if code["kind"] == "cyclic":
        K = code["points"]
        t = code["base_blocks"]
        base = np.zeros((t, K), dtype=bool)
        base[np.repeat(np.arange(t), len(unpack(code["base"])) // t), unpack(code["base"])] = True
        return base[y // K, (x - y % K) % K]
    return x == y


def expand(mechanism: Json, frame: Json) -> Any:
    """Return the channel, a row for each symbol, as integers (dtype object)."""
    k = size_of(frame["domain"])
    kind = mechanism["kind"]
    if kind in ("table", "binary"):
        Q = np.array([[int(entry) for entry in row] for row in mechanism["rows"]], dtype=object)
        demand(
            Q.shape[0] == k
            and Q.min() >= 0
            and (Q.sum(axis=1) == 1 << mechanism["word_bits"]).all()
        )
        return Q
    if kind == "union":
        return expand_union(mechanism, frame)
    fits = {
        "plain": ["uniform"],
        "blocks": ["blocks"],
        "product": ["blocks"],
        "high-low": ["high-low"],
    }
    demand(frame["kind"] in fits.get(kind, ["tiers", "high-low", "blocks"]))
    owed = group_promises(frame)
    if owed is None:
        raise Malformed
    if kind == "product":
        outer, inner = (
            rows_of(code, range(n))
            for code, n in zip(mechanism["codes"], (max(owed[0]) + 1, k), strict=True)
        )
        return np.array(
            [np.outer(outer[j], inner[x]).ravel() for x, j in enumerate(owed[0])], dtype=object
        )
    if kind in ("plain", "blocks"):
        return expand_blocks(mechanism, owed[0])
    return expand_groups(mechanism, owed)


def rows_of(code: Json, points: Any) -> Any:
    """Return the rows of a code alone."""
    high, low, leftover = (int(code[name]) for name in ("high", "low", "leftover"))
    demand(len(points) <= code["points"] and leftover >= 0 and 0 <= low < high)
    Q = np.where(
        output_sets(code, list(points)),
        np.array(high, dtype=object),
        np.array(low, dtype=object),
    )
    Q[:, 0] += leftover
    demand((Q.sum(axis=1) == 1 << code["word_bits"]).all())
    return Q


def expand_blocks(mechanism: Json, block_of: list[int]) -> Any:
    codes = [mechanism["codes"][c] for c in mechanism["code_of_block"]]
    demand(len(codes) == max(block_of) + 1)
    first = [0, *itertools.accumulate(code["outputs"] for code in codes)]
    Q = np.zeros((len(block_of), first[-1]), dtype=object)
    for j, code in enumerate(codes):
        members = [x for x, block in enumerate(block_of) if block == j]
        Q[members, first[j] : first[j + 1]] = rows_of(code, range(len(members)))
    return Q


def expand_groups(mechanism: Json, owed: Owed) -> Any:
    of, _, outward = owed
    if mechanism["kind"] == "high-low":
        code = mechanism["codes"][0]
        raised = {
            "hadamard": code["outputs"] // 2,
            "cyclic": len(unpack(code.get("base", ""))),
        }.get(code["kind"], 1)
        levels = [{"high": code["high"], "low": code["low"], "cover": code["low"]}]
        clear = raised * (int(code["high"]) - int(code["low"]))
        bits = code["word_bits"]
        numbers = [0]
        owing = [0]
    else:
        levels = mechanism["levels"]
        clear = int(mechanism["clear"])
        bits = mechanism["word_bits"]
        numbers = mechanism["code_of_group"]
        merged = (
            {epsilon: g for g, epsilon in reversed(list(enumerate(outward)))}
            if outward is owed[1]
            else {}
        )
        of = [merged.get(outward[g], g) for g in of]
        owing = [g for g in dict.fromkeys(of) if outward[g] is not None]
    demand(len(owing) == len(numbers) and clear > 0)
    codes = [mechanism["codes"][c] for c in numbers]
    first = [0, *itertools.accumulate(code["outputs"] for code in codes)]
    alone = [x for x, g in enumerate(of) if g not in owing]
    Q = np.zeros((len(of), first[-1] + len(alone)), dtype=object)
    for i, g in enumerate(owing):
        level = {name: int(text) for name, text in levels[numbers[i]].items()}
        demand(0 <= level["low"] < level["high"] and level["cover"] >= 0)
        members = [x for x, group in enumerate(of) if group == g]
        demand(len(members) <= codes[i]["points"])
        raised = output_sets(codes[i], list(range(len(members))))
        Q[:, first[i] : first[i + 1]] = level["cover"]
        Q[members, first[i] : first[i + 1]] = np.where(
            raised, np.array(level["high"], dtype=object), np.array(level["low"], dtype=object)
        )
    for i, x in enumerate(alone):
        Q[x, first[-1] + i] = clear
    left = (1 << bits) - Q.sum(axis=1)
    demand(left.min() == left.max() >= 0)
    Q[:, 0] += left
    return Q


def expand_union(mechanism: Json, frame: Json) -> Any:
    demand(frame["kind"] == "union" and len(mechanism["parts"]) == len(frame["parts"]))
    parts = [
        expand(part, inner) for part, inner in zip(mechanism["parts"], frame["parts"], strict=True)
    ]
    first = [0, *itertools.accumulate(part.shape[1] for part in parts)]
    block = unpack(frame["block_of"])
    Q = np.zeros((len(block), first[-1]), dtype=object)
    for x, (j, i) in enumerate(zip(block, ranks(block), strict=True)):
        Q[x, first[j] : first[j + 1]] = parts[j][i]
    return Q


def truth(data: Json) -> str:
    """Return "kept" or "broken", or "malformed" if there is no channel."""
    promise = data["promise"]
    context = promise["context"]
    frame = promise["mechanism_context"] or context
    try:
        demand(frame["domain"] == context["domain"])
        Q = expand(promise["mechanism"], frame)
        demand(Q.shape[0] == size_of(context["domain"]))
        owed = group_promises(context)
        if Q.shape[0] <= LARGE or owed is None:
            return "kept" if all_pairs_keep(Q, epsilon_of(context)) else "broken"
        return "kept" if distinct_rows_keep(Q, owed) else "broken"
    except (Malformed, ValueError, LookupError, TypeError):
        return "malformed"


def all_pairs_keep(Q: Any, epsilon: Callable[[int, int], Fraction | None]) -> bool:
    pairs = itertools.permutations(range(len(Q)), 2)
    return all(
        within(a, b, epsilon(x, x2)) for x, x2 in pairs for a, b in zip(Q[x], Q[x2], strict=True)
    )


def distinct_rows_keep(Q: Any, owed: Owed) -> bool:
    """Compare every two different rows with the smallest ε among their symbols.

    For codes, compare the numbers of every column.
    """
    of, inside, outward = owed
    listed = Q.ravel().tolist()
    numbers = {entry: i for i, entry in enumerate(sorted(set(listed)))}
    entries = list(numbers)
    which = np.fromiter(map(numbers.__getitem__, listed), np.int64, len(listed)).reshape(Q.shape)
    distinct, row_of = np.unique(which, axis=0, return_inverse=True)
    groups: list[set[int]] = [set() for _ in distinct]
    for x, c in enumerate(row_of.reshape(-1).tolist()):
        groups[c].add(of[x])
    if len(distinct) > 300:
        return columns_keep(which, entries, owed)
    for c, c2 in itertools.permutations(range(len(distinct)), 2):
        owes = [inside[g] for g in groups[c] & groups[c2]]
        owes += [outward[g] for g in groups[c] if groups[c2] - {g}]
        finite = [epsilon for epsilon in owes if epsilon is not None]
        pairs = set(zip(distinct[c].tolist(), distinct[c2].tolist(), strict=True))
        if finite and not all(within(entries[i], entries[j], min(finite)) for i, j in pairs):
            return False
    return True


def columns_keep(which: Any, entries: list[int], owed: Owed) -> bool:
    """Compare, in every column, each number of a group with each that it owes a promise to."""
    of, inside, outward = owed
    group = np.array(of)
    n = len(entries)
    has = np.zeros((max(of) + 1, which.shape[1], n), dtype=bool)
    for g in set(of):
        for i in range(n):
            has[g, :, i] = (which[group == g] == i).any(axis=0)
    count = has.sum(axis=0)
    for g in set(of):
        elsewhere = count > has[g]
        for epsilon, others in ((inside[g], has[g]), (outward[g], elsewhere)):
            if epsilon is None:
                continue
            for i, j in itertools.product(range(n), repeat=2):
                if (
                    i != j
                    and not within(entries[i], entries[j], epsilon)
                    and (has[g, :, i] & others[:, j]).any()
                ):
                    return False
    return True


# --- Judges ---------------------------------------------------------------------------------------


def load_checker() -> Any:
    spec = importlib.util.spec_from_file_location("check_certificate", CHECKER)
    if spec is None or spec.loader is None:
        raise ImportError(f"{CHECKER} cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_certificate"] = module
    spec.loader.exec_module(module)
    return module


def lone_checker(checker: Any = None) -> Judge:
    """Return the standalone checker as a judge in this process."""
    module = checker or load_checker()

    def judge(raw: bytes) -> str:
        try:
            return ("kept", "broken")[module.check(raw)[0]]
        except module.NotChecked as problem:
            return "too large" if str(problem).startswith("too large") else "refused"

    return judge


def lone_process(raw: bytes) -> str:
    """Run the standalone checker as a process."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(raw)
        file.flush()
        run = subprocess.run(
            [sys.executable, "-I", CHECKER, file.name], capture_output=True, text=True, check=False
        )
    if "Traceback" in run.stderr or run.returncode not in (0, 1, 2):
        return "crash"
    return (
        "too large"
        if run.stderr.startswith("too large")
        else ("kept", "broken", "refused")[run.returncode]
    )


def certify(raw: bytes) -> str:
    """Judge by `Survey.from_resolved(...).certify()`."""
    try:
        sf.Survey.from_resolved(raw).certify()
    except PrivacyViolation:
        return "broken"
    except NoClosedForm:
        return "too large"
    except SfumatoError:
        return "refused"
    except Exception as problem:  # noqa: BLE001 - any other exception is a finding
        return f"crash: {type(problem).__name__}"
    return "kept"


def javascript_client() -> Judge:
    """Start the JavaScript client, which loads one survey after another."""
    process = subprocess.Popen(
        ["node", CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if process.stdin is None or process.stdout is None:
        raise OSError("the JavaScript client has no pipes.")
    requests = process.stdin
    answers = process.stdout

    def judge(raw: bytes) -> str:
        named = hashlib.sha256(canonical_bytes(json.loads(raw)["promise"])).hexdigest()
        requests.write(
            json.dumps({"op": "load", "text": raw.decode(), "fingerprint": named}) + "\n"
        )
        requests.flush()
        line = answers.readline()
        if not line:
            return "crash"
        answer = json.loads(line)
        if "ok" in answer:
            return "kept"
        if "too large" in answer["reason"]:
            return "too large"
        return "broken" if answer["error"] == "PrivacyViolation" else "refused"

    return judge


# --- The exam -------------------------------------------------------------------------------------


def examine(judges: dict[str, Judge], forger: Forger, count: int) -> Json:
    """Return the verdicts of each judge on ``count`` forgeries, and where they are wrong."""
    truths: Counter[str] = Counter()
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in judges}
    wrong: dict[str, list[str]] = {name: [] for name in judges}
    disagreements = 0
    large = 0
    started = time.monotonic()
    for i in range(count):
        way, data = forger.forge()
        raw = canonical_bytes(data)
        true = truth(data)
        truths[true] += 1
        is_large = size_of(data["promise"]["context"]["domain"]) > LARGE
        large += is_large
        said = {name: judge(raw) for name, judge in judges.items()}
        for name, verdict in said.items():
            verdicts[name][verdict] += 1
            if (
                (verdict == "kept" and true != "kept")
                or (verdict == "broken" and true == "kept")
                or "crash" in verdict
            ):
                wrong[name].append(f"{i}: {way}: {verdict}, but {true}")
        disagreements += {"kept", "broken"} <= set(said.values())
        if sys.stderr.isatty() and i % 50 == 0:
            print(f"\r{i}/{count} in {time.monotonic() - started:.0f} s", end="", file=sys.stderr)
    certificates = examine_certificates(judges) if "checker" in judges else {}
    return {
        "forgeries": count,
        "large": large,
        "truth": dict(truths),
        "verdicts": {name: dict(counts) for name, counts in verdicts.items()},
        "wrong": {name: len(errors) for name, errors in wrong.items()},
        "wrong passes": {
            name: sum(": kept, but" in error for error in errors) for name, errors in wrong.items()
        },
        "disagreements": disagreements,
        "examples": {name: errors[:10] for name, errors in wrong.items() if errors},
        "certificates": certificates,
        "seconds": round(time.monotonic() - started, 1),
    }


def examine_certificates(judges: dict[str, Judge]) -> Json:
    """Combine every certificate with every promise: only its own is kept."""
    surveys = {survey.fingerprint: survey for survey in small_surveys()}
    records = {name: survey.certify().to_record() for name, survey in surveys.items()}
    counts: Counter[str] = Counter()
    for name, survey in surveys.items():
        for record in records.values():
            verdict = judges["checker"](
                canonical_bytes({"promise": survey.promise, "certificate": record})
            )
            same_channel = canonical_bytes(record) == canonical_bytes(records[name])
            counts[
                "right"
                if verdict == ("kept" if same_channel else "broken")
                else f"wrong: {verdict}"
            ] += 1
    return dict(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--node", action="store_true", help="ask the JavaScript client, too")
    parser.add_argument(
        "--processes",
        type=int,
        default=50,
        help="forgeries that the checker also judges as a process",
    )
    parser.add_argument("--json", type=Path, help="write the summary to this file")
    options = parser.parse_args()
    judges: dict[str, Judge] = {"checker": lone_checker(), "certify": certify}
    if options.node:
        judges["javascript"] = javascript_client()
    summary = {"seed": options.seed, **examine(judges, Forger(options.seed), options.count)}
    both = {"checker": judges["checker"], "process": lone_process}
    sample = examine(both, Forger(options.seed + 1), options.processes)
    summary["as a process"] = {
        "forgeries": options.processes,
        "wrong": sample["wrong"],
        "verdicts": sample["verdicts"],
    }
    text = json.dumps(summary, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    sys.exit(any(summary["wrong"].values()) or summary["disagreements"] > 0)


if __name__ == "__main__":
    main()
