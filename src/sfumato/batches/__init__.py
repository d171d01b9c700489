"""Batches: what travels from clients to an aggregator, in JSON or Arrow."""

from sfumato.batches.arrow_form import ARROW, arrow_bytes, batch_of_arrow
from sfumato.batches.batch import LARGEST_BATCH, LARGEST_BODY, Batch, fresh_id
from sfumato.batches.json_form import JSON, batch_of_json, json_bytes

__all__ = [
    "ARROW",
    "JSON",
    "LARGEST_BATCH",
    "LARGEST_BODY",
    "Batch",
    "arrow_bytes",
    "batch_of_arrow",
    "batch_of_json",
    "fresh_id",
    "json_bytes",
]
