"""Tables: answers and reports in CSV (gzip too) and Parquet, streamed."""

from sfumato.tables.answers import AnswerColumns, answer_batches
from sfumato.tables.count_files import counted, write_tally
from sfumato.tables.reports import ReportWriter, report_batches, report_writer
from sfumato.tables.slices import Piece, flows, numbered, pieces_of

__all__ = [
    "AnswerColumns",
    "Piece",
    "ReportWriter",
    "answer_batches",
    "counted",
    "flows",
    "numbered",
    "pieces_of",
    "report_batches",
    "report_writer",
    "write_tally",
]
