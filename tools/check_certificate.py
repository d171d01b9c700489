"""Check a saved Sfumato survey, certificate or mechanism without Sfumato: python check_certificate.py FILE.json.

This file stands alone. It needs Python 3.11 and nothing else, and shares no code with the package. Exit code 0: the
promise is kept. 1: it is broken, or the certificate in the file belongs to another promise. 2: anything else (the file
cannot be read or is not canonical, it asks for what this file cannot check, the case is too large or cannot be decided,
the call is wrong).

WHAT IS CHECKED. Let Q(y|x) be the number of random words, of all 2^B, on which a device that holds symbol x sends
report y. A context promises E[x, x2] for each ordered pair of different symbols, or nothing (an infinite E). The
promise is kept if, for every such pair with a finite E and for every report y,

    Q(y|x) <= exp(E[x, x2]) * Q(y|x2).

Every comparison is one of integers with a rational bound on exp(E). If the bound does not decide, a sharper one does.

TABLES list Q row by row, and nothing is assumed about them. There are two exact ways to compare all pairs.

  T1. The context consists of groups (uniform, high-low, tiers, blocks): E is one number inside each group and one
      from the group to everybody else. For one report and one number E, all pairs keep the promise if and only if the
      largest entry among the x is at most exp(E) times the smallest entry among the x2. So the largest entry of each
      group is compared with the smallest entry of the same group, and with the smallest entry outside the group. If
      one symbol has both the largest and the smallest entry of a group, all entries are equal and the comparison
      holds, as it should.
  T2. The context is a matrix or a metric: E differs from pair to pair. Symbols with equal rows cannot break a promise
      between them, so each pair of *different* rows is compared once, report by report, with the smallest E among the
      symbols that share these two rows.

CODES do not list Q. The reports consist of ranges, and the file holds a few numbers for each range. By the rules of
the client specification, a symbol that answers in a range has `high` words on some of the reports of the range, `low`
words on the others; every symbol of another range, or of none, has `cover` words on each report of the range. A
symbol of no range has `clear` words on a report of its own, where all others have none. Words that are left over go
to one report, to the same one for every symbol of the range (and for all symbols, where `cover` is not 0). The file
is refused unless 0 <= low < high, cover >= 0, clear > 0, and the words of every row add up to 2^B. From this alone
follows, for every report:

  C1. x and x2 in one range:         Q(y|x) : Q(y|x2)  is at most  high : low.
  C2. x in range i, x2 elsewhere:    at most  high : cover  on range i,
                                     at most  cover : low   on the range of x2, if it has one,
                                     at most  1 : 1         on all other reports, but for
  C3. x of no range:                 clear : 0 on its own report; so a finite promise of x to anybody is broken.

  Words left over are added to both sides of a comparison where both symbols have them, and (a + c) : (b + c) is at most
  a : b or 1 : 1. Where `cover` is 0, C2 says high : 0 already.

  A product sends two independent answers, so odds multiply: high : low of the second code inside a block, and the
  product of both across blocks. That is C1 and C2 with other numbers, and nothing on the range of x2.

Which symbols share a group and which share a range is counted over all symbols. An odds bound is compared with a
promise exactly if there is a pair of symbols to which both apply. No symbol stands for another one unless group and
range are the same. If a bound fails, the verdict "broken" also needs a report, and its words for both symbols, that
show it; without one the answer is "not decided".

UNIONS. A context of parts promises nothing across its parts, so each part is checked by itself. A mechanism of parts
shows the part, so a finite promise across its parts is broken; inside each part, the above applies.

CERTIFICATES. Every field of a `certificate` section is compared with what this file computes from the promise next to
it. One thing is not compared: that no other place is tighter than the one which the certificate names.

FORMATS. A survey of format 1 has one context. A survey of format 2 has a list of questions, each with its own context,
and fields for surveys that ask for more. This file checks surveys of one question that ask for nothing more. It refuses
any other, and names the field: part of a promise must not pass for the whole.
"""

import base64
import bisect
import hashlib
import heapq
import itertools
import json
import operator
import os
import struct
import sys
import unicodedata
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

USAGE = "Check a saved survey, certificate or mechanism: python check_certificate.py FILE.json"

KEPT = 0
BROKEN = 1
NOT_CHECKED = 2

LARGEST_FILE = 2**28  # bytes
LARGEST_LISTED = 2**24  # symbols, or pairs of symbols, that may be listed one by one
LARGEST_WORK = 5 * 10**8  # comparisons of two table entries: about a minute
BOUND_WORK = 500  # comparisons that take as long as one bound on exp(E)
LARGEST_SEARCH = 2**20  # reports that are tried to show that a promise is broken
LARGEST_SUSPICION = 30  # pairs that are tried to show it
TRIED = 3  # symbols on each side of a relation
LARGEST_OUTPUTS = 2**31
LONGEST_NUMBER = 100  # characters
DEEPEST_UNION = 8

OWN = -1  # the "range" of symbols that have a report of their own


class NotChecked(Exception):
    """No verdict: the file is not what it should be, or the case is too large."""


def demand(condition, what):
    if not condition:
        raise NotChecked(f"cannot be read: {what}")


def too_large(what):
    return NotChecked(f"too large: {what}")


# --- Reading: canonical JSON, and values of the right type -----------------------------------------------------------


def read_json(raw):
    """Parse canonical JSON. What two readers could read in two ways is refused."""
    if len(raw) > LARGEST_FILE:
        raise too_large("the file has more than 256 MiB")

    try:
        text = raw.decode("utf-8")
        data = json.loads(
            text,
            object_pairs_hook=unique_keys,
            parse_int=small_integer,
            parse_float=refuse_number,
            parse_constant=refuse_number,
        )
        canonical = canonical_bytes(data)
    except RecursionError:
        raise NotChecked("cannot be read: the JSON is nested too deeply") from None
    except ValueError as problem:
        raise NotChecked(
            f"cannot be read: not JSON in UTF-8 ({printable(str(problem), 80)})"
        ) from None

    demand(
        raw in (canonical, canonical + b"\n") and unicodedata.is_normalized("NFC", text),
        "the text is not canonical JSON. Save the file again with Sfumato",
    )
    return data


def unique_keys(pairs):
    record = dict(pairs)
    demand(len(record) == len(pairs), "an object has a duplicate key")
    return record


def small_integer(text):
    demand(len(text) <= 17 and abs(int(text)) < 2**53, "an integer of 2^53 or more")
    return int(text)


def refuse_number(text):
    demand(False, f"the number {printable(text, 20)}, which is not an integer")


