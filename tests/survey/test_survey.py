"""Surveys: fingerprints, files that round-trip, and reports of other surveys rejected."""

import hashlib
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato
from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, ContextUnion, HighLow, Metric, PrivacyMatrix, Uniform
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.partitions import grid_tiles, nearest_places
from sfumato.errors import (
    InvalidArgument,
    InvalidSurvey,
    NotEnoughReports,
    PrivacyViolation,
    ReportRejected,
    SfumatoError,
    WrongSurvey,
)
from sfumato.estimation.decoders import EmpiricalBayes
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    HighLowResponse,
    PlainResponse,
    TableResponse,
    UnionResponse,
)
from sfumato.promises import compose
from sfumato.randomness import words_from
from sfumato.survey import ReportBatch, Survey

inf = math.inf
PLACES = Domain(["park", "café", "clinic"], other="elsewhere")
GRID = GridDomain(0, 5, 0, 7, 1, other="else")
LUNCH = HighLow(PLACES, ["clinic"], 1)


class _FixedWords:
    """NOT PRIVATE: the words of a fixed key."""

    def take(self, count, words=2):
        return words_from(bytes(32), 0, count)[:, :words]


def _of(survey):
    return Survey.from_resolved(survey.resolved())


# --- files ----------------------------------------------------------------------------------------


def _examples():
    yield "uniform", Uniform(PLACES, 1), None
    yield "uniform-range", Uniform(IntegerDomain(40, start=18), "0.1"), None
    yield "uniform-inf", Uniform(5, inf), None
    yield "uniform-one", Uniform(["only"], 1), None
    yield "uniform-third", Uniform(3, Fraction(1, 3)), None
    yield "uniform-log", Uniform(3, math.log(3)), None
    yield "high-low", LUNCH, None
    yield "high-low-none", HighLow(4, [], 1), None
    yield "high-low-all", HighLow(4, range(4), 1), None
    yield "high-low-inf", HighLow(4, [1], inf), None
    yield "blocks", Blocks([0, 0, 0, 1, 2, 2], 1), None
    yield "blocks-singles", Blocks([0, 1, 2], 1), None
    yield "blocks-inf", Blocks([0, 0, 1], inf), None
    yield "blocks-named", Blocks({"Rue A": "Paris", "Via C": "Rome", "Rue B": "Paris"}, 1), None
    yield "blocks-tiles", Blocks(grid_tiles(GRID, 2, 3), 1, domain=GRID), None
    yield "blocks-nearest", Blocks(nearest_places(GRID, [0, 5], [0, 7]), 1, domain=GRID), None
    yield "binary-warner", Uniform(["no", "yes"], 1), None
    yield "binary-mangat", PrivacyMatrix([[0, inf], [1, 0]], domain=["no", "yes"]), None
    yield "binary-clear", PrivacyMatrix([[0, inf], [inf, 0]]), None
    yield "binary-logs", PrivacyMatrix([[0, math.log(2)], [math.log(3), 0]]), None
    yield "binary-third", PrivacyMatrix([[0, Fraction(1, 3)], [Fraction(2, 7), 0]]), None
    yield "metric-two", Metric([[0, 2], [2, 0]], 0.7), None
    yield "metric-uniform", Metric([[0, 1, 1], [1, 0, 1], [1, 1, 0]], 0.5), None
    yield "matrix-blocks", PrivacyMatrix([[0, 1, inf], [1, 0, inf], [inf, inf, 0]]), None
    yield "matrix-high-low", PrivacyMatrix([[0, inf, inf], [1, 0, 1], [1, 1, 0]]), None
    E = PrivacyMatrix([[0, 1, inf], [2, 0, 1], [1, 3, 0]])
    yield (
        "table",
        E,
        TableResponse.from_fractions(
            E, [["0.5", "0.3", "0.2"], ["0.3", "0.5", "0.2"], ["0.25", "0.25", "0.5"]]
        ),
    )
    yield "stricter", Uniform(5, 2), PlainResponse(Uniform(5, 1))
    for family in (HadamardCode, RandomizedCode):
        for bits in (64, 20):
            name = f"{family.kind}-{bits}"
            blocks = Blocks([0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3], 1)
            yield (
                f"plain-{name}",
                Uniform(5, 1),
                PlainResponse(Uniform(5, 1), family, word_bits=bits),
            )
            yield f"blocks-{name}", blocks, BlockResponse(blocks, family, word_bits=bits)
            yield f"high-low-{name}", LUNCH, HighLowResponse(LUNCH, family, word_bits=bits)
    yield "binary-20", Uniform(2, 1), BinaryResponse(Uniform(2, 1), word_bits=20)


