"""The secret of a job: only holders of the ticket get it, and only while it is offered."""

import pickle
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

import sfumato.engines.spark.secret as spark_secret
from sfumato.engines.spark.secret import Ticket, offer_secret
from sfumato.errors import EntropyUnavailable

HERE = "127.0.0.1"


@pytest.fixture
def drawn(monkeypatch):
    """All keys that were drawn: the first is the secret, the second the password."""
    keys = []
    draw = spark_secret.fresh_key
    monkeypatch.setattr(spark_secret, "fresh_key", lambda: keys.append(draw()) or keys[-1])
    return keys


@contextmanager
def eavesdropper(ticket):
    """A ticket that leads through a listener, and all that the listener hears."""
    heard = []

    def carry(source, sink):
        while part := source.recv(4096):
            heard.append(part)
            sink.sendall(part)

    def pass_on():
        near, _ = listening.accept()
        with near, socket.create_connection((ticket.host, ticket.port)) as far:
            asking = threading.Thread(target=carry, args=(near, far))
            asking.start()
            carry(far, near)
            near.shutdown(socket.SHUT_WR)
            asking.join()

    with socket.create_server((HERE, 0)) as listening:
        thread = threading.Thread(target=pass_on)
        thread.start()
        yield Ticket(HERE, listening.getsockname()[1], ticket.password), heard
        thread.join()


def test_every_task_gets_the_same_secret(drawn):
    with offer_secret(HERE, HERE) as ticket:
        travelled = pickle.loads(pickle.dumps(ticket))  # noqa: S301 - our own
        assert travelled.fetch() == ticket.fetch() == drawn[0]
        assert ticket.password == drawn[1]
        assert ticket.host == HERE


def test_many_tasks_may_fetch_at_once():
    found = []
    with offer_secret(HERE, HERE) as ticket:
        tasks = [threading.Thread(target=lambda: found.append(ticket.fetch())) for _ in range(64)]
        for task in tasks:
            task.start()
        for task in tasks:
            task.join()
    assert len(found) == 64
    assert len(set(found)) == 1


def test_two_jobs_have_two_secrets():
    with offer_secret(HERE, HERE) as one, offer_secret(HERE, HERE) as other:
        assert one.fetch() != other.fetch()
        assert one.password != other.password


def test_tickets_expire_with_the_secret():
    with offer_secret(HERE, HERE) as ticket:
        ticket.fetch()
    with pytest.raises(EntropyUnavailable, match="the secret is gone"):
        ticket.fetch()


def test_the_secret_is_dropped_when_a_job_fails():
    with pytest.raises(ZeroDivisionError), offer_secret(HERE, HERE) as ticket:
        _ = 1 / 0
    with pytest.raises(EntropyUnavailable):
        ticket.fetch()


def test_the_password_is_required():
    with offer_secret(HERE, HERE) as ticket:
        stranger = Ticket(ticket.host, ticket.port, bytes(32))
        with pytest.raises(EntropyUnavailable) as caught:
            stranger.fetch()
        assert ticket.fetch()
    assert caught.value.__cause__ is None


def test_an_impostor_of_the_driver_is_rejected():
    with offer_secret(HERE, HERE) as ticket, offer_secret(HERE, HERE) as stranger:
        mixed = Ticket(stranger.host, stranger.port, ticket.password)
        with pytest.raises(EntropyUnavailable):
            mixed.fetch()


def test_eavesdroppers_see_neither_secret_nor_password(drawn):
    with offer_secret(HERE, HERE) as ticket, eavesdropper(ticket) as (tapped, heard):
        assert tapped.fetch() == drawn[0]
    said = b"".join(heard)
    assert len(said) == 32 + 80
    assert drawn[0] not in said
    assert drawn[1] not in said


def test_a_recorded_exchange_stays_secret(drawn):
    """Each exchange under the same password has its own key: both sides delete their halves."""
    answers = []
    with offer_secret(HERE, HERE) as ticket:
        for _ in range(2):
            with eavesdropper(ticket) as (tapped, heard):
                tapped.fetch()
            answers.append(b"".join(heard))
    assert len(set(drawn)) == len(drawn) == 2 + 2 * 2
    assert answers[0][-48:] != answers[1][-48:]


@pytest.mark.parametrize("said", [b"", b"x", bytes(32), b"\xff" * 500])
def test_malformed_requests_do_not_stop_the_driver(said, drawn):
    with offer_secret(HERE, HERE) as ticket:
        heard = b""
        with (
            socket.create_connection((ticket.host, ticket.port), timeout=5) as stranger,
            suppress(OSError),
        ):
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)  # the driver may have hung up by then
            heard = stranger.recv(4096)
        assert drawn[0] not in heard
        assert ticket.fetch() == drawn[0]


@pytest.mark.parametrize("cut", [0, 31, 32, 79])
def test_truncated_replies_are_rejected(cut):
    def answer():
        near, _ = listening.accept()
        with near:
            near.recv(32)
            near.sendall(bytes(cut))

    with socket.create_server((HERE, 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(EntropyUnavailable):
            Ticket(HERE, listening.getsockname()[1], bytes(32)).fetch()
        thread.join()


def test_a_ticket_does_not_show_its_password():
    ticket = Ticket(HERE, 1, b"correct horse battery staple 32.")
    assert "correct" not in repr(ticket)
    with pytest.raises(EntropyUnavailable) as caught:
        ticket.fetch()
    assert "correct" not in str(caught.value)
