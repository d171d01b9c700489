"""The client: charged before it reads, the same report for ever, counted once."""

import inspect
import itertools
import json
import shutil
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.client import AggregatorClient, QueuedAnswer, Receipt
from sfumato.client.device import DeviceFolder
from sfumato.client.memory import batch_id, derive_report, secret_tag, value_token
from sfumato.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidSetting,
    InvalidSymbols,
    NotDelivered,
    PrivacyViolation,
    UnknownValue,
    WrongSurvey,
)
from sfumato.mechanisms import PlainResponse
from support.fake_aggregator import DROP_REQUEST, DROP_RESPONSE, FakeAggregator
from support.uploads import read_upload

PLACES = [f"place {i}" for i in range(40)]
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


@pytest.fixture
def home(tmp_path):
    return tmp_path / "device"


@pytest.fixture
def hasty(aggregator):
    """An HTTP client of one try."""
    return AggregatorClient(aggregator.url, patience=0)


@pytest.fixture
def known_secret(monkeypatch):
    """The secret of every new device; with it, symbols 7 and 8 have different reports."""
    monkeypatch.setattr("sfumato.client.device.fresh_secret", lambda: bytes(range(32)))
    return bytes(range(32))


def ledger(home):
    return json.loads((home / "ledger").read_bytes().partition(b"\n")[0])["entries"]


def repeated(every, distinct, *, context=None):
    return sf.Survey(
        "often", context or sf.Uniform(PLACES, 1), repeat={"every": every, "distinct": distinct}
    )


def test_answers_are_derived_from_the_secret(survey, aggregator, hasty, home):
    receipt = sf.Client(survey, hasty, home=home).answer("place 7")
    secret = (home / "secret").read_bytes()
    batch = read_upload(aggregator.bodies[0])
    assert batch.reports.tolist() == [
        derive_report(secret, survey.fingerprint, survey.mechanism, 7)
    ]
    assert batch.id == batch_id(secret, survey.fingerprint)
    assert receipt == Receipt(survey.fingerprint, batch.id.hex(), 1)
    assert aggregator.reports == 1


def test_once_keeps_the_first_answer(survey, aggregator, hasty, home):
    first = sf.Client(survey, hasty, home=home).answer("place 7")
    for value in (*PLACES, "no place at all", None, object()):
        assert sf.Client(survey, hasty, home=home).answer(value) == first
    assert len(aggregator.bodies) == 1
    assert len(ledger(home)) == 1


@pytest.mark.usefixtures("known_secret")
@pytest.mark.parametrize("is_counted", [True, False])
def test_files_are_the_same_for_all_values_once_an_answer_is_counted(
    survey, aggregator, hasty, tmp_path, is_counted
):
    if not is_counted:
        aggregator.faults = [DROP_REQUEST] * 2
    contents = []
    for value in ("place 7", "place 8"):
        home = tmp_path / value
        sf.Client(survey, hasty, home=home).answer(value)
        contents.append({path.name: path.read_bytes() for path in home.iterdir()})
    assert (contents[0] == contents[1]) == is_counted


def test_once_replays_the_queued_answer_for_any_value(survey, aggregator, hasty, home):
    aggregator.faults = [DROP_REQUEST, DROP_RESPONSE, (503, {}, b"")]
    client = sf.Client(survey, hasty, home=home)
    answers = [client.answer(value) for value in ("place 7", "place 8", "place 9", "place 10")]
    assert [type(answer) for answer in answers] == [
        QueuedAnswer,
        QueuedAnswer,
        QueuedAnswer,
        Receipt,
    ]
    assert len(aggregator.bodies) == 4
    assert len(set(aggregator.bodies)) == 1
    assert aggregator.reports == 1


