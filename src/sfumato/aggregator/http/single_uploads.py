"""The usual upload: one report from a device, in the exact form that clients write.

The general endpoint reads any form, and refuses what is wrong. Routing, headers and parsing take
it most of the time of a request. ``SingleUploads`` recognises the usual form by one regular
expression, and counts the report. It refuses nothing: all other requests go on to the general
endpoint, which answers them as if it had been asked first (docs/decisions/049.md).
"""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.aggregator.catalogue import CatalogueEntry
from sfumato.aggregator.http.aggregator import Aggregator
from sfumato.aggregator.http.clients import UPLOAD_FAILURE, UPLOAD_PATH, UploadReply, count_batch
from sfumato.aggregator.http.connections import WHOLE_REQUEST
from sfumato.aggregator.http.headers import NO_SNIFFING, PUBLIC_CORS_HEADERS
from sfumato.aggregator.http.limits import client_address
from sfumato.batches import JSON_MEDIA_TYPE, Batch

__all__ = ["SingleUploads"]

_PATH_START, _PATH_END = UPLOAD_PATH.split("{fingerprint}")
_JSON = JSON_MEDIA_TYPE.encode("ascii")

_UNUSUAL_HEADERS = frozenset({b"authorization", b"content-encoding", b"cookie"})
"""Headers that change how the general endpoint reads a body, or what it answers."""


class SingleUploads:
    """Counts usual uploads, and passes all other requests on.

    A request must have arrived as a whole, as ``Connection`` tells, so nothing here waits for it.
    """

    def __init__(self, app: ASGIApp, aggregator: Aggregator) -> None:
        self._app = app
        self._aggregator = aggregator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        headers = _usual_headers(scope)
        entry = None if headers is None else self._find_survey(scope)
        if headers is None or entry is None:
            await self._app(scope, receive, send)
            return
        message = await receive()
        try:
            batch = self._admit_batch(scope, entry, message)
            receipt = None if batch is None else await count_batch(self._aggregator, batch)
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - answered as usual
            await self._app({**scope, UPLOAD_FAILURE: failure}, receive, send)
            return
        if receipt is None:
            await self._app(scope, _receive_again(message, receive), send)
            return
        await _send_receipt(send, receipt, has_origin=b"origin" in headers)

    def _find_survey(self, scope: Scope) -> CatalogueEntry | None:
        """Return the survey in the path, unless it must be read from the store first."""
        path: str = scope["path"]
        if not (path.startswith(_PATH_START) and path.endswith(_PATH_END)):
            return None
        return self._aggregator.catalogue.get(path[len(_PATH_START) : -len(_PATH_END)])

    def _admit_batch(self, scope: Scope, entry: CatalogueEntry, message: Message) -> Batch | None:
        """Return the batch in a body, unless it is unusual, or not allowed now."""
        batch = entry.single_reports.read(message.get("body", b""))
        if batch is None:
            return None
        now = self._aggregator.settings.now()
        if not entry.is_open(now):
            return None
        if self._aggregator.limits.seconds_to_wait(client_address(scope)):
            return None
        return entry.rules.assign_cell(batch, now)


def _usual_headers(scope: Scope) -> dict[bytes, bytes] | None:
    """Return the headers of a complete JSON upload, or ``None`` if the request is unusual."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    if WHOLE_REQUEST not in scope.get("extensions", ()):
        return None
    headers = dict(scope["headers"])
    is_usual = (
        headers.get(b"content-type") == _JSON
        and len(headers) == len(scope["headers"])  # none occurs twice
        and _UNUSUAL_HEADERS.isdisjoint(headers)
    )
    return headers if is_usual else None


def _receive_again(message: Message, receive: Receive) -> Receive:
    """Return a function that receives a message once more, and then what follows it."""
    messages = [message]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


async def _send_receipt(send: Send, receipt: UploadReply, *, has_origin: bool) -> None:
    headers = [
        (b"content-length", b"%d" % len(receipt.body)),
        (b"content-type", _JSON),
        NO_SNIFFING,
    ]
    if has_origin:
        headers += PUBLIC_CORS_HEADERS
    await send({"type": "http.response.start", "status": receipt.status, "headers": headers})
    await send({"type": "http.response.body", "body": receipt.body})
