"""The aggregator: receives reports over HTTP, counts each batch once, and answers analysts."""

from sfumato.aggregator.app import create_app
from sfumato.aggregator.http import ConnectionLimits, Settings, Token
from sfumato.aggregator.run import (
    limit_arenas,
    listen,
    listen_together,
    run_server,
    shorten_switch_interval,
    url_of,
)
from sfumato.aggregator.store import Store
from sfumato.aggregator.workers import WorkerSetup, run_workers

__all__ = [
    "ConnectionLimits",
    "Settings",
    "Store",
    "Token",
    "WorkerSetup",
    "create_app",
    "limit_arenas",
    "listen",
    "listen_together",
    "run_server",
    "run_workers",
    "shorten_switch_interval",
    "url_of",
]