def test_a_year_of_equal_answers_sends_one_report(aggregator, hasty, home):
    survey = repeated("day", 3)
    clock = Clock()
    aggregator.surveys[survey.fingerprint] = survey
    for day in range(365):
        if day % 60 == 0:  # the device restarts now and then
            client = sf.Client(survey, hasty, home=home, clock=clock)
        assert isinstance(client.answer("place 7"), Receipt)
        assert isinstance(client.answer("place 7"), Receipt)
        clock.now += timedelta(days=1)
    batches = [read_upload(body) for body in aggregator.bodies]
    assert len(batches) == len({batch.id for batch in batches}) == aggregator.reports == 365
    # Nothing but the identifier differs, and that is derived from secret and period alone.
    assert len({batch.reports.tobytes() for batch in batches}) == 1
    secret = (home / "secret").read_bytes()
    days = [(START + timedelta(days=day)).date().isoformat() for day in range(365)]
    assert [batch.id for batch in batches] == [
        batch_id(secret, survey.fingerprint, day) for day in days
    ]
    assert [entry["cost"] for entry in ledger(home)] == ["3"]


def test_after_all_distinct_values_the_last_report_repeats(aggregator, hasty, home, known_secret):
    survey = repeated("week", 2)
    clock = Clock()
    aggregator.surveys[survey.fingerprint] = survey
    client = sf.Client(survey, hasty, home=home, clock=clock)
    values = [7, 7, 8, 7, 9, 10, 8, 11]
    for value in values:
        client.answer(PLACES[value])
        clock.now += timedelta(weeks=1)
    told = [7, 7, 8, 7, 7, 7, 8, 8]  # 9, 10 and 11 are new values too many: the last report goes on
    expected = [
        derive_report(known_secret, survey.fingerprint, survey.mechanism, value) for value in told
    ]
    assert [read_upload(body).reports.tolist() for body in aggregator.bodies] == [
        [report] for report in expected
    ]
    log = json.loads((home / f"answers-{survey.fingerprint}").read_bytes().partition(b"\n")[0])
    assert log["tokens"] == [
        value_token(known_secret, survey.fingerprint, value) for value in (7, 8)
    ]
    assert len(set(expected)) == 2


def test_a_device_sends_other_for_answers_that_are_missing_or_unknown(
    aggregator, hasty, tmp_path, known_secret
):
    """Whether a report is sent must not depend on the answer."""
    survey = sf.Survey("places", sf.Uniform(sf.Domain(PLACES, other="elsewhere"), 1))
    aggregator.surveys[survey.fingerprint] = survey
    answers = ["elsewhere", None, "", "kanarienvogel-4711", float("nan"), "place 7"]
    for number, answer in enumerate(answers):
        client = sf.Client(survey, hasty, home=tmp_path / str(number))
        assert isinstance(client.answer(answer), Receipt)
    reports = [read_upload(body).reports.tolist() for body in aggregator.bodies]
    assert reports[:5] == [reports[0]] * 5
    assert reports[5] != reports[0]


@pytest.mark.parametrize("unknown", ["kanarienvogel-4711", None, object()])
def test_unknown_values_count_as_new_after_all_distinct_values(
    aggregator, hasty, home, known_secret, unknown
):
    survey = repeated("week", 2)
    clock = Clock()
    aggregator.surveys[survey.fingerprint] = survey
    client = sf.Client(survey, hasty, home=home, clock=clock)
    client.answer("place 7")
    clock.now += timedelta(weeks=1)
    with pytest.raises(UnknownValue):  # a value may still be told
        client.answer(unknown)
    client.answer("place 8")
    clock.now += timedelta(weeks=1)
    assert isinstance(client.answer(unknown), Receipt)
    reports = [read_upload(body).reports.tolist() for body in aggregator.bodies]
    assert reports[2] == reports[1] != reports[0]


