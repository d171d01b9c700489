"""JSON → canonical JSON, where languages or libraries may serialize the same data differently."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from sfumato.conformance import Case
from sfumato.contexts import Uniform
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, reject

_VALID = {
    "nothing inside": "{}",
    "nothing in a list": "[]",
    "literals": "[true,false,null]",
    "white space": ' { "b" : [ 1 ,\t2 ] ,\n"a" : { } } ',
    "the order of keys": '{"b":1,"a":2,"B":3,"":4,"aa":5,"A":6,"1":7,"10":8,"2":9}',
    "the order of keys is that of code points, not of UTF-16": (
        '{"\\ud835\\udcb5":1,"\\uffee":2,"\\ue000":3,"z":4}'
    ),
    "lists keep their order": '["b","a",["d","c"]]',
    "escapes that stay": '"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f"',
    "escapes that go": '"\\u0041\\/\\u00e9\\u2028\\u2029\\u007f\\u0080\\ud83d\\ude00"',
    "letters of escapes are small": '"\\u001F\\u000B"',
    "composed": '"caf\\u00e9"',
    "decomposed becomes composed": '"cafe\\u0301"',
    "Hangul is composed": '"\\u1112\\u1161\\u11ab"',
    "marks are ordered": '"q\\u0307\\u0323 q\\u0323\\u0307"',
    "singletons change": '"\\u212b \\u2126"',
    "compatibility forms stay": '"\\ufb01 \\u2460 \\uff21"',
    "keys are composed, then ordered": '{"e\\u0301":1,"f":2,"z":3}',
    "beyond the first plane": '"\\ud835\\udcb5oo \\ud83c\\uddea\\ud83c\\uddfa"',
    "integers": "[0,-0,-1,9007199254740991,-9007199254740991]",
    "a key that objects of other languages have already": '{"__proto__":1,"constructor":2}',
}
_INVALID = {
    "a fraction": "[1.5]",
    "a small fraction": '{"a":1e-3}',
    "2^53, which doubles cannot tell from its neighbour": "9007199254740992",
    "−2^53": "[-9007199254740992]",
    "not JSON": "{'a':1}",
    "something after the end": "{} {}",
    "a number that JSON has not": "[NaN]",
    "a comma too many": "[1,]",
    "half a character": '"\\ud800"',
    "two keys that normalisation makes one": '{"\\u00e9":1,"e\\u0301":2}',
}


def canonical_forms() -> Iterator[Case]:
    """Yield texts with their canonical forms, invalid texts, and fingerprints."""
    for about, text in _VALID.items():
        raw = canonical_bytes(json.loads(text))
        digest = hashlib.sha256(raw).hexdigest()
        yield accept(about, _request(text), text=raw.decode("utf-8"), sha256=digest)
    for about, text in _INVALID.items():
        yield reject(about, _request(text), "InvalidSurvey")
    yield from _fingerprints()


def _request(text: str) -> dict[str, str]:
    return {"op": "canonical", "text": text}


def _fingerprints() -> Iterator[Case]:
    """Yield surveys with different promises, and one that differs only in its description."""
    labels = ["no", "yes", "perhaps"]
    context = Uniform(labels, 1)
    yield _load("fingerprints", context)
    yield _load(
        "fingerprints",
        context,
        title="Café or 𝒵oo?",
        text='Two\nlines, "quoted" \\ \t',
        contact="x@y.example",
        minimum_reports=100,
        opens="2026-11-30",
        closes="2026-12-31T18:00Z",
    )
    yield _load("fingerprints, another name", context)
    yield _load("fingerprints", context, repeat={"every": "week", "distinct": 3})
    yield _load("fingerprints", Uniform(["yes", "no", "perhaps"], 1))
    yield _load("fingerprints", Uniform(labels, "0.5"))


def _load(name: str, context: Uniform, **description: Any) -> Case:
    return load(Survey(name, context, PlainResponse(context), **description))
