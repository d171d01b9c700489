"""Surveys that a client must refuse: malformed, broken, oversized or forged.

Each is right but for one thing. It comes with the fingerprint that the text itself would have, so
that the pin does not give it away.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.codes import HadamardCode
from sfumato.conformance import Case
from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.mechanisms import PlainResponse, ProductResponse, TableResponse
from sfumato.survey import Survey
from tools.make_vectors.case import load, load_request, refuse
from tools.make_vectors.catalogue import surveys

Data = dict[str, Any]

_MISSING = object()
_BAD_FIELDS = Path(__file__).with_name("bad_fields.json")
"""What is wrong, the survey, the path of a field, and its new value; without one, it is removed."""


def bad_surveys() -> Iterator[Case]:
    """Yield surveys with a malformed text, a wrong pin or a broken promise."""
    known = surveys()
    plain = known["plain, hadamard"]
    for about, name, path, *value in json.loads(_BAD_FIELDS.read_text(encoding="utf-8")):
        yield _refuse_text(about, _change(known[name], path, *value))
    for about, write in _SPELLINGS.items():
        yield _refuse_text(about, write(_data(plain)))
    for name, prefix in _OBJECTS.items():
        yield _refuse_text(f"an unknown field in {name}", _change(plain, f"{prefix}zeal", "1"))
        place, _ = _find(_data(plain), f"{prefix}zeal")
        last = max(place)
        yield _refuse_text(f"a field missing in {name}", _change(plain, prefix + last))
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
        code = HadamardCode(points, context.uniform_epsilon).to_record()
        text = _change(survey, "promise.mechanism.codes", [code])
        if points < 2**16:
            yield load(Survey.from_resolved(text.encode("utf-8")))
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


def _change(survey: Survey, path: str, value: object = _MISSING) -> str:
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
