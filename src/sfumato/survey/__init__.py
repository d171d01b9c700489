"""Surveys: one question put to many people, as a file."""

from sfumato.survey.answers import Lookup, ReportBatch, symbols_of_column
from sfumato.survey.description import Description
from sfumato.survey.survey import Survey

__all__ = ["Description", "Lookup", "ReportBatch", "Survey", "symbols_of_column"]