def canonical_bytes(data):
    """One text for one meaning: sorted keys, no white space, UTF-8."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8")


def fingerprint(data):
    return hashlib.sha256(canonical_bytes(data)).hexdigest()


def fields(record, name, *names):
    """The values of a JSON object that must have exactly these fields."""
    demand(isinstance(record, dict), f"{name} must be an object")
    demand(
        set(record) == set(names),
        f"{name} must have exactly these fields: {', '.join(sorted(names))}",
    )
    return [record[each] for each in names]


def kind_of(record, name):
    demand(
        isinstance(record, dict) and isinstance(record.get("kind"), str),
        f"{name} must be an object with a kind",
    )
    return record["kind"]


def unknown(name, kind):
    return NotChecked(f"cannot be read: {name} of kind {quoted(kind)} is not known to this checker")


def whole(value, name, least, most):
    """An integer; True and False are not integers here."""
    demand(
        type(value) is int and least <= value <= most,
        f"{name} must be an integer from {least} to {most}",
    )
    return value


def listed(value, name):
    demand(isinstance(value, list), f"{name} must be a list")
    return value


def text_of(value, name):
    demand(isinstance(value, str), f"{name} must be text")
    return value


def count_of(text):
    """A number of words: digits without sign or leading zeros."""
    good = (
        isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    )
    demand(
        good and (text == "0" or text[0] != "0"), "a number of words must be text of decimal digits"
    )
    return int(text)


def number_of(text, name):
    """An exact number that is not negative, as canonical text; None for inf."""
    if text == "inf":
        return None

    demand(
        isinstance(text, str) and 0 < len(text) <= LONGEST_NUMBER,
        f"{name} must be a number, as text",
    )
    demand(set(text) <= set("0123456789./-"), f"{name} must be a decimal, a fraction p/q, or inf")
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        demand(False, f"{name} must be a decimal, a fraction p/q, or inf")
    demand(number_text(number) == text, f"{name} must be in canonical form")
    return number


def number_text(number):
    """A decimal without superfluous digits; p/q if there is no finite decimal; inf for None."""
    if number is None:
        return "inf"

    rest = number.denominator
    places = 0
    while rest % 10 == 0:
        rest //= 10
        places += 1
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
            places += 1
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"

    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    whole_part = digits[: len(digits) - places]
    decimals = digits[len(digits) - places :].rstrip("0")
    sign = "-" if number < 0 else ""
    return sign + whole_part + ("." + decimals if decimals else "")


def epsilon_of(text):
    """A promise: above 0, or None where nothing is promised."""
    epsilon = number_of(text, "epsilon")
    demand(epsilon is None or epsilon > 0, "epsilon must be positive")
    return epsilon


def packed(text, name, below):
    """A list of integers: base64 of little-endian words of 32 bits."""
    demand(isinstance(text, str), f"{name} must be base64 text")
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        demand(False, f"{name} must be base64 text")
    demand(
        len(raw) % 4 == 0 and base64.b64encode(raw).decode() == text,
        f"{name} must be base64 of 32-bit integers",
    )

    numbers = [number for (number,) in struct.iter_unpack("<I", raw)]
    demand(all(number < below for number in numbers), f"{name} must hold integers below {below}")
    return numbers


def classes(text, name, size, number):
    """The class of each symbol. Classes are numbered in the order of their first symbols, and none is empty."""
    class_of = packed(text, name, size)
    demand(len(class_of) == size, f"{name} must have an entry for each of the {size} symbols")
    order = list(dict.fromkeys(class_of))
    demand(
        order == list(range(len(order))),
        f"{name} must number its classes in the order of their first symbols",
    )
    demand(
        number is None or number == len(order),
        f"{name} has {len(order)} classes; expected {number}",
    )
    return class_of


# --- Numbers: whether a <= exp(E) * b, exactly ------------------------------------------------------------------------


@lru_cache(maxsize=100_000)
def exp_bounds(epsilon, bits):
    """Integers below <= 2^bits * exp(epsilon) <= above, from the Taylor series, with terms rounded down and up."""
    p = epsilon.numerator
    q = epsilon.denominator
    below = above = low_term = high_term = 1 << bits
    i = 0
    while high_term > 1 or 2 * p > q * (i + 1):
        i += 1
        low_term = low_term * p // (q * i)
        high_term = -(-high_term * p // (q * i))
        below += low_term
        above += high_term
    # From here on each term is at most half of the one before, so all that follow add up to at most the last one.
    return below, above + high_term


def keeps(a, b, epsilon):
    """Whether a <= exp(epsilon) * b, for integers a, b >= 0; None promises nothing."""
    if epsilon is None or a <= b:
        return True
    if b == 0 or epsilon == 0:
        return False
    if epsilon >= a.bit_length():
        return True  # exp(epsilon) > 2^epsilon > a

    bits = 128
    while True:  # exp(epsilon) is irrational, so some number of bits decides
        below, above = exp_bounds(epsilon, bits)
        if a << bits <= below * b:
            return True
        if a << bits > above * b:
            return False
        bits *= 2


# --- Domains: how many symbols there are, and their labels ------------------------------------------------------------


@dataclass(frozen=True)
class Domain:
    """The number of symbols, and the label of each."""

    size: int
    label: object


def domain_of(record):
    kind = kind_of(record, "a domain")
    readers = {
        "range": range_domain,
        "labels": label_domain,
        "h3": cell_domain,
        "grid": grid_domain,
    }
    if kind not in readers:
        raise unknown("a domain", kind)
    return readers[kind](record)


def range_domain(record):
    _, size, start = fields(record, "a domain", "kind", "size", "start")
    whole(size, "domain.size", 1, 2**31)
    whole(start, "domain.start", -(2**52), 2**52)
    return Domain(size, lambda x: start + x)


def label_domain(record):
    _, labels, other = fields(record, "a domain", "kind", "labels", "other")
    checked_labels(labels)
    demand(
        other is None or any(same_label(other, label) for label in labels),
        "domain.other must be one of the labels",
    )
    return Domain(len(labels), labels.__getitem__)


def cell_domain(record):
    _, cells, other = fields(record, "a domain", "kind", "cells", "other")
    labels = listed(cells, "domain.cells") + ([] if other is None else [other])
    checked_labels(labels)
    return Domain(len(labels), labels.__getitem__)


def checked_labels(labels):
    demand(listed(labels, "domain.labels"), "a domain must have at least one label")
    good = all(type(label) is int or (isinstance(label, str) and label) for label in labels)
    demand(good, "labels must be integers or text that is not empty")
    demand(
        len({(type(label), label) for label in labels}) == len(labels), "two labels are the same"
    )


def same_label(one, other):
    return type(one) is type(other) and one == other


def grid_domain(record):
    names = ("south", "north", "west", "east", "step")
    _, other, *edges = fields(record, "a domain", "kind", "other", *names)
    south, north, west, east, step = (degrees_of(edge) for edge in edges)
    demand(
        step > 0 and south < north and west < east,
        "the edges of a grid must be in order, and its step positive",
    )
    rows = (north - south) / step
    columns = (east - west) / step
    demand(
        rows.denominator == columns.denominator == 1,
        "the step of a grid must divide both of its sides",
    )
    demand(rows * columns < 2**31, "a grid must have fewer than 2^31 cells")
    demand(
        other is None or type(other) is int or (isinstance(other, str) and other),
        "domain.other must be a label",
    )
    cells = int(rows * columns)

    def label(x):
        if x == cells:
            return other
        row, column = divmod(x, int(columns))
        return f"{number_text(south + row * step)},{number_text(west + column * step)}"

    return Domain(cells + (other is not None), label)


def degrees_of(text):
    demand(
        isinstance(text, str) and len(text) <= 20, "the edges of a grid must be decimals, as text"
    )
    degrees = number_of(text, "an edge of a grid")
    demand(degrees is not None and abs(degrees) <= 360, "the edges of a grid must be degrees")
    return degrees


# --- Promises: what a context says about each ordered pair of symbols -------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """One promise inside each group, one from each group to all other symbols; None where nothing is promised.

    ``group_of`` is None if all symbols are in group 0.
    """

    kind: str
    size: int
    group_of: object
    inside: list
    outward: list

    def group(self, x):
        return 0 if self.group_of is None else self.group_of[x]

    def epsilon(self, x, x2):
        g = self.group(x)
        return self.inside[g] if g == self.group(x2) else self.outward[g]

    def restricted(self, symbols):
        group_of = None if self.group_of is None else [self.group_of[x] for x in symbols]
        return replace(self, size=len(symbols), group_of=group_of)


@dataclass(frozen=True)
class Matrix:
    """A promise for each pair. ``values`` ascend, None last; ``rank`` has the place of each pair's promise in them."""

    kind: str
    size: int
    rank: list
    values: list

    def epsilon(self, x, x2):
        return self.values[self.rank[x][x2]]

    def restricted(self, symbols):
        if len(symbols) == self.size:
            return self
        rank = [[self.rank[x][x2] for x2 in symbols] for x in symbols]
        return replace(self, size=len(symbols), rank=rank)


@dataclass(frozen=True)
class Parts:
    """Things that hold for some of the symbols each: ``symbols`` has a list for each of ``leaves``.

    ``home`` and ``place`` are the leaf of each symbol and its number there; None if there is one leaf for all symbols.
    ``children`` are the parts of a union as the file has them: unions in it are not yet opened.
    """

    size: int
    symbols: list
    leaves: list
    home: object
    place: object
    children: tuple = ()

    def of(self, x):
        return (0, x) if self.home is None else (self.home[x], self.place[x])


def parts_of(size, symbols, leaves, children=()):
    if len(leaves) == 1:
        return Parts(size, [range(size)], leaves, None, None, tuple(children))

    home = [0] * size
    place = [0] * size
    for j, members in enumerate(symbols):
        for i, x in enumerate(members):
            home[x] = j
            place[x] = i
    return Parts(size, symbols, leaves, home, place, tuple(children))


@dataclass(frozen=True)
class Context:
    """A promise, with its domain. ``record`` is what the file says."""

    record: dict
    domain: Domain
    parts: Parts

    def epsilon(self, x, x2):
        j, i = self.parts.of(x)
        j2, i2 = self.parts.of(x2)
        return self.parts.leaves[j].epsilon(i, i2) if j == j2 else None


def context_of(record, depth=0):
    """Read a context. Unions are opened: what is left are leaves, and nothing is promised across them."""
    kind = kind_of(record, "a context")
    if kind == "sum":
        return sum_context(record, depth)
    if kind == "union":
        return union_context(record, depth)

    readers = {
        "uniform": uniform,
        "high-low": high_low,
        "tiers": tiers,
        "blocks": blocks,
        "matrix": matrix,
        "metric": metric,
    }
    if kind not in readers:
        raise unknown("a context", kind)
    demand("domain" in record, "a context must have a domain")
    domain = domain_of(record["domain"])
    leaf = readers[kind](record, domain.size)
    return Context(record, domain, parts_of(domain.size, [range(domain.size)], [leaf]))


def uniform(record, size):
    _, _, epsilon = fields(record, "a uniform context", "kind", "domain", "epsilon")
    return Groups("uniform", size, None, [epsilon_of(epsilon)], [None])


def high_low(record, size):
    """Group 0 holds the sensitive symbols, group 1 the others."""
    _, _, text, sensitive = fields(
        record, "a high-low context", "kind", "domain", "epsilon", "sensitive"
    )
    epsilon = epsilon_of(text)
    symbols = packed(sensitive, "sensitive", size)
    demand(all(a < b for a, b in itertools.pairwise(symbols)), "sensitive symbols must ascend")
    if size > LARGEST_LISTED:
        raise too_large(f"a high-low context of {size:,} symbols")

    group_of = bytearray(b"\1" * size)
    for x in symbols:
        group_of[x] = 0
    return Groups("high-low", size, group_of, [epsilon, None], [epsilon, None])


