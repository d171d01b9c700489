"""Resolved surveys: canonical bytes, integers kept as they are, tampering rejected."""

import base64
import copy
import json
import math
import unicodedata

import pytest

from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, Context, ContextUnion, HighLow, Metric, PrivacyMatrix, Uniform
from sfumato.domains import Domain, GridDomain
from sfumato.errors import InvalidSurvey, PrivacyViolation, WrongSurvey
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    HighLowResponse,
    PlainResponse,
    TableResponse,
)
from sfumato.promises import certify
from sfumato.survey import Survey
from sfumato.survey import survey as survey_module
from sfumato.survey.resolved import require_buildable_codes, require_buildable_context

inf = math.inf
PLACES = Domain(["park", "café", "clinic"], other="elsewhere")
BLOCKS = Blocks([0, 0, 0, 1, 2, 2], 1)
THREE = PrivacyMatrix([[0, 1, inf], [2, 0, 1], [1, 3, 0]])
TABLE = TableResponse.from_fractions(
    THREE, [["0.5", "0.3", "0.2"], ["0.3", "0.5", "0.2"], ["0.25", "0.25", "0.5"]]
)
SURVEYS = {
    "plain": Survey("q", Uniform(PLACES, 1), PlainResponse(Uniform(PLACES, 1))),
    "randomized": Survey("q", Uniform(5, 3), PlainResponse(Uniform(5, 3), RandomizedCode)),
    "high-low": Survey(
        "q", HighLow(PLACES, ["clinic"], 1), HighLowResponse(HighLow(PLACES, ["clinic"], 1))
    ),
    "blocks": Survey("q", BLOCKS, BlockResponse(BLOCKS), repeat={"every": "week", "distinct": 3}),
    "grid": Survey("q", Uniform(GridDomain(0, 2, 0, 2, 1), 1)),
    "binary": Survey("q", PrivacyMatrix([[0, inf], [1, 0]])),
    "metric": Survey("q", Metric([[0, 2], [2, 0]], "0.7")),
    "matrix": Survey("q", PrivacyMatrix([[0, 1, inf], [1, 0, inf], [inf, inf, 0]])),
    "table": Survey("q", THREE, TABLE),
}


def _text(data):
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _data(survey):
    return json.loads(survey.resolved())


def _changed(survey, path, value):
    """The resolved survey with one place changed, in canonical form."""
    data = _data(survey)
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return _text(data)


def _places(data, path=()):
    """All places of a JSON value, containers too."""
    if path:
        yield path
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for step, inside in pairs:
        yield from _places(inside, (*path, step))


def _at(data, path):
    for step in path:
        data = data[step]
    return data


# --- the form -------------------------------------------------------------------------------------


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_resolved_form_is_canonical(survey):
    raw = survey.resolved()
    data = json.loads(raw, parse_float=pytest.fail, parse_constant=pytest.fail)
    assert _text(data) == raw
    assert raw.decode("utf-8") == unicodedata.normalize("NFC", raw.decode("utf-8"))
    leaves = [_at(data, path) for path in _places(data)]
    assert all(abs(leaf) < 2**53 for leaf in leaves if isinstance(leaf, int))
    assert not any(isinstance(leaf, float) for leaf in leaves)


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_resolved_fields_are_pinned(survey):
    data = _data(survey)
    assert sorted(data) == ["about", "promise"]
    assert sorted(data["about"]) == [
        "closes",
        "contact",
        "minimum_reports",
        "opens",
        "text",
        "title",
    ]
    assert sorted(data["promise"]) == [
        "context",
        "format",
        "mechanism",
        "mechanism_context",
        "name",
        "repeat",
    ]
    assert data["promise"]["format"] == 1


def test_arrays_are_packed_little_endian():
    packed = _data(SURVEYS["blocks"])["promise"]["context"]["block_of"]
    raw = base64.b64decode(packed)
    assert [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)] == [
        0,
        0,
        0,
        1,
        2,
        2,
    ]


def _dump(data, ensure_ascii=False, **options):
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=ensure_ascii, **options)
    return text.encode()


