"""Engines: privatize many answers, on the cores of one machine or on a cluster."""

from sfumato.engines.local import privatize_files, tally_files

__all__ = ["privatize_files", "tally_files"]