def tiers(record, size):
    """Tiers of equal epsilon are one group."""
    _, _, texts, tier_of = fields(
        record, "a context of tiers", "kind", "domain", "epsilons", "tier_of"
    )
    epsilons = [epsilon_of(text) for text in listed(texts, "epsilons")]
    of = classes(tier_of, "tier_of", size, len(epsilons))
    first = {}
    for tier, epsilon in enumerate(epsilons):
        first.setdefault(epsilon, tier)
    return Groups("tiers", size, [first[epsilons[tier]] for tier in of], epsilons, epsilons)


def blocks(record, size):
    inside = "epsilons" if "epsilons" in record else "epsilon"
    across = ["across"] if "across" in record else []
    _, _, block_of, given, *outward = fields(
        record, "a context of blocks", "kind", "domain", "block_of", inside, *across
    )
    texts = listed(given, "epsilons") if inside == "epsilons" else None
    of = classes(block_of, "block_of", size, None if texts is None else len(texts))
    number = max(of) + 1
    epsilons = (
        [epsilon_of(given)] * number if texts is None else [epsilon_of(text) for text in texts]
    )
    outward = epsilon_of(outward[0]) if outward else None
    return Groups("blocks", size, of, epsilons, [outward] * number)


def matrix(record, size):
    _, _, rows = fields(record, "a matrix context", "kind", "domain", "matrix")
    return written_out("matrix", rows, size, lambda entry: entry)


def metric(record, size):
    _, _, rows, text = fields(record, "a metric context", "kind", "domain", "distances", "epsilon")
    epsilon = epsilon_of(text)

    def promise(distance):
        if distance == 0:
            return distance
        return None if epsilon is None or distance is None else epsilon * distance

    return written_out("metric", rows, size, promise)


def written_out(kind, rows, size, promise):
    good = len(listed(rows, kind)) == size and all(
        isinstance(row, list) and len(row) == size for row in rows
    )
    demand(good, f"a {kind} must have a row and a column for each of the {size} symbols")
    demand(
        all(isinstance(entry, str) for row in rows for entry in row),
        f"a {kind} must hold numbers, as text",
    )
    demand(
        all(row[x] == "0" for x, row in enumerate(rows)), f"a {kind} must have 0 on its diagonal"
    )

    texts = {entry for row in rows for entry in row}
    value = {text: promise(number_of(text, "an entry")) for text in texts}
    demand(
        all(number is None or number >= 0 for number in value.values()),
        f"a {kind} must not be negative",
    )
    return ranked(kind, [[value[entry] for entry in row] for row in rows])


def ranked(kind, epsilons):
    finite = {epsilon for row in epsilons for epsilon in row if epsilon is not None}
    values = [*sorted(finite), None]
    rank = {epsilon: i for i, epsilon in enumerate(values)}
    return Matrix(
        kind, len(epsilons), [[rank[epsilon] for epsilon in row] for row in epsilons], values
    )


def sum_context(record, depth):
    """The sum of several contexts over one domain, written out."""
    _, terms = fields(record, "a sum of contexts", "kind", "terms")
    demand(
        depth < DEEPEST_UNION and listed(terms, "terms"),
        "a sum must have terms, and must not be nested deeply",
    )
    demand(
        all(isinstance(term, dict) and "domain" in term for term in terms),
        "every term of a sum must have a domain",
    )
    demand(
        all(term["domain"] == terms[0]["domain"] for term in terms),
        "the terms of a sum must have the same domain",
    )
    domain = domain_of(terms[0]["domain"])
    size = domain.size
    if size * size * len(terms) > 4 * LARGEST_LISTED:
        raise too_large(f"a sum of {len(terms):,} contexts over {size:,} symbols")
    contexts = [context_of(term, depth + 1) for term in terms]
    cache = {}

    def total(x, x2):
        if x == x2:
            return Fraction(0)
        epsilons = tuple(context.epsilon(x, x2) for context in contexts)
        if epsilons not in cache:
            cache[epsilons] = None if None in epsilons else sum(epsilons)
        return cache[epsilons]

    leaf = ranked("sum", [[total(x, x2) for x2 in range(size)] for x in range(size)])
    return Context(record, domain, parts_of(size, [range(size)], [leaf]))


def union_context(record, depth):
    _, domain_record, parts, block_of = fields(
        record, "a union of contexts", "kind", "domain", "parts", "block_of"
    )
    demand(depth < DEEPEST_UNION, f"unions must not be nested more than {DEEPEST_UNION} deep")
    domain = domain_of(domain_record)
    number = len(listed(parts, "parts"))
    members = members_of(classes(block_of, "block_of", domain.size, number), number)

    symbols = []
    leaves = []
    for part, own in zip(parts, members, strict=True):
        demand(
            record_of_domain(part) == {"kind": "range", "size": len(own), "start": 0},
            "a part of a union must be about the symbols of its block, numbered from 0",
        )
        context = context_of(part, depth + 1)
        for below, leaf in zip(context.parts.symbols, context.parts.leaves, strict=True):
            symbols.append([own[i] for i in below])
            leaves.append(leaf)
    return Context(record, domain, parts_of(domain.size, symbols, leaves))


def record_of_domain(context):
    """The domain of a context as the file has it; that of a sum is in its terms."""
    if kind_of(context, "a context") != "sum":
        return context.get("domain")
    terms = context.get("terms")
    return (
        terms[0].get("domain")
        if isinstance(terms, list) and terms and isinstance(terms[0], dict)
        else None
    )


def members_of(class_of, number):
    members = [[] for _ in range(number)]
    for x, j in enumerate(class_of):
        members[j].append(x)
    return members


# --- Codes: which reports a point favours -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Code:
    """``raised`` of the ``outputs`` reports have ``high`` words, the others ``low``; report 0 has ``leftover`` more."""

    kind: str
    points: int
    outputs: int
    raised: int
    high: int
    low: int
    leftover: int
    word_bits: int
    base: list

    def favours(self, point, output):
        """Whether an output is one of those that a point raises."""
        if self.kind == "hadamard":
            return ((point + 1) & output).bit_count() % 2 == 0
        if self.kind == "cyclic":
            block, place = divmod(output, self.points)
            return (point - place) % self.points in self.base[block]
        return point == output


def code_of(record):
    kind = kind_of(record, "a code")
    if kind not in ("hadamard", "randomized", "clear", "cyclic"):
        raise unknown("a code", kind)
    names = ("kind", "points", "outputs", "word_bits", "high", "low", "leftover")
    more = ("base", "base_blocks") if kind == "cyclic" else ()
    _, points, outputs, bits, *texts = fields(record, "a code", *names, *more)
    whole(points, "points", 0, LARGEST_OUTPUTS)
    whole(outputs, "outputs", 0, LARGEST_OUTPUTS)
    whole(bits, "word_bits", 8, 64)
    high, low, leftover = (count_of(text) for text in texts[:3])
    base = base_of(*texts[3:], points, outputs) if kind == "cyclic" else []
    raised = raised_by(kind, points, outputs, base)

    code = Code(kind, points, outputs, raised, high, low, leftover, bits, base)
    demand_whole(code)
    return code


def base_of(text, blocks, points, outputs):
    """The base blocks of a cyclic code, as sets."""
    numbers = packed(text, "base", max(points, 1))
    whole(blocks, "base_blocks", 1, max(len(numbers), 1))
    width = len(numbers) // blocks
    demand(
        width * blocks == len(numbers) and 0 < width < points, "base must hold equally large blocks"
    )
    demand(
        blocks * points == outputs, "a cyclic code has a report for each point of each base block"
    )
    cut = [numbers[i * width : (i + 1) * width] for i in range(blocks)]
    demand(
        all(a < b for block in cut for a, b in itertools.pairwise(block)), "base blocks must ascend"
    )
    return [frozenset(block) for block in cut]


def raised_by(kind, points, outputs, base):
    if kind == "cyclic":
        return sum(len(block) for block in base)
    if kind == "hadamard":
        power_of_two = outputs >= 2 and outputs & (outputs - 1) == 0
        demand(
            power_of_two and points == outputs - 1,
            "a Hadamard code has 2^n reports and one point less",
        )
        return outputs // 2
    demand(points == outputs, f"a {kind} code has a report for each point")
    return 1


def demand_whole(code):
    """The words of each row add up to 2^B, and `high` is the higher number."""
    total = 1 << code.word_bits
    if code.kind == "clear":
        demand(
            (code.high, code.low, code.leftover) == (total, 0, 0),
            "a clear code has all words on the point itself",
        )
        return
    if code.kind == "hadamard":
        demand(
            code.high % 2 == code.low % 2 == code.leftover == 0,
            "a Hadamard code has even numbers and no leftover",
        )
    words = code.raised * code.high + (code.outputs - code.raised) * code.low + code.leftover
    demand(
        code.outputs > 0 and words == total,
        f"the words of a code must add up to 2^{code.word_bits}",
    )
    demand(code.low < code.high, "a code must have more words on the reports that it raises")


