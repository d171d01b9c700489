"""Surveys: one question asked of many people, described in a file."""

from sfumato.survey.answers import ReportBatch, SymbolLookup, column_to_symbols
from sfumato.survey.description import EDITIONS, Description
from sfumato.survey.question import DEFAULT_QUESTION, Question
from sfumato.survey.survey import FAKE_COUNTS, RESULT_COLUMNS, Survey, result_rows, results_as_json

__all__ = [
    "DEFAULT_QUESTION",
    "EDITIONS",
    "FAKE_COUNTS",
    "RESULT_COLUMNS",
    "Description",
    "Question",
    "ReportBatch",
    "Survey",
    "SymbolLookup",
    "column_to_symbols",
    "result_rows",
    "results_as_json",
]
