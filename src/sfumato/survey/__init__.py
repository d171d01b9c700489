"""Surveys: one question put to many people, as a file."""

from sfumato.survey.survey import Survey

__all__ = ["Survey"]
