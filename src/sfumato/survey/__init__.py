"""Surveys: one question asked of many people, described in a file."""

from sfumato.survey.answer_columns import DATE_PARTS, REFUSE, SKIP, AnswerColumns, DatePart
from sfumato.survey.answers import AnswerBatch, AnswerReader, ReportBatch
from sfumato.survey.description import EDITIONS, Description
from sfumato.survey.question import DEFAULT_QUESTION, Question
from sfumato.survey.row_counts import Caller, OtherWarning, RowCounts, RowRules
from sfumato.survey.survey import FAKE_COUNTS, RESULT_COLUMNS, Survey, result_rows, results_as_json

__all__ = [
    "DATE_PARTS",
    "DEFAULT_QUESTION",
    "EDITIONS",
    "FAKE_COUNTS",
    "REFUSE",
    "RESULT_COLUMNS",
    "SKIP",
    "AnswerBatch",
    "AnswerColumns",
    "AnswerReader",
    "Caller",
    "DatePart",
    "Description",
    "OtherWarning",
    "Question",
    "ReportBatch",
    "RowCounts",
    "RowRules",
    "Survey",
    "result_rows",
    "results_as_json",
]
