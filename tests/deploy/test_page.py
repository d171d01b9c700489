"""docs/deployment.md: tests run all its blocks."""

import re
from pathlib import Path

from support.deployment_page import PAGE, read_blocks
from support.paths import ROOT

TESTS = Path(__file__).parent


def headings_that_tests_follow():
    texts = [file.read_text(encoding="utf-8") for file in TESTS.glob("test_*.py")]
    calls = re.compile(r"\.follow(?:_until)?\(\s*\"([^\"]+)\"")
    return {heading for text in texts for heading in calls.findall(text)}


def test_tests_run_every_block():
    assert headings_that_tests_follow() == set(read_blocks())


def test_the_page_names_every_file_and_no_other():
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| file in `deploy/`") : text.index("## On one machine")]
    named = set(re.findall(r"`([\w.-]+)`", table)) - {".service", ".timer"}
    named |= {f"sfumato-backup{suffix}" for suffix in (".service", ".timer")}
    assert named == {file.name for file in (ROOT / "deploy").iterdir() if file.is_file()}


def test_commands_of_the_aggregator_use_one_store():
    """A step with another store would make a new one, with a new token."""
    stores = re.findall(r"--store (\S+)", PAGE.read_text(encoding="utf-8").replace("`", " "))
    units = (ROOT / "deploy" / "sfumato.service").read_text(encoding="utf-8")
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    known = set(re.findall(r"--store[ =](\S+)", units + compose))
    assert len(known) == 2
    assert {store for store in stores if "://" in store} == known
