"""The aggregator's HTTP interface: routes, limits, and problem documents."""

from sfumato.aggregator.http import clients, floods, monitoring, operations, pages, results
from sfumato.aggregator.http.aggregator import Aggregator, Settings
from sfumato.aggregator.http.buckets import SharedBuckets
from sfumato.aggregator.http.clients import UPLOAD_PATH, UPLOAD_ROUTE, describe_upload
from sfumato.aggregator.http.connections import WHOLE_REQUEST, ConnectionLimits
from sfumato.aggregator.http.headers import PublicCorsMiddleware, SafeHeadersMiddleware
from sfumato.aggregator.http.limits import admit
from sfumato.aggregator.http.monitoring import METRICS_FOLDER, forget_worker
from sfumato.aggregator.http.problems import Problem, ProblemDocument, problem_for, problem_response
from sfumato.aggregator.http.single_uploads import SingleUploads
from sfumato.aggregator.http.token import Token

__all__ = [
    "METRICS_FOLDER",
    "ROUTERS",
    "UPLOAD_PATH",
    "UPLOAD_ROUTE",
    "WHOLE_REQUEST",
    "Aggregator",
    "ConnectionLimits",
    "Problem",
    "ProblemDocument",
    "PublicCorsMiddleware",
    "SafeHeadersMiddleware",
    "Settings",
    "SharedBuckets",
    "SingleUploads",
    "Token",
    "admit",
    "describe_upload",
    "forget_worker",
    "problem_for",
    "problem_response",
]

ROUTERS = (
    clients.router,
    results.router,
    operations.router,
    floods.router,
    monitoring.router,
    pages.router,
)