@pytest.mark.parametrize(
    "spelling",
    [
        lambda data: json.dumps(data, sort_keys=True, ensure_ascii=False).encode(),
        lambda data: _dump(data, sort_keys=True, indent=1),
        lambda data: b" " + _text(data),
        lambda data: _text(data) + b"  ",
        lambda data: _text(data) + b"\n\n",
        lambda data: _dump(dict(reversed(data.items()))),
        lambda data: _dump(data, sort_keys=True, ensure_ascii=True),
        lambda data: b'{"about":{},' + _text(data)[1:],
        lambda data: b"\xef\xbb\xbf" + _text(data),
        lambda data: _text(data).decode().encode("utf-16"),
        lambda data: _text(data).replace(b'"title":""', '"title":"cafe\u0301"'.encode()),
        lambda data: _text(data).replace(b'"format":1', b'"format":1.0'),
        lambda data: _text(data).replace(b'"format":1', b'"format":1e0'),
        lambda data: _text(data).replace(b'"minimum_reports":0', b'"minimum_reports":-0'),
    ],
    ids=[
        "spaces", "lines", "before", "after", "two ends", "order", "escapes", "twice", "mark",
        "utf-16", "NFD",
        "1.0", "1e0", "-0",
    ],
)  # fmt: skip
def test_other_spellings_are_rejected(spelling):
    data = _data(SURVEYS["plain"])
    assert spelling(data) != SURVEYS["plain"].resolved()
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(spelling(data))


def test_trailing_newline_is_accepted():
    raw = SURVEYS["plain"].resolved()
    assert Survey.from_resolved(raw + b"\n").resolved() == raw


# --- tampering ------------------------------------------------------------------------------------

WRONG = [
    None,
    True,
    -1,
    0,
    1,
    7,
    2**31,
    2**52,
    2**53,
    10**30,
    1.5,
    "",
    "x",
    "-1",
    "0.5",
    "9" * 100,
    [],
    [[]],
    {},
    {"kind": 1},
]


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_any_wrong_entry_is_rejected_or_changes_the_fingerprint(survey):
    """Any change raises InvalidSurvey, or gives the survey that the file describes."""
    data = _data(survey)
    for path in _places(data):
        for wrong in WRONG:
            if _at(data, path) == wrong and type(_at(data, path)) is type(wrong):
                continue
            raw = _changed(survey, path, wrong)
            try:
                read = Survey.from_resolved(raw)
            except InvalidSurvey:
                continue
            except Exception as problem:  # noqa: BLE001 - to say where
                pytest.fail(
                    f"{'.'.join(map(str, path))} = {wrong!r}: {type(problem).__name__}: {problem}"
                )
            assert read.resolved() == raw, f"{path} = {wrong!r} was mended in silence"
            assert path[0] == "about" or read.fingerprint != survey.fingerprint


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_missing_and_unknown_fields_are_rejected(survey):
    data = _data(survey)
    for path in [path for path in _places(data) if isinstance(path[-1], str)]:
        without = copy.deepcopy(data)
        more = copy.deepcopy(data)
        del _at(without, path[:-1])[path[-1]]
        _at(more, path[:-1])["surprise"] = 1
        for changed in (without, more):
            with pytest.raises(InvalidSurvey):
                Survey.from_resolved(_text(changed))


@pytest.mark.parametrize("field", ["high", "low", "leftover"])
@pytest.mark.parametrize("name", ["plain", "randomized", "high-low", "blocks"])
def test_changed_integers_are_rejected(name, field):
    codes = _data(SURVEYS[name])["promise"]["mechanism"]["codes"]
    for number, code in enumerate(codes):
        for change in (-2, -1, 1, 2, 2**64):
            path = ("promise", "mechanism", "codes", number, field)
            with pytest.raises(InvalidSurvey):
                Survey.from_resolved(_changed(SURVEYS[name], path, str(int(code[field]) + change)))


@pytest.mark.parametrize("name", ["binary", "table", "metric"])
def test_changed_table_entries_are_rejected(name):
    rows = _data(SURVEYS[name])["promise"]["mechanism"]["rows"]
    for x, row in enumerate(rows):
        for y, entry in enumerate(row):
            with pytest.raises(InvalidSurvey):
                path = ("promise", "mechanism", "rows", x, y)
                Survey.from_resolved(_changed(SURVEYS[name], path, str(int(entry) + 1)))


