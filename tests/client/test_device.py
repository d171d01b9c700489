"""A device: crashes at every write, files truncated at every byte, and never a refilled budget."""

import multiprocessing
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

import sfumato as sf
from sfumato.batches import to_json
from sfumato.client import AggregatorClient, Receipt
from sfumato.client.device import DeviceFolder
from sfumato.errors import BudgetExceeded, DamagedState, NotDelivered

FULL = 1  # a budget that the first survey uses up
ROOMY = 40  # a budget with room for more
FIRST = sf.Survey("first", sf.Uniform(40, 1), repeat={"every": "day", "distinct": 1})
SECOND = sf.Survey("second", sf.Uniform(40, "0.001"))


class Recorder(AggregatorClient):
    """An HTTP client that records batches, and either confirms them or is offline."""

    def __init__(self, *, reaches=True):
        super().__init__("http://127.0.0.1:9")
        self.reaches = reaches
        self.sent = []

    def deliver(self, batch, *, arrow=False):
        self.sent.append(to_json(batch))
        if not self.reaches:
            raise NotDelivered("nobody is there")
        return Receipt.for_batch(batch)


@pytest.fixture(autouse=True)
def certified(monkeypatch):
    """These two surveys keep their contexts; to show it a thousand times over takes a minute."""
    monkeypatch.setattr(sf.Survey, "certify", lambda self: None)


