"""Ctrl-C ends every command at once, with code 130, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from support.command import PLACES, read_folder

LONG_COMMANDS = {
    "compare": "compare answers.csv --column place --epsilon 1 --runs 10000000",
    "compare with one worker": (
        "compare answers.csv --column place --epsilon 1 --runs 10000000 --workers 1"
    ),
    "compare many people": (
        "compare people.csv --survey lunch.toml --column place --runs 100000 --workers 4"
    ),
    "simulate": "simulate lunch.toml answers.csv --column place --runs 10000000",
    "simulate in processes": (
        "simulate lunch.toml people.csv answers.csv --column place --runs 100000 --workers 2"
    ),
    "audit": "audit lunch.toml --samples 10000000000",
    "paper": "paper synthetic -o figures",
}
SECONDS_TO_START = 2
SECONDS_TO_STOP = 60  # far more than needed on a busy machine, far less than the commands take


def is_alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="requires process groups")
@pytest.mark.parametrize("words", LONG_COMMANDS.values(), ids=LONG_COMMANDS)
def test_interrupt_ends_a_long_command(folder, words):
    people = "place\n" + "\n".join(PLACES * 5_000) + "\n"
    (folder / "people.csv").write_text(people, encoding="utf-8")
    before = read_folder(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "sfumato", *words.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        time.sleep(SECONDS_TO_START)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS_TO_STOP)
        assert process.returncode == 130
        assert out == b""
        assert b"Traceback" not in err
        deadline = time.monotonic() + SECONDS_TO_STOP
        while is_alive(process.pid):
            assert time.monotonic() < deadline, "a worker outlived the command"
            time.sleep(0.05)
    finally:
        if is_alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    assert read_folder(folder) == before
