"""Entry point for `python -m sfumato`."""

from sfumato.cli.main import run

run()
