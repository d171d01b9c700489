"""A device's folder: for its owner only, locked between processes, with versioned records."""

import multiprocessing
import subprocess
import sys
import threading

import pytest

from sfumato.client.device_folder import DeviceFolder
from sfumato.errors import DamagedState


def test_a_home_is_for_its_owner_alone(tmp_path):
    DeviceFolder(tmp_path / "new" / "device")
    assert (tmp_path / "new" / "device").stat().st_mode & 0o777 == 0o700
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    with pytest.raises(OSError, match="only its owner"):
        DeviceFolder(tmp_path / "shared")


def test_two_processes_keep_apart(tmp_path):
    home = DeviceFolder(tmp_path / "device")
    program = (
        "import sys; from sfumato.client.device_folder import DeviceFolder\n"
        "with DeviceFolder(sys.argv[1]).lock(): print('mine', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "device")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with home.lock():
        other = subprocess.Popen(command, **pipes)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1.5)
    with other:
        assert other.stdout.readline() == b"mine\n"
        other.stdin.close()
        assert other.wait(timeout=30) == 0


def test_a_child_that_was_forked_meanwhile_holds_no_lock(tmp_path):
    home, context = DeviceFolder(tmp_path / "device"), multiprocessing.get_context("fork")
    end, entered = context.Event(), threading.Event()
    with home.lock():
        child = context.Process(target=end.wait)
        child.start()

    def enter():
        with home.lock():
            entered.set()

    threading.Thread(target=enter, daemon=True).start()
    try:
        assert entered.wait(timeout=10)
    finally:
        end.set()
        child.join()


def test_a_record_of_another_version_is_refused(tmp_path):
    home = DeviceFolder(tmp_path / "device")
    for version in (1, 2):
        home.write_record("ledger", {}, version)
        assert home.read_record("ledger", (1, 2)) == {"format": version}
    home.write_record("ledger", {}, 3)
    with pytest.raises(DamagedState, match="another version"):
        home.read_record("ledger", (1, 2))