def test_invalid_positions_count_as_new_values_too(aggregator, hasty, home):
    survey = repeated("week", 2, context=sf.Uniform(sf.GridDomain(0, 4, 0, 4, 1), 1))
    clock = Clock()
    aggregator.surveys[survey.fingerprint] = survey
    client = sf.Client(survey, hasty, home=home, clock=clock)
    for value in ((1.5, 2.5), (2.5, 2.5), (1, 2, 3), "nowhere", (99.0, 0.0)):
        assert isinstance(client.answer(value), Receipt)
        clock.now += timedelta(weeks=1)
    assert aggregator.reports == 5


def test_one_distinct_value_needs_no_token(aggregator, hasty, home):
    survey = repeated("month", 1)
    clock = Clock()
    aggregator.surveys[survey.fingerprint] = survey
    client = sf.Client(survey, hasty, home=home, clock=clock)
    for value in ("place 7", "place 8", object()):
        client.answer(value)
        clock.now += timedelta(days=31)
    assert len({read_upload(body).reports.tobytes() for body in aggregator.bodies}) == 1
    assert aggregator.reports == 3
    assert b'"tokens":[]' in (home / f"answers-{survey.fingerprint}").read_bytes()


def test_setting_the_clock_back_only_replays(aggregator, hasty, home):
    survey = repeated("week", 4)
    clock = Clock()
    aggregator.surveys[survey.fingerprint] = survey
    client = sf.Client(survey, hasty, home=home, clock=clock)
    client.answer("place 7")
    clock.now += timedelta(weeks=2)
    aggregator.faults = [DROP_RESPONSE]
    assert isinstance(client.answer("place 8"), QueuedAnswer)
    seen = set(aggregator.bodies)
    charged = ledger(home)
    for weeks in (0, 1, 2, 3, 50, 500):
        clock.now = START + timedelta(weeks=2) - timedelta(weeks=weeks)
        client.answer("place 9")
    assert set(aggregator.bodies) == seen
    assert aggregator.reports == 2
    assert ledger(home) == charged


def test_answers_of_several_periods_wait_and_are_sent_oldest_first(aggregator, hasty, home):
    survey = repeated("day", 2)
    clock = Clock()
    aggregator.surveys[survey.fingerprint] = survey
    client = sf.Client(survey, hasty, home=home, clock=clock)
    aggregator.default_fault = (503, {}, b"")
    for waiting in (1, 2, 3):
        assert client.answer("place 7").waiting == waiting
        clock.now += timedelta(days=1)
    with pytest.raises(NotDelivered):
        client.flush()
    aggregator.default_fault = None
    aggregator.bodies.clear()
    receipts = sf.Client(survey, hasty, home=home, clock=clock).flush()
    assert [receipt.batch for receipt in receipts] == [
        read_upload(body).id.hex() for body in aggregator.bodies
    ]
    assert aggregator.reports == 3
    assert client.flush() == ()


def test_flush_before_any_answer_sends_nothing(survey, aggregator, hasty, home):
    assert sf.Client(survey, hasty, home=home).flush() == ()
    assert aggregator.bodies == []
    assert ledger(home) == []


# --- the ledger -----------------------------------------------------------------------------------


def test_the_charge_comes_before_the_value_is_read(survey, aggregator, hasty, home):
    client = sf.Client(survey, hasty, home=home)
    assert not (home / "ledger").exists()
    for value in ("kanarienvogel-4711", None, 3.5):
        with pytest.raises(UnknownValue) as raised:
            client.answer(value)
        assert "4711" not in repr(raised.value)
    assert len(ledger(home)) == 1
    assert aggregator.bodies == []
    assert isinstance(client.answer("place 7"), Receipt)
    assert len(ledger(home)) == 1


