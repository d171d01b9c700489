"""Surveys that a client must refuse: a promise that is half understood, or not kept, is no promise.

Each is right but for one thing. The pin is the fingerprint that the text itself would have, so that it is not the pin
that gives it away.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sfumato.codes import HadamardCode
from sfumato.conformance import Case
from sfumato.contexts import Blocks, Uniform
from sfumato.foundation.canonical import pack_u32
from sfumato.mechanisms import ProductResponse
from tools.make_vectors.case import refuse
from tools.make_vectors.catalogue import Question, questions

__all__ = ["bad_surveys"]

Data = dict[str, Any]
Path = tuple[str | int, ...]

_GONE = object()
_CODE: Path = ("promise", "mechanism", "codes", 0)
_DOMAIN: Path = ("promise", "context", "domain")
_REPEAT: Path = ("promise", "repeat")


def bad_surveys() -> Iterator[Case]:
    """What is wrong with the form, with the pin, and with the promise."""
    known = {question.name: question for question in questions()}
    for about, (name, path, value) in _CHANGES.items():
        yield _load(about, _text(_change(_data(known[name]), path, value)))
    for about, write in _WRITTEN.items():
        yield _load(about, write(_data(known["plain, hadamard"])))
    yield from _fields(_data(known["plain, hadamard"]))
    yield _wrong_pin(known["plain, hadamard"])
    for name, change in _BROKEN.items():
        data = _data(known[name])
        change(data["promise"]["mechanism"])
        yield _load(
            f"{name}: breaks its context by a few words of 2^64", _text(data), "PrivacyViolation"
        )
    known[_MANY_REPORTS.name] = _MANY_REPORTS
    for name, path, value in _PROMISED_MORE:
        data = _change(_data(known[name]), ("promise", "context", *path), value)
        yield _load(
            f"{name}: the context promises more than is kept", _text(data), "PrivacyViolation"
        )


def _move_words(code: Data, words: int) -> Data:
    """Words from the outputs that are not favoured to those that are, of which there are as many."""
    return {**code, "high": str(int(code["high"]) + words), "low": str(int(code["low"]) - words)}


# --- one place with another value -------------------------------------------------------------------------------------

_CHANGES: Mapping[str, tuple[str, Path, object]] = {
    "another format": ("plain, hadamard", ("promise", "format"), 2),
    "the format as text": ("plain, hadamard", ("promise", "format"), "1"),
    "the format as a truth value": ("plain, hadamard", ("promise", "format"), True),
    "an unknown kind of domain": ("plain, hadamard", (*_DOMAIN, "kind"), "colours"),
    "an unknown kind of context": ("plain, hadamard", ("promise", "context", "kind"), "bubbles"),
    "an unknown kind of mechanism": (
        "plain, hadamard",
        ("promise", "mechanism", "kind"),
        "laplace",
    ),
    "an unknown kind of code": ("plain, hadamard", (*_CODE, "kind"), "morse"),
    "a kind that objects of other languages have already": (
        "plain, hadamard",
        ("promise", "mechanism", "kind"),
        "constructor",
    ),
    "a mechanism that does not fit its context": (
        "high-low, hadamard",
        ("promise", "mechanism", "kind"),
        "plain",
    ),
    "a mechanism for another domain": (
        "tiers, kept by a plain response",
        ("promise", "mechanism_context", "domain", "size"),
        5,
    ),
    "no promise": ("plain, hadamard", ("promise",), None),
    "no mechanism": ("plain, hadamard", ("promise", "mechanism"), None),
    "no codes": ("plain, hadamard", ("promise", "mechanism", "codes"), []),
    "labels that are no list": ("plain, hadamard", (*_DOMAIN, "labels"), "park"),
    "no name": ("plain, hadamard", ("promise", "name"), ""),
    "a number for a name": ("plain, hadamard", ("promise", "name"), 7),
    "a name of 101 characters": ("plain, hadamard", ("promise", "name"), "\U0001f375" * 101),
    "a space before a name": ("plain, hadamard", ("promise", "name"), " lunch"),
    "a space after a name": ("plain, hadamard", ("promise", "name"), "lunch "),
    "a tab in a name": ("plain, hadamard", ("promise", "name"), "lunch\t2026"),
    "a control in a name": ("plain, hadamard", ("promise", "name"), "lunch\u007f2026"),
    "a character in a name that cannot be seen": (
        "plain, hadamard",
        ("promise", "name"),
        "lunch\u200b2026",
    ),
    "a space in a name that is none": ("plain, hadamard", ("promise", "name"), "lunch\u00a02026"),
    "a survey that opens yesterday": ("plain, hadamard", ("about", "opens"), "yesterday"),
    "a survey that closes tomorrow": ("plain, hadamard", ("about", "closes"), "tomorrow"),
    "repeated, but how?": ("plain, hadamard", _REPEAT, "twice"),
    "repeated every hour": ("plain, hadamard", _REPEAT, {"distinct": 2, "every": "hour"}),
    "repeated for no value": ("plain, hadamard", _REPEAT, {"distinct": 0, "every": "week"}),
    "an integer that doubles cannot hold": ("plain, hadamard", ("about", "minimum_reports"), 2**53),
    "a fraction of a report": ("plain, hadamard", ("about", "minimum_reports"), 1.5),
    "a label twice": ("plain, hadamard", (*_DOMAIN, "labels", 1), "park"),
    "a label that is not there": ("plain, hadamard", (*_DOMAIN, "labels", 1), None),
    "an empty label": ("plain, hadamard", (*_DOMAIN, "labels", 1), ""),
    "an other that is no label": ("plain, hadamard", (*_DOMAIN, "other"), "nowhere"),
    "one label too many": ("plain, one symbol", (*_DOMAIN, "labels"), ["only", "another"]),
    "a range of nothing": ("plain, randomized", (*_DOMAIN, "size"), 0),
    "a range of text": ("plain, randomized", (*_DOMAIN, "start"), "18"),
    "a grid whose step does not divide it": ("blocks, grid", (*_DOMAIN, "step"), "0.7"),
    "a grid in numbers, not text": ("blocks, grid", (*_DOMAIN, "north"), 2),
    "a grid upside down": ("blocks, grid", (*_DOMAIN, "north"), "-2"),
    "an ε that is no number": ("plain, hadamard", ("promise", "context", "epsilon"), "one"),
    "an ε as a number": ("plain, hadamard", ("promise", "context", "epsilon"), 1),
    "a negative ε": ("plain, hadamard", ("promise", "context", "epsilon"), "-1"),
    "not base64": ("blocks, hadamard", ("promise", "context", "block_of"), "!!!!"),
    "half a number in base64": ("blocks, hadamard", ("promise", "context", "block_of"), "AAAA"),
    "a symbol without a block": (
        "blocks, hadamard",
        ("promise", "context", "block_of"),
        pack_u32([0, 1, 0, 2, 0, 1, 3]),
    ),
    "a sensitive symbol outside the domain": (
        "high-low, hadamard",
        ("promise", "context", "sensitive"),
        pack_u32([2, 7]),
    ),
    "a tier without an ε": ("groups, tiers", ("promise", "context", "epsilons"), ["1", "2"]),
    "a matrix with a short row": ("table", ("promise", "context", "matrix", 1), ["2", "0"]),
    "a code that is not listed": (
        "blocks, hadamard",
        ("promise", "mechanism", "code_of_block", 0),
        9,
    ),
    "a block without a code": (
        "blocks, hadamard",
        ("promise", "mechanism", "code_of_block"),
        [0, 1, 0],
    ),
    "a code for fewer points than symbols": ("plain, randomized", (*_DOMAIN, "size"), 6),
    "counts that are no text": ("plain, hadamard", (*_CODE, "leftover"), 0),
    "counts with a sign": ("plain, hadamard", (*_CODE, "leftover"), "+0"),
    "negative counts": ("plain, hadamard", (*_CODE, "leftover"), "-1"),
    "a word too long": ("plain, hadamard", (*_CODE, "word_bits"), 65),
    "a word too short": ("plain, hadamard", (*_CODE, "word_bits"), 7),
    "a word as text": ("plain, hadamard", (*_CODE, "word_bits"), "64"),
    "levels that do not fill the word": ("plain, randomized", (*_CODE, "leftover"), "999"),
    "an odd share of a Hadamard code's words": (
        "plain, hadamard",
        _CODE,
        lambda code: _move_words(code, 1),
    ),
    "a Hadamard code of three outputs": ("plain, hadamard, two symbols", (*_CODE, "outputs"), 3),
    "points that do not go with the outputs": ("plain, randomized", (*_CODE, "points"), 6),
    "a circle that does not go with the outputs": ("plain, cyclic", (*_CODE, "points"), 8),
    "a point twice in a base block": ("plain, cyclic", (*_CODE, "base"), pack_u32([0, 0, 3])),
    "a base block in another order": ("plain, cyclic", (*_CODE, "base"), pack_u32([1, 0, 3])),
    "base blocks outside the circle": ("plain, cyclic", (*_CODE, "base"), pack_u32([0, 1, 7])),
    "base blocks that do not fill their number": ("plain, cyclic", (*_CODE, "base_blocks"), 2),
    "no base block": ("plain, cyclic", (*_CODE, "base_blocks"), 0),
    "a row that does not add up": ("table", ("promise", "mechanism", "rows", 0, 0), "1"),
    "a row too short": ("table", ("promise", "mechanism", "rows", 0), [str(2**63), str(2**63)]),
    "a row too few": ("table", ("promise", "mechanism", "rows"), [[str(2**63), str(2**63)]] * 2),
    "a negative entry": (
        "binary, even",
        ("promise", "mechanism", "rows", 0),
        [str(2**64 + 1), "-1"],
    ),
    "an entry as a number": ("binary, clear", ("promise", "mechanism", "rows", 0, 1), 0),
    "groups that do not fill the word": (
        "groups, tiers",
        ("promise", "mechanism", "clear"),
        str(2**64),
    ),
    "groups whose levels do not add up": (
        "groups, tiers",
        ("promise", "mechanism", "levels", 0, "cover"),
        "1",
    ),
    "a group without a code": ("groups, tiers", ("promise", "mechanism", "code_of_group"), [0]),
    "a product of one": ("product, randomized", ("promise", "mechanism", "codes", 1), _GONE),
    "a part too few": ("union", ("promise", "mechanism", "parts", 3), _GONE),
    "parts of two lengths of words": (
        "union, interleaved",
        ("promise", "mechanism", "parts", 1, "codes", 0),
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


# --- one meaning, written in another way ------------------------------------------------------------------------------


def _reorder(data: Data) -> str:
    return _text({"promise": data["promise"]})[:-1] + "," + _text({"about": data["about"]})[1:]


_WRITTEN: Mapping[str, Callable[[Data], str]] = {
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


# --- fields too many, fields too few ----------------------------------------------------------------------------------


def _fields(data: Data) -> Iterator[Case]:
    places: Mapping[str, Path] = {
        "the survey": (),
        "the promise": ("promise",),
        "about": ("about",),
        "the context": ("promise", "context"),
        "the domain": _DOMAIN,
        "the mechanism": ("promise", "mechanism"),
        "a code": _CODE,
    }
    for name, path in places.items():
        yield _load(f"an unknown field in {name}", _text(_change(data, (*path, "zeal"), "1")))
        last = sorted(_at(data, path))[-1]
        yield _load(f"a field missing in {name}", _text(_change(data, (*path, last), _GONE)))


# --- the pin, and the promise -----------------------------------------------------------------------------------------


def _wrong_pin(question: Question) -> Case:
    survey = question.survey()
    pin = survey.fingerprint[:-1] + ("0" if survey.fingerprint[-1] != "0" else "1")
    request = {"op": "load", "fingerprint": pin, "text": survey.resolved().decode("utf-8")}
    return refuse("another fingerprint than the one that was pinned", request, "WrongSurvey")


def _move(row: list[str], to: int, away: int) -> None:
    row[to] = str(int(row[to]) + 1)
    row[away] = str(int(row[away]) - 1)


def _binary(mechanism: Data) -> None:
    _move(mechanism["rows"][0], 0, 1)


def _coin(mechanism: Data) -> None:
    """One coin more says heads: two words, since each output is drawn in two ways."""
    mechanism["codes"][-1] = _move_words(mechanism["codes"][-1], 2)


def _lower(code: Data, raised: int) -> None:
    """One word less for each output that is not favoured."""
    code["low"] = str(int(code["low"]) - 1)
    code["leftover"] = str(int(code["leftover"]) + code["outputs"] - raised)


def _levels(mechanism: Data) -> None:
    """Three words less, since rounding leaves a group a word or two to spare; the favoured output gets them."""
    level = mechanism["levels"][0]
    others = mechanism["codes"][0]["outputs"] - 1
    level["high"] = str(int(level["high"]) + 3 * others)
    level["low"] = str(int(level["low"]) - 3)


_BROKEN: Mapping[str, Callable[[Data], None]] = {
    "binary, even": _binary,
    "binary, one way": _binary,
    "table, tight": lambda mechanism: _move(mechanism["rows"][0], 2, 1),
    "plain, hadamard": _coin,
    "plain, randomized": lambda mechanism: _lower(mechanism["codes"][0], 1),
    "plain, cyclic": lambda mechanism: _lower(mechanism["codes"][0], 3),
    "plain, cyclic, two base blocks": lambda mechanism: _lower(mechanism["codes"][0], 4),
    "blocks, hadamard": _coin,
    "high-low, hadamard": _coin,
    "high-low, cyclic": lambda mechanism: _lower(mechanism["codes"][0], 3),
    "groups, high-low": _levels,
    "product, randomized": lambda mechanism: _lower(mechanism["codes"][1], 1),
    "union, interleaved": lambda mechanism: _lower(mechanism["parts"][0]["codes"][0], 1),
}


_MANY_REPORTS = Question(
    "uniform, kept by a product with 8,192 reports",
    ProductResponse(Blocks([x // 2 for x in range(64)], 2, across=3), HadamardCode),
    Uniform(64, 3),
)
"""As many symbols as a client must check whole, more reports than it may like to, and no short cut by the odds."""

_PROMISED_MORE: tuple[tuple[str, Path, str], ...] = (
    # Off by less than doubles can tell: ε is text, and an exact number.
    ("plain, hadamard", ("epsilon",), "0.99999999999999999"),
    ("plain, randomized", ("epsilon",), "2.9999999999999999"),
    ("high-low, cyclic", ("epsilon",), "0.99999999999999999"),
    ("blocks, best", ("epsilon",), "0.49999999999999999"),
    ("blocks, own epsilons", ("epsilons", 1), "1.9999999999999999"),
    ("groups, two levels", ("across",), "1.9999999999999999"),
    ("groups, tiers", ("epsilons", 0), "0.99999999999999999"),
    ("product, hadamard", ("across",), "2.9999999999999999"),
    ("union, interleaved", ("parts", 0, "epsilon"), "0.99999999999999999"),
    ("union, nested", ("parts", 0, "parts", 0, "epsilon"), "0.99999999999999999"),
    ("table, metric", ("epsilon",), "0.4"),
    ("table", ("matrix", 0, 1), "0.1"),
    # The mechanism keeps what it was made for, and that is not what is promised.
    ("tiers, kept by a plain response", ("epsilons", 0), "0.19999999999999999"),
    ("matrix, kept by blocks", ("matrix", 2, 0), "5"),
    (_MANY_REPORTS.name, ("epsilon",), "2.9999999999999999"),
)
"""Where a context is changed so that it promises a little more."""


# --- texts ------------------------------------------------------------------------------------------------------------


def _load(about: str, text: str, error: str = "InvalidSurvey") -> Case:
    return refuse(about, {"op": "load", "fingerprint": _own_pin(text), "text": text}, error)


def _own_pin(text: str) -> str:
    """The fingerprint of a promise as it stands there, or of nothing."""
    try:
        promise = json.loads(text)["promise"]
    except (ValueError, LookupError, TypeError):
        promise = None
    return hashlib.sha256(_text(promise).encode("utf-8")).hexdigest()


def _text(data: object) -> str:
    """JSON in the canonical way, whatever it says."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _data(question: Question) -> Data:
    data: Data = json.loads(question.survey().resolved())
    return data


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _change(data: Data, path: Path, value: object) -> Data:
    changed = copy.deepcopy(data)
    place = _at(changed, path[:-1])
    if value is _GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return changed
