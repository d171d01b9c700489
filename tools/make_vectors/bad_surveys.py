"""Surveys that a client must reject: malformed, insecure, oversized or forged.

Each is valid except for one fault. It is pinned by the fingerprint of its own text, so a client
cannot reject it by the fingerprint alone.
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
from tools.make_vectors.case import load, load_request, reject
from tools.make_vectors.catalogue import surveys

Data = dict[str, Any]

_MISSING = object()
_BAD_FIELDS = Path(__file__).with_name("bad_fields.json")
"""Rows of a description, a survey, the path of a field, and its new value or none to remove it."""


def bad_surveys() -> Iterator[Case]:
    """Yield surveys with malformed text, a wrong pin or a broken promise."""
    known = surveys()
    plain = known["plain, hadamard"]
    for about, name, path, *value in json.loads(_BAD_FIELDS.read_text(encoding="utf-8")):
        yield _reject_text(about, _change(known[name], path, *value))
    for about, write in _MALFORMED_TEXTS.items():
        yield _reject_text(about, write(_parse(plain)))
    for name, prefix in _OBJECT_PATHS.items():
        yield _reject_text(f"an unknown field in {name}", _change(plain, f"{prefix}zeal", "1"))
        parent, _ = _find(_parse(plain), f"{prefix}zeal")
        last_field = max(parent)
        yield _reject_text(f"a field missing in {name}", _change(plain, prefix + last_field))
    wrong_pin = plain.fingerprint[:-1] + ("0" if plain.fingerprint[-1] != "0" else "1")
    request = load_request(_to_text(_parse(plain)), wrong_pin)
    yield reject("another fingerprint than the one that was pinned", request, "WrongSurvey")
    for name, changes in _WORD_CHANGES.items():
        about = f"{name}: breaks its context by a few words of 2^64"
        yield _reject_text(about, _change_words(known[name], changes), "PrivacyViolation")
    known[_MANY_REPORTS.name] = _MANY_REPORTS
    for name, path, value in _STRONGER_PROMISES:
        about = f"{name}: the context promises more than is kept"
        text = _change(known[name], f"promise.context.{path}", value)
        yield _reject_text(about, text, "PrivacyViolation")


# --- malformed text -------------------------------------------------------------------------------


def _reorder(data: Data) -> str:
    return (
        _to_text({"promise": data["promise"]})[:-1] + "," + _to_text({"about": data["about"]})[1:]
    )


_MALFORMED_TEXTS: Mapping[str, Callable[[Data], str]] = {
    "nothing": lambda data: "",
    "no object": lambda data: "[]",
    "half a survey": lambda data: _to_text(data)[:-1],
    "two surveys": lambda data: _to_text(data) * 2,
    "white space": lambda data: json.dumps(data, sort_keys=True, ensure_ascii=False),
    "a space at the end": lambda data: _to_text(data) + " ",
    "a byte-order mark": lambda data: "\ufeff" + _to_text(data),
    "fields in another order": _reorder,
    "escapes that need not be": lambda data: json.dumps(
        data, sort_keys=True, separators=(",", ":")
    ),
    "text that is not composed": lambda data: _to_text(data).replace("é", "e\u0301"),
    "a field twice": lambda data: _to_text(data).replace('"format":1', '"format":1,"format":1'),
    "a fraction for an integer": lambda data: _to_text(data).replace(
        '"word_bits":64', '"word_bits":64.0'
    ),
    "an exponent": lambda data: _to_text(data).replace('"outputs":8', '"outputs":8e0'),
    "a zero in front": lambda data: _to_text(data).replace('"high":"', '"high":"0', 1),
}


# --- unknown and missing fields -------------------------------------------------------------------

_OBJECT_PATHS = {
    "the survey": "",
    "the promise": "promise.",
    "about": "about.",
    "the context": "promise.context.",
    "the domain": "promise.context.domain.",
    "the mechanism": "promise.mechanism.",
    "a code": "promise.mechanism.codes.0.",
}
"""The path prefix of the fields of every object in a survey."""


# --- broken promises ------------------------------------------------------------------------------

_WORD_CHANGES: Mapping[str, Mapping[str, int]] = {
    "binary, even": {"rows.0.0": 1, "rows.0.1": -1},
    "binary, one way": {"rows.0.0": 1, "rows.0.1": -1},
    "table, tight": {"rows.0.1": -1, "rows.0.2": 1},
    # Each output of a Hadamard code is drawn in two ways, so words move in pairs.
    "plain, hadamard": {"codes.0.high": 2, "codes.0.low": -2},
    # Move one word from each output that is not raised to the leftover words.
    "plain, randomized": {"codes.0.low": -1, "codes.0.leftover": 4},
    "plain, cyclic": {"codes.0.low": -1, "codes.0.leftover": 4},
    "plain, cyclic, two base blocks": {"codes.0.low": -1, "codes.0.leftover": 8},
    "blocks, hadamard": {"codes.2.high": 2, "codes.2.low": -2},
    "high-low, hadamard": {"codes.0.high": 2, "codes.0.low": -2},
    "high-low, cyclic": {"codes.0.low": -1, "codes.0.leftover": 4},
    # Move three words, since rounding may leave a slack of one or two.
    "groups, high-low": {"levels.0.high": 6, "levels.0.low": -3},
    "product, randomized": {"codes.1.low": -1, "codes.1.leftover": 4},
    "union, interleaved": {"parts.0.codes.0.low": -1, "parts.0.codes.0.leftover": 1},
}
"""The change in each of a mechanism's word counts."""

