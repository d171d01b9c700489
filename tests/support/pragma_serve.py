"""`sfumato serve` with another setting of SQLite: `pragma_serve.py "synchronous = OFF" serve`."""

import sys

from sqlalchemy import Engine, event

from sfumato.cli.main import run

if __name__ == "__main__":
    PRAGMA = sys.argv.pop(1)

    def _set_pragma(connection):
        connection.exec_driver_sql(f"PRAGMA {PRAGMA}")

    # Before each transaction, so that it replaces what the store chose when it connected.
    event.listen(Engine, "begin", _set_pragma)
    run()
