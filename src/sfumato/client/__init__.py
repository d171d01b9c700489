"""Clients, which randomise answers on people's devices or in bulk, and send the reports."""

from sfumato.client.client import Client, QueuedAnswer
from sfumato.client.http import AggregatorClient, ListedSurvey, Receipt
from sfumato.client.ledger import DEFAULT_BUDGET

__all__ = [
    "DEFAULT_BUDGET",
    "AggregatorClient",
    "Client",
    "ListedSurvey",
    "QueuedAnswer",
    "Receipt",
]
