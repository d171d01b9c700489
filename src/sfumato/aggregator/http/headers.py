"""Response headers that browsers obey: who may read a response, cache it, or guess its type."""

import re

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["NO_SNIFFING", "PUBLIC_CORS_HEADERS", "PublicCorsMiddleware", "SafeHeadersMiddleware"]

NO_SNIFFING = (b"x-content-type-options", b"nosniff")
"""The header that keeps browsers from taking a response for something else, such as a page."""

_NO_STORE = (b"cache-control", b"no-store")

_PUBLIC_PATH = re.compile(r"/v1/surveys(/[^/]+(/batches)?)?|/static/client/.+")
"""What a client in a browser needs: the surveys, the upload endpoint, and the client itself."""

_EXPOSED_HEADERS = ["ETag", "Retry-After"]

PUBLIC_CORS_HEADERS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", ", ".join(_EXPOSED_HEADERS).encode("ascii")),
)
"""The headers of a response to a page of another origin, if its request has no cookies."""

_CLIENT_HEADERS = ["Content-Type", "Content-Encoding", "If-None-Match"]


class PublicCorsMiddleware:
    """Lets pages of any origin use the public endpoints, without credentials.

    This is safe: reports are private already, and no endpoint uses cookies. Other endpoints, such
    as those of operators, can be used only by the aggregator's own pages.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._public_app = CORSMiddleware(
            app,
            allow_origins=["*"],
            allow_methods=["GET", "POST"],
            allow_headers=_CLIENT_HEADERS,
            expose_headers=_EXPOSED_HEADERS,
            max_age=86400,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, with CORS headers if it is for a public endpoint."""
        is_public = scope["type"] == "http" and _PUBLIC_PATH.fullmatch(scope["path"])
        await (self._public_app if is_public else self._app)(scope, receive, send)


class SafeHeadersMiddleware:
    """Adds ``nosniff`` to all responses, and ``no-store`` to those of requests with a token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and add the headers to its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_authorised = any(name == b"authorization" for name, _ in scope["headers"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                names = {name.lower() for name, _ in headers}
                if NO_SNIFFING[0] not in names:
                    headers.append(NO_SNIFFING)
                if is_authorised and _NO_STORE[0] not in names:
                    headers.append(_NO_STORE)
                message["headers"] = headers
            await send(message)

        await self._app(scope, receive, send_with_headers)
