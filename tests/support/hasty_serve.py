"""`sfumato serve` that gives requests one second when it stops, instead of ten."""

from functools import partial

from sfumato import aggregator
from sfumato.cli.main import run

if __name__ == "__main__":
    aggregator.run_server = partial(aggregator.run_server, shutdown_timeout=1)
    run()
