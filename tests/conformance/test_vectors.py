"""Test vectors: reproducible, complete, and answered by two independent clients."""

import json

import pytest

from sfumato.conformance import FILES, read_cases
from sfumato.conformance.examine import first_difference
from sfumato.conformance.reference_client import ReferenceClient
from sfumato.contexts import Uniform
from sfumato.domains import H3Domain
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Survey
from support.paths import ROOT
from support.plain_client import FAULTS, PlainClient
from tools.make_vectors.__main__ import VECTORS, file_bytes, main
from tools.make_vectors.case import load

PUBLISHED = ROOT / "test-vectors"
REFUSED = ("bad_surveys.json", "strangers.json", "bad_format_2.json")
TAKEN = [file for file in FILES if file not in REFUSED]
WITHOUT_CHOICE = {
    "plain, clear",
    "plain, one symbol",
    "high-low, none",
    "high-low, clear",
    "high-low, one",  # one favoured output, and one bit more or less is no other report
    "groups, tiers in clear",
}


def _wrong(client, file):
    """The cases of a file that a client answers wrongly, by what they are about."""
    wrong = []
    for case in read_cases(file):
        try:
            answer = client.answer(case.request)
        except (
            ArithmeticError,
            LookupError,
            StopIteration,
        ) as problem:  # a client with a fault may stumble
            answer = {"error": repr(problem)}
        if first_difference(case.answer, answer) is not None:
            wrong.append(case.about)
    return wrong


def _loaded():
    """Every survey that must be taken, with the question it is about."""
    return [
        json.loads(case.request["text"])
        for file in TAKEN
        for case in read_cases(file)
        if case.request["op"] == "load"
    ]


# --- what is published ----------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_published_vectors_match_the_generator(file):
    assert (PUBLISHED / file).read_bytes() == file_bytes(file), (
        "run: python -m tools.make_vectors test-vectors"
    )


def test_nothing_else_is_published_and_vectors_stay_small():
    published = {path.name for path in PUBLISHED.iterdir()}
    assert published == {"README.md", *FILES}
    assert sum(path.stat().st_size for path in PUBLISHED.iterdir()) < 1_700_000


def test_files_have_one_case_per_line():
    for file in FILES:
        raw = (PUBLISHED / file).read_bytes()
        assert raw.count(b"\n") == len(read_cases(file)) + 2


def test_the_pages_name_every_file_and_every_operation():
    readme = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    spec = (PUBLISHED.parent / "docs" / "client-spec.md").read_text(encoding="utf-8")
    operations = {case.request["op"] for file in FILES for case in read_cases(file)}
    assert all(f"`{name}`" in readme for name in (*FILES, *operations))
    assert all(f"`{name}`" in spec for name in operations)


def test_factory_writes_every_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.make_vectors.__main__.file_bytes", lambda file: file.encode())
    main(tmp_path / "new")
    assert tuple(VECTORS) == FILES
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(FILES)


# --- what they cover ------------------------------------------------------------------------------


def _every(data, key):
    """All values of a key, however deep."""
    if isinstance(data, dict):
        if key in data:
            yield data[key]
        for value in data.values():
            yield from _every(value, key)
    elif isinstance(data, list):
        for value in data:
            yield from _every(value, key)


def test_every_kind_occurs():
    promises = [survey["promise"] for survey in _loaded() if survey["promise"]["format"] == 1]
    mechanisms = {kind for promise in promises for kind in _every(promise["mechanism"], "kind")}
    contexts = {kind for promise in promises for kind in _every(promise["context"], "kind")}
    frames = {"binary", "table", "plain", "blocks", "high-low", "groups", "product", "union"}
    assert mechanisms == frames | {"hadamard", "randomized", "cyclic", "clear"}
    domains = {"labels", "range", "grid", "h3"}
    assert contexts == domains | {
        "uniform",
        "high-low",
        "blocks",
        "tiers",
        "metric",
        "matrix",
        "union",
    }
    assert {
        tables for promise in promises for tables in _every(promise["mechanism"], "base_blocks")
    } >= {1, 2}
    assert any(promise["mechanism_context"] for promise in promises)
    assert {"once", "day", "week", "month", "year"} == {
        promise["repeat"] if promise["repeat"] == "once" else promise["repeat"]["every"]
        for promise in promises
    }


def test_short_surveys_are_enumerated_completely():
    """Every symbol, with as many words as the channel's integers say."""
    surveys = {}
    seen = {}
    for case in read_cases("mechanisms.json"):
        if case.request["op"] == "load":
            surveys[case.request["fingerprint"]] = Survey.from_resolved(
                case.request["text"].encode()
            )
        elif case.request["op"] == "enumerate":
            mechanism = surveys[case.request["survey"]].mechanism
            x = case.request["symbol"]
            assert case.answer["ok"]["counts"] == mechanism.integer_row(x)
            seen.setdefault(case.request["survey"], []).append(x)
    assert len(surveys) > 50
    assert seen == {name: list(range(survey.mechanism.inputs)) for name, survey in surveys.items()}


def test_cells_match_the_h3_library():
    cells = ["872a10088ffffff", "872a10089ffffff", "872a1008affffff"]
    made = []
    for other in (None, "elsewhere"):
        context = Uniform(H3Domain(cells, other=other), 1)
        made.append(load(Survey("values: H3 cells", context, PlainResponse(context))))
    given = [case for case in read_cases("domains.json") if '"h3"' in case.request.get("text", "")]
    assert given == made


# --- two clients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_the_packages_own_client_is_right(file):
    assert _wrong(ReferenceClient(), file) == []


@pytest.mark.parametrize("file", TAKEN)
def test_a_client_written_from_the_specification_is_right(file):
    assert _wrong(PlainClient(), file) == []


# --- and clients that are wrong -------------------------------------------------------------------

SEEN_IN = {
    "one bit": "samples.json",
    "threshold": "samples.json",
    "endian": "memory.json",
    "words": "samples.json",
    "low bits": "mechanisms.json",
    "order": "canonical.json",
    "rounding": "domains.json",
    "globe": "domains.json",
    "week": "memory.json",
    "no NFC": "domains.json",
    "rank": "samples.json",
    "accounts": "budget.json",
    "refilled": "budget.json",
    "in the clear": "budget.json",
    "smallest": "budget.json",
    "no period": "format_2.json",
}


def test_every_fault_has_a_place():
    assert set(SEEN_IN) == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_detected(fault):
    assert _wrong(PlainClient(fault), SEEN_IN[fault])


@pytest.mark.parametrize("fault", ["one bit", "threshold"])
@pytest.mark.parametrize("file", ["mechanisms.json", "samples.json"])
def test_one_word_fault_is_detected_in_every_survey(fault, file):
    """Of 2^12 words, and of 2^64."""
    wrong = {about.partition(":")[0] for about in _wrong(PlainClient(fault), file)}
    names = {case.about for case in read_cases(file) if case.request["op"] == "load"}
    missed = {name.removesuffix(", 12 bits").removesuffix(", 8 bits") for name in names - wrong}
    assert missed == WITHOUT_CHOICE


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"ok": 1}, {"ok": True}),
        ({"ok": 1}, {"ok": 1.0}),
        ({"ok": [1]}, {"ok": [1, 2]}),
        ({"ok": {}}, {"ok": {"a": 1}}),
    ],
)
def test_answers_are_compared_strictly(expected, actual):
    assert first_difference(expected, actual) is not None