EXAMPLES = [pytest.param(context, mechanism, id=name) for name, context, mechanism in _examples()]


@pytest.mark.parametrize(("context", "mechanism"), EXAMPLES)
def test_resolved_surveys_round_trip(context, mechanism, tmp_path):
    survey = Survey("lunch-2026", context, mechanism, title="Où?", contact="me", minimum_reports=3)
    survey.save(tmp_path / "survey.json")
    for again in (_of(survey), Survey.load(tmp_path / "survey.json")):
        assert again == survey
        assert again.fingerprint == survey.fingerprint
        assert again.resolved() == survey.resolved()
        assert again.context == survey.context
        assert again.context.domain == survey.context.domain
        assert again.mechanism.fingerprint == survey.mechanism.fingerprint
        assert (again.name, again.title, again.minimum_reports) == ("lunch-2026", "Où?", 3)


@pytest.mark.parametrize(("context", "mechanism"), EXAMPLES)
def test_restored_surveys_give_the_same_reports_and_certify(context, mechanism):
    survey = Survey("lunch-2026", context, mechanism)
    again = _of(survey)
    symbols = np.arange(500) % context.size
    words = words_from(bytes(32), 0, 500)[:, : survey.mechanism.words] >> np.uint64(
        64 - survey.mechanism.word_bits
    )
    expected = survey.mechanism.reports_from(symbols, words)
    assert (again.mechanism.reports_from(symbols, words) == expected).all()
    assert again.certify() == survey.certify()
    counted = again.mechanism.tally(expected)
    assert (
        again.mechanism.scores.unbiased(counted)
        == survey.mechanism.scores.unbiased(survey.mechanism.tally(expected))
    ).all()


def test_h3_surveys_round_trip():
    pytest.importorskip("h3")
    cells = H3Domain.box(7, south=40.70, north=40.82, west=-74.02, east=-73.92, other="else")
    survey = Survey("h3", Uniform(cells, 1))
    assert _of(survey).context.domain == cells


def _composed_inside_a_block():
    composed = compose(BinaryResponse(Uniform(2, 1)), BinaryResponse(Uniform(2, 1)))
    union = ContextUnion(
        [composed.context], np.zeros(2, dtype=np.int64), domain=composed.context.domain
    )
    return union, UnionResponse(union, [composed])


@pytest.mark.parametrize(
    "make",
    [
        lambda: (Uniform(2, 1) + Uniform(2, 1), None),
        lambda: (
            Uniform(2, 1),
            BinaryResponse(Uniform(2, 1)).then([["0.9", "0.1"], ["0.1", "0.9"]]),
        ),
        lambda: (
            Uniform(2, 2),
            compose(BinaryResponse(Uniform(2, 1)), BinaryResponse(Uniform(2, 1))),
        ),
        lambda: _composed_inside_a_block(),
    ],
    ids=["sum", "processed", "composed", "composed inside a block"],
)
def test_unreadable_surveys_are_not_written(make):
    """A survey is refused when it is made, or it comes back."""
    context, mechanism = make()
    try:
        survey = Survey("lunch-2026", context, mechanism)
    except SfumatoError:
        return
    assert _of(survey) == survey


def test_saved_file_is_the_resolved_form_and_a_newline(tmp_path):
    survey = Survey("lunch-2026", LUNCH)
    survey.save(tmp_path / "survey.json")
    assert (tmp_path / "survey.json").read_bytes() == survey.resolved() + b"\n"
    assert [path.name for path in tmp_path.iterdir()] == ["survey.json"]


@pytest.mark.parametrize("name", ["missing.json", "missing.toml"])
def test_missing_file_raises_invalid_survey(name, tmp_path):
    with pytest.raises(InvalidSurvey, match=f"{name} cannot be read: there is no such file"):
        Survey.load(tmp_path / name)


