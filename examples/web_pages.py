"""A survey end to end: an aggregator, three hundred devices, results over HTTP, and a replay that changes nothing.

    python examples/web_pages.py

"Which of our pages did you read last?" Two pages are sensitive. An aggregator runs in a process of its own, on this
machine alone. Each device has a client with a secret of its own, blurs its answer and sends one report. The analyst
asks for the counts and for the estimate. All devices are pretended here; in a browser it is the JavaScript client that
answers, in the same way.
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
    """Records every batch, so that we can look over the aggregator's shoulder afterwards."""

    def __init__(self, url: str) -> None:
        super().__init__(url, patience=10)
        self.sent: list[Batch] = []

    def deliver(self, batch: Batch, *, arrow: bool = False) -> Receipt:
        """Record the batch and send it."""
        self.sent.append(batch)
        return super().deliver(batch, arrow=arrow)


@contextmanager
def aggregator(survey: Path, store: Path) -> Iterator[tuple[str, str]]:
    """Run `sfumato serve` on any free port of this machine; its address, and the token for analysts."""
    command = [
        sys.executable,
        "-m",
        "sfumato",
        "serve",
        str(survey),
        "--store",
        f"sqlite:///{store}",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            said: dict[str, str] = {}
            for line in server.stderr:
                what, _, value = line.rpartition(" ")
                said[what] = value.strip()
                if what == "Sfumato listens on":
                    break
            else:
                raise SystemExit("the aggregator did not start: is sfumato[server] installed?")
            yield said["Sfumato listens on"], said["The analysts' token, shown this once:"]
        finally:
            server.terminate()  # it finishes what has begun, and ends
            print(f"The aggregator ended with code {server.wait(30)}.")


def take_part(survey: sf.Survey, url: str, token: str, folder: Path) -> None:
    """Answer on every device, look at the results, and replay."""
    recorder, address = RecordingClient(url), f"{url}/v1/surveys/{survey.fingerprint}"

    def asked(method: str, what: str) -> dict:
        """What the aggregator tells an analyst."""
        return urllib3.request(
            method, f"{address}/{what}", headers={"Authorization": f"Bearer {token}"}
        ).json()

    read = np.repeat(list(READERS), list(READERS.values()))
    print(f"People are shown first: {survey.disclosure()}")
    homes = [folder / f"device-{i}" for i in range(len(read))]
    clients = [sf.Client(survey, recorder, home=home, allow_clear=True) for home in homes]
    with ThreadPoolExecutor(8) as several:  # devices do not wait for one another
        answers = list(several.map(sf.Client.answer, clients, read))
    received, sent = sum(isinstance(answer, Receipt) for answer in answers), list(recorder.sent)
    print(
        f"{len(clients)} devices answered, and {received} have a receipt. One of them sent {sent[0].reports.tolist()}."
    )

    exported = asked(
        "PUT", f"exports/{token_hex(16)}"
    )  # all that was counted, under a name that we make up
    counted = sf.Tally(
        np.frombuffer(base64.b64decode(exported["counts"]), dtype="<i8"), exported["survey"]
    )
    own = survey.tally(np.concatenate([batch.reports for batch in sent]))
    print(
        f"Counted: {counted.counts.tolist()}. Is that what was sent, report by report? {counted == own}."
    )
    show(asked("GET", "estimate"))

    with ThreadPoolExecutor(8) as several:
        list(several.map(recorder.deliver, sent))
    print("\nEvery report was sent a second time, as somebody might who had recorded it.")
    clients[0].answer("weather")
    print("The first device was asked again, and said something else.")
    print(f"Reports that the aggregator has counted: {asked('GET', 'status')['reports']}.")


def show(results: dict) -> None:
    """The shares in per cent. Three hundred are few: the intervals say so."""
    print(f"\n{'page':14} truth  estimate  95 % interval   ({results['reports']} reports)")
    for row in results["symbols"]:
        truth = READERS.get(row["label"], 0) / sum(READERS.values())
        ends = f"{100 * row['low']:.0f} to {100 * row['high']:.0f}"
        print(f"{row['label']:14} {100 * truth:5.0f} {100 * row['unbiased']:9.1f}  {ends:>13}")
    print(results["fit"]["verdict"])


def main() -> None:
    """Start the aggregator, take part, stop it."""
    pages = sf.Domain(list(READERS), other="another page")  # whatever is not on the list
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
