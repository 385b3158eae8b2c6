"""MCP over streamable HTTP, stateless: every POST is answered by whichever replica gets it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.mcp import single


@asynccontextmanager
async def open_endpoint(server: Server[Any], *, body_bytes_max: int) -> AsyncIterator[ASGIApp]:
    """The ASGI application of /mcp; host, origin and token are checked before it."""
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=body_bytes_max
    )
    async with server.lifespan(server) as lifespan, manager.run():
        yield _Endpoint(manager, server, lifespan)


class _Endpoint:
    def __init__(self, manager: StreamableHTTPSessionManager, server: Server[Any], lifespan: Any) -> None:  # noqa: ANN401
        self._manager = manager
        self._server = server
        self._lifespan = lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["method"] != "POST":
            await Response(status_code=405, headers={"allow": "POST"})(scope, receive, send)
        elif "mcp-session-id" in headers:
            # We never give a session out, so this one is of another server or of another time: by the specification
            # the client begins a new one when it sees 404, and every call works on any replica then.
            await _session_unknown()(scope, receive, send)
        else:
            body, ended = await single.whole_body(receive)
            if not ended:
                return  # the client left before it had asked
            refused = single.refusal(body)
            version = single.version_of(headers)
            call = single.tool_call(body, version) if version is not None else None
            if refused is not None:
                await _refused(*refused)(scope, receive, send)
            elif call is None:
                await self._manager.handle_request(scope, single.again(body, receive), send)
            else:
                await single.answer(self._server, call, scope, send, lifespan=self._lifespan)


def _session_unknown() -> Response:
    return _refused(INVALID_REQUEST, "There is no such session. Call without Mcp-Session-Id.", 404)


def _refused(code: int, message: str, status: int = 400) -> Response:
    body = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})
    return Response(body, status_code=status, media_type="application/json")
