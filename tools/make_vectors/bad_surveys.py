"""Surveys that a client must refuse: malformed, broken, oversized or forged.

Each is right but for one thing. It comes with the fingerprint that the text itself would have, so
that the pin does not give it away.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sfumato.codes import HadamardCode
from sfumato.conformance import Case
from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.foundation.canonical import pack_u32
from sfumato.mechanisms import PlainResponse, ProductResponse, TableResponse
from sfumato.survey import Survey
from tools.make_vectors.case import load, load_request, refuse
from tools.make_vectors.catalogue import surveys

__all__ = ["bad_surveys", "untrusted_surveys"]

Data = dict[str, Any]

_MISSING = object()
_HALF = str(2**63)


def bad_surveys() -> Iterator[Case]:
    """Yield surveys with a malformed text, a wrong pin or a broken promise."""
    known = surveys()
    plain = known["plain, hadamard"]
    for about, (name, path, value) in _CHANGES.items():
        yield _refuse_text(about, _change(known[name], path, value))
    for about, write in _SPELLINGS.items():
        yield _refuse_text(about, write(_data(plain)))
    for name, prefix in _OBJECTS.items():
        yield _refuse_text(f"an unknown field in {name}", _change(plain, f"{prefix}zeal", "1"))
        place, _ = _find(_data(plain), f"{prefix}zeal")
        last = max(place)
        yield _refuse_text(f"a field missing in {name}", _change(plain, prefix + last, _MISSING))
    wrong_pin = plain.fingerprint[:-1] + ("0" if plain.fingerprint[-1] != "0" else "1")
    request = load_request(_text(_data(plain)), wrong_pin)
    yield refuse("another fingerprint than the one that was pinned", request, "WrongSurvey")
    for name, moves in _WORD_MOVES.items():
        about = f"{name}: breaks its context by a few words of 2^64"
        yield _refuse_text(about, _move_words(known[name], moves), "PrivacyViolation")
    known[_MANY_REPORTS.name] = _MANY_REPORTS
    for name, path, value in _STRONGER_PROMISES:
        about = f"{name}: the context promises more than is kept"
        text = _change(known[name], f"promise.context.{path}", value)
        yield _refuse_text(about, text, "PrivacyViolation")


# --- one field with another value -----------------------------------------------------------------

_CHANGES: Mapping[str, tuple[str, str, object]] = {
    "another format": ("plain, hadamard", "promise.format", 2),
    "the format as text": ("plain, hadamard", "promise.format", "1"),
    "the format as a truth value": ("plain, hadamard", "promise.format", True),
    "an unknown kind of domain": ("plain, hadamard", "promise.context.domain.kind", "colours"),
    "an unknown kind of context": ("plain, hadamard", "promise.context.kind", "bubbles"),
    "an unknown kind of mechanism": ("plain, hadamard", "promise.mechanism.kind", "laplace"),
    "an unknown kind of code": ("plain, hadamard", "promise.mechanism.codes.0.kind", "morse"),
    "a kind that objects of other languages have already": (
        "plain, hadamard",
        "promise.mechanism.kind",
        "constructor",
    ),
    "a mechanism that does not fit its context": (
        "high-low, hadamard",
        "promise.mechanism.kind",
        "plain",
    ),
    "a mechanism for another domain": (
        "tiers, kept by a plain response",
        "promise.mechanism_context.domain.size",
        5,
    ),
    "no promise": ("plain, hadamard", "promise", None),
    "no mechanism": ("plain, hadamard", "promise.mechanism", None),
    "no codes": ("plain, hadamard", "promise.mechanism.codes", []),
    "labels that are no list": ("plain, hadamard", "promise.context.domain.labels", "park"),
    "no name": ("plain, hadamard", "promise.name", ""),
    "a number for a name": ("plain, hadamard", "promise.name", 7),
    "a name of 101 characters": ("plain, hadamard", "promise.name", "\U0001f375" * 101),
    "a space before a name": ("plain, hadamard", "promise.name", " lunch"),
    "a space after a name": ("plain, hadamard", "promise.name", "lunch "),
    "a tab in a name": ("plain, hadamard", "promise.name", "lunch\t2026"),
    "a control in a name": ("plain, hadamard", "promise.name", "lunch\u007f2026"),
    "a character in a name that cannot be seen": (
        "plain, hadamard",
        "promise.name",
        "lunch\u200b2026",
    ),
    "a space in a name that is none": ("plain, hadamard", "promise.name", "lunch\u00a02026"),
    "a survey that opens yesterday": ("plain, hadamard", "about.opens", "yesterday"),
    "a survey that closes tomorrow": ("plain, hadamard", "about.closes", "tomorrow"),
    "repeated, but how?": ("plain, hadamard", "promise.repeat", "twice"),
    "repeated every hour": ("plain, hadamard", "promise.repeat", {"distinct": 2, "every": "hour"}),
    "repeated for no value": (
        "plain, hadamard",
        "promise.repeat",
        {"distinct": 0, "every": "week"},
    ),
    "an integer that doubles cannot hold": ("plain, hadamard", "about.minimum_reports", 2**53),
    "a fraction of a report": ("plain, hadamard", "about.minimum_reports", 1.5),
    "a label twice": ("plain, hadamard", "promise.context.domain.labels.1", "park"),
    "a label that is not there": ("plain, hadamard", "promise.context.domain.labels.1", None),
    "an empty label": ("plain, hadamard", "promise.context.domain.labels.1", ""),
    "an other that is no label": ("plain, hadamard", "promise.context.domain.other", "nowhere"),
    "one label too many": (
        "plain, one symbol",
        "promise.context.domain.labels",
        ["only", "another"],
    ),
    "a range of nothing": ("plain, randomized", "promise.context.domain.size", 0),
    "a range of text": ("plain, randomized", "promise.context.domain.start", "18"),
    "a grid whose step does not divide it": (
        "blocks, grid",
        "promise.context.domain.step",
        "0.7",
    ),
    "a grid in numbers, not text": ("blocks, grid", "promise.context.domain.north", 2),
    "a grid upside down": ("blocks, grid", "promise.context.domain.north", "-2"),
    "an ε that is no number": ("plain, hadamard", "promise.context.epsilon", "one"),
    "an ε as a number": ("plain, hadamard", "promise.context.epsilon", 1),
    "a negative ε": ("plain, hadamard", "promise.context.epsilon", "-1"),
    "not base64": ("blocks, hadamard", "promise.context.block_of", "!!!!"),
    "half a number in base64": ("blocks, hadamard", "promise.context.block_of", "AAAA"),
    "a symbol without a block": (
        "blocks, hadamard",
        "promise.context.block_of",
        pack_u32([0, 1, 0, 2, 0, 1, 3]),
    ),
    "a sensitive symbol outside the domain": (
        "high-low, hadamard",
        "promise.context.sensitive",
        pack_u32([2, 7]),
    ),
    "a tier without an ε": ("groups, tiers", "promise.context.epsilons", ["1", "2"]),
    "a matrix with a short row": ("table", "promise.context.matrix.1", ["2", "0"]),
    "a code that is not listed": ("blocks, hadamard", "promise.mechanism.code_of_block.0", 9),
    "a block without a code": ("blocks, hadamard", "promise.mechanism.code_of_block", [0, 1, 0]),
    "a code for fewer points than symbols": (
        "plain, randomized",
        "promise.context.domain.size",
        6,
    ),
    "counts that are no text": ("plain, hadamard", "promise.mechanism.codes.0.leftover", 0),
    "counts with a sign": ("plain, hadamard", "promise.mechanism.codes.0.leftover", "+0"),
    "negative counts": ("plain, hadamard", "promise.mechanism.codes.0.leftover", "-1"),
    "a word too long": ("plain, hadamard", "promise.mechanism.codes.0.word_bits", 65),
    "a word too short": ("plain, hadamard", "promise.mechanism.codes.0.word_bits", 7),
    "a word as text": ("plain, hadamard", "promise.mechanism.codes.0.word_bits", "64"),
    "levels that do not fill the word": (
        "plain, randomized",
        "promise.mechanism.codes.0.leftover",
        "999",
    ),
    "an odd share of a Hadamard code's words": (
        "plain, hadamard",
        "promise.mechanism.codes.0",
        {
            "high": "3371412625719392691",  # one more than it should be, and low is one less
            "kind": "hadamard",
            "leftover": "0",
            "low": "1240273392707995213",
            "outputs": 8,
            "points": 7,
            "word_bits": 64,
        },
    ),
    "a Hadamard code of three outputs": (
        "plain, hadamard, two symbols",
        "promise.mechanism.codes.0.outputs",
        3,
    ),
    "points that do not go with the outputs": (
        "plain, randomized",
        "promise.mechanism.codes.0.points",
        6,
    ),
    "a circle that does not go with the outputs": (
        "plain, cyclic",
        "promise.mechanism.codes.0.points",
        8,
    ),
    "a point twice in a base block": (
        "plain, cyclic",
        "promise.mechanism.codes.0.base",
        pack_u32([0, 0, 3]),
    ),
    "a base block in another order": (
        "plain, cyclic",
        "promise.mechanism.codes.0.base",
        pack_u32([1, 0, 3]),
    ),
    "base blocks outside the circle": (
        "plain, cyclic",
        "promise.mechanism.codes.0.base",
        pack_u32([0, 1, 7]),
    ),
    "base blocks that do not fill their number": (
        "plain, cyclic",
        "promise.mechanism.codes.0.base_blocks",
        2,
    ),
    "no base block": ("plain, cyclic", "promise.mechanism.codes.0.base_blocks", 0),
    "a row that does not add up": ("table", "promise.mechanism.rows.0.0", "1"),
    "a row too short": ("table", "promise.mechanism.rows.0", [_HALF, _HALF]),
    "a row too few": ("table", "promise.mechanism.rows", [[_HALF, _HALF]] * 2),
    "a negative entry": ("binary, even", "promise.mechanism.rows.0", [str(2**64 + 1), "-1"]),
    "an entry as a number": ("binary, clear", "promise.mechanism.rows.0.1", 0),
    "groups that do not fill the word": ("groups, tiers", "promise.mechanism.clear", str(2**64)),
    "groups whose levels do not add up": (
        "groups, tiers",
        "promise.mechanism.levels.0.cover",
        "1",
    ),
    "a group without a code": ("groups, tiers", "promise.mechanism.code_of_group", [0]),
    "a product of one": ("product, randomized", "promise.mechanism.codes.1", _MISSING),
    "a part too few": ("union", "promise.mechanism.parts.3", _MISSING),
    "parts of two lengths of words": (
        "union, interleaved",
        "promise.mechanism.parts.1.codes.0",
        {
            "high": str(2**32),
            "kind": "clear",
            "leftover": "0",
            "low": "0",
            "outputs": 3,
            "points": 3,
            "word_bits": 32,
        },
    ),
}
"""The survey, the path of the field and its new value, by what is wrong."""


# --- one meaning, written in another way ----------------------------------------------------------


def _reorder(data: Data) -> str:
    return _text({"promise": data["promise"]})[:-1] + "," + _text({"about": data["about"]})[1:]


_SPELLINGS: Mapping[str, Callable[[Data], str]] = {
    "nothing": lambda data: "",
    "no object": lambda data: "[]",
    "half a survey": lambda data: _text(data)[:-1],
    "two surveys": lambda data: _text(data) * 2,
    "white space": lambda data: json.dumps(data, sort_keys=True, ensure_ascii=False),
    "a space at the end": lambda data: _text(data) + " ",
    "a byte-order mark": lambda data: "\ufeff" + _text(data),
    "fields in another order": _reorder,
    "escapes that need not be": lambda data: json.dumps(
        data, sort_keys=True, separators=(",", ":")
    ),
    "text that is not composed": lambda data: _text(data).replace("é", "e\u0301"),
    "a field twice": lambda data: _text(data).replace('"format":1', '"format":1,"format":1'),
    "a fraction for an integer": lambda data: _text(data).replace(
        '"word_bits":64', '"word_bits":64.0'
    ),
    "an exponent": lambda data: _text(data).replace('"outputs":8', '"outputs":8e0'),
    "a zero in front": lambda data: _text(data).replace('"high":"', '"high":"0', 1),
}


# --- unknown and missing fields -------------------------------------------------------------------

_OBJECTS = {
    "the survey": "",
    "the promise": "promise.",
    "about": "about.",
    "the context": "promise.context.",
    "the domain": "promise.context.domain.",
    "the mechanism": "promise.mechanism.",
    "a code": "promise.mechanism.codes.0.",
}
"""The path of every object in a survey, up to its fields."""


# --- broken promises ------------------------------------------------------------------------------

_WORD_MOVES: Mapping[str, Mapping[str, int]] = {
    "binary, even": {"rows.0.0": 1, "rows.0.1": -1},
    "binary, one way": {"rows.0.0": 1, "rows.0.1": -1},
    "table, tight": {"rows.0.1": -1, "rows.0.2": 1},
    # Each output of a Hadamard code is drawn in two ways, so that two words move.
    "plain, hadamard": {"codes.0.high": 2, "codes.0.low": -2},
    # One word from each output that is not favoured to the leftover.
    "plain, randomized": {"codes.0.low": -1, "codes.0.leftover": 4},
    "plain, cyclic": {"codes.0.low": -1, "codes.0.leftover": 4},
    "plain, cyclic, two base blocks": {"codes.0.low": -1, "codes.0.leftover": 8},
    "blocks, hadamard": {"codes.2.high": 2, "codes.2.low": -2},
    "high-low, hadamard": {"codes.0.high": 2, "codes.0.low": -2},
    "high-low, cyclic": {"codes.0.low": -1, "codes.0.leftover": 4},
    # Three words, since rounding leaves a group one or two to spare.
    "groups, high-low": {"levels.0.high": 6, "levels.0.low": -3},
    "product, randomized": {"codes.1.low": -1, "codes.1.leftover": 4},
    "union, interleaved": {"parts.0.codes.0.low": -1, "parts.0.codes.0.leftover": 1},
}
"""How many words each number of a mechanism gains or loses."""

_MANY_REPORTS = Survey(
    "uniform, kept by a product with 8,192 reports",
    Uniform(64, 3),
    ProductResponse(Blocks([x // 2 for x in range(64)], 2, across=3), HadamardCode),
)
"""As many symbols as a client must check completely, but more reports than it may want to.