@pytest.mark.parametrize("count", ["007", "+7", " 7", "7 ", "٧", "7.0", "1e3", "-0"])
def test_counts_must_be_plain_digits(count):
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(
            _changed(SURVEYS["plain"], ("promise", "mechanism", "codes", 0, "leftover"), count)
        )


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("promise", "format"), 2, "'questions']"),
        (("promise", "format"), 3, "format must be 1 or 2"),
        (("promise", "format"), "1", "format must be 1 or 2"),
        (("promise", "format"), None, "format must be 1 or 2"),
        (("promise", "context", "kind"), "heights", "context.kind 'heights' is not supported"),
        (
            ("promise", "context", "domain", "kind"),
            "streets",
            "domain.kind 'streets' is not supported",
        ),
        (("promise", "mechanism", "kind"), "magic", "mechanism.kind 'magic' is not supported"),
        (
            ("promise", "mechanism", "codes", 0, "kind"),
            "quantum",
            "code 'quantum' is not supported",
        ),
        (("promise", "mechanism", "codes"), [], "codes"),
        (("promise", "name"), " q", "name must be a single line"),
        (("promise", "repeat"), "twice", "repeat must be"),
        (("about", "minimum_reports"), -1, "minimum_reports must be"),
        (("about", "title"), 7, "title"),
        (("promise", "context", "epsilon"), "0", "epsilon must be above 0"),
        (("promise", "context", "epsilon"), "nan", "epsilon"),
        (("promise", "context", "epsilon"), "1.0", "canonical"),
        (
            ("promise", "context", "domain", "labels"),
            ["park", "park", "x", "elsewhere"],
            "occurs twice",
        ),
        (("promise", "context", "domain", "labels"), "park", "labels"),
        (("promise", "context", "domain", "labels", 1), "cafe\u0301", "canonical"),
    ],
)
def test_errors_name_the_field(path, value, said):
    with pytest.raises(InvalidSurvey) as caught:
        Survey.from_resolved(_changed(SURVEYS["plain"], path, value))
    assert said in str(caught.value)
    assert "NoneType" not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x00", b"null", b"[]", b"7", b'"survey"', b"{}", b"{", b"\xff\xfe", b"[" * 100_000,
     b'{"a":' * 100_000,
     b"[" * 900 + b"]" * 900, b"9" * 10_000, b"1e999999", b"NaN", b'{"promise":1,"about":1}',
     b'{"promise":{},"about":{}}',
     b'{"promise":{"format":1},"about":{}}', b'{"about":{},"promise":{"format":1},"promise":null}'],
)  # fmt: skip
def test_other_json_is_rejected(raw):
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(raw)


@pytest.mark.parametrize(
    "path", [("promise", "repeat"), ("about", "title"), ("promise", "context", "domain", "labels")]
)
@pytest.mark.parametrize("depth", [10, 200, 900])
def test_deep_nesting_is_rejected(path, depth):
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        inner = opening * depth + b"1" + closing * depth
        raw = _changed(SURVEYS["plain"], path, "HERE").replace(b'"HERE"', inner)
        with pytest.raises(InvalidSurvey):
            Survey.from_resolved(raw)


@pytest.mark.parametrize("field", ["word_bits", "outputs", "points"])
@pytest.mark.parametrize("name", ["plain", "randomized", "high-low", "blocks"])
def test_huge_and_negative_numbers_are_rejected(name, field):
    path = ("promise", "mechanism", "codes", 0, field)
    for number in (-(2**62), -1, 0, 63, 65, 2**31, 2**52, 2**53, 2**63, 2**64, 10**100):
        raw = _changed(SURVEYS[name], path, number)
        with pytest.raises(InvalidSurvey):
            Survey.from_resolved(raw)


@pytest.mark.parametrize("number", [-(2**62), -1, 0, 63, 65, 2**52, 2**64])
@pytest.mark.parametrize("name", ["binary", "table"])
def test_table_word_length_must_be_usable(name, number):
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(_changed(SURVEYS[name], ("promise", "mechanism", "word_bits"), number))


def test_a_code_with_too_few_points_is_refused():
    small = Survey("q", Uniform(3, 1), PlainResponse(Uniform(3, 1)))
    codes = _data(small)["promise"]["mechanism"]["codes"]
    with pytest.raises(InvalidSurvey, match="fit"):
        Survey.from_resolved(_changed(SURVEYS["plain"], ("promise", "mechanism", "codes"), codes))


@pytest.mark.parametrize("log_outputs", [32, 40])
def test_more_reports_than_32_bits_hold_are_refused(log_outputs):
    """Reports travel as u32 and there are at most 2^31 of them."""
    code = HadamardCode(2**log_outputs - 1, SURVEYS["plain"].context.uniform_epsilon)
    raw = _changed(SURVEYS["plain"], ("promise", "mechanism", "codes"), [code.to_record()])
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(raw)


