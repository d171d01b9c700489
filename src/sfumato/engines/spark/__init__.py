"""Surveys on Apache Spark. PySpark is imported only when you call one of these functions."""

from sfumato.engines.spark.engine import keyed_reports, privatize_to, tally_column, tally_files

__all__ = ["keyed_reports", "privatize_to", "tally_column", "tally_files"]
