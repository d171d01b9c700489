"""The standalone checker and surveys of format 2: the verdict of format 1, or a named refusal."""

import copy
import json

import pytest

import sfumato as sf
from sfumato.contexts import CONTEXT_KINDS
from sfumato.foundation.canonical import canonical_bytes
from sfumato.survey import Question
from support.lone_checker import check_file, check_file_alone, verdict_of
from support.paths import VECTORS
from support.run_here import run_command
from support.second_format import to_format_2

N = 1 << 64
MATRIX = sf.PrivacyMatrix([[0, 1, 2], [1, 0, 1], [2, 2, 0]], domain=["car", "bus", "bike"])
METRIC = sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], "0.5")
BLOCKS = sf.Blocks([0, 0, 1, 1, 1, 2], "0.5", across=2)
LUNCH = sf.HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1)


def broken_table():
    context = sf.Uniform(["yes", "no"], 1)
    rows = [[3 * N // 4, N // 4], [N // 4, 3 * N // 4]]
    return sf.Survey("broken", context, sf.TableResponse(context, rows))


def broken_code():
    """ε = 0.9 promised, 1 realised."""
    context = sf.Uniform(1500, "0.9")
    return sf.Survey("broken", context, sf.PlainResponse(sf.Uniform(1500, 1)))


KEPT = {
    "uniform": sf.Survey("s", sf.Uniform(5, "0.1")),
    "large uniform": sf.Survey("s", sf.Uniform(1500, 1)),
    "high-low": sf.Survey("s", LUNCH),
    "tiers": sf.Survey("s", sf.Tiers([0, 1, 2, 1, 3, 0], [1, 2, 1, "inf"])),
    "blocks": sf.Survey("s", sf.Blocks([x // 30 for x in range(900)], 1)),
    "blocks and across": sf.Survey("s", BLOCKS),
    "union": sf.Survey("s", sf.union([sf.Tiers([0, 0, 1], [1, 2]), sf.HighLow(3, [0], 1)])),
    "matrix": sf.Survey("s", MATRIX, sf.design(MATRIX).mechanism),
    "metric": sf.Survey("s", METRIC, sf.design(METRIC).mechanism),
    "grid": sf.Survey("s", sf.Uniform(sf.GridDomain(0, 2, 0, 3, 1, other="elsewhere"), 1)),
    "another context": sf.Survey("s", sf.HighLow(3, [0], 2), sf.PlainResponse(sf.Uniform(3, 1))),
    "every week": sf.Survey("s", LUNCH, repeat={"every": "week", "distinct": 3}),
}
BROKEN = {"table": broken_table(), "code": broken_code()}
SURVEYS = {**KEPT, **BROKEN}


def second_format_of(survey):
    return to_format_2(json.loads(survey.resolved()), "lunch")


def with_certificate(survey):
    """What `sfumato verify -o` writes."""
    return {"promise": survey.promise, "certificate": survey.certify().to_record()}


def in_edition_2(survey, name="lunch"):
    question = Question(name, survey.context)
    repeat = survey.description.about["repeat"]
    return sf.Survey(survey.name, question, survey.mechanism, repeat=repeat, edition=2)


# --- honest surveys -------------------------------------------------------------------------------


def test_every_kind_of_context_is_here():
    assert {survey.context.kind for survey in KEPT.values()} == set(CONTEXT_KINDS)


@pytest.mark.parametrize("name", SURVEYS)
def test_both_formats_have_the_same_verdict(name):
    """All lines are equal but the fingerprint, and the question is named."""
    survey = SURVEYS[name]
    code, lines = verdict_of(survey.resolved())
    assert code == (0 if name in KEPT else 1)
    second = in_edition_2(survey)
    assert second.resolved() == canonical_bytes(second_format_of(survey))
    assert second.fingerprint != survey.fingerprint
    expected = [
        lines[0],
        'Question:     "lunch"',
        f"Fingerprint:  {second.fingerprint}",
        *lines[2:],
    ]
    assert verdict_of(second.resolved()) == (code, expected)


@pytest.mark.parametrize("name", KEPT)
def test_a_certificate_of_format_2_agrees_with_its_promise(name):
    code, lines = verdict_of(canonical_bytes(with_certificate(in_edition_2(KEPT[name]))))
    assert code == 0
    assert any(line.startswith("Certificate:  agrees") for line in lines)


def test_the_certificate_of_another_question_is_broken():
    lax, strict = (in_edition_2(sf.Survey("s", sf.Uniform(3, epsilon))) for epsilon in (2, 1))
    data = {**with_certificate(lax), "certificate": strict.certify().to_record()}
    code, lines = verdict_of(canonical_bytes(data))
    assert code == 1
    assert "(it differs in: mechanism, context, tightest)" in lines[-1]


def test_the_command_writes_a_certificate_that_the_lone_file_reads(tmp_path):
    survey = in_edition_2(KEPT["high-low"])
    survey.save(tmp_path / "survey.json")
    run = run_command("verify", "survey.json", "-o", "certificate.json", folder=tmp_path)
    assert run.code == 0
    code, printed = check_file_alone(tmp_path / "certificate.json")
    assert code == 0
    assert f"Fingerprint:  {survey.fingerprint}\n" in printed
    assert (code, printed) == check_file(tmp_path / "certificate.json")


def test_a_backslash_in_the_name_of_a_question_is_escaped():
    """So that text in a name cannot look like the escape of a control character."""
    _, lines = verdict_of(in_edition_2(KEPT["high-low"], "a\\u001b").resolved())
    assert lines[1] == 'Question:     "a\\\\u001b"'


def _vectors():
    cases = []
    for name in ("format_2.json", "bad_format_2.json"):
        cases += json.loads((VECTORS / name).read_text(encoding="utf-8"))
    return [case for case in cases if case["request"]["op"] == "load"]


@pytest.mark.parametrize("case", _vectors(), ids=lambda case: case["about"])
def test_the_checker_reads_what_clients_must_load_and_refuses_what_they_must_reject(case):
    code, lines = verdict_of(case["request"]["text"].encode())
    if "ok" in case["answer"]:
        assert code == 0
        assert f"Fingerprint:  {case['request']['fingerprint']}" in lines
    else:
        assert code == 2


def test_the_vectors_have_surveys_of_both_sorts():
    assert {"ok" in case["answer"] for case in _vectors()} == {True, False}


# --- forgeries ------------------------------------------------------------------------------------

HONEST = second_format_of(sf.Survey("s", LUNCH))
CERTIFIED = with_certificate(in_edition_2(sf.Survey("s", LUNCH)))
QUESTION = ("promise", "questions", 0)
CODE = ("promise", "mechanism", "codes", 0)


def changed(path, value, data=HONEST):
    """Set a field that may or may not exist."""
    data = copy.deepcopy(data)
    _place(data, path[:-1])[path[-1]] = value
    return data


def without(path, data=HONEST):
    data = copy.deepcopy(data)
    del _place(data, path[:-1])[path[-1]]
    return data


def _place(data, path):
    for step in path:
        data = data[step]
    return data


def test_the_file_that_the_forgeries_are_made_from_is_kept():
    assert verdict_of(canonical_bytes(HONEST))[0] == 0
    assert verdict_of(canonical_bytes(HONEST) + b"\n")[0] == 0
    assert verdict_of(canonical_bytes(CERTIFIED))[0] == 0


RESERVED = {
    "promise.cap": (("promise", "cap"), ["4", 0, "inf"], "null"),
    "promise.cohorts": (("promise", "cohorts"), [2, True, "1", None], "1"),
    "promise.collection": (("promise", "collection"), ["shuffled", "", None], '"plain"'),
    "promise.invitations": (("promise", "invitations"), [{}, "k", False], "null"),
    "promise.learn": (("promise", "learn"), [["answer"], [], False], "null"),
    "promise.public": (("promise", "public"), [["age"], {}, None], "[]"),
    "promise.questions[0].missing": ((*QUESTION, "missing"), ["inf", "", False], "null"),
    "about.texts": (("about", "texts"), [{"de": {}}, [], None], "{}"),
}


@pytest.mark.parametrize("name", RESERVED)
def test_a_reserved_field_with_another_value_is_refused_by_name(name):
    path, values, neutral = RESERVED[name]
    refusal = f"not checked: {name} must be {neutral}; this checker knows no other value"
    for value in values:
        assert verdict_of(canonical_bytes(changed(path, value))) == (2, [refusal])
        if path[0] == "promise":
            certified = changed(path, value, CERTIFIED)
            assert verdict_of(canonical_bytes(certified)) == (2, [refusal])


def _field_paths():
    places = [("promise",), ("about",), QUESTION]
    return [(*place, field) for place in places for field in _place(HONEST, place)]


def test_every_field_but_those_of_format_1_is_reserved():
    """The list above has all that the package writes and format 1 does not know."""
    known = set(json.loads(sf.Survey("s", LUNCH).resolved())["promise"])
    known |= set(json.loads(sf.Survey("s", LUNCH).resolved())["about"])
    new = {path for path in _field_paths() if path[-1] not in known and path[-1] != "questions"}
    assert new == {path for path, _, _ in RESERVED.values()} | {("about", "uploads")}


@pytest.mark.parametrize(("number", "code"), [(1, 0), (65_536, 0), (0, 2), (65_537, 2), (True, 2)])
def test_the_number_of_reports_per_upload_is_read(number, code):
    verdict, _ = verdict_of(canonical_bytes(changed(("about", "uploads"), number)))
    assert verdict == code


@pytest.mark.parametrize("path", _field_paths(), ids=lambda path: ".".join(map(str, path)))
def test_a_missing_field_is_refused(path):
    code, lines = verdict_of(canonical_bytes(without(path)))
    assert code == 2
    assert lines[0].startswith("cannot be read: ")
    if path[-1] != "format":
        assert "must have exactly these fields: " in lines[0]


@pytest.mark.parametrize("place", [(), ("promise",), ("about",), QUESTION], ids=str)
@pytest.mark.parametrize("field", ["more", "context_2"])
def test_an_unknown_field_is_refused(place, field):
    code, lines = verdict_of(canonical_bytes(changed((*place, field), None)))
    assert code == 2
    assert "must have exactly these fields: " in lines[0]


@pytest.mark.parametrize("version", [True, False, "2", 3, 0, -2, None, [2], {}])
@pytest.mark.parametrize("data", [HONEST, CERTIFIED], ids=["survey", "certificate"])
def test_another_format_is_refused(version, data):
    code, lines = verdict_of(canonical_bytes(changed(("promise", "format"), version, data)))
    assert code == 2
    assert "the format of promise must be 1 or 2" in lines[0]


def test_a_float_as_format_is_refused():
    raw = canonical_bytes(HONEST).replace(b'"format":2', b'"format":2.0')
    assert verdict_of(raw)[0] == 2


def test_the_fields_of_one_format_are_refused_in_the_other():
    assert verdict_of(canonical_bytes(changed(("promise", "format"), 1)))[0] == 2
    first = json.loads(sf.Survey("s", LUNCH).resolved())
    assert verdict_of(canonical_bytes(changed(("promise", "format"), 2, first)))[0] == 2
    for name in ("promise", "about"):
        mixed = {**HONEST, name: first[name]}
        assert verdict_of(canonical_bytes(mixed))[0] == 2


def test_a_saved_mechanism_has_format_1_only():
    """`mechanism.save` writes no questions, so there is no second format of its files."""
    survey = sf.Survey("s", LUNCH)
    saved = {
        "format": 1,
        "context": survey.context.to_record(),
        "mechanism": survey.mechanism.to_record(),
    }
    assert verdict_of(canonical_bytes(saved))[0] == 0
    code, lines = verdict_of(canonical_bytes({**saved, "format": 2}))
    assert code == 2
    assert "the format of a saved mechanism must be 1;" in lines[0]


@pytest.mark.parametrize("number", [0, 2, 3])
def test_any_other_number_of_questions_is_refused(number):
    """A second question must not hide behind the promise of the first."""
    questions = HONEST["promise"]["questions"] * number
    code, lines = verdict_of(canonical_bytes(changed(("promise", "questions"), questions)))
    assert code == 2
    assert lines[0].startswith("not checked: promise.questions must have one item; ")


@pytest.mark.parametrize("questions", [None, {}, "x", [None], [[]], ["x"]], ids=str)
def test_questions_that_are_not_objects_in_a_list_are_refused(questions):
    code, lines = verdict_of(canonical_bytes(changed(("promise", "questions"), questions)))
    assert code == 2
    assert lines[0].startswith("cannot be read: promise.questions")


@pytest.mark.parametrize("name", ["", None, 7, ["x"], "x" * 101], ids=repr)
def test_a_question_without_a_name_is_refused(name):
    code, lines = verdict_of(canonical_bytes(changed((*QUESTION, "name"), name)))
    assert code == 2
    assert "promise.questions[0].name must " in lines[0]


@pytest.mark.parametrize("name", [" a", "a ", "a\n", "a\x1b[2K", "a\u202eb", "a\u2028b", "\ue000"])
def test_a_name_of_a_question_that_is_not_one_printable_line_is_refused(name):
    code, lines = verdict_of(canonical_bytes(changed((*QUESTION, "name"), name)))
    assert code == 2
    assert lines[0].endswith("promise.questions[0].name must be one line of printable text")


def _add(number):
    return str(int(_place(HONEST, CODE)["high"]) + number)


MALFORMED = {
    "words that do not add up": ((*CODE, "high"), _add(1)),
    "a number instead of text": ((*CODE, "high"), 5),
    "a negative number": ((*CODE, "high"), "-5"),
    "a leading zero": ((*CODE, "leftover"), "00"),
    "points without end": ((*CODE, "points"), 2**52),
    "an epsilon of 0": ((*QUESTION, "context", "epsilon"), "0"),
    "an epsilon that is not canonical": ((*QUESTION, "context", "epsilon"), "1.0"),
    "an unknown kind": ((*QUESTION, "context", "kind"), "secret"),
    "a negative minimum": (("about", "minimum_reports"), -1),
    "a title that is not text": (("about", "title"), None),
    "another repeat": (("promise", "repeat"), "often"),
    "a survey without a name": (("promise", "name"), ""),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_survey_is_not_read(name):
    path, value = MALFORMED[name]
    data = changed(path, value)
    assert data != HONEST
    code, lines = verdict_of(canonical_bytes(data))
    assert code == 2
    assert lines[0].startswith("cannot be read: ")


@pytest.mark.parametrize(("epsilon", "code"), [("0.999", 1), ("1.001", 0)])
def test_only_a_stricter_promise_of_the_question_is_broken(epsilon, code):
    """The mechanism states that it was made for ε = 1, so only the promise changes."""
    data = changed(("promise", "mechanism_context"), _place(HONEST, QUESTION)["context"])
    data = changed((*QUESTION, "context", "epsilon"), epsilon, data)
    assert verdict_of(canonical_bytes(data))[0] == code


def test_text_that_is_not_canonical_is_refused():
    raw = canonical_bytes(HONEST)
    cap = b'"cap":null,'
    assert raw.count(cap) == 1
    for other in (b'"cap": null,', b'"cap":"9","cap":null,'):
        assert verdict_of(raw.replace(cap, other))[0] == 2
    moved = raw.replace(cap, b"").replace(b'"cohorts":1,', b'"cohorts":1,"cap":null,')
    assert json.loads(moved) == HONEST
    assert verdict_of(moved)[0] == 2
