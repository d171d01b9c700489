"""The store: batches counted once, in SQLite or PostgreSQL."""

from sfumato.aggregator.store.backends import Backend, backend_for
from sfumato.aggregator.store.store import Outcome, State, Status, Store

__all__ = ["Backend", "Outcome", "State", "Status", "Store", "backend_for"]
