"""The ASGI application: routes, error handlers, OpenAPI document, and the writer's lifetime."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.aggregator.http import (
    ROUTERS,
    UPLOAD_PATH,
    UPLOAD_ROUTE,
    Aggregator,
    Problem,
    ProblemDocument,
    PublicCorsMiddleware,
    SafeHeadersMiddleware,
    Settings,
    admit,
    describe_upload,
    problem_for,
    problem_response,
)
from sfumato.aggregator.store import Store
from sfumato.errors import SfumatoError

__all__ = ["create_app"]

_log = logging.getLogger("sfumato.aggregator")

_ROUTING_PROBLEMS = {404: "not-found", 405: "method-not-allowed"}


def create_app(store: Store, settings: Settings | None = None) -> FastAPI:
    """Create the application for a store. ``/v1/openapi.json`` describes its endpoints."""
    aggregator = Aggregator(store, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        aggregator.writer.start()
        async with asyncio.TaskGroup() as tasks:
            gauges = None
            if aggregator.metrics.are_shared:
                gauges = tasks.create_task(aggregator.metrics.update_gauges())
            yield
            if gauges is not None:
                gauges.cancel()
        aggregator.writer.stop()

    app = FastAPI(
        title="Sfumato aggregator",
        version=version("sfumato"),
        description="Receives randomised reports, counts each batch once, and estimates the "
        "distribution for analysts.",
        lifespan=lifespan,
        openapi_url=None,  # _add_openapi_route adds it, with a rate limit
        docs_url=None,  # FastAPI's documentation pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,  # a redirect would send a report wherever the Host header points
    )
    app.state.aggregator = aggregator
    app.router.routes.append(UPLOAD_ROUTE)
    for router in ROUTERS:
        app.include_router(router)
    _add_openapi_route(app)
    _install_error_handlers(app, aggregator)
    app.add_middleware(PublicCorsMiddleware)
    app.add_middleware(SafeHeadersMiddleware)
    app.openapi = lambda: _openapi_document(app)  # type: ignore[method-assign]
    return app


def _install_error_handlers(app: FastAPI, aggregator: Aggregator) -> None:
    """Turn every error into a problem document that contains no part of the request body."""

    def respond(problem: Problem) -> Response:
        aggregator.metrics.count_problem(problem.name)
        return problem_response(problem)

    @app.exception_handler(Problem)
    async def on_problem(_: Request, problem: Problem) -> Response:
        return respond(problem)

    @app.exception_handler(SfumatoError)
    async def on_sfumato_error(_: Request, error: SfumatoError) -> Response:
        return respond(problem_for(error))

    @app.exception_handler(RequestValidationError)
    async def on_invalid_parameter(_: Request, error: RequestValidationError) -> Response:
        parameters: set[str] = set()
        for entry in error.errors():
            parameters.update(map(str, entry["loc"][1:2]))
        detail = f"Invalid: {', '.join(sorted(parameters)) or 'the body'}."
        return respond(Problem("invalid-request", detail))

    @app.exception_handler(HTTPException)
    async def on_routing_error(request: Request, error: HTTPException) -> Response:
        try:
            await admit(request)
        except Problem as problem:
            return respond(problem)
        name = _ROUTING_PROBLEMS.get(error.status_code, "invalid-request")
        return respond(Problem(name, "See /v1/openapi.json.", headers=error.headers))

    app.add_middleware(_CatchAllMiddleware, respond=respond)


class _CatchAllMiddleware:
    """Turns unexpected exceptions, and the end of the server, into problem documents.

    Starlette's own handler would also log the exception, and its traceback could contain part of a
    request body.
    """

    def __init__(self, app: ASGIApp, respond: Callable[[Problem], Response]) -> None:
        self._app = app
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response_started = False

        async def tracking_send(message: Message) -> None:
            nonlocal response_started
            response_started = True
            await send(message)

        try:
            await self._app(scope, receive, tracking_send)
        except asyncio.CancelledError:
            # The server stops, and has waited long enough for this request.
            if scope["type"] != "http":
                raise
            if not response_started:
                problem = Problem(
                    "stopping",
                    "The request was not completed in time. Send it again.",
                    headers={"Retry-After": "1", "Connection": "close"},
                )
                await self._respond(problem)(scope, receive, send)
        except Exception as error:
            if scope["type"] != "http":  # let the operator see a failed startup or shutdown
                raise
            _log.error("a request failed with %s", type(error).__name__)
            if not response_started:
                problem = Problem(
                    "internal-error", "The error was logged. You can retry the request."
                )
                await self._respond(problem)(scope, receive, send)


def _add_openapi_route(app: FastAPI) -> None:
    @app.get("/v1/openapi.json", include_in_schema=False, dependencies=[Depends(admit)])
    async def openapi() -> JSONResponse:
        return JSONResponse(app.openapi())


def _openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with Sfumato's problem documents instead of FastAPI's errors."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas["ProblemDocument"] = ProblemDocument.model_json_schema()
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    for path_item in document["paths"].values():
        for operation in path_item.values():
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
    document["paths"][UPLOAD_PATH] = {"post": describe_upload()}
    app.openapi_schema = document
    return document
