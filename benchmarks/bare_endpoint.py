"""The least that an upload endpoint can do: read the JSON of a batch, and send a receipt.

    uvicorn --app-dir benchmarks bare_endpoint:app --no-access-log

It checks, counts and stores nothing.
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

__all__ = ["app"]


async def _upload(request: Request) -> JSONResponse:
    batch = await request.json()
    receipt = {
        "batch": batch["batch"],
        "reports": len(batch["reports"]),
        "survey": request.path_params["fingerprint"],
    }
    return JSONResponse(receipt, 201)


app = Starlette(routes=[Route("/v1/surveys/{fingerprint}/batches", _upload, methods=["POST"])])