def test_the_budget_covers_all_surveys_of_a_device(aggregator, hasty, home):
    high = sf.HighLow(PLACES, PLACES[:3], "0.5")
    surveys = [
        sf.Survey("one", sf.Uniform(PLACES, "0.5")),
        sf.Survey("two", high),
        repeated("day", 3, context=high),
    ]
    for survey in surveys:
        aggregator.surveys[survey.fingerprint] = survey

    def client(survey, budget):
        return sf.Client(survey, hasty, home=home, budget=budget, allow_clear=True)

    client(surveys[0], 1).answer("place 7")
    with pytest.raises(BudgetExceeded, match=r"budget of 0\.9.*spent 0\.5.*would have spent 1\b"):
        client(surveys[1], "0.9").answer("place 7")
    sent = len(aggregator.bodies)
    assert isinstance(client(surveys[1], 1).answer("place 7"), Receipt)
    with pytest.raises(BudgetExceeded, match=r"would have spent 2\.5"):
        client(surveys[2], "2.4").answer("place 7")
    assert len(aggregator.bodies) == sent + 1
    assert [entry["cost"] for entry in ledger(home)] == ["0.5", "0.5"]
    assert isinstance(
        client(surveys[0], "0.1").answer("place 7"), Receipt
    )  # what was charged costs nothing again
    assert isinstance(client(surveys[2], "2.5").answer("place 7"), Receipt)
    assert client(surveys[0], 1).spent() == 2.5


L = ["healthy", "hiv", "cancer", "depression"]


def forty(kind):
    """Yield the same question under forty names, as an author would who wants the answer."""
    for i in range(40):
        labels = {
            "same labels": L,
            "permuted labels": list(list(itertools.permutations(L))[i % 24]),
            "one more label": [*L, f"other {i}"],
        }[kind]
        yield sf.Survey(f"mood-{i}", sf.Uniform(labels, 1))


def answered(surveys, hasty, aggregator, home, **arguments):
    """How many surveys a device answers, and how many it refuses."""
    counts = Counter()
    for survey in surveys:
        aggregator.surveys[survey.fingerprint] = survey
        try:
            sf.Client(survey, hasty, home=home, **arguments).answer("hiv")
            counts["answered"] += 1
        except BudgetExceeded:
            counts["refused"] += 1
    return counts


@pytest.mark.parametrize("kind", ["same labels", "permuted labels", "one more label"])
def test_the_default_budget_limits_forty_surveys(kind, aggregator, hasty, home):
    assert answered(forty(kind), hasty, aggregator, home) == {"answered": 4, "refused": 36}
    assert len(aggregator.bodies) == 4


def test_without_a_budget_all_forty_are_answered(aggregator, hasty, home):
    assert answered(forty("same labels"), hasty, aggregator, home, budget=None) == {"answered": 40}


@pytest.mark.parametrize(
    "context",
    [
        sf.Uniform(L, "inf"),
        sf.HighLow(L, ["hiv"], 1),
        sf.Blocks({"healthy": "a", "hiv": "a", "cancer": "b", "depression": "b"}, 1),
        sf.Tiers(
            {"healthy": "a", "hiv": "b", "cancer": "b", "depression": "b"}, {"a": "inf", "b": 1}
        ),
        sf.PrivacyMatrix([["0", "1", "1"], ["1", "0", "inf"], ["1", "1", "0"]], domain=L[:3]),
    ],
    ids=["uniform", "high-low", "blocks", "tiers", "matrix"],
)
def test_unprotected_answers_need_permission(context, aggregator, hasty, home):
    survey = sf.Survey("in clear", context, mechanism=sf.design(context).mechanism)
    aggregator.surveys[survey.fingerprint] = survey
    default_budget = inspect.signature(sf.Client).parameters["budget"].default
    for budget in (default_budget, 40, None):
        refusing = sf.Client(survey, hasty, home=home, budget=budget)
        with pytest.raises(BudgetExceeded, match="allow_clear=True"):
            refusing.answer("hiv")
        assert refusing.flush() == ()
        assert refusing.spent() == 0
        refusing.forget()
    assert aggregator.bodies == []
    assert survey.disclosure()
    assert isinstance(sf.Client(survey, hasty, home=home, allow_clear=True).answer("hiv"), Receipt)


