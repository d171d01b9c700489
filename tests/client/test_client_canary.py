"""A failing device says what failed, and no error, traceback or log contains the answer."""

import logging

import pytest

import sfumato as sf
from sfumato.client import AggregatorClient
from sfumato.errors import BudgetExceeded, SfumatoError
from support.error_text import full_error_text
from support.fake_aggregator import DROP_REQUEST

CANARY = "kanarienvogel-4711"
LABELS = ["park", "café", CANARY, "clinic"]
SURVEY = sf.Survey("birds", sf.Uniform(LABELS, 1))


@pytest.fixture
def quiet(aggregator, caplog):
    """The survey is known; what is logged, however chatty, must not hold the canary."""
    caplog.set_level(logging.DEBUG)
    aggregator.surveys[SURVEY.fingerprint] = SURVEY
    yield
    logged = caplog.text + "".join(repr(record.__dict__) for record in caplog.records)
    assert CANARY not in logged


def _client(aggregator, folder, **limits):
    return sf.Client(SURVEY, AggregatorClient(aggregator.url, patience=0), home=folder, **limits)


@pytest.mark.parametrize(
    "value",
    [f"{CANARY} ", CANARY.upper() + CANARY, [CANARY], {CANARY: 1}, (CANARY, 1.0), CANARY.encode()],
)
@pytest.mark.usefixtures("quiet")
def test_errors_do_not_echo_unknown_values(aggregator, tmp_path, value):
    with pytest.raises(SfumatoError) as caught:
        _client(aggregator, tmp_path / "home").answer(value)
    assert CANARY not in full_error_text(caught.value)
    assert CANARY.upper() not in full_error_text(caught.value)


ANSWERS = {
    "busy": (503, {}, b""),
    "rejected": (
        422,
        {"Content-Type": "application/problem+json"},
        b'{"type":"urn:sfumato:problem:report-rejected"}',
    ),
    "garbage": (200, {"Content-Type": "application/json"}, b"{" * 5000),
    "wrong kind": (200, {"Content-Type": "text/html"}, b"<p>hello"),
    "dropped": DROP_REQUEST,
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.usefixtures("quiet")
def test_aggregator_failures_do_not_reveal_answers(aggregator, tmp_path, name):
    """Whether the answer waits or an error says why it does not, neither holds it."""
    aggregator.default_fault = ANSWERS[name]
    client = _client(aggregator, tmp_path / "home")
    try:
        said = repr(client.answer(CANARY))
    except SfumatoError as error:
        said = full_error_text(error)
    assert CANARY not in said
    assert CANARY not in repr(client)


@pytest.mark.usefixtures("quiet")
def test_budget_errors_do_not_reveal_answers(aggregator, tmp_path):
    client = _client(aggregator, tmp_path / "home", budget="0.5")
    with pytest.raises(BudgetExceeded) as caught:
        client.answer(CANARY)
    assert CANARY not in full_error_text(caught.value)


def _refuse():
    try:
        {}[CANARY]
    except KeyError:
        raise SfumatoError("refused") from None


def test_the_search_for_canaries_finds_a_planted_one():
    """Even where a traceback would not show it."""
    with pytest.raises(SfumatoError) as caught:
        _refuse()
    assert CANARY in full_error_text(caught.value)
