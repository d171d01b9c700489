"""A survey end to end: an aggregator, 300 devices, results over HTTP, and a harmless replay.

    python examples/web_pages.py

"Which of our pages did you read last?" Two pages are sensitive. An aggregator runs in its own
process, reachable from this machine only. Each device has a client with its own secret, blurs its
answer and sends one report. The analyst asks for the counts and for the estimate. The devices are
simulated; in a browser, the JavaScript client does the same.
"""

import base64
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import numpy as np
import urllib3

import sfumato as sf
from sfumato.batches import Batch
from sfumato.client import AggregatorClient, Receipt

READERS = {"news": 120, "weather": 80, "sport": 40, "clinic": 40, "debts": 20}  # made up


class RecordingClient(AggregatorClient):
    """An aggregator client that records every batch, to compare them with the counts."""

    def __init__(self, url: str) -> None:
        super().__init__(url, patience=10)
        self.sent: list[Batch] = []

    def deliver(self, batch: Batch, *, arrow: bool = False) -> Receipt:
        """Record the batch and send it."""
        self.sent.append(batch)
        return super().deliver(batch, arrow=arrow)


@contextmanager
def aggregator(survey: Path, store: Path) -> Iterator[tuple[str, str]]:
    """Run `sfumato serve` on a free port. Yield its address and the analysts' token."""
    command = [sys.executable, "-m", "sfumato", "serve", str(survey)]
    command += ["--store", f"sqlite:///{store}", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            output: dict[str, str] = {}
            for line in server.stderr:
                what, _, value = line.rpartition(" ")
                output[what] = value.strip()
                if what == "Sfumato is listening on":
                    break
            else:
                raise SystemExit("the aggregator did not start: is sfumato[server] installed?")
            yield output["Sfumato is listening on"], output["Analyst token (not shown again):"]
        finally:
            server.terminate()  # it finishes uploads in progress first
            print(f"The aggregator ended with code {server.wait(30)}.")


def take_part(survey: sf.Survey, url: str, token: str, folder: Path) -> None:
    """Answer on every device, look at the results, and replay."""
    recorder = RecordingClient(url)
    address = f"{url}/v1/surveys/{survey.fingerprint}"

    def request(method: str, path: str) -> dict:
        """Send a request as an analyst."""
        headers = {"Authorization": f"Bearer {token}"}
        return urllib3.request(method, f"{address}/{path}", headers=headers).json()

    pages = np.repeat(list(READERS), list(READERS.values()))
    print(f"Participants first read: {survey.disclosure()}")
    homes = [folder / f"device-{i}" for i in range(len(pages))]
    clients = [sf.Client(survey, recorder, home=home, allow_clear=True) for home in homes]
    with ThreadPoolExecutor(8) as pool:  # devices do not wait for one another
        answers = list(pool.map(sf.Client.answer, clients, pages))
    receipts = sum(isinstance(answer, Receipt) for answer in answers)
    sent = list(recorder.sent)
    print(f"{len(clients)} devices answered, and {receipts} have a receipt.")
    print(f"One of them sent {sent[0].reports.tolist()}.")

    # Export all counts, under a name of our choice.
    export = request("PUT", f"exports/{token_hex(16)}")
    counts = np.frombuffer(base64.b64decode(export["counts"]), dtype="<i8")
    tally = sf.Tally(counts, export["survey"])
    own_tally = survey.tally(np.concatenate([batch.reports for batch in sent]))
    print(f"Counts: {counts.tolist()}.")
    print(f"Is that what was sent, report by report? {tally == own_tally}.")
    show(request("GET", "estimate"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(recorder.deliver, sent))
    print("\nEvery report was sent a second time, as in a replay attack.")
    clients[0].answer("weather")
    print("The first device was asked again, and gave another answer.")
    print(f"Reports that the aggregator has counted: {request('GET', 'status')['reports']}.")


def show(results: dict) -> None:
    """Print the shares in per cent. 300 reports are few, so the intervals are wide."""
    print(f"\n{'page':14} truth  estimate  95 % interval   ({results['reports']} reports)")
    for row in results["symbols"]:
        truth = READERS.get(row["label"], 0) / sum(READERS.values())
        ends = f"{100 * row['low']:.0f} to {100 * row['high']:.0f}"
        print(f"{row['label']:14} {100 * truth:5.0f} {100 * row['unbiased']:9.1f}  {ends:>13}")
    print(results["fit"]["verdict"])


def main() -> None:
    """Start the aggregator, take part, stop it."""
    pages = sf.Domain(list(READERS), other="another page")  # for pages that are not on the list
    context = sf.HighLow(pages, sensitive=["clinic", "debts"], epsilon=1)
    survey = sf.Survey("pages-2026", context, title="Which of our pages did you read last?")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        survey.save(folder / "survey.json")
        with aggregator(folder / "survey.json", folder / "reports.db") as (url, token):
            print(f"The aggregator listens on {url}.")
            take_part(survey, url, token, folder)


if __name__ == "__main__":
    main()