# --- Channels: how many words each symbol has on each report ----------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """All rows, written out."""

    rows: list

    @property
    def size(self):
        return len(self.rows)

    @property
    def outputs(self):
        return len(self.rows[0])

    def row(self, x):
        """A function from a report to the words that symbol x has on it."""
        return self.rows[x].__getitem__

    def reports_about(self, _x, _x2):
        """The reports on which the rows of two symbols can differ."""
        return range(self.outputs)

    def restricted(self, symbols):
        return Table([self.rows[x] for x in symbols])

    def premises(self):
        """What a certificate by structure states about the rows: nothing, if they are written out."""
        return []


@dataclass(frozen=True)
class Odds:
    """The greatest odds on the reports of a range, as pairs (a, b): C1 and C2 at the top of this file.

    ``inside``: between two symbols of the range. ``outward``: for a symbol of the range against any other symbol.
    ``toward``: for any other symbol against one of the range.
    """

    inside: tuple
    outward: tuple
    toward: tuple


@dataclass(frozen=True)
class Layout:
    """The range of each symbol (or OWN; None if range 0 has all symbols), and the odds of each range."""

    size: int
    range_of: object
    odds: list

    def range(self, x):
        return 0 if self.range_of is None else self.range_of[x]

    def odds_at(self, i):
        return OWN_ODDS if i == OWN else self.odds[i]

    def restricted(self, symbols):
        range_of = None if self.range_of is None else [self.range_of[x] for x in symbols]
        return Layout(len(symbols), range_of, self.odds)


OWN_ODDS = Odds(inside=(1, 0), outward=(1, 0), toward=(0, 1))  # C3


@dataclass(frozen=True)
class Levels:
    """The words of a range: on raised reports, on its other reports, and those of all other symbols on it."""

    high: int
    low: int
    cover: int


@dataclass(frozen=True)
class Coded:
    """Ranges of reports, one after another; then a report for each symbol that has its own.

    ``clear`` is None if each range has leftover words on its own first report; else all symbols have them on report 0.
    """

    layout: Layout
    codes: list
    levels: list  # one for each code
    code_of_range: list
    clear: object
    leftover: int

    @property
    def size(self):
        return self.layout.size

    @property
    def firsts(self):
        """The first report of each range, and of the reports after all ranges."""
        lengths = (self.codes[c].outputs for c in self.code_of_range)
        return list(itertools.accumulate(lengths, initial=0))

    @property
    def outputs(self):
        range_of = self.layout.range_of
        return self.firsts[-1] + (0 if range_of is None else range_of.count(OWN))

    def rank(self, x):
        """The place of a symbol among those of its range."""
        range_of = self.layout.range_of
        if range_of is None:
            return x
        return sum(1 for other in itertools.islice(range_of, x) if other == range_of[x])

    def row(self, x):
        own = self.layout.range(x)
        rank = self.rank(x)
        firsts = self.firsts

        def words(y):
            if y >= firsts[-1]:
                return self.clear if own == OWN and y == firsts[-1] + rank else 0
            i = bisect.bisect_right(firsts, y) - 1
            code = self.codes[self.code_of_range[i]]
            levels = self.levels[self.code_of_range[i]]
            extra = self.leftover if y == 0 else 0
            if i != own:
                return levels.cover + extra
            if self.clear is None and y == firsts[i]:
                extra = code.leftover
            return (levels.high if code.favours(rank, y - firsts[i]) else levels.low) + extra

        return words

    def reports_about(self, x, x2):
        firsts = self.firsts
        for symbol in (x, x2):
            i = self.layout.range(symbol)
            if i == OWN:
                yield firsts[-1] + self.rank(symbol)
            else:
                yield min(
                    firsts[i] + self.rank(symbol), firsts[i + 1] - 1
                )  # where it raises its own point alone
                yield from range(firsts[i], min(firsts[i + 1], firsts[i] + LARGEST_SEARCH))

    def premises(self):
        """The classes of rows: own reports, then code by code, the range with the shared leftover words by itself."""
        range_of = self.layout.range_of
        counts = Counter({0: self.size}) if range_of is None else Counter(range_of)
        found = [premise(counts[OWN], own=self.clear)] if counts[OWN] else []
        for c, (code, levels) in enumerate(zip(self.codes, self.levels, strict=True)):
            numbers = [i for i, other in enumerate(self.code_of_range) if other == c]
            first = [i for i in numbers if i == 0 and self.clear is not None]
            others = [i for i in numbers if i not in first]
            for chosen, leftover in (
                (first, self.leftover),
                (others, code.leftover if self.clear is None else 0),
            ):
                rows = sum(counts[i] for i in chosen)
                if rows:
                    found.append(premise(rows, code, levels, leftover))
        return found


def premise(rows, code=None, levels=None, leftover=0, own=0):
    levels = levels or Levels(0, 0, 0)
    return {
        "rows": rows,
        "outputs": code.outputs if code else 0,
        "raised": code.raised if code else 0,
        "high": str(levels.high),
        "low": str(levels.low),
        "leftover": str(leftover),
        "cover": str(levels.cover),
        "own": str(own),
    }


@dataclass(frozen=True)
class Product:
    """An answer about the block and one about the symbol, independent of each other."""

    layout: Layout
    outer: Code
    inner: Code

    @property
    def size(self):
        return self.layout.size

    @property
    def outputs(self):
        return self.outer.outputs * self.inner.outputs

    def row(self, x):
        block = self.layout.range(x)

        def words(y):
            y1, y2 = divmod(y, self.inner.outputs)
            return words_of(self.outer, block, y1) * words_of(self.inner, x, y2)

        return words

    def reports_about(self, _x, _x2):
        return range(min(self.outputs, LARGEST_SEARCH))

    def premises(self):
        return []


def words_of(code, point, output):
    words = code.high if code.favours(point, output) else code.low
    return words + (code.leftover if output == 0 else 0)


def odds_of(code, levels):
    low = (
        levels.high if code.raised == code.outputs else levels.low
    )  # if all are raised, no report has `low` words
    return Odds(
        inside=(levels.high, low), outward=(levels.high, levels.cover), toward=(levels.cover, low)
    )


# --- Mechanisms: reading a channel ------------------------------------------------------------------------------------


def channel_of(record, frame):
    """Read a mechanism that was made for the context ``frame``. Unions are opened; a report shows the leaf."""
    kind = kind_of(record, "a mechanism")
    if kind == "union":
        return union_channel(record, frame)

    readers = {
        "table": table,
        "binary": binary,
        "plain": plain,
        "blocks": block_response,
        "high-low": high_low_response,
        "groups": group_response,
        "product": product,
    }
    if kind not in readers:
        raise unknown("a mechanism", kind)
    leaf = readers[kind](record, frame)
    demand(leaf.size == frame.domain.size, "a mechanism must serve every symbol")
    demand(leaf.outputs <= LARGEST_OUTPUTS, "a mechanism must have at most 2^31 reports")
    return parts_of(leaf.size, [range(leaf.size)], [leaf])


def union_channel(record, frame):
    _, parts = fields(record, "a union of mechanisms", "kind", "parts")
    demand(frame.record["kind"] == "union", "a union of mechanisms is made for a union of contexts")
    inner = frame.record["parts"]
    demand(
        len(listed(parts, "parts")) == len(inner),
        "a union must have a mechanism for each part of its context",
    )
    members = members_of(
        packed(frame.record["block_of"], "block_of", frame.domain.size), len(inner)
    )

    symbols = []
    leaves = []
    children = [
        channel_of(part, context_of(context)) for part, context in zip(parts, inner, strict=True)
    ]
    for child, own in zip(children, members, strict=True):
        for places, leaf in zip(child.symbols, child.leaves, strict=True):
            symbols.append([own[i] for i in places])
            leaves.append(leaf)
    demand(
        sum(leaf.outputs for leaf in leaves) <= LARGEST_OUTPUTS,
        "a mechanism must have at most 2^31 reports",
    )
    return parts_of(frame.domain.size, symbols, leaves, children)


def table(record, frame):
    crowd = ["crowd"] if "crowd" in record else []
    _, rows, bits, *counts = fields(record, "a table", "kind", "rows", "word_bits", *crowd)
    for each in counts:
        demand(
            len(listed(each, "crowd")) == frame.domain.size,
            "crowd must have an entry for each symbol",
        )
        demand(
            all(1 <= count_of(text) <= 2**32 for text in each),
            "crowd must hold integers from 1 to 2^32",
        )
    return table_of(rows, bits, frame)


def binary(record, frame):
    _, rows, bits = fields(record, "a binary response", "kind", "rows", "word_bits")
    found = table_of(rows, bits, frame)
    demand(found.size == found.outputs == 2, "a binary response has two symbols and two reports")
    demand(
        found.rows[0][1] + found.rows[1][0] < 1 << bits,
        "a binary response flips less often than not",
    )
    return found


