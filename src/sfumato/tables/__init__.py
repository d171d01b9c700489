"""Tables of answers and reports: CSV (optionally gzipped) and Parquet files, read as streams."""

from sfumato.tables.answers import (
    AnswerColumns,
    FileSlice,
    answer_batches,
    answer_reader,
    first_rows,
    label_texts,
    slice_file,
    slice_files,
)
from sfumato.tables.read import open_table
from sfumato.tables.reports import (
    ReportWriter,
    count_files,
    report_batches,
    report_writer,
    write_tally,
)

__all__ = [
    "AnswerColumns",
    "FileSlice",
    "ReportWriter",
    "answer_batches",
    "answer_reader",
    "count_files",
    "first_rows",
    "label_texts",
    "open_table",
    "report_batches",
    "report_writer",
    "slice_file",
    "slice_files",
    "write_tally",
]
