"""The HTTP application: MCP, one JSON endpoint per operation, health and metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.admission import error_headers
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.run import Runner, error_reply
from gateway.operations.status_codes import http_status
from services.domain.context import OperationContext
from services.domain.errors import BrainError, InvalidArgument, NotFound
from services.runtime.telemetry import metrics_text

CheckReady = Callable[[], Awaitable[dict[str, bool]]]
"""Tells for each service behind the gateway whether it serves."""


def build_app(runner: Runner, mcp: ASGIApp, check_ready: CheckReady) -> Starlette:
    """The application. Admission wraps it, once for each listener."""

    async def call_operation(request: Request) -> Response:
        try:
            result = await runner.run(
                request.path_params["name"],
                _arguments(await request.body()),
                caller=caller_of(request),
                trace=request.headers.get("traceparent"),
            )
        except BrainError as error:
            return _error(error)
        return _json(result)

    async def healthy(request: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(request: Request) -> Response:
        services = await check_ready()
        serving = all(services.values())
        body: JsonObject = {"status": "ready" if serving else "not ready", "services": dict(services)}
        return _json(body, 200 if serving else 503)

    async def metrics(request: Request) -> Response:
        return Response(metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def nothing_here(request: Request, error: Exception) -> Response:
        return _error(
            NotFound(
                "OPERATION_UNKNOWN",
                f"nothing is at {request.url.path[:80]}",
                field="path",
                value=request.url.path,
                next_step="MCP is at /mcp, operations are at POST /api/<operation>.",
            )
        )

    async def not_this_way(request: Request, error: Exception) -> Response:
        refused = InvalidArgument(
            "FIELD_INVALID",
            f"{request.method} is not answered here",
            field="method",
            value=request.method,
            next_step="Operations are POST /api/<operation> with a JSON body.",
        )
        headers = error.headers if isinstance(error, HTTPException) else None
        response = _json(error_reply(refused), 405)
        response.headers.update(headers or {})
        return response

    return Starlette(
        routes=[
            Route("/mcp", endpoint=mcp, methods=None),
            Route("/api/{name}", endpoint=call_operation, methods=["POST"]),
            Route("/healthz", endpoint=healthy),
            Route("/readyz", endpoint=ready),
            Route("/metrics", endpoint=metrics),
        ],
        exception_handlers={404: nothing_here, 405: not_this_way},
    )


def caller_of(request: Request) -> OperationContext:
    """The caller that admission let in."""
    caller = request.state.caller
    assert isinstance(caller, OperationContext)
    return caller


def _arguments(body: bytes) -> JsonValue:
    if not body.strip():
        return None
    try:
        arguments: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"the body is not JSON: {error}",
            field="body",
            next_step="Send a JSON object with the arguments by name.",
        ) from error
    return arguments


def _json(body: JsonObject, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")


def _error(error: BrainError) -> Response:
    response = _json(error_reply(error), http_status(error))
    for name, value in error_headers(error):
        response.headers[name.decode()] = value.decode()
    return response