def table_of(rows, bits, frame):
    whole(bits, "word_bits", 8, 256)
    demand(
        len(listed(rows, "rows")) == frame.domain.size, "a table must have a row for each symbol"
    )
    number = {}

    def integers(row):
        for text in listed(row, "a row"):
            demand(isinstance(text, str), "a table must hold numbers of words, as text")
            if text not in number:
                number[text] = count_of(text)
        return [number[text] for text in row]

    read = [integers(row) for row in rows]
    demand(
        {len(row) for row in read} == {len(read[0])} != {0},
        "the rows of a table must be equally long",
    )
    demand(
        all(sum(row) == 1 << bits for row in read), f"every row of a table must add up to 2^{bits}"
    )
    return Table(read)


def codes_of(records):
    codes = [code_of(record) for record in listed(records, "codes")]
    demand(
        len({code.word_bits for code in codes}) <= 1,
        "all codes of a mechanism must have the same word_bits",
    )
    return codes


def numbers_of(values, name, number, below):
    demand(len(listed(values, name)) == number, f"{name} must have {number} entries")
    return [whole(value, name, 0, below - 1) for value in values]


def leaf_of(frame, *kinds):
    """The groups of the context that a mechanism was made for."""
    demand(
        frame.record["kind"] in kinds,
        f"this mechanism is made for a context of kind {' or '.join(kinds)}",
    )
    return frame.parts.leaves[0]


def demand_room(codes, code_of_range, counts):
    for i, c in enumerate(code_of_range):
        demand(counts[i] <= codes[c].points, "a code has fewer points than it serves symbols")


def ranges_with_leftover(groups, codes, code_of_range):
    """Ranges that show themselves: others have no words there, and leftover words are on the first report of each."""
    counts = Counter({0: groups.size}) if groups.group_of is None else Counter(groups.group_of)
    demand_room(codes, code_of_range, counts)
    levels = [Levels(code.high, code.low, 0) for code in codes]
    odds = [odds_of(code, level) for code, level in zip(codes, levels, strict=True)]
    layout = Layout(groups.size, groups.group_of, [odds[c] for c in code_of_range])
    return Coded(layout, codes, levels, code_of_range, None, 0)


def plain(record, frame):
    _, records, numbers = fields(record, "a plain response", "kind", "codes", "code_of_block")
    codes = codes_of(records)
    demand(len(codes) == 1, "a plain response has one code")
    return ranges_with_leftover(
        leaf_of(frame, "uniform"), codes, numbers_of(numbers, "code_of_block", 1, 1)
    )


def block_response(record, frame):
    _, records, numbers = fields(record, "a block response", "kind", "codes", "code_of_block")
    codes = codes_of(records)
    groups = leaf_of(frame, "blocks")
    return ranges_with_leftover(
        groups, codes, numbers_of(numbers, "code_of_block", len(groups.inside), len(codes))
    )


def high_low_response(record, frame):
    """Groups with one group, that of the sensitive symbols; others have the low level of the code as cover."""
    _, records = fields(record, "a high-low response", "kind", "codes")
    codes = codes_of(records)
    demand(len(codes) == 1, "a high-low response has one code")
    code = codes[0]
    groups = leaf_of(frame, "high-low")
    if 0 not in groups.group_of:
        return covered([OWN] * groups.size, [], [], [], 1 << code.word_bits, code.word_bits)
    range_of = [OWN if g else 0 for g in groups.group_of]
    levels = [Levels(code.high, code.low, code.low)]
    return covered(
        range_of, codes, levels, [0], code.raised * (code.high - code.low), code.word_bits
    )


def group_response(record, frame):
    _, records, level_records, numbers, clear, bits = fields(
        record, "a group response", "kind", "codes", "levels", "code_of_group", "clear", "word_bits"
    )
    whole(bits, "word_bits", 8, 64)
    codes = codes_of(records)
    demand(
        all(code.word_bits == bits for code in codes),
        "all codes of a mechanism must have the same word_bits",
    )
    levels = [
        Levels(*(count_of(text) for text in fields(level, "levels", "high", "low", "cover")))
        for level in listed(level_records, "levels")
    ]
    demand(len(levels) == len(codes), "every code must have its levels")
    groups = leaf_of(frame, "tiers", "high-low", "blocks")
    owing = [g for g in dict.fromkeys(groups.group_of) if groups.outward[g] is not None]
    number = {g: i for i, g in enumerate(owing)}
    range_of = [number.get(g, OWN) for g in groups.group_of]
    code_of_range = numbers_of(numbers, "code_of_group", len(owing), len(codes))
    return covered(range_of, codes, levels, code_of_range, count_of(clear), bits)


def covered(range_of, codes, levels, code_of_range, clear, bits):
    """Ranges in which all other symbols take cover. Every symbol has ``clear`` words to itself, or to its range."""
    demand_room(codes, code_of_range, Counter(range_of))
    total = 1 << bits
    demand(clear > 0, "a report of its own must have words")
    for code, level in zip(codes, levels, strict=True):
        words = code.raised * level.high + (code.outputs - code.raised) * level.low
        demand(words == clear + code.outputs * level.cover, "the words of a group must add up")
        demand(level.low < level.high, "a code must have more words on the reports that it raises")
    everywhere = sum(codes[c].outputs * levels[c].cover for c in code_of_range)
    leftover = total - everywhere - clear
    demand(
        leftover >= 0 and (code_of_range or leftover == 0),
        f"the words of a mechanism must add up to 2^{bits}",
    )

    odds = [odds_of(code, level) for code, level in zip(codes, levels, strict=True)]
    layout = Layout(len(range_of), range_of, [odds[c] for c in code_of_range])
    return Coded(layout, codes, levels, code_of_range, clear, leftover)


def product(record, frame):
    _, records = fields(record, "a product", "kind", "codes")
    codes = codes_of(records)
    demand(len(codes) == 2, "a product has two codes")
    outer, inner = codes
    groups = leaf_of(frame, "blocks")
    number = len(groups.inside)
    demand(
        number <= outer.points and groups.size <= inner.points,
        "a code has fewer points than it serves symbols",
    )

    h1, l1 = odds_of(outer, Levels(outer.high, outer.low, 0)).inside
    h2, l2 = odds_of(inner, Levels(inner.high, inner.low, 0)).inside
    odds = Odds(inside=(h2, l2), outward=(h1 * h2, l1 * l2), toward=(0, 1))
    return Product(Layout(groups.size, groups.group_of, [odds] * number), outer, inner)


# --- The check --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Violation:
    """Report y has ``words`` for x and ``words2`` for x2, which is more than exp(epsilon) times as many."""

    x: int
    x2: int
    report: int
    words: int
    words2: int
    epsilon: Fraction


SHOWN = Odds(
    inside=(0, 1), outward=(1, 0), toward=(0, 1)
)  # the leaf of a union that a symbol answers in


def first_violation(context, channel):
    """A place where the promise is broken, or None if every pair of symbols keeps it on every report."""
    suspect = None
    for suspect in itertools.islice(suspect_pairs(context, channel), LARGEST_SUSPICION):
        place = violation(context, channel, *suspect)
        if place is not None:
            return place
    if suspect is not None:
        x, x2 = suspect
        raise NotChecked(
            f"not decided: the odds of the mechanism may exceed the promise of symbol {x} to symbol {x2}, but no "
            "report shows it"
        )
    return None


def suspect_pairs(context, channel):
    """Pairs of symbols whose promise the comparisons do not show to be kept. If there are none, the promise is kept."""
    for symbols, promise in zip(context.parts.symbols, context.parts.leaves, strict=True):
        for i, i2 in itertools.chain(
            shown_across(promise, symbols, channel), inside(promise, symbols, channel)
        ):
            yield symbols[i], symbols[i2]


def shown_across(promise, symbols, channel):
    """Pairs with a finite promise that answer in different leaves of a union; as places in ``symbols``."""
    if channel.home is None:
        return iter(())
    home = [channel.home[x] for x in symbols]
    return compare(promise, Layout(len(home), home, [SHOWN] * len(channel.leaves)))


def inside(promise, symbols, channel):
    """Pairs that answer in one leaf of the mechanism; as places in ``symbols``."""
    if channel.home is None and promise.size == channel.size:
        yield from compare(promise, comparable(channel.leaves[0]))
        return

    pieces = {}
    for i, x in enumerate(symbols):
        j, place = channel.of(x)
        pieces.setdefault(j, []).append((i, place))
    for j, piece in pieces.items():
        chosen = [i for i, _ in piece]
        leaf = comparable(channel.leaves[j]).restricted([place for _, place in piece])
        for i, i2 in compare(promise.restricted(chosen), leaf):
            yield chosen[i], chosen[i2]


def comparable(leaf):
    """What is compared with a promise: the rows of a table, the layout of codes."""
    return leaf if isinstance(leaf, Table) else leaf.layout


def compare(promise, given):
    """Pairs of symbols whose promise ``given`` is not shown to keep."""
    ways = {
        (Groups, Table): table_with_groups,
        (Matrix, Table): table_with_matrix,
        (Groups, Layout): layout_with_groups,
        (Matrix, Layout): layout_with_matrix,
    }
    return ways[type(promise), type(given)](promise, given)


