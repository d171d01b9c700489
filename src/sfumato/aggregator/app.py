"""The aggregator as an application: routes, problem documents, and a writer that lives as long as it does."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.aggregator.aggregator import Aggregator, Settings
from sfumato.aggregator.http.health import health
from sfumato.aggregator.http.operations import operations
from sfumato.aggregator.http.pages import pages
from sfumato.aggregator.http.problems import Problem, ProblemDocument, problem_of, problem_response
from sfumato.aggregator.http.public import public
from sfumato.aggregator.http.results import results
from sfumato.aggregator.http.uploads import UPLOADS, described_uploads, uploads
from sfumato.aggregator.store.store import Store
from sfumato.errors import SfumatoError

__all__ = ["create_app"]

_log = logging.getLogger("sfumato.aggregator")


def create_app(store: Store, settings: Settings | None = None) -> FastAPI:
    """The application over a store: paths under ``/v1``, their description at ``/v1/openapi.json``."""
    aggregator = Aggregator(store, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        aggregator.writer.start()
        yield
        aggregator.writer.stop()

    app = FastAPI(
        title="Sfumato aggregator",
        version=version("sfumato"),
        description="Receives randomised reports, counts each batch once, and gives analysts the distribution.",
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a report must not be sent on to wherever the Host header says
    )
    app.router.routes.append(uploads(aggregator))
    for routes in (public, results, operations, health, pages):
        app.include_router(routes(aggregator))
    _speak_in_problems(app, aggregator)
    # Reports come from pages of any origin, without cookies: there is nothing here that a cookie would open.
    app.add_middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["ETag", "Retry-After"],
        max_age=86400,
    )
    app.openapi = _described(app)  # type: ignore[method-assign]
    return app


def _speak_in_problems(app: FastAPI, aggregator: Aggregator) -> None:
    """Whatever goes wrong ends in a problem document, and none of them holds a part of a body."""

    def refused(problem: Problem) -> Response:
        aggregator.metrics.refused(problem.name)
        return problem_response(problem)

    @app.exception_handler(Problem)
    async def known(_: Request, problem: Problem) -> Response:
        return refused(problem)

    @app.exception_handler(SfumatoError)
    async def raised(_: Request, error: SfumatoError) -> Response:
        return refused(problem_of(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        named = sorted({str(part) for found in error.errors() for part in found["loc"][1:2]})
        return refused(
            Problem("invalid-request", f"Look at the parameters: {', '.join(named) or 'the body'}.")
        )

    @app.exception_handler(HTTPException)
    async def routed(_: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            return refused(
                Problem("method-not-allowed", "See /v1/openapi.json.", headers=error.headers)
            )
        if error.status_code == 404:
            return refused(Problem("not-found", "See /v1/openapi.json for the addresses."))
        return refused(Problem("invalid-request", "See /v1/openapi.json."))

    app.add_middleware(_LastResort, refused=refused)


class _LastResort:
    """Answers what nobody foresaw.

    The framework's own handler would answer too, and then hand the exception on to the server's log, whose traceback
    could hold a part of a body.
    """

    def __init__(self, app: ASGIApp, refused: Callable[[Problem], Response]) -> None:
        self._app, self._refused = app, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            if (
                scope["type"] != "http"
            ):  # the application could not start or stop: that is for the operator to read
                raise
            _log.error("a request failed with %s", type(error).__name__)
            if not begun:
                problem = Problem(
                    "internal-error", "It was logged. The same request may be sent again."
                )
                await self._refused(problem)(scope, receive, send)


def _described(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """The OpenAPI document, with problem documents in place of the framework's own errors."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            schemas["ProblemDocument"] = ProblemDocument.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for path in document["paths"].values():
                for operation in path.values():
                    found = operation["responses"].get("422", {})
                    if "HTTPValidationError" in str(found):
                        del operation["responses"]["422"]
            document["paths"][UPLOADS] = {"post": described_uploads()}
            app.openapi_schema = document
        return app.openapi_schema

    return described
