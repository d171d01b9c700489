"""The aggregator: receives reports over HTTP, counts each batch once, and answers analysts."""

from sfumato.aggregator.app import create_app
from sfumato.aggregator.http import ConnectionLimits, Settings, Token
from sfumato.aggregator.run import listen, run_server, shorten_switch_interval
from sfumato.aggregator.store import Store

__all__ = [
    "ConnectionLimits",
    "Settings",
    "Store",
    "Token",
    "create_app",
    "listen",
    "run_server",
    "shorten_switch_interval",
]