def test_surveys_over_the_same_labels_add_up(aggregator, hasty, home):
    """Each survey protects another part of one domain and asks for another fact: none is free."""
    labels = [f"q{question} {answer}" for question in range(6) for answer in ("yes", "no")]
    for question in range(6):
        own = {f"q{question} yes", f"q{question} no"}
        E = [[0 if x == x2 else 3.9 if {x, x2} <= own else 1.95 for x2 in labels] for x in labels]
        survey = sf.Survey(
            f"q{question}",
            sf.PrivacyMatrix(E, domain=labels),
            PlainResponse(sf.Uniform(labels, 1.95)),
        )
        aggregator.surveys[survey.fingerprint] = survey
        client = sf.Client(survey, hasty, home=home)
        if question == 0:
            assert isinstance(client.answer("q0 yes"), Receipt)
            continue
        with pytest.raises(BudgetExceeded):
            client.answer(f"q{question} yes")
    assert client.spent() == 3.9


def test_spent_is_rounded_up(aggregator, hasty, home):
    survey = sf.Survey("thirds", sf.Uniform(PLACES, "2/3"))
    aggregator.surveys[survey.fingerprint] = survey
    client = sf.Client(survey, hasty, home=home)
    client.answer("place 7")
    assert client.spent() > 2 / 3 > 0.666


def test_fully_protected_surveys_need_no_permission(survey, hasty, home):
    assert isinstance(sf.Client(survey, hasty, home=home).answer("place 7"), Receipt)


def test_one_survey_above_the_budget_needs_a_larger_budget(aggregator, hasty, home):
    for number, epsilon in enumerate(("4.001", 40)):
        survey = sf.Survey(f"loud-{number}", sf.Uniform(L, epsilon))
        aggregator.surveys[survey.fingerprint] = survey
        with pytest.raises(BudgetExceeded, match="larger budget"):
            sf.Client(survey, hasty, home=home).answer("hiv")
        assert aggregator.bodies == []
    assert isinstance(sf.Client(survey, hasty, home=home, budget=40).answer("hiv"), Receipt)
    repeats = sf.Survey("daily", sf.Uniform(L, 1), repeat={"every": "day", "distinct": 10_000})
    aggregator.surveys[repeats.fingerprint] = repeats
    with pytest.raises(BudgetExceeded, match="10040"):
        sf.Client(repeats, hasty, home=home, budget=100).answer("hiv")


def test_format_1_ledgers_are_not_refilled(survey, aggregator, hasty, home):
    """Format 1 kept an account per domain and subject; all count now, and a survey counts once."""
    sf.Client(survey, hasty, home=home).answer("place 7")
    tag = secret_tag((home / "secret").read_bytes())
    contexts = [sf.Uniform(PLACES, 1), sf.Uniform(["a", "b"], 1), sf.Uniform(["a", "b"], "1.5")]
    entries = [
        {
            "account": account,
            "survey": fingerprint,
            "secret": tag,
            "times": 1,
            "context": context.to_record(),
        }
        for account, fingerprint, context in [
            (f"domain {'0' * 64}", survey.fingerprint, contexts[0]),
            ("subject health", survey.fingerprint, contexts[0]),
            (f"domain {'1' * 64}", "ab" * 32, contexts[1]),
            ("subject health", "cd" * 32, contexts[2]),
        ]
    ]
    DeviceFolder(home).write_record("ledger", {"entries": entries, "secret": tag}, 1)
    assert sf.Client(survey, hasty, home=home).spent() == 3.5
    other = sf.Survey("other", sf.Uniform(["a", "b"], "0.6"))
    with pytest.raises(BudgetExceeded, match=r"spent 3\.5.*would have spent 4\.1"):
        sf.Client(other, hasty, home=home).answer("a")
    last = sf.Survey("last", sf.Uniform(["a", "b"], "0.5"))
    aggregator.surveys[last.fingerprint] = last
    assert isinstance(sf.Client(last, hasty, home=home).answer("a"), Receipt)
    written = json.loads((home / "ledger").read_bytes().partition(b"\n")[0])
    assert written["format"] == 2
    assert [entry["survey"] for entry in written["entries"]] == [
        survey.fingerprint,
        "ab" * 32,
        "cd" * 32,
        last.fingerprint,
    ]
    assert [entry["cost"] for entry in written["entries"]] == ["1", "1", "1.5", "0.5"]
    assert all(set(entry) == {"survey", "secret", "cost"} for entry in written["entries"])
    assert isinstance(
        sf.Client(survey, hasty, home=home).answer("place 8"), Receipt
    )  # what was charged stays charged


