"""The aggregator over HTTP: routes, limits, and problem documents."""

from sfumato.aggregator.http import health, operations, pages, public, results
from sfumato.aggregator.http.aggregator import Aggregator, Settings
from sfumato.aggregator.http.problems import Problem, ProblemDocument, problem_for, problem_response
from sfumato.aggregator.http.token import Token
from sfumato.aggregator.http.uploads import UPLOAD_PATH, UPLOAD_ROUTE, describe_upload

__all__ = [
    "ROUTERS",
    "UPLOAD_PATH",
    "UPLOAD_ROUTE",
    "Aggregator",
    "Problem",
    "ProblemDocument",
    "Settings",
    "Token",
    "describe_upload",
    "problem_for",
    "problem_response",
]

ROUTERS = (public.router, results.router, operations.router, health.router, pages.router)
