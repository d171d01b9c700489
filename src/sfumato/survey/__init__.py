"""Surveys: one question put to many people, as a file."""

from sfumato.survey.answers import Lookup, ReportBatch, symbols_of_column
from sfumato.survey.description import Description
from sfumato.survey.survey import FAKE_COUNTS, RESULT_COLUMNS, Survey, result_rows, results_of

__all__ = [
    "FAKE_COUNTS",
    "RESULT_COLUMNS",
    "Description",
    "Lookup",
    "ReportBatch",
    "Survey",
    "result_rows",
    "results_of",
    "symbols_of_column",
]
