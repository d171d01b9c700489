"""Several aggregators on one store, at the same time: exact counts, and nobody waits for ever."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfumato.aggregator.store import Outcome
from support import store_rivals as rivals
from support.unrandomized import batch_id, batch_of


@pytest.fixture
def shared(store):
    for survey in rivals.SURVEYS:
        store.register(survey)
    return store


def test_two_stores_in_two_threads(shared, store_url):
    with ThreadPoolExecutor(2) as pool:
        said = [one for rival in pool.map(rivals.compete, [store_url] * 2, [1, 2]) for one in rival]
    rivals.judge(shared, said)


def test_two_stores_in_two_processes(shared, store_url):
    tests = Path(rivals.__file__).parents[1]
    command = [sys.executable, "-m", "support.store_rivals", store_url]
    running = [
        subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, cwd=tests)
        for seed in (1, 2)
    ]
    said = []
    for process in running:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        said += json.loads(output)
    rivals.judge(shared, said)


def test_what_the_judge_is_told_must_be_true(shared, store_url):
    said = rivals.compete(store_url, 1) + rivals.compete(store_url, 2)
    rivals.judge(shared, said)
    place, _, report, _ = next(one for one in said if one[3] == Outcome.COUNTED.value)
    shared.commit([batch_of(rivals.SURVEYS[place], 10**6, report)])
    with pytest.raises(AssertionError):
        rivals.judge(shared, said)


def test_exports_among_uploads_lose_nothing_and_name_nothing_twice(
    store, store_url, open_store, survey
):
    other, outputs = open_store(store_url), survey.mechanism.outputs

    def upload():
        for number in range(60):
            other.commit([batch_of(survey, number, number)])

    with ThreadPoolExecutor(1) as pool:
        uploading, parts, number = pool.submit(upload), [], 1_000
        while not uploading.done():
            number += 1
            parts.append(store.export(survey.fingerprint, batch_id(number), outputs))
        uploading.result()
    parts.append(store.export(survey.fingerprint, batch_id(number + 1), outputs))
    total = sum(part.tally.counts for part in parts if part is not None)
    assert total.tolist() == [1] * 60 + [0] * (outputs - 60)