def test_folders_of_earlier_versions_are_not_refilled(aggregator, hasty, home):
    """These files were written by the version that kept an account for each domain and subject."""
    shutil.copytree(Path(__file__).parent / "first_format_home", home)
    home.chmod(0o700)
    lunch = sf.Survey("lunch-2026", sf.HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1))
    mood = sf.Survey(
        "mood", sf.Uniform(["good", "bad"], "0.5"), repeat={"every": "week", "distinct": 3}
    )
    dinner = sf.Survey("dinner", sf.Uniform(["park", "clinic", "bar"], "1.5"))
    for survey in (lunch, mood, dinner):
        aggregator.surveys[survey.fingerprint] = survey
    secret = (home / "secret").read_bytes()
    client = sf.Client(lunch, hasty, home=home, allow_clear=True)
    assert client.spent() == 2.5  # 1 for lunch, once though it had two accounts; 3 · 0.5 for mood
    assert isinstance(client.answer("park"), Receipt)
    expected = derive_report(
        secret, lunch.fingerprint, lunch.mechanism, 1
    )  # the first answer, clinic, stands
    assert read_upload(aggregator.bodies[-1]).reports.tolist() == [expected]
    assert isinstance(sf.Client(dinner, hasty, home=home).answer("bar"), Receipt)
    assert json.loads((home / "ledger").read_bytes().partition(b"\n")[0])["format"] == 2
    assert client.spent() == 4
    with pytest.raises(BudgetExceeded):
        sf.Client(sf.Survey("more", sf.Uniform(2, "0.001")), hasty, home=home).answer(0)


def test_ledgers_with_surveys_above_the_size_limit_can_be_read(survey, hasty, home):
    """Earlier versions answered larger surveys; their charges still count."""
    sf.Client(survey, hasty, home=home).flush()  # makes the secret
    tag = secret_tag((home / "secret").read_bytes())
    context = sf.Uniform(2**30, "2.5").to_record()
    huge = {
        "account": "subject",
        "survey": "ab" * 32,
        "secret": tag,
        "times": 1,
        "context": context,
    }
    DeviceFolder(home).write_record("ledger", {"entries": [huge], "secret": tag}, 1)
    assert sf.Client(survey, hasty, home=home).spent() == 2.5
    assert isinstance(sf.Client(survey, hasty, home=home).answer("place 7"), Receipt)
    assert sf.Client(survey, hasty, home=home).spent() == 3.5


def test_answering_after_forgetting_costs_again(survey, aggregator, hasty, home):
    client = sf.Client(survey, hasty, home=home, budget=2)
    client.answer("place 7")
    first = (home / "secret").read_bytes()
    (home / ".secret.left-by-a-crash").write_bytes(first)
    client.forget()
    assert sorted(path.name for path in home.iterdir()) == ["ledger", "lock"]
    client.answer("place 7")
    second = (home / "secret").read_bytes()
    assert first != second
    assert [entry["secret"] for entry in ledger(home)] == [secret_tag(first), secret_tag(second)]
    assert len({read_upload(body).id for body in aggregator.bodies}) == 2
    client.forget()
    with pytest.raises(BudgetExceeded):
        client.answer("place 7")
    assert aggregator.reports == 2


