"""The store, which counts each batch once, in SQLite or PostgreSQL."""

from sfumato.aggregator.store.backends import backend_for
from sfumato.aggregator.store.store import Outcome, State, Status, Store

__all__ = ["Outcome", "State", "Status", "Store", "backend_for"]