def violation(context, channel, x, x2):
    """The report that shows that a promise is broken, or None."""
    epsilon = context.epsilon(x, x2)
    j, i = channel.of(x)
    j2, i2 = channel.of(x2)
    leaf = channel.leaves[j]
    first = sum(other.outputs for other in channel.leaves[:j])
    row = leaf.row(i)
    row2 = leaf.row(i2) if j == j2 else lambda _: 0
    for y in leaf.reports_about(i, i2 if j == j2 else i):
        a = row(y)
        b = row2(y)
        if not keeps(a, b, epsilon):
            return Violation(x, x2, first + y, a, b, epsilon)
    return None


# T1: a table, and a promise by groups.


def table_with_groups(promise, table):
    members = {}
    for x in range(promise.size):
        members.setdefault(promise.group(x), []).append(x)
    largest = {}
    smallest = {}
    for g, symbols in members.items():
        columns = list(zip(*(table.rows[x] for x in symbols), strict=True))
        largest[g] = [max(column) for column in columns]
        smallest[g] = [min(column) for column in columns]

    for g, symbols in members.items():
        y = exceeding(largest[g], smallest[g], promise.inside[g])
        if y is not None:
            yield (
                holder(table, symbols, y, largest[g][y]),
                holder(table, symbols, y, smallest[g][y]),
            )

    if len(members) == 1:
        return
    two = [
        two_smallest(column)
        for column in zip(*([(low, g) for low in smallest[g]] for g in members), strict=True)
    ]
    for g, symbols in members.items():
        outside = [first[0] if first[1] != g else second[0] for first, second in two]
        y = exceeding(largest[g], outside, promise.outward[g])
        if y is not None:
            others = (x for x in range(promise.size) if promise.group(x) != g)
            yield holder(table, symbols, y, largest[g][y]), holder(table, others, y, outside[y])


def exceeding(entries, others, epsilon):
    """The first report on which an entry is more than exp(epsilon) times the other one."""
    if epsilon is None:
        return None
    return next(
        (
            y
            for y, (a, b) in enumerate(zip(entries, others, strict=True))
            if not keeps(a, b, epsilon)
        ),
        None,
    )


def two_smallest(column):
    first, second = heapq.nsmallest(2, column)
    return first, second


def holder(table, symbols, y, entry):
    """The first of the symbols that has this entry at report y."""
    return next(x for x in symbols if table.rows[x][y] == entry)


# T2: a table, and a promise for each pair.


def table_with_matrix(promise, table):
    rows = list(dict.fromkeys(tuple(row) for row in table.rows))
    number = {row: c for c, row in enumerate(rows)}
    row_of = [number[tuple(row)] for row in table.rows]
    comparisons = len(rows) * (len(rows) - 1) * table.outputs
    if comparisons + BOUND_WORK * len(promise.values) > LARGEST_WORK:
        raise too_large(
            f"{comparisons:,} comparisons of table entries with {len(promise.values):,} different promises"
        )

    strongest = strongest_promises(promise, row_of, len(rows))
    below = [exp_bounds(min(epsilon, Fraction(200)), 128)[0] for epsilon in promise.values[:-1]]
    for c2, row2 in enumerate(rows):
        by_rank = {}
        for c, (rank, _, _) in strongest[c2].items():
            by_rank.setdefault(rank, []).append(c)
        for rank, numbers in by_rank.items():
            epsilon = promise.values[rank]
            most = [
                below[rank] * b >> 128 for b in row2
            ]  # at most exp(epsilon) times b, and hardly less
            for c in numbers:
                if (
                    any(map(operator.gt, rows[c], most))
                    and exceeding(rows[c], row2, epsilon) is not None
                ):
                    yield strongest[c2][c][1:]


def strongest_promises(promise, row_of, number):
    """For each two different rows c2, c: the least rank of a finite promise from a symbol with c to one with c2."""
    strongest = [{} for _ in range(number)]
    infinite = len(promise.values) - 1
    for x, ranks in enumerate(promise.rank):
        c = row_of[x]
        for x2, rank in enumerate(ranks):
            c2 = row_of[x2]
            if rank < infinite and c != c2:
                known = strongest[c2].get(c)
                if known is None or rank < known[0]:
                    strongest[c2][c] = (rank, x, x2)
    return strongest


# C1 to C3: ranges of reports, and a promise by groups.


class Census:
    """How many symbols have each group, each range, and each combination of the two."""

    def __init__(self, promise, layout):
        self.layout = layout
        self.cells = cells_of(promise, layout)
        self.in_group = Counter()
        self.in_range = Counter()
        self.ranges_of = {}
        for (g, i), number in self.cells.items():
            self.in_group[g] += number
            self.in_range[i] += number
            self.ranges_of.setdefault(g, []).append(i)
        present = [i for i in self.in_range if i != OWN]
        self.by_strength = sorted(present, key=self.strength, reverse=True)

    def strength(self, i):
        """How far the odds toward range i reach, as something that can be sorted."""
        a, b = self.layout.odds[i].toward
        return (a > 0 and b == 0, Fraction(a, max(b, 1)))

    def strongest_inside(self, g):
        """The two ranges with symbols in group g to which odds reach furthest."""
        return heapq.nlargest(2, (i for i in self.ranges_of[g] if i != OWN), key=self.strength)

    def strongest_outside(self, g):
        """The two ranges with symbols outside group g to which odds reach furthest."""
        outside = (i for i in self.by_strength if self.in_range[i] > self.cells.get((g, i), 0))
        return list(itertools.islice(outside, 2))


def cells_of(promise, layout):
    if promise.group_of is None and layout.range_of is None:
        return Counter({(0, 0): promise.size})
    groups = itertools.repeat(0) if promise.group_of is None else promise.group_of
    ranges = itertools.repeat(0) if layout.range_of is None else layout.range_of
    return Counter(zip(groups, ranges))  # noqa: B905 - one of them may be endless


def layout_with_groups(promise, layout):
    census = Census(promise, layout)
    for g, ranges in census.ranges_of.items():
        inside = census.strongest_inside(g) if promise.inside[g] is not None else []
        outside = census.strongest_outside(g) if promise.outward[g] is not None else []
        for i in ranges:
            together = 0 if i == OWN else census.cells[g, i]
            sharing = 0 if i == OWN else census.in_range[i]
            near = together > 1
            far = census.in_group[g] > max(together, 1)
            broken = broken_relation(layout, i, promise.inside[g], near, far, inside)
            if broken is not None:
                yield from related_pairs(promise, layout, g, i, True, *broken)

            near = sharing > together
            far = promise.size - census.in_group[g] > sharing - together
            broken = broken_relation(layout, i, promise.outward[g], near, far, outside)
            if broken is not None:
                yield from related_pairs(promise, layout, g, i, False, *broken)


def broken_relation(layout, i, epsilon, near, far, strongest):
    """Whether the odds of a symbol of range i exceed epsilon: (same range, range of the other symbol if it matters).

    ``near``: there is another symbol of range i. ``far``: there is a symbol elsewhere. ``strongest``: the ranges to
    which odds reach furthest.
    """
    odds = layout.odds_at(i)
    if near and not keeps(*odds.inside, epsilon):
        return True, None
    if far and not keeps(*odds.outward, epsilon):
        return False, None
    for j in strongest:
        if j != i and not keeps(*layout.odds[j].toward, epsilon):
            return False, j
    return None


def related_pairs(promise, layout, g, i, same_group, same_range, j):
    """Some pairs that are related in this way, from symbols of group g and range i."""
    symbols = range(promise.size)

    def related(x, x2):
        shares_range = layout.range(x2) == i != OWN
        fits = (promise.group(x2) == g) == same_group and shares_range == same_range
        return x2 != x and fits and j in (None, layout.range(x2))

    sources = (x for x in symbols if promise.group(x) == g and layout.range(x) == i)
    for x in itertools.islice(sources, TRIED):
        targets = (x2 for x2 in symbols if related(x, x2))
        for x2 in itertools.islice(targets, TRIED):
            yield x, x2


# C1 to C3: ranges of reports, and a promise for each pair.


def layout_with_matrix(promise, layout):
    """The strongest promise among all pairs with the same odds."""
    ranges = [layout.range(x) for x in range(promise.size)]
    kinds = list(dict.fromkeys(layout.odds_at(i) for i in ranges))
    number = {odds: kind for kind, odds in enumerate(kinds)}
    kind_of_symbol = [number[layout.odds_at(i)] for i in ranges]
    strongest = {}
    for x, ranks in enumerate(promise.rank):
        kind = kind_of_symbol[x]
        i = ranges[x]
        for x2, rank in enumerate(ranks):
            key = (kind, kind_of_symbol[x2], i == ranges[x2] and i != OWN)
            if x != x2 and (key not in strongest or rank < strongest[key][0]):
                strongest[key] = (rank, x, x2)

    for (kind, kind2, same_range), (rank, x, x2) in strongest.items():
        odds = [kinds[kind].inside] if same_range else [kinds[kind].outward, kinds[kind2].toward]
        if not all(keeps(a, b, promise.values[rank]) for a, b in odds):
            yield x, x2


