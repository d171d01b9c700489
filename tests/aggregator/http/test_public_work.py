"""Expensive pages that anybody may ask for: computed once, and not at the analysts' expense."""

import threading

import sfumato as sf
from sfumato.survey import survey as survey_module
from support.http_client import batch_of, run_aggregator

SURVEY = sf.Survey("a survey of public work", sf.Uniform(["park", "café", "clinic"], 1))


def test_a_survey_is_certified_once(tmp_path, monkeypatch):
    calls = []
    certify = survey_module.certify

    def spy(*arguments):
        calls.append(None)
        return certify(*arguments)

    monkeypatch.setattr(survey_module, "certify", spy)
    monkeypatch.setattr(survey_module, "_CERTIFICATE_CACHE", {})
    label = ("GET", f"/label/{SURVEY.fingerprint}")
    certificate = ("GET", f"/dashboard/{SURVEY.fingerprint}/certificate")
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        requests = [(label, {}), (certificate, {})] * 3
        answers = aggregator.http.request_all(*requests)
        assert {answer.status for answer in answers} == {200}
        assert len(calls) == 1
        SURVEY.certify()  # as `serve` does for the surveys that it is given
        assert len(calls) == 1


def test_analysts_do_not_wait_for_public_work(tmp_path, monkeypatch):
    """The label is finished only after the estimate was asked for."""
    is_estimated = threading.Event()
    monkeypatch.setattr(
        "sfumato.aggregator.http.pages.label_page", lambda _: str(is_estimated.wait(20))
    )
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        aggregator.upload(batch_of(SURVEY, [0, 1, 2]))
        read = aggregator.store.tally_and_omissions

        def read_and_note(*arguments):
            is_estimated.set()
            return read(*arguments)

        monkeypatch.setattr(aggregator.store, "tally_and_omissions", read_and_note)
        token = {"Authorization": f"Bearer {aggregator.token}"}
        label, estimate = aggregator.http.request_all(
            (("GET", f"/label/{SURVEY.fingerprint}"), {}),
            (("GET", f"/v1/surveys/{SURVEY.fingerprint}/estimate"), {"headers": token}),
        )
        assert estimate.status == 200
        assert label.body == b"True"