def test_toml_and_resolved_form_have_one_fingerprint(tmp_path):
    text = (
        'name = "q"\n[domain]\nkind = "range"\nsize = 5\n'
        '[context]\nkind = "uniform"\nepsilon = 0.1\n'
    )
    (tmp_path / "survey.toml").write_text(text)
    survey = Survey.load(tmp_path / "survey.toml")
    survey.save(tmp_path / "survey.json")
    assert Survey.load(tmp_path / "survey.json") == survey
    assert survey.context.exact_epsilon(0, 1) == Fraction(1, 10)


# --- fingerprints ---------------------------------------------------------------------------------

BASE = Survey("lunch-2026", HighLow(["a", "b", "c", "d"], ["a"], 1))


@pytest.mark.parametrize(
    "other",
    [
        Survey("lunch-2027", HighLow(["a", "b", "c", "d"], ["a"], 1)),
        Survey("lunch-2026", HighLow(["a", "b", "c", "e"], ["a"], 1)),
        Survey("lunch-2026", HighLow(["a", "b", "d", "c"], ["a"], 1)),
        Survey("lunch-2026", HighLow(["a", "b", "c", "d"], ["b"], 1)),
        Survey("lunch-2026", HighLow(["a", "b", "c", "d"], ["a"], "1.0000001")),
        Survey("lunch-2026", HighLow(Domain(["a", "b", "c", "d"], other="d"), ["a"], 1)),
        Survey(
            "lunch-2026",
            HighLow(["a", "b", "c", "d"], ["a"], 1),
            repeat={"every": "week", "distinct": 3},
        ),
        Survey(
            "lunch-2026",
            HighLow(["a", "b", "c", "d"], ["a"], 1),
            HighLowResponse(HighLow(["a", "b", "c", "d"], ["a"], 1), word_bits=32),
        ),
        Survey("lunch-2026", Uniform(["a", "b", "c", "d"], 1)),
    ],
    ids=["name", "label", "order", "sensitive", "epsilon", "other", "repeat", "word", "context"],
)
def test_fingerprint_depends_on_the_promise(other):
    assert other.fingerprint != BASE.fingerprint
    assert other != BASE


def test_fingerprint_depends_on_the_code():
    context = Uniform(9, 1)
    prints = {
        Survey("q", context, PlainResponse(context, code)).fingerprint
        for code in (HadamardCode, RandomizedCode)
    }
    assert len(prints) == 2


@pytest.mark.parametrize(
    "about",
    [
        {"title": "Lunch"},
        {"text": "We ask because …"},
        {"contact": "me@example.org"},
        {"minimum_reports": 100},
        {"opens": "2026-01-01"},
        {"closes": "2026-12-31"},
    ],
)
def test_fingerprint_ignores_title_and_contact(about):
    corrected = Survey("lunch-2026", HighLow(["a", "b", "c", "d"], ["a"], 1), **about)
    assert corrected.fingerprint == BASE.fingerprint
    assert corrected.resolved() != BASE.resolved()
    assert corrected != BASE


def test_fingerprint_depends_on_repetition():
    repeats = [
        "once",
        {"every": "week", "distinct": 3},
        {"every": "week", "distinct": 4},
        {"every": "day", "distinct": 3},
    ]
    assert len({Survey("q", LUNCH, repeat=repeat).fingerprint for repeat in repeats}) == 4


def test_the_fingerprint_is_the_hash_of_the_promise():
    promise = json.loads(BASE.resolved())["promise"]
    text = json.dumps(promise, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert BASE.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_fingerprint_normalizes_labels():
    assert Survey("q", Uniform(["caf\u00e9", "bar"], 1)).fingerprint == (
        Survey("q", Uniform(["cafe\u0301", "bar"], 1)).fingerprint
    )
    assert Survey("caf\u00e9", Uniform(3, 1)) == Survey("cafe\u0301", Uniform(3, 1))


# --- what makes a survey --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", " q", "q ", "a\nb", "x" * 101, 7, None, "\ud800", b"q", "tab\there"]
)
def test_name_must_be_a_short_line(name):
    with pytest.raises(InvalidSurvey, match="name"):
        Survey(name, LUNCH)