_MANY_REPORTS = Survey(
    "uniform, kept by a product with 8,192 reports",
    Uniform(64, 3),
    ProductResponse(Blocks([x // 2 for x in range(64)], 2, across=3), HadamardCode),
)
"""Few enough symbols that a client must check them all, but many reports.

No bound on the odds lets it skip the check.
"""

_STRONGER_PROMISES: tuple[tuple[str, str, str], ...] = (
    # The difference is too small for doubles: ε is text that represents an exact number.
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
    # The mechanism satisfies the context it was built for, but not the one that is promised.
    ("tiers, kept by a plain response", "epsilons.0", "0.19999999999999999"),
    ("matrix, kept by blocks", "matrix.2.0", "5"),
    (_MANY_REPORTS.name, "epsilon", "2.9999999999999999"),
)
"""Rows of a survey, a path in its context, and a value that promises slightly more."""


# --- untrusted surveys ----------------------------------------------------------------------------


def untrusted_surveys() -> Iterator[Case]:
    """Yield surveys that would exhaust memory, and tables with permuted rows."""
    yield from _large_domains()
    yield from _large_codes()
    yield from _forged_tables()


def _large_domains() -> Iterator[Case]:
    """Yield each survey pinned by another survey's fingerprint, and by its own."""
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
        yield reject(f"{about}, another survey is pinned", request, "WrongSurvey")
        yield _reject_text(about, text)


def _large_codes() -> Iterator[Case]:
    """Yield codes on both sides of the size limit: 64 outputs per symbol plus 2^16."""
    context = Uniform(7, 1)
    survey = Survey("oversized code", context, PlainResponse(context))
    for points in (2**16 - 1, 2**17 - 1, 2**31 - 1):
        code = HadamardCode(points, context.uniform_epsilon).to_record()
        text = _change(survey, "promise.mechanism.codes", [code])
        if points < 2**16:
            yield load(Survey.from_resolved(text.encode("utf-8")))
        else:
            yield _reject_text(f"7 symbols, a code of {points} points", text)


def _forged_tables() -> Iterator[Case]:
    """Yield each forged table with a valid one that looks similar but keeps the promise."""
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
    return _reject_text(about, _to_text(_parse(_table(about, context, rows))), "PrivacyViolation")


def _table(name: str, context: Context, rows: list[list[int]]) -> Survey:
    return Survey(name, context, TableResponse(context, rows))


def _rotations(*sixteenths: int) -> list[list[int]]:
    """Return 1100 rows: these sixteenths of all words, each row rotated by one position."""
    row = [2**60 * share for share in sixteenths]
    return [row[x % 4 :] + row[: x % 4] for x in range(1100)]


# --- helpers --------------------------------------------------------------------------------------


def _reject_text(about: str, text: str, error: str = "InvalidSurvey") -> Case:
    return reject(about, load_request(text, _own_pin(text)), error)


def _own_pin(text: str) -> str:
    """Return the fingerprint of the promise as written, or of null if there is no promise."""
    try:
        promise = json.loads(text)["promise"]
    except (ValueError, LookupError, TypeError):
        promise = None
    return hashlib.sha256(_to_text(promise).encode("utf-8")).hexdigest()


def _to_text(data: object) -> str:
    """Return canonical JSON, valid survey or not."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _parse(survey: Survey) -> Data:
    data: Data = json.loads(survey.resolved())
    return data


def _change(survey: Survey, path: str, value: object = _MISSING) -> str:
    """Return the text of the survey with the field at ``path`` changed or, by default, removed."""
    data = _parse(survey)
    parent, key = _find(data, path)
    if value is _MISSING:
        del parent[key]
    else:
        parent[key] = value
    return _to_text(data)


def _change_words(survey: Survey, changes: Mapping[str, int]) -> str:
    """Return the text of the survey with its mechanism's word counts changed."""
    data = _parse(survey)
    for path, change in changes.items():
        parent, key = _find(data["promise"]["mechanism"], path)
        parent[key] = str(int(parent[key]) + change)
    return _to_text(data)


def _find(data: Any, path: str) -> tuple[Any, Any]:
    """Return the innermost object or list on a path, and the key or index in it."""
    *outer, last = path.split(".")
    for step in outer:
        data = data[int(step) if isinstance(data, list) else step]
    return data, int(last) if isinstance(data, list) else last