def client(survey, home, http_client, *, budget=FULL):
    return sf.Client(survey, http_client, home=home, budget=budget)


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A home whose account is full: one survey was answered, delivered or not."""
    made = {}
    for reaches in (True, False):
        home = tmp_path_factory.mktemp("homes") / "device"
        recorder = Recorder(reaches=reaches)
        client(FIRST, home, recorder).answer(7)
        made[reaches] = SimpleNamespace(home=home, sent=set(recorder.sent))
    return made


def _outcome(survey, home, value, *, budget=FULL):
    """Return what was sent and whether the answer was refused, with a new client."""
    recorder = Recorder(reaches=False)
    try:
        client(survey, home, recorder, budget=budget).answer(value)
    except (BudgetExceeded, DamagedState):
        return set(recorder.sent), True
    return set(recorder.sent), False


@pytest.mark.parametrize("reaches", [True, False])
@pytest.mark.parametrize("name", ["secret", "ledger", f"answers-{FIRST.fingerprint}"])
def test_truncated_files_refill_nothing(used, tmp_path, name, reaches):
    original = used[reaches]
    content = (original.home / name).read_bytes()
    refused = 0
    for length in range(len(content)):
        home = tmp_path / "device"
        shutil.copytree(original.home, home)
        (home / name).write_bytes(content[:length])
        assert _outcome(SECOND, home, 8) == (set(), True)
        sent, refusal = _outcome(FIRST, home, 8)
        assert sent <= original.sent
        refused += refusal
        shutil.rmtree(home)
    assert refused == len(content)  # every piece that is missing is noticed


def test_a_new_budget_does_not_replace_a_lost_log(used, tmp_path):
    """An empty log would let the device answer again without a charge."""
    home = tmp_path / "device"
    shutil.copytree(used[True].home, home)
    (home / f"answers-{FIRST.fingerprint}").unlink()
    ledger = (home / "ledger").read_bytes()
    for budget in (FULL, ROOMY, None):
        assert _outcome(FIRST, home, 8, budget=budget) == (set(), True)
    assert not (home / f"answers-{FIRST.fingerprint}").exists()
    assert (home / "ledger").read_bytes().count(b"cost") == ledger.count(b"cost")


def test_files_are_owner_only(used):
    modes = {
        path.name: path.stat().st_mode & 0o777
        for path in used[False].home.iterdir()
        if path.name != "lock"
    }
    assert modes == {"secret": 0o600, "ledger": 0o600, f"answers-{FIRST.fingerprint}": 0o600}


@pytest.mark.parametrize("name", ["secret", "ledger", f"answers-{FIRST.fingerprint}"])
def test_a_changed_byte_is_noticed(used, tmp_path, name):
    content = (used[True].home / name).read_bytes()
    home = tmp_path / "device"
    shutil.copytree(used[True].home, home)
    for position in range(0, len(content), 1 if name == "secret" else 7):
        (home / name).write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        assert _outcome(FIRST, home, 8, budget=ROOMY) == (set(), True)
        assert _outcome(SECOND, home, 8, budget=ROOMY) == (set(), True) or name.startswith(
            "answers"
        )


@pytest.mark.parametrize("name", ["ledger", f"answers-{FIRST.fingerprint}"])
def test_lost_files_are_errors_not_empty_files(used, tmp_path, name):
    home = tmp_path / "device"
    shutil.copytree(used[True].home, home)
    (home / name).unlink()
    assert _outcome(FIRST, home, 8) == (set(), True)
    assert _outcome(SECOND, home, 8) == (set(), True)


def test_a_ledger_lost_after_forgetting_is_noticed(used, tmp_path):
    home = tmp_path / "device"
    shutil.copytree(used[True].home, home)
    for name in ("secret", "ledger"):
        (home / name).unlink()
    assert _outcome(SECOND, home, 8) == (set(), True)


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_device_without_its_secret_sends_nothing_until_it_forgets(used, tmp_path, damage):
    home = tmp_path / "device"
    shutil.copytree(used[False].home, home)
    secret = (home / "secret").read_bytes()
    (home / "secret").unlink()
    if damage == "damaged":
        (home / "secret").write_bytes(secret[::-1])
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    device = client(FIRST, home, Recorder(), budget=ROOMY)
    for action in (
        lambda: device.answer(7),
        device.flush,
        lambda: client(SECOND, home, Recorder()).answer(7),
    ):
        with pytest.raises(DamagedState, match=f"secret .* is {damage}.*forget"):
            action()
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    device.forget()
    assert _outcome(FIRST, home, 7) == (
        set(),
        True,
    )  # answering costs again, and the account is full
    sent, refused = _outcome(FIRST, home, 7, budget=ROOMY)
    assert (len(sent), refused) == (1, False)
    assert not sent & used[False].sent


def test_a_restored_secret_works_as_before(used, tmp_path):
    home = tmp_path / "device"
    shutil.copytree(used[False].home, home)
    (home / "secret").rename(tmp_path / "secret")
    assert _outcome(FIRST, home, 7) == (set(), True)
    (tmp_path / "secret").rename(home / "secret")
    assert _outcome(FIRST, home, 8) == (used[False].sent, False)


def test_evidence_of_a_lost_ledger_is_kept(used, tmp_path):
    home = tmp_path / "device"
    shutil.copytree(used[True].home, home)
    device = client(FIRST, home, Recorder())
    (home / "ledger").unlink()
    with pytest.raises(DamagedState, match=r"ledger .* is missing"):
        device.forget()
    assert _outcome(SECOND, home, 8) == (set(), True)


def test_an_older_ledger_next_to_newer_answers_is_refused(tmp_path):
    home = tmp_path / "device"
    device = client(FIRST, home, Recorder())
    device.flush()
    shutil.copy(home / "ledger", tmp_path / "older")
    device.answer(7)
    shutil.copy(tmp_path / "older", home / "ledger")
    assert _outcome(FIRST, home, 8) == (set(), True)
    assert _outcome(SECOND, home, 8, budget=ROOMY) == (set(), True)
    with pytest.raises(DamagedState, match="older than the answers"):
        client(SECOND, home, Recorder(), budget=ROOMY)


def test_a_ledger_of_another_device_is_refused(used, tmp_path):
    home = tmp_path / "device"
    shutil.copytree(used[True].home, home)
    shutil.copy(used[False].home / "ledger", home / "ledger")
    assert _outcome(FIRST, home, 8, budget=ROOMY) == (set(), True)


# --- crashes --------------------------------------------------------------------------------------


class Crash(BaseException):
    """The power is cut."""


@pytest.mark.parametrize("reaches", [True, False])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", range(1, 7))
def test_a_crash_at_any_write_is_survived(tmp_path, monkeypatch, write, after, reaches):
    """Each write fails once, before or after it is done; then the person answers again."""
    recorder = Recorder(reaches=reaches)
    write_file = DeviceFolder.write
    writes = []

    def failing(self, name, content):
        writes.append(name)
        if len(writes) == write and not after:
            raise Crash
        write_file(self, name, content)
        if len(writes) == write:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(DeviceFolder, "write", failing)
        try:
            client(FIRST, tmp_path / "device", recorder).answer(7)
            crashed = False
        except Crash:
            crashed = True
    expected = ["ledger", "secret", f"answers-{FIRST.fingerprint}", "ledger"] + [
        f"answers-{FIRST.fingerprint}"
    ] * 2
    assert writes == expected[: min(write, len(expected) - (not reaches))]
    assert crashed == (write <= len(expected) - (not reaches))
    recorder.reaches = True
    assert isinstance(client(FIRST, tmp_path / "device", recorder).answer(8), Receipt)
    assert len(set(recorder.sent)) == 1  # whatever happened, one report left the device
    assert _outcome(SECOND, tmp_path / "device", 8) == (set(), True)


def test_a_crash_while_forgetting_leaves_no_usable_secret(tmp_path, monkeypatch):
    home = tmp_path / "device"
    recorder = Recorder(reaches=False)
    device = client(FIRST, home, recorder)
    device.answer(7)
    delete = DeviceFolder.delete

    def failing(self, name):
        delete(self, name)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(DeviceFolder, "delete", failing)
        with pytest.raises(Crash):
            device.forget()
    assert not (home / "secret").exists()
    assert _outcome(FIRST, home, 8, budget=ROOMY) == (
        set(),
        True,
    )  # the diary is left, and shows that a secret is gone
    client(FIRST, home, recorder).forget()
    assert _outcome(FIRST, home, 8) == (set(), True)  # a new secret, and the account is full


# --- the folder -----------------------------------------------------------------------------------


def test_the_folder_must_be_owner_only(tmp_path):
    DeviceFolder(tmp_path / "new" / "device")
    assert (tmp_path / "new" / "device").stat().st_mode & 0o777 == 0o700
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    with pytest.raises(OSError, match="only its owner"):
        DeviceFolder(tmp_path / "shared")


def test_the_lock_excludes_other_processes(tmp_path):
    folder = DeviceFolder(tmp_path / "device")
    program = (
        "import sys; from sfumato.client.device import DeviceFolder\n"
        "with DeviceFolder(sys.argv[1]).lock(): print('mine', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "device")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with folder.lock():
        other = subprocess.Popen(command, **pipes)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1.5)
    with other:
        assert other.stdout.readline() == b"mine\n"
        other.stdin.close()
        assert other.wait(timeout=30) == 0


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    folder = DeviceFolder(tmp_path / "device")
    context = multiprocessing.get_context("fork")
    end = context.Event()
    entered = threading.Event()
    with folder.lock():
        child = context.Process(target=end.wait)
        child.start()

    def enter():
        with folder.lock():
            entered.set()

    threading.Thread(target=enter, daemon=True).start()
    try:
        assert entered.wait(timeout=10)
    finally:
        end.set()
        child.join()


def test_records_from_a_newer_version_are_refused(tmp_path):
    folder = DeviceFolder(tmp_path / "device")
    for version in (1, 2):
        folder.write_record("ledger", {}, version)
        assert folder.read_record("ledger", (1, 2)) == {"format": version}
    folder.write_record("ledger", {}, 3)
    with pytest.raises(DamagedState, match="a different version"):
        folder.read_record("ledger", (1, 2))