def test_forgetting_drops_the_queue(survey, aggregator, hasty, home):
    aggregator.default_fault = (503, {}, b"")
    client = sf.Client(survey, hasty, home=home)
    client.answer("place 7")
    client.forget()
    aggregator.default_fault = None
    aggregator.bodies.clear()
    assert client.flush() == ()
    assert aggregator.bodies == []


@pytest.mark.parametrize("again", [False, True])
def test_answers_forgotten_while_sending_are_not_sent(home, again):
    """The queue was read before: it is looked at again before each batch."""

    class Forgetful(AggregatorClient):
        sent = 0
        reaches = False

        def deliver(self, batch, *, arrow=False):
            self.sent += 1
            if not self.reaches:
                raise NotDelivered("nobody is there")
            client.forget()
            if again:
                sf.Client(
                    survey, AggregatorClient(self.url, patience=0), home=home, clock=clock
                ).answer("place 8")
            return Receipt.for_batch(batch)

    survey = repeated("day", 2)
    clock = Clock()
    http_client = Forgetful("http://127.0.0.1:9")
    client = sf.Client(survey, http_client, home=home, clock=clock)
    for _ in range(3):
        client.answer("place 7")
        clock.now += timedelta(days=1)
    http_client.sent = 0
    http_client.reaches = True
    with pytest.raises(NotDelivered, match="forgotten"):
        client.answer("place 7")
    assert http_client.sent == 1


def test_answers_delivered_by_another_process_are_not_resent(survey, aggregator, hasty, home):
    aggregator.default_fault = (503, {}, b"")
    client = sf.Client(survey, hasty, home=home)
    queued = client.answer("place 7")
    log = client._device.read_current_log(survey.fingerprint)
    aggregator.default_fault = None
    client.flush()
    sent = len(aggregator.bodies)
    assert [receipt.batch for receipt in client._send_queue(log)] == [queued.batch]
    assert len(aggregator.bodies) == sent


# --- what the aggregator may say ------------------------------------------------------------------


def test_a_conflict_with_an_earlier_answer_counts_as_delivered(
    survey, aggregator, hasty, home, known_secret
):
    """An older copy of a home, put back, meets what its newer self has sent."""
    client = sf.Client(survey, hasty, home=home)
    aggregator.batches[survey.fingerprint, batch_id(known_secret, survey.fingerprint)] = (10**6,)
    assert isinstance(client.answer("place 7"), Receipt)
    assert client.flush() == ()
    assert aggregator.reports == 0


def test_closed_surveys_raise_and_keep_the_report(survey, aggregator, hasty, home):
    aggregator.closed.add(survey.fingerprint)
    client = sf.Client(survey, hasty, home=home)
    with pytest.raises(WrongSurvey, match="closed"):
        client.answer("place 7")
    aggregator.closed.clear()
    assert len(client.flush()) == 1


def test_a_client_only_sends_batches(survey, aggregator, hasty, home):
    sf.Client(survey, hasty, home=home).answer("place 7")
    assert aggregator.paths == [f"/v1/surveys/{survey.fingerprint}/batches"]


# --- the survey and the value ---------------------------------------------------------------------


