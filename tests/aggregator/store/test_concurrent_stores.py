"""Several aggregators on one store at the same time: counts are exact and no one blocks forever."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfumato.aggregator.store import Outcome
from support import concurrent_writers as writers
from support.unrandomized import batch_id, batch_of


@pytest.fixture
def shared_store(store):
    for survey in writers.SURVEYS:
        store.register(survey)
    return store


def test_two_stores_in_two_threads(shared_store, store_url):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(writers.write, [store_url] * 2, [1, 2])
    writers.check_outcomes(shared_store, first + second)


def test_two_stores_in_two_processes(shared_store, store_url):
    tests = Path(writers.__file__).parents[1]
    command = [sys.executable, "-m", "support.concurrent_writers", store_url]
    processes = [
        subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, cwd=tests)
        for seed in (1, 2)
    ]
    results = []
    for process in processes:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        results += json.loads(output)
    writers.check_outcomes(shared_store, results)


def test_check_fails_when_the_store_counts_more(shared_store, store_url):
    results = writers.write(store_url, 1) + writers.write(store_url, 2)
    writers.check_outcomes(shared_store, results)
    survey, _, report, _ = next(result for result in results if result[3] == Outcome.COUNTED.value)
    shared_store.commit([batch_of(writers.SURVEYS[survey], 10**6, report)])
    with pytest.raises(AssertionError):
        writers.check_outcomes(shared_store, results)


def test_exports_during_uploads_contain_each_report_once(store, store_url, open_store, survey):
    other = open_store(store_url)
    outputs = survey.mechanism.outputs

    def upload():
        for number in range(60):
            other.commit([batch_of(survey, number, number)])

    parts = []
    number = 1_000
    with ThreadPoolExecutor(1) as pool:
        uploading = pool.submit(upload)
        while not uploading.done():
            number += 1
            parts.append(store.export(survey.fingerprint, batch_id(number), outputs))
        uploading.result()
    parts.append(store.export(survey.fingerprint, batch_id(number + 1), outputs))
    total = sum(part.tally.counts for part in parts if part is not None)
    assert total.tolist() == [1] * 60 + [0] * (outputs - 60)
