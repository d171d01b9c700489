"""Tables of answers and reports, read as streams from files of many formats."""

from sfumato.survey import AnswerColumns
from sfumato.tables.answers import (
    FileSlice,
    RowCounter,
    answer_batches,
    answer_reader,
    column_types,
    first_rows,
    slice_file,
    slice_files,
)
from sfumato.tables.column_summary import (
    ColumnSummary,
    read_blocks,
    similar_labels,
    summarize_column,
)
from sfumato.tables.read import open_table
from sfumato.tables.reports import (
    ReportWriter,
    count_files,
    report_batches,
    report_writer,
    write_tally,
)
from sfumato.tables.write import (
    formula_note,
    require_table_path,
    table_bytes,
    table_csv,
    write_table,
)

__all__ = [
    "AnswerColumns",
    "ColumnSummary",
    "FileSlice",
    "ReportWriter",
    "RowCounter",
    "answer_batches",
    "answer_reader",
    "column_types",
    "count_files",
    "first_rows",
    "formula_note",
    "open_table",
    "read_blocks",
    "report_batches",
    "report_writer",
    "require_table_path",
    "similar_labels",
    "slice_file",
    "slice_files",
    "summarize_column",
    "table_bytes",
    "table_csv",
    "write_table",
    "write_tally",
]
