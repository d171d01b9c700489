"""The store, which counts each batch once, in SQLite or PostgreSQL."""

from sfumato.aggregator.store.backends import backend_for
from sfumato.aggregator.store.counting import Outcome
from sfumato.aggregator.store.omissions import LeftOut, Omissions
from sfumato.aggregator.store.senders import OPERATOR, Sender, create_secret, secret_hash
from sfumato.aggregator.store.statements import State
from sfumato.aggregator.store.store import DayCounts, Status, Store

__all__ = [
    "OPERATOR",
    "DayCounts",
    "LeftOut",
    "Omissions",
    "Outcome",
    "Sender",
    "State",
    "Status",
    "Store",
    "backend_for",
    "create_secret",
    "secret_hash",
]
