"""Tables: answers and reports in CSV (gzip too) and Parquet, streamed."""

from sfumato.tables.answers import AnswerColumns, answer_batches
from sfumato.tables.counted import counted
from sfumato.tables.reports import ReportWriter, report_batches, report_writer

__all__ = ["AnswerColumns", "ReportWriter", "answer_batches", "counted", "report_batches", "report_writer"]