@pytest.mark.parametrize("minimum", [-1, 1.5, True, "3", None, 2**53, 2**70])
def test_minimum_reports_must_be_an_integer(minimum):
    with pytest.raises(InvalidSurvey, match="minimum_reports"):
        Survey("q", LUNCH, minimum_reports=minimum)


@pytest.mark.parametrize("field", ["title", "text", "contact", "opens", "closes"])
@pytest.mark.parametrize("value", [7, None, ["a"], "half a \ud800"])
def test_texts_must_be_text(field, value):
    with pytest.raises(InvalidSurvey, match=field):
        Survey("q", LUNCH, **{field: value})


@pytest.mark.parametrize(
    "repeat",
    ["twice", None, 1, {}, {"every": "week"}, {"every": "hour", "distinct": 1}, {"every": "week",
     "distinct": 0},
     {"every": "week", "distinct": True}, {"every": "week", "distinct": 2.0}, {"every": ["week"],
     "distinct": 1},
     {"every": "week", "distinct": 1, "more": 1}, {"every": "week", "distinct": 10_001}, ["week",
     3]],
)  # fmt: skip
def test_repeat_must_be_once_or_a_period(repeat):
    with pytest.raises(InvalidSurvey, match="repeat"):
        Survey("q", LUNCH, repeat=repeat)


def test_mechanism_for_another_domain_is_rejected():
    with pytest.raises(InvalidSurvey, match="domain"):
        Survey("q", Uniform(["a", "b"], 1), BinaryResponse(Uniform(["b", "a"], 1)))


def test_a_mechanism_that_breaks_the_promise_is_not_certified():
    with pytest.raises(PrivacyViolation):
        Survey("q", Uniform(3, 1), PlainResponse(Uniform(3, 2))).certify()
    assert Survey("q", Uniform(3, 2), PlainResponse(Uniform(3, 1))).certify().realised_epsilon <= 1


def test_title_defaults_to_name():
    assert (Survey("q", LUNCH).title, Survey("q", LUNCH, title="Lunch?").title) == ("q", "Lunch?")


def test_repr_shows_the_name_only():
    assert repr(BASE).startswith("Survey('lunch-2026', HighLow(")
    assert BASE.fingerprint[:12] in repr(BASE)


# --- reports, tallies, estimates ------------------------------------------------------------------


def test_from_answers_to_an_estimate():
    survey = Survey("lunch-2026", LUNCH)
    answers = ["park"] * 3000 + ["café"] * 2000 + ["clinic"] * 500 + ["zoo"] * 500
    reports = survey.privatize(answers, _FixedWords())
    assert len(reports) == 6000
    assert (reports.fingerprint, reports.numbers.dtype) == (survey.fingerprint, np.uint32)
    tally = survey.tally(reports)
    assert (tally.reports, tally.fingerprint) == (6000, survey.fingerprint)
    estimate = survey.estimate(tally)
    assert list(estimate.labels) == list(PLACES.labels)
    assert (
        np.abs(estimate.unbiased - [1 / 2, 1 / 3, 1 / 12, 1 / 12]).max()
        < 6 * estimate.standard_errors.max()
    )


def test_estimate_passes_decoder_and_covariate():
    survey = Survey("lunch-2026", LUNCH)
    tally = survey.tally(survey.privatize(["park", "clinic"] * 60 + ["zoo"] * 30, _FixedWords()))
    assert survey.estimate(tally).decoder == "auto"
    assert survey.estimate(tally, decoder="likelihood").details["converged"]
    own = survey.estimate(
        tally, decoder=EmpiricalBayes(bag_count=2), covariate=np.arange(LUNCH.size)
    )
    assert (own.decoder, own.fingerprint) == ("empirical-bayes", survey.fingerprint)
    with pytest.raises(InvalidArgument, match="one finite number for each"):
        survey.estimate(tally, covariate=[1.0])
    with pytest.raises(InvalidArgument, match="does not use a covariate"):
        survey.estimate(tally, decoder="projection", covariate=np.arange(LUNCH.size))