# --- Certificates -----------------------------------------------------------------------------------------------------

LARGEST_ENUMERATION = 512  # reports up to which the package compares every pair
LARGEST_UNSTRUCTURED = (
    2**22
)  # entries up to which it does so where there is nothing else to argue from
LARGEST_SAMPLE = 1000  # rows that it compares with their structure
CERTIFIED = ("mechanism", "context", "method", "rows", "inputs", "outputs", "tightest", "premises")


def wrong_fields(record, survey, context, frame, channel):
    """The fields of a certificate that state something else than the promise next to it."""
    fields(record, "a certificate", *CERTIFIED)
    method, rows, premises = method_of(channel)
    computed = {
        "mechanism": fingerprint({"context": frame.record, "mechanism": survey["mechanism"]}),
        "context": fingerprint(context.record),
        "method": method,
        "rows": rows,
        "inputs": channel.size,
        "outputs": outputs_of(channel),
        "premises": premises,
    }
    wrong = [
        name
        for name in CERTIFIED
        if name in computed and canonical_bytes(record[name]) != canonical_bytes(computed[name])
    ]
    if not right_place(record["tightest"], context, channel, method):
        wrong.append("tightest")
    return wrong


def outputs_of(channel):
    return sum(leaf.outputs for leaf in channel.leaves)


def method_of(channel):
    """How the package argues, on how many rows, and from which premises."""
    outputs = outputs_of(channel)
    premises = (
        [] if outputs <= LARGEST_ENUMERATION or channel.children else channel.leaves[0].premises()
    )
    small = channel.size * outputs <= LARGEST_UNSTRUCTURED
    if outputs <= LARGEST_ENUMERATION or (not premises and small):
        return "enumerated", channel.size, []
    if not channel.children:
        return "structural", min(channel.size, LARGEST_SAMPLE), premises
    parts = [method_of(child) for child in channel.children]
    return (
        "structural",
        sum(rows for _, rows, _ in parts),
        [each for _, _, below in parts for each in below],
    )


def right_place(record, context, channel, method):
    """Whether the tightest place states the right promise, and odds that keep it and are not understated."""
    if record is None:
        return not any_promise(context)
    x, x2, output, high, low, promised = fields(
        record, "tightest", "x", "x2", "output", "high", "low", "promised"
    )
    for number in (x, x2, output):
        whole(number, "x, x2 and output", 0, 2**53)
    high = count_of(high)
    low = count_of(low)
    if x == x2 or max(x, x2) >= channel.size or output >= outputs_of(channel):
        return False
    epsilon = context.epsilon(x, x2)
    if (
        epsilon is None
        or number_of(promised, "promised") != epsilon
        or not keeps(high, low, epsilon)
    ):
        return False

    a = words_at(channel, x, output)
    b = words_at(channel, x2, output)
    return a * low == high * b if method == "enumerated" else a * low <= high * b


def words_at(channel, x, output):
    j, i = channel.of(x)
    first = sum(leaf.outputs for leaf in channel.leaves[:j])
    inside = first <= output < first + channel.leaves[j].outputs
    return channel.leaves[j].row(i)(output - first) if inside else 0


def any_promise(context):
    """Whether there is a finite promise between any two symbols."""
    return any(row.epsilon != "none" for row in promise_rows(context))


# --- In plain English -------------------------------------------------------------------------------------------------

ESCAPED = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co"}
SHOWN_LABELS = 8
SHOWN_PROMISES = 24


def printable(text, longest):
    """Text of unknown origin on one line: control characters are escaped, and long text is cut."""
    shown = []
    for character in text[:longest]:
        code = ord(character)
        if character == "\\":
            shown.append("\\\\")
        elif unicodedata.category(character) in ESCAPED:
            shown.append(f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}")
        else:
            shown.append(character)
    return "".join(shown) + ("…" if len(text) > longest else "")


def quoted(label, longest=60):
    return str(label) if type(label) is int else f'"{printable(label, longest)}"'


def some_labels(domain, symbols, number):
    """The first labels, and how many more there are."""
    first = [quoted(domain.label(x)) for x in itertools.islice(symbols, SHOWN_LABELS)]
    more = [f"and {number - len(first):,} more"] if number > len(first) else []
    return ", ".join(first + more)


@dataclass(frozen=True)
class Row:
    """A line of the table of promises."""

    epsilon: str
    pairs: int
    who: str


def promise_rows(context):
    """Each different promise, and the number of ordered pairs it holds for."""
    rows = {}
    matrices = []
    inside = 0
    for symbols, leaf in zip(context.parts.symbols, context.parts.leaves, strict=True):
        inside += leaf.size * (leaf.size - 1)
        if isinstance(leaf, Matrix):
            matrices.append(leaf)
            continue
        for who, epsilon, pairs in group_rows(context.domain, symbols, leaf):
            rows[who, epsilon] = rows.get((who, epsilon), 0) + pairs
    listed_rows = [Row(promise_text(epsilon), pairs, who) for (who, epsilon), pairs in rows.items()]
    listed_rows += matrix_rows(matrices)
    size = context.domain.size
    listed_rows.append(Row("none", size * (size - 1) - inside, "labels of different parts"))
    return [row for row in listed_rows if row.pairs]


def promise_text(epsilon):
    return "none" if epsilon is None else number_text(epsilon)


def group_rows(domain, symbols, leaf):
    """Who owes what to whom, by groups: (who against whom, epsilon, pairs)."""
    sizes = Counter({0: leaf.size}) if leaf.group_of is None else Counter(leaf.group_of)
    if leaf.kind == "uniform":
        part = "" if leaf.size == domain.size else " of the same part"
        yield (
            f"every label against every other label{part}",
            leaf.inside[0],
            leaf.size * (leaf.size - 1),
        )
    elif leaf.kind == "blocks":
        for g, size in sizes.items():
            yield "labels of one block against each other", leaf.inside[g], size * (size - 1)
        across = leaf.size**2 - sum(size**2 for size in sizes.values())
        yield "every label against the labels of other blocks", leaf.outward[0], across
    else:
        heads = {g: [] for g in sizes}
        for x, g in zip(symbols, leaf.group_of, strict=True):
            if len(heads[g]) < SHOWN_LABELS:
                heads[g].append(x)
        others = (
            "every other label"
            if leaf.size == domain.size
            else "every other label of the same part"
        )
        for g, size in sizes.items():
            name = ("sensitive label" if leaf.kind == "high-low" and g == 0 else "label") + (
                "s" if size > 1 else ""
            )
            who = f"{size:,} {name} ({some_labels(domain, heads[g], size)}) against {others}"
            yield who, leaf.inside[g], size * (leaf.size - 1)


def matrix_rows(matrices):
    """Finite promises from the least to the greatest, and pairs without one."""
    counts = Counter()
    for leaf in matrices:
        numbers = Counter(rank for row in leaf.rank for rank in row)
        numbers[0] -= leaf.size  # the diagonal: its promise is 0, the least there is
        for rank, number in numbers.items():
            counts[leaf.values[rank]] += number
    open_pairs = counts.pop(None, 0)
    finite = sorted(epsilon for epsilon, number in counts.items() if number)
    rows = []
    if finite:
        least = number_text(finite[0])
        greatest = number_text(finite[-1])
        span = least if least == greatest else f"{least} to {greatest}"
        rows.append(Row(span, sum(counts.values()), "pairs of labels with a promise of their own"))
    rows.append(Row("none", open_pairs, "pairs of labels without a promise"))
    return rows


def promise_table(context):
    rows = promise_rows(context)
    shown = rows[:SHOWN_PROMISES]
    wide = max([7, *(len(row.epsilon) for row in shown)])
    long = max([5, *(len(f"{row.pairs:,}") for row in shown)])
    lines = [f"  {'epsilon'.ljust(wide)}  {'pairs'.rjust(long)}  who against whom"]
    lines += [
        f"  {row.epsilon.ljust(wide)}  {format(row.pairs, ',').rjust(long)}  {row.who}"
        for row in shown
    ]
    if len(rows) > len(shown):
        pairs = sum(row.pairs for row in rows[SHOWN_PROMISES:])
        lines.append(f"  and {len(rows) - len(shown):,} more promises, for {pairs:,} pairs")
    return lines


ARGUMENTS = {
    (Groups, Table): (
        "on every report, the largest table entry of each group of labels with the smallest entry of all labels to "
        "which the group owes a promise (exact integers, all rows)",
        "every pair, because every other pair of entries lies between these two",
    ),
    (Matrix, Table): (
        "every ordered pair of different table rows on every report (exact integers), with the strongest promise among "
        "the labels that share the rows",
        "pairs of labels with equal rows, between which no report says anything",
    ),
    (Groups, Layout): (
        "that the words of the codes add up, and the odds of each range of reports with each promise to which they "
        "apply (exact integers; groups and ranges counted over all labels)",
        "every report: each holds one of three numbers of words in each range (the rules C1 to C3 in the file)",
    ),
    (Matrix, Layout): (
        "that the words of the codes add up, and the odds of each range of reports with the strongest promise among "
        "all pairs of labels to which they apply (exact integers)",
        "every report: each holds one of three numbers of words in each range (the rules C1 to C3 in the file)",
    ),
}