The odds allow no short cut.
"""

_STRONGER_PROMISES: tuple[tuple[str, str, str], ...] = (
    # Off by less than doubles can tell: ε is text, and an exact number.
    ("plain, hadamard", "epsilon", "0.99999999999999999"),
    ("plain, randomized", "epsilon", "2.9999999999999999"),
    ("high-low, cyclic", "epsilon", "0.99999999999999999"),
    ("blocks, best", "epsilon", "0.49999999999999999"),
    ("blocks, own epsilons", "epsilons.1", "1.9999999999999999"),
    ("groups, two levels", "across", "1.9999999999999999"),
    ("groups, tiers", "epsilons.0", "0.99999999999999999"),
    ("product, hadamard", "across", "2.9999999999999999"),
    ("union, interleaved", "parts.0.epsilon", "0.99999999999999999"),
    ("union, nested", "parts.0.parts.0.epsilon", "0.99999999999999999"),
    ("table, metric", "epsilon", "0.4"),
    ("table", "matrix.0.1", "0.1"),
    # The mechanism keeps what it was made for, and that is not what is promised.
    ("tiers, kept by a plain response", "epsilons.0", "0.19999999999999999"),
    ("matrix, kept by blocks", "matrix.2.0", "5"),
    (_MANY_REPORTS.name, "epsilon", "2.9999999999999999"),
)
"""The survey, the path in its context, and an entry that promises a little more."""


# --- untrusted surveys ----------------------------------------------------------------------------


def untrusted_surveys() -> Iterator[Case]:
    """Yield surveys that would fill the memory, and tables with exchanged rows."""
    yield from _large_domains()
    yield from _large_codes()
    yield from _forged_tables()


def _large_domains() -> Iterator[Case]:
    """Yield each survey under the pin of another one, and under its own."""
    high_low = Survey("oversized", HighLow(8, [1, 2], 1))
    plain = Survey("oversized", Uniform(7, 1), PlainResponse(Uniform(7, 1)))
    for kind, survey, size in (
        ("high-low", high_low, 10**8),
        ("high-low", high_low, 2**31),
        ("plain", plain, 2**31 - 1),
    ):
        about = f"{kind} over {size} symbols"
        text = _change(survey, "promise.context.domain.size", size)
        request = load_request(text, survey.fingerprint)
        yield refuse(f"{about}, another survey is pinned", request, "WrongSurvey")
        yield _refuse_text(about, text)


def _large_codes() -> Iterator[Case]:
    """Yield codes around the limit of 64 outputs for each symbol and 2^16 more."""
    context = Uniform(7, 1)
    survey = Survey("oversized code", context, PlainResponse(context))
    for points in (2**16 - 1, 2**17 - 1, 2**31 - 1):
        code = HadamardCode(points, context.uniform_epsilon).record()
        text = _change(survey, "promise.mechanism.codes", [code])
        if points < 2**16:
            yield load(Survey.of_resolved(text.encode("utf-8")))
        else:
            yield _refuse_text(f"7 symbols, a code of {points} points", text)


def _forged_tables() -> Iterator[Case]:
    """Yield each with its honest twin: the same numbers, and rows that keep the promise."""
    blocks = Blocks([0] * 1001 + [1], "0.01")
    identity = [[2**64 if y == report else 0 for y in range(5)] for report in range(5)]
    by_symbol = [identity[0 if x < 2 else 1 + x % 3] for x in range(1001)]
    yield _forgery("a table that sends the symbol", blocks, [*by_symbol, identity[4]])
    by_block = [identity[0]] * 1001 + [identity[4]]
    yield load(_table("a table that sends the block", blocks, by_block))
    uniform = Uniform(1100, 1)
    yield _forgery("rows that are permutations of each other", uniform, _rotations(6, 4, 4, 2))
    yield load(_table("the same, closer together", uniform, _rotations(5, 4, 4, 3)))


def _forgery(about: str, context: Context, rows: list[list[int]]) -> Case:
    return _refuse_text(about, _text(_data(_table(about, context, rows))), "PrivacyViolation")


def _table(name: str, context: Context, rows: list[list[int]]) -> Survey:
    return Survey(name, context, TableResponse(context, rows))


def _rotations(*sixteenths: int) -> list[list[int]]:
    """Return 1100 rows: these shares of all words, rotated by one place from row to row."""
    row = [2**60 * share for share in sixteenths]
    return [row[x % 4 :] + row[: x % 4] for x in range(1100)]


# --- texts ----------------------------------------------------------------------------------------


def _refuse_text(about: str, text: str, error: str = "InvalidSurvey") -> Case:
    return refuse(about, load_request(text, _own_pin(text)), error)


def _own_pin(text: str) -> str:
    """Return the fingerprint of the promise as it is written, or that of null."""
    try:
        promise = json.loads(text)["promise"]
    except (ValueError, LookupError, TypeError):
        promise = None
    return hashlib.sha256(_text(promise).encode("utf-8")).hexdigest()


def _text(data: object) -> str:
    """Return canonical JSON, valid survey or not."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _data(survey: Survey) -> Data:
    data: Data = json.loads(survey.resolved())
    return data


def _change(survey: Survey, path: str, value: object) -> str:
    """Return the text of the survey with another value at ``path``, or without that field."""
    data = _data(survey)
    place, key = _find(data, path)
    if value is _MISSING:
        del place[key]
    else:
        place[key] = value
    return _text(data)


def _move_words(survey: Survey, moves: Mapping[str, int]) -> str:
    """Return the text of the survey with these words added to the numbers of its mechanism."""
    data = _data(survey)
    for path, words in moves.items():
        place, key = _find(data["promise"]["mechanism"], path)
        place[key] = str(int(place[key]) + words)
    return _text(data)


def _find(data: Any, path: str) -> tuple[Any, Any]:
    """Return the innermost object or list of a path, and the key in it."""
    *outer, last = path.split(".")
    for step in outer:
        data = data[int(step) if isinstance(data, list) else step]
    return data, int(last) if isinstance(data, list) else last