def test_positions_are_pairs(hasty, home, aggregator):
    grid = sf.GridDomain(0, 4, 0, 4, 1)
    cells = sf.H3Domain.box(7, south=40.70, north=40.82, west=-74.02, east=-73.92)
    for name, domain, value, symbol in (
        ("grid", grid, (1.5, 2.5), 6),
        ("cells", cells, (40.75, -73.98), int(cells.symbols_at([40.75], [-73.98])[0])),
        ("named", cells, cells.labels[3], 3),
    ):
        survey = sf.Survey(name, sf.Uniform(domain, 1))
        aggregator.surveys[survey.fingerprint] = survey
        sf.Client(survey, hasty, home=home).answer(value)
        secret = (home / "secret").read_bytes()
        expected = derive_report(secret, survey.fingerprint, survey.mechanism, symbol)
        assert read_upload(aggregator.bodies[-1]).reports.tolist() == [expected]
    strange = sf.Client(sf.Survey("h3", sf.Uniform(cells, 1)), hasty, home=home)
    with pytest.raises(InvalidSymbols, match="pair"):
        strange.answer((1, 2, 3))
    with pytest.raises(UnknownValue):
        strange.answer((0.0, 0.0))


def test_a_survey_that_breaks_its_context_is_refused(hasty, home):
    text = (
        sf.Survey("lie", sf.Uniform(["no", "yes"], 1))
        .resolved()
        .replace(b'"epsilon":"1"', b'"epsilon":"0.9"')
    )
    with pytest.raises(PrivacyViolation):
        sf.Client(sf.Survey.from_resolved(text), hasty, home=home)
    assert not home.exists()


def test_a_survey_may_be_a_path(survey, hasty, home, tmp_path):
    survey.save(tmp_path / "survey.json")
    assert isinstance(
        sf.Client(tmp_path / "survey.json", hasty, home=home).answer("place 1"), Receipt
    )


def test_invalid_arguments_are_rejected(survey, hasty, home):
    with pytest.raises(InvalidArgument, match="budget"):
        sf.Client(survey, hasty, home=home, budget="plenty")
    with pytest.raises(InvalidArgument, match="allow_clear"):
        sf.Client(survey, hasty, home=home, allow_clear="yes")
    with pytest.raises(InvalidSetting, match="URL"):
        sf.Client(survey, "ftp://example.org", home=home)
    assert not home.exists()


def test_reprs_and_files_contain_no_value(home, hasty, aggregator):
    labels = ["kanarienvogel-4711", "spatz"]
    survey = sf.Survey("birds", sf.Uniform(labels, 1), repeat={"every": "day", "distinct": 2})
    aggregator.surveys[survey.fingerprint] = survey
    aggregator.default_fault = (503, {}, b"")
    client = sf.Client(survey, hasty, home=home)
    queued = client.answer("kanarienvogel-4711")
    secret = (home / "secret").read_bytes()
    shown = repr(client) + repr(queued) + repr(vars(client))
    assert "kanarien" not in repr(client) + repr(queued)
    assert secret.hex() not in shown
    assert not any(secret in value for value in vars(client).values() if isinstance(value, bytes))
    # Neither the value nor the domain is in the log.
    assert b"kanarien" not in (home / f"answers-{survey.fingerprint}").read_bytes()


# --- several at once ------------------------------------------------------------------------------


def test_threads_sharing_a_folder_give_one_answer(survey, aggregator, home):
    clients = [sf.Client(survey, AggregatorClient(aggregator.url), home=home) for _ in range(8)]
    threads = [
        threading.Thread(target=client.answer, args=(PLACES[number],))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert aggregator.reports == 1
    assert len(set(aggregator.bodies)) == 1
    assert len(ledger(home)) == 1


def test_two_devices_are_counted_as_two(survey, aggregator, hasty, tmp_path):
    for device in range(5):
        sf.Client(survey, hasty, home=tmp_path / str(device)).answer("place 7")
    assert aggregator.reports == 5
    assert len(set(aggregator.bodies)) == 5


def test_answers_are_sent_when_the_aggregator_returns(survey, home):
    with FakeAggregator(survey) as first:
        url = first.url
    assert isinstance(
        sf.Client(survey, AggregatorClient(url, patience=0), home=home).answer("place 7"),
        QueuedAnswer,
    )
    with FakeAggregator(survey) as back:
        assert len(sf.Client(survey, AggregatorClient(back.url), home=home).flush()) == 1
        assert back.reports == 1
