"""Clients: what runs on people's devices, or beside a table of answers, and sends reports to an aggregator."""

from sfumato.client.budget import DEFAULT_BUDGET
from sfumato.client.client import Client, Queued
from sfumato.client.http import Courier, ListedSurvey, Receipt

__all__ = ["DEFAULT_BUDGET", "Client", "Courier", "ListedSurvey", "Queued", "Receipt"]