def test_survey_and_mechanism_give_the_same_reports():
    survey = Survey("lunch-2026", LUNCH)
    answers = ["park", "clinic"] * 60 + ["zoo"] * 30
    direct = survey.mechanism.privatize(PLACES.symbols(answers), _FixedWords())
    assert survey.privatize(answers, _FixedWords()) == ReportBatch(direct, survey.fingerprint)


def test_reports_of_another_survey_are_refused():
    survey = Survey("lunch-2026", LUNCH)
    other = Survey("lunch-2027", LUNCH)
    reports = other.privatize(["park"])
    with pytest.raises(WrongSurvey, match=r"a different survey"):
        survey.tally(reports)
    with pytest.raises(WrongSurvey):
        survey.tally([survey.privatize(["park"]), reports])
    with pytest.raises(WrongSurvey):
        survey.estimate(other.tally(reports))
    with pytest.raises(WrongSurvey):
        survey.estimate(survey.mechanism.tally(reports.numbers))


def test_tallies_of_two_surveys_do_not_add_up():
    survey = Survey("lunch-2026", LUNCH)
    other = Survey("lunch-2027", LUNCH)
    with pytest.raises(WrongSurvey):
        survey.tally(survey.privatize(["park"])) + other.tally(other.privatize(["park"]))


def test_tallies_of_parts_add_up():
    survey = Survey("lunch-2026", LUNCH)
    reports = survey.privatize(["park", "clinic"] * 50)
    parts = [ReportBatch(part, survey.fingerprint) for part in np.split(reports.numbers, 4)]
    whole = survey.tally(reports)
    assert (
        survey.tally(parts)
        == survey.tally(iter(parts))
        == survey.tally(part for part in parts)
        == whole
    )
    assert sum(survey.tally(part) for part in parts) == whole
    assert survey.tally(reports.numbers) == whole
    assert survey.tally([]).reports == 0


@pytest.mark.parametrize("numbers", [["0", "1"], [[0]], 7, "0", None, [None]])
def test_lists_without_a_fingerprint_are_rejected(numbers):
    with pytest.raises(SfumatoError):
        Survey("lunch-2026", LUNCH).tally(numbers)


def test_impossible_reports_are_rejected():
    survey = Survey("lunch-2026", LUNCH)
    for wrong in (survey.mechanism.outputs, 2**32 - 1):
        with pytest.raises(ReportRejected):
            survey.tally(np.array([0, wrong], dtype=np.uint32))


def test_estimate_needs_the_minimum_number_of_reports():
    survey = Survey("lunch-2026", LUNCH, minimum_reports=10)
    with pytest.raises(NotEnoughReports, match="at least 10 reports; there are 9"):
        survey.estimate(survey.tally(survey.privatize(["park"] * 9)))
    assert survey.estimate(survey.tally(survey.privatize(["park"] * 10))).reports == 10


def test_report_batches_compare_by_content_and_hide_reports():
    numbers = np.array([3, 1], dtype=np.uint32)
    reports = ReportBatch(numbers, "f" * 64)
    assert reports == ReportBatch(numbers.copy(), "f" * 64)
    assert hash(reports) == hash(ReportBatch(numbers.copy(), "f" * 64))
    assert reports != ReportBatch(numbers, "e" * 64)
    assert reports != ReportBatch(numbers[::-1], "f" * 64)
    assert repr(reports) == "ReportBatch(2 reports, fingerprint=ffffffffffff…)"


@pytest.mark.parametrize("context", [["no", "yes"], np.array([1, 2]), "yes", None, Uniform])
def test_a_column_instead_of_a_context_shows_the_right_call(context):
    with pytest.raises(InvalidSurvey) as caught:
        Survey("vote", context)
    message = str(caught.value)
    assert f"got {type(context).__name__}" in message
    call = message.partition("For example: ")[2].partition(". Pass")[0]
    assert eval(call, {"sf": sfumato}).context == Uniform(["no", "yes"], 1)  # noqa: S307


def test_errors_about_a_column_do_not_quote_it():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InvalidSurvey, match="got Series") as caught:
        Survey("vote", pandas.Series(["kanarienvogel"]))
    assert "kanarienvogel" not in str(caught.value)
