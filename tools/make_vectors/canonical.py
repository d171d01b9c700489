"""JSON → canonical JSON: where two languages, or two libraries, are apt to write one meaning in two ways."""

import hashlib
import json
from collections.abc import Iterator

from sfumato.conformance import Case
from sfumato.contexts import Uniform
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, refuse

__all__ = ["canonical_forms"]

_TAKEN = {
    "nothing inside": "{}",
    "nothing in a list": "[]",
    "literals": "[true,false,null]",
    "white space": ' { "b" : [ 1 ,\t2 ] ,\n"a" : { } } ',
    "the order of keys": '{"b":1,"a":2,"B":3,"":4,"aa":5,"A":6,"1":7,"10":8,"2":9}',
    "the order of keys is that of code points, not of UTF-16": '{"\\ud835\\udcb5":1,"\\uffee":2,"\\ue000":3,"z":4}',
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
_REFUSED = {
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
    """Texts with their canonical forms, and texts that have none."""
    for about, text in _TAKEN.items():
        raw = canonical_bytes(json.loads(text))
        ok = {"text": raw.decode("utf-8"), "sha256": hashlib.sha256(raw).hexdigest()}
        yield accept(about, {"op": "canonical", "text": text}, ok)
    for about, text in _REFUSED.items():
        yield refuse(about, {"op": "canonical", "text": text}, "InvalidSurvey")
    yield from _fingerprints()


def _fingerprints() -> Iterator[Case]:
    """What people read about a survey may be corrected; its promise may not."""
    context = Uniform(["no", "yes", "perhaps"], 1)
    mechanism = PlainResponse(context)
    about = {
        "title": "Café or 𝒵oo?",
        "text": 'Two\nlines, "quoted" \\ \t',
        "contact": "x@y.example",
        "minimum_reports": 100,
    }
    times = {"opens": "2026-11-30", "closes": "2026-12-31T18:00Z"}
    for survey in (
        Survey("fingerprints", context, mechanism),
        Survey("fingerprints", context, mechanism, **about, **times),  # type: ignore[arg-type]
        Survey("fingerprints, another name", context, mechanism),
        Survey("fingerprints", context, mechanism, repeat={"every": "week", "distinct": 3}),
        Survey(
            "fingerprints",
            Uniform(["yes", "no", "perhaps"], 1),
            PlainResponse(Uniform(["yes", "no", "perhaps"], 1)),
        ),
        Survey(
            "fingerprints",
            Uniform(context.domain, "0.5"),
            PlainResponse(Uniform(context.domain, "0.5")),
        ),
    ):
        yield load(survey)