@pytest.mark.parametrize("length", [65, 96])
def test_words_longer_than_64_bits_are_refused(length):
    code = HadamardCode(7, SURVEYS["plain"].context.uniform_epsilon, word_bits=length)
    raw = _changed(SURVEYS["plain"], ("promise", "mechanism", "codes"), [code.to_record()])
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(raw)


@pytest.mark.parametrize("packed", ["", "AAAA", "AAAAAA==", "!!!!", "AAAAAA", 7, None, [0], "é"])
def test_truncated_packed_arrays_are_rejected(packed):
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(
            _changed(SURVEYS["blocks"], ("promise", "context", "block_of"), packed)
        )


def test_packed_arrays_must_be_in_range_and_in_order():
    def packed(numbers):
        return base64.b64encode(
            b"".join(number.to_bytes(4, "little") for number in numbers)
        ).decode()

    for numbers in (
        [0, 0, 0, 1, 2, 6],
        [0, 0, 0, 1, 2, 2**32 - 1],
        [1, 1, 1, 0, 2, 2],
        [0, 0, 0, 1, 3, 3],
    ):
        with pytest.raises(InvalidSurvey):
            Survey.from_resolved(
                _changed(SURVEYS["blocks"], ("promise", "context", "block_of"), packed(numbers))
            )
    for numbers in ([4], [2, 2], [3, 2]):
        with pytest.raises(InvalidSurvey):
            Survey.from_resolved(
                _changed(SURVEYS["high-low"], ("promise", "context", "sensitive"), packed(numbers))
            )


def test_mechanism_for_another_kind_of_context_is_rejected():
    mechanism = _data(SURVEYS["high-low"])["promise"]["mechanism"]
    for name in ("plain", "blocks", "binary", "metric", "table"):
        with pytest.raises(InvalidSurvey):
            Survey.from_resolved(_changed(SURVEYS[name], ("promise", "mechanism"), mechanism))


def test_separate_mechanism_context_round_trips():
    survey = SURVEYS["matrix"]
    assert _data(survey)["promise"]["mechanism_context"]["kind"] == "blocks"
    assert Survey.from_resolved(survey.resolved()).mechanism.context == Blocks([0, 0, 1], 1)
    for wrong in (None, {}, _data(survey)["promise"]["context"]):
        with pytest.raises(InvalidSurvey):
            Survey.from_resolved(_changed(survey, ("promise", "mechanism_context"), wrong))


def test_redundant_mechanism_context_is_rejected():
    same = _data(SURVEYS["plain"])["promise"]["context"]
    with pytest.raises(InvalidSurvey, match="canonical"):
        Survey.from_resolved(_changed(SURVEYS["plain"], ("promise", "mechanism_context"), same))


# --- loading keeps the choice ---------------------------------------------------------------------


def _rounded_otherwise(survey, by):
    """The survey with other integers in its first code that still fill the word."""
    data = _data(survey)
    code = data["promise"]["mechanism"]["codes"][0]
    code["high"] = str(int(code["high"]) - by)
    code["low"] = str(int(code["low"]) + by)
    return _text(data), int(code["high"]), int(code["low"])


@pytest.mark.parametrize("name", ["plain", "high-low"])
def test_other_valid_integers_are_kept(name):
    raw, high, low = _rounded_otherwise(SURVEYS[name], 2)
    survey = Survey.from_resolved(raw)
    assert survey.resolved() == raw
    assert survey.fingerprint != SURVEYS[name].fingerprint
    total = 1 << 64
    row = survey.mechanism.exact_row(2)
    assert {entry * total for entry in row} >= {high, low}
    assert survey.certify().realised_epsilon <= 1
    assert certify(survey.mechanism).outputs == SURVEYS[name].mechanism.outputs


def test_other_valid_flips_are_kept():
    survey = Survey("q", Uniform(2, 1), BinaryResponse(Uniform(2, 1)))
    rows = [[int(entry) for entry in row] for row in _data(survey)["promise"]["mechanism"]["rows"]]
    wider = [[str(rows[0][0] - 1), str(rows[0][1] + 1)], [str(rows[1][0] + 1), str(rows[1][1] - 1)]]
    again = Survey.from_resolved(_changed(survey, ("promise", "mechanism", "rows"), wider))
    assert [[int(entry * 2**64) for entry in again.mechanism.exact_row(x)] for x in (0, 1)] == [
        [int(entry) for entry in row] for row in wider
    ]
    again.certify()