def compared_lines(context, channel):
    """What was compared."""
    lines = [f"Compared:     {compared}" for compared, _ in arguments_of(context, channel)]
    if len(channel.leaves) > 1:
        lines.append(
            "Compared:     that nothing is promised across the parts of the mechanism, which every report shows"
        )
    return lines


def proof_lines(context, channel):
    """What follows from it."""
    lines = [f"By proof:     {follows}" for _, follows in arguments_of(context, channel)]
    if len(context.parts.leaves) > 1:
        lines.append(
            "By proof:     each part of the context by itself, because nothing is promised across parts"
        )
    return lines


def arguments_of(context, channel):
    ways = {
        (type(promise), type(comparable(leaf)))
        for promise in context.parts.leaves
        for leaf in channel.leaves
    }
    return list(dict.fromkeys(ARGUMENTS[way] for way in sorted(ways, key=str)))


def repeat_text(repeat):
    if repeat == "once":
        return "once"
    every, distinct = fields(repeat, "repeat", "every", "distinct")
    demand(
        every in ("day", "week", "month", "year"), "repeat.every must be day, week, month or year"
    )
    whole(distinct, "repeat.distinct", 1, 10_000)
    return f"every {every}, up to {distinct:,} different answers. The promises below hold for each report by itself"


# --- Files ------------------------------------------------------------------------------------------------------------

ABOUT = ("title", "text", "contact", "opens", "closes", "minimum_reports")
PROMISE = ("format", "name", "mechanism", "mechanism_context", "repeat")

# Fields of format 2 that this checker cannot act on, with the only values that it knows.
NEUTRAL_PROMISE = {
    "cap": None,
    "cohorts": 1,
    "collection": "plain",
    "invitations": None,
    "learn": None,
    "public": [],
}
NEUTRAL_QUESTION = {"missing": None}
NEUTRAL_ABOUT = {"texts": {}}


def check(raw):
    """The exit code for the bytes of a file, and what to print."""
    data = read_json(raw)
    survey, certificate = sections_of(data)
    context = context_of(question_of(survey)["context"])
    frame = frame_of(survey, context)
    channel = channel_of(survey["mechanism"], frame)

    lines = header(survey, context, frame, channel) + compared_lines(context, channel)
    broken = first_violation(context, channel)
    if broken is not None:
        return BROKEN, [*lines, broken_text(context, broken)]
    if certificate is not None:
        wrong = wrong_fields(certificate, survey, context, frame, channel)
        if wrong:
            verdict = f"BROKEN: the certificate does not belong to this promise (it differs in: {', '.join(wrong)})"
            return BROKEN, [*lines, verdict]
        lines.append(
            f"Certificate:  agrees with the promise in every field ({', '.join(CERTIFIED)})"
        )
    return KEPT, [*lines, *proof_lines(context, channel), "kept: every pair, every report"]


def sections_of(data):
    """The promise and the certificate of a file: a resolved survey, a certificate, or a saved mechanism."""
    demand(isinstance(data, dict), "the file must hold a JSON object")
    if "promise" not in data:
        more = ["mechanism_context"] if "mechanism_context" in data else []
        fields(data, "a saved mechanism", "format", "context", "mechanism", *more)
        format_of(data, "a saved mechanism", 1)
        return data, None

    certified = "certificate" in data
    promise, other = fields(data, "the file", "promise", "certificate" if certified else "about")
    version = format_of(promise, "promise", 1, 2)
    require_promise(promise, version)
    demand(isinstance(other, dict), "a certificate must be an object")
    if not certified:
        require_about(other, version)
    return promise, other if certified else None


def format_of(record, name, *known):
    demand(isinstance(record, dict), f"{name} must be an object")
    version = record.get("format")
    demand(
        type(version) is int and version in known,
        f"the format of {name} must be {' or '.join(map(str, known))}; this checker knows no other",
    )
    return version


def require_promise(promise, version):
    """Refuse a promise that has other fields than its format, or asks for what is not checked here."""
    if version == 1:
        fields(promise, "promise", *PROMISE, "context")
    else:
        fields(promise, "promise", *PROMISE, "questions", *NEUTRAL_PROMISE)
        require_neutral(promise, "promise", NEUTRAL_PROMISE)
        question = only_item(promise["questions"], "promise.questions")
        fields(question, "promise.questions[0]", "name", "context", *NEUTRAL_QUESTION)
        require_neutral(question, "promise.questions[0]", NEUTRAL_QUESTION)
        name = require_name(question["name"], "promise.questions[0].name")
        demand(
            name.isprintable() and name == name.strip(),
            "promise.questions[0].name must be one line of printable text",
        )
    require_name(promise["name"], "name")


def require_about(about, version):
    """Refuse what is shown to people in the same way."""
    if version == 1:
        fields(about, "about", *ABOUT)
    else:
        fields(about, "about", *ABOUT, "uploads", *NEUTRAL_ABOUT)
        require_neutral(about, "about", NEUTRAL_ABOUT)
        if about["uploads"] is not None:
            whole(about["uploads"], "uploads", 1, 65_536)
    *texts, minimum = (about[name] for name in ABOUT)
    for text in texts:
        text_of(text, "everything in about but minimum_reports")
    whole(minimum, "minimum_reports", 0, 2**53)


def require_name(value, name):
    text = text_of(value, name)
    demand(0 < len(text) <= 100, f"{name} must have 1 to 100 characters")
    return text


def require_neutral(record, name, neutral):
    for field, value in neutral.items():
        # As bytes, because True == 1 in Python.
        if canonical_bytes(record[field]) != canonical_bytes(value):
            expected = canonical_bytes(value).decode()
            raise NotChecked(
                f"not checked: {name}.{field} must be {expected}; this checker knows no other value"
            )


def only_item(items, name):
    if len(listed(items, name)) != 1:
        raise NotChecked(
            f"not checked: {name} must have one item; this checker knows one question per survey"
        )
    return items[0]


def question_of(survey):
    """The part of a promise that holds the context: the only question, or all of it in format 1."""
    return survey["questions"][0] if "questions" in survey else survey


def frame_of(survey, context):
    """The context that the mechanism was made for."""
    record = survey.get("mechanism_context")
    if record is None:
        return context
    frame = context_of(record)
    demand(
        record_of_domain(frame.record) == record_of_domain(context.record),
        "mechanism_context is about another domain than context",
    )
    return frame


def header(survey, context, frame, channel):
    size = context.domain.size
    question = question_of(survey)
    whole_promise = "name" in survey
    named = survey if whole_promise else {"context": frame.record, "mechanism": survey["mechanism"]}
    what = "" if whole_promise else " (of context and mechanism)"
    made_for = "" if frame is context else f", made for a context of kind {frame.record['kind']}"
    return [
        f"Survey:       {quoted(survey['name'], 100) if whole_promise else 'none: a saved mechanism'}",
        *([f"Question:     {quoted(question['name'], 100)}"] if question is not survey else []),
        f"Fingerprint:  {fingerprint(named)}{what}",
        f"Labels:       {size:,}: {some_labels(context.domain, range(size), size)}",
        *([f"Asked:        {repeat_text(survey['repeat'])}"] if whole_promise else []),
        f"Context:      {context.record['kind']}",
        f"Mechanism:    {survey['mechanism']['kind']}, {outputs_of(channel):,} possible reports{made_for}",
        "Promises:",
        *promise_table(context),
    ]


def broken_text(context, broken):
    x = quoted(context.domain.label(broken.x))
    x2 = quoted(context.domain.label(broken.x2))
    return (
        f"BROKEN: report {broken.report} says more for {x} (symbol {broken.x}) against {x2} (symbol {broken.x2}) than "
        f"promised: {broken.words} words against {broken.words2}, epsilon {number_text(broken.epsilon)}"
    )


def answer(path):
    """The exit code for a file, and the lines to print."""
    name = printable(str(path), 200)
    try:
        with Path(path).open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        code, lines = check(raw)
    except NotChecked as problem:
        return NOT_CHECKED, [f"{name}: {problem}"]
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        return NOT_CHECKED, [f"{name}: cannot be read: {reason}"]
    except MemoryError:
        return NOT_CHECKED, [f"{name}: too large: not enough memory"]
    except KeyboardInterrupt:
        return NOT_CHECKED, ["stopped"]
    except Exception as problem:  # noqa: BLE001 - an unforeseen file must end in "not checked", never in a traceback
        return NOT_CHECKED, [f"{name}: cannot be read: {type(problem).__name__}"]
    return code, lines


def main(arguments):
    """Check one file, print what was checked, and return the exit code."""
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        code = NOT_CHECKED
        lines = [USAGE]
    else:
        code, lines = answer(arguments[0])

    stream = sys.stderr if code == NOT_CHECKED else sys.stdout
    if stream is None:  # closed by the caller: the answer reaches nobody
        return NOT_CHECKED
    text = "".join(f"{line}\n" for line in lines)
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError:  # nobody reads the answer
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return NOT_CHECKED
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
