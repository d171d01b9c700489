"""`sfumato serve` with a planted fault: each start forgets which batches were counted."""

from sfumato.aggregator.store import Store
from sfumato.cli.main import run

_start = Store.__init__


def _start_and_forget(self, *arguments, **options):
    _start(self, *arguments, **options)
    with self._write() as connection:
        connection.exec_driver_sql("DELETE FROM batches")


if __name__ == "__main__":
    Store.__init__ = _start_and_forget
    run()