@pytest.mark.parametrize("name", ["plain", "high-low"])
def test_integers_that_break_the_promise_fail_certification(name):
    raw, _, _ = _rounded_otherwise(SURVEYS[name], -(2**40))
    with pytest.raises((InvalidSurvey, PrivacyViolation)):
        Survey.from_resolved(raw).certify()


@pytest.mark.parametrize("name", ["plain", "randomized", "high-low"])
def test_codes_with_equal_levels_are_refused(name):
    """Every row would be the same: nothing to estimate, and the scores would divide by 0."""
    data = _data(SURVEYS[name])
    code = data["promise"]["mechanism"]["codes"][0]
    each, left = divmod(2**64, code["outputs"])
    code.update(high=str(each), low=str(each), leftover=str(left))
    with pytest.raises(InvalidSurvey, match="with high above low"):
        Survey.from_resolved(_text(data))


# --- surveys of strangers -------------------------------------------------------------------------


def _oversized(survey, size):
    """A survey of a few hundred bytes that would take gigabytes to build."""
    data = json.loads(survey.resolved())
    data["promise"]["context"]["domain"]["size"] = size
    return canonical_bytes(data)


@pytest.mark.parametrize(
    ("survey", "size"),
    [
        (Survey("huge", HighLow(8, [1, 2], 1)), 10**8),
        (Survey("huge", HighLow(8, [1, 2], 1)), 2**31),
        (Survey("huge", Uniform(7, 1), PlainResponse(Uniform(7, 1))), 2**31 - 1),
    ],
)
def test_oversized_surveys_are_rejected_before_building(survey, size, monkeypatch):
    """With a pin by its fingerprint alone, without one by its size."""
    raw = _oversized(survey, size)
    assert len(raw) < 600
    with pytest.raises(InvalidSurvey, match="symbols"):
        Survey.from_resolved(raw)
    # With a pin, nothing of the survey is built at all.
    monkeypatch.setattr(
        survey_module, "parse_survey_record", lambda data: pytest.fail("the survey was built")
    )
    with pytest.raises(WrongSurvey, match="pinned"):
        Survey.from_resolved(raw, fingerprint=survey.fingerprint)


def test_oversized_union_parts_are_rejected():
    survey = Survey("union", ContextUnion([Uniform(2, 1), HighLow(2, [0], 2)], [0, 1, 1, 0]))
    data = json.loads(survey.resolved())
    data["promise"]["context"]["parts"][1]["domain"]["size"] = 2**31
    with pytest.raises(InvalidSurvey, match="symbols"):
        Survey.from_resolved(canonical_bytes(data))


@pytest.mark.parametrize("kind", ["uniform", "high-low", "blocks", "tiers", "matrix", "metric"])
def test_symbol_limit_is_exact(kind):
    largest = 2**26 if kind == "uniform" else 2**24
    record = {"kind": kind, "domain": {"kind": "range", "size": largest, "start": 0}}
    require_buildable_context(record)
    with pytest.raises(InvalidSurvey, match="symbols"):
        require_buildable_context({**record, "domain": {**record["domain"], "size": largest + 1}})


def test_output_limit_is_exact():
    context = {"kind": "uniform", "domain": {"kind": "range", "size": 7, "start": 0}}
    largest = 64 * 7 + 2**16
    for nested in (lambda codes: {"codes": codes}, lambda codes: {"parts": [{"codes": codes}]}):
        require_buildable_codes(nested([{"outputs": largest}]), context)
        with pytest.raises(InvalidSurvey, match="outputs"):
            require_buildable_codes(nested([{"outputs": largest + 1}]), context)


def test_surveys_built_in_python_have_the_same_limit(monkeypatch):
    monkeypatch.setattr(Context, "max_recorded_size", 6)
    Survey("q", HighLow(6, [0], 1))
    with pytest.raises(InvalidSurvey, match="up to 6 symbols"):
        Survey("q", HighLow(7, [0], 1))


def test_pinned_survey_loads():
    survey = Survey("pinned", HighLow(8, [1, 2], 1))
    assert Survey.from_resolved(survey.resolved(), fingerprint=survey.fingerprint) == survey


@pytest.mark.parametrize("raw", [b"[]", b'"promise"', b"{}", b'{"promise":null}'])
def test_other_json_is_not_the_pinned_survey(raw):
    with pytest.raises(WrongSurvey):
        Survey.from_resolved(raw, fingerprint="ab" * 32)
    with pytest.raises(InvalidSurvey):
        Survey.from_resolved(raw)
