"""A survey that breaks its promise gives no report, no matter how it was made or who asks."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import sfumato as sf
from sfumato.engines import privatize_files, tally_files
from sfumato.engines.spark import engine as spark
from sfumato.errors import PrivacyViolation
from sfumato.mechanisms import PlainResponse, TableResponse
from sfumato.survey import survey as survey_module
from sfumato.tables import AnswerColumns

LABELS = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch):
    """Certificates of other tests must not answer for these."""
    monkeypatch.setattr(survey_module, "_CERTIFICATE_CACHE", {})


def assembled():
    """A survey that promises 0.1 and realises 20."""
    return sf.Survey("q", sf.Uniform(LABELS, "0.1"), PlainResponse(sf.Uniform(LABELS, 20)))


def loaded(tmp_path):
    """A forged file: a deterministic table of 1,002 symbols that promises 0.01 in a block."""
    N = 2**64
    context = sf.Blocks([0] * 1001 + [1], "0.01")
    reports = [0 if x < 2 else 1 + x % 3 for x in range(1001)] + [4]
    rows = [[N if y == report else 0 for y in range(5)] for report in reports]
    sf.Survey("forged", context, TableResponse(context, rows)).save(tmp_path / "forged.json")
    return sf.Survey.load(tmp_path / "forged.json")


def write_answers(tmp_path, values):
    path = tmp_path / "answers.csv"
    path.write_text("answer\n" + "\n".join(map(str, values)) + "\n", encoding="utf-8")
    return str(path)


def test_survey_that_breaks_its_promise_gives_no_report():
    with pytest.raises(PrivacyViolation):
        assembled().privatize(LABELS)


def test_a_loaded_survey_gives_no_report(tmp_path):
    with pytest.raises(PrivacyViolation):
        loaded(tmp_path).privatize([2, 3, 4])


@pytest.mark.parametrize("workers", [1, 2])
def test_the_local_engine_gives_no_report(tmp_path, workers):
    answers = write_answers(tmp_path, LABELS)
    columns = AnswerColumns("answer")
    with pytest.raises(PrivacyViolation):
        tally_files(assembled(), [answers], columns, workers=workers)
    with pytest.raises(PrivacyViolation):
        next(privatize_files(assembled(), [answers], columns, workers=workers))
    numbers = write_answers(tmp_path, [2, 3, 4])
    with pytest.raises(PrivacyViolation):
        tally_files(loaded(tmp_path), [numbers], columns, workers=workers)


def test_spark_gives_no_report():
    """The driver refuses before it looks at the table."""
    pytest.importorskip("pyspark")
    with pytest.raises(PrivacyViolation):
        spark.tally_column(assembled(), None, column="answer")
    with pytest.raises(PrivacyViolation):
        spark.tally_files(None, assembled(), ["answers.csv"], AnswerColumns("answer"))
    with (
        pytest.raises(PrivacyViolation),
        spark.keyed_reports(assembled(), None, key="account", column="answer"),
    ):
        pass
    with pytest.raises(PrivacyViolation):
        spark.privatize_to(assembled(), None, "reports", key="account", column="answer")


def test_surveys_that_keep_their_promise_answer(tmp_path):
    """The twin: the same calls on honest surveys."""
    survey = sf.Survey("q", sf.Uniform(LABELS, 1))
    answers = write_answers(tmp_path, LABELS)
    columns = AnswerColumns("answer")
    assert len(survey.privatize(LABELS).numbers) == 3
    assert tally_files(survey, [answers], columns).reports == 3
    assert sum(len(some) for some in privatize_files(survey, [answers], columns)) == 3


def test_certificates_are_cached_by_fingerprint(monkeypatch):
    calls = []
    real = survey_module.certify
    monkeypatch.setattr(
        survey_module, "certify", lambda *given: calls.append(given) or real(*given)
    )
    surveys = [sf.Survey("q", sf.Uniform(LABELS, 1)) for _ in range(3)]
    for survey in (*surveys, sf.Survey.from_resolved(surveys[0].resolved())):
        survey.privatize(LABELS)
        survey.privatize(LABELS)
    assert len(calls) == 1
    sf.Survey("another name", sf.Uniform(LABELS, 1)).privatize(LABELS)
    assert len(calls) == 2


def test_violations_are_not_cached():
    survey = assembled()
    for _ in range(2):
        with pytest.raises(PrivacyViolation):
            survey.privatize(LABELS)


def test_only_the_newest_certificates_are_kept(monkeypatch):
    monkeypatch.setattr(survey_module, "_MAX_CACHED_CERTIFICATES", 2)
    surveys = [sf.Survey(f"q{number}", sf.Uniform(LABELS, 1)) for number in range(5)]
    for survey in surveys:
        survey.certify()
    kept = {fingerprint for _, fingerprint in survey_module._CERTIFICATE_CACHE}
    assert kept == {survey.fingerprint for survey in surveys[-2:]}


class Loud(TableResponse):
    """The integers of a table, and a channel that ignores them."""

    def integer_row(self, x):
        return [self.denominator if y == x else 0 for y in range(self.outputs)]


def test_cache_distinguishes_mechanism_classes():
    context = sf.Uniform(LABELS, 1)
    rows = [[2**64 // 4 + (2**62 if x == y else 0) for y in range(3)] for x in range(3)]
    honest = sf.Survey("q", context, TableResponse(context, rows))
    loud = sf.Survey("q", context, Loud(context, rows))
    assert honest.fingerprint == loud.fingerprint
    honest.certify()
    with pytest.raises(PrivacyViolation):
        loud.privatize(LABELS)


def test_certify_is_thread_safe(monkeypatch):
    monkeypatch.setattr(survey_module, "_MAX_CACHED_CERTIFICATES", 3)
    surveys = [sf.Survey(f"q{number}", sf.Uniform(LABELS, 1)) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        certificates = list(pool.map(sf.Survey.certify, surveys * 8))
    assert len(certificates) == 320
    assert len(survey_module._CERTIFICATE_CACHE) == 3
