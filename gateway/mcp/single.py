"""Answers a tool call over HTTP in the task that brought it.

For every POST the SDK's stateless transport makes a session, two memory streams and three tasks, and takes them down
again. A tool call needs none of that: it is one request with one answer. So a plain one goes to the SDK's `serve_one`,
which checks and dispatches it as it would there; everything else stays with the transport, and so do its refusals.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    DEFAULT_NEGOTIATED_VERSION,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    ProgressToken,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One JSON-RPC request for `tools/call`."""

    request_id: RequestId
    params: dict[str, Any]
    version: str
    """Of the protocol, as the client's header has it."""


def version_of(headers: Headers) -> str | None:
    """The protocol version of a POST whose headers are in order; None when the transport has something to say to it."""
    version = headers.get("mcp-protocol-version", DEFAULT_NEGOTIATED_VERSION)
    kind = headers.get("content-type", "").partition(";")[0].strip()
    accepted = [part.partition(";")[0].strip() for part in headers.get("accept", "").split(",")]
    plain = kind == "application/json" and "application/json" in accepted and version in HANDSHAKE_PROTOCOL_VERSIONS
    return version if plain else None


def refusal(body: bytes) -> tuple[int, str] | None:
    """Code and words for a body that is no message of the protocol; None for one that has a message's form.

    The transport would refuse it too, with what its validation library says about each of its models.
    """
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return PARSE_ERROR, "The body is not JSON. Send one JSON-RPC message."
    if isinstance(message, list):
        return INVALID_REQUEST, "The body is a list. This version of the protocol has no batches: send one message."
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return INVALID_REQUEST, 'The body is no JSON-RPC message. Send an object with "jsonrpc": "2.0".'
    method, request_id = message.get("method"), message.get("id")
    answers = "result" in message or "error" in message
    if not isinstance(method, str) and not answers:
        return INVALID_REQUEST, 'The message has no method. Send for example "method": "tools/call".'
    if "id" in message and (isinstance(request_id, bool) or not isinstance(request_id, int | str)):
        return INVALID_REQUEST, "The message's id is neither a number nor a text."
    if message.get("params") is not None and not isinstance(message["params"], dict):
        return INVALID_REQUEST, "The message's params are no object."
    return None


def tool_call(body: bytes, version: str) -> ToolCall | None:
    """The call that a body holds; None when it is anything else, well formed or not."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(message, dict) or message.keys() != MEMBERS:
        return None
    request_id, params = message["id"], message["params"]
    if message["jsonrpc"] != "2.0" or message["method"] != "tools/call" or not isinstance(params, dict):
        return None
    if isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return None
    return ToolCall(request_id=request_id, params=params, version=version)


async def answer(server: Server[Any], call: ToolCall, scope: Scope, send: Send, *, lifespan: Any) -> None:  # noqa: ANN401
    """Runs the call and sends its result, or the protocol's error, as the transport would.

    Args:
        server: The MCP server.
        call: What is asked.
        scope: Of the HTTP request that brought it.
        send: Where the answer goes.
        lifespan: What the server's lifespan gave.
    """
    context = _Exchange(
        transport=TransportContext(kind="streamable-http", can_send_request=False),
        request_id=call.request_id,
        message_metadata=ServerMessageMetadata(request_context=Request(scope)),
        progress_token=progress_token_from_params(call.params),
    )
    reply: dict[str, object] = {"jsonrpc": "2.0", "id": call.request_id}
    try:
        reply["result"] = await serve_one(
            server,
            context,
            "tools/call",
            call.params,
            connection=Connection.from_envelope(call.version, None, None),
            lifespan_state=lifespan,
        )
    except Exception as error:  # the edge, as the SDK's dispatcher is one
        known = handler_exception_to_error_data(error)
        if known is None:
            log.exception("a tool call failed outside of its operation")
            known = ErrorData(code=0, message=str(error))
        reply["error"] = known.model_dump(mode="json", by_alias=True, exclude_unset=True)
    body = orjson.dumps(reply)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def whole_body(receive: Receive) -> tuple[bytes, bool]:
    """The body, whose size the caller has bounded, and whether it came to its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts), False
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts), True


def again(body: bytes, receive: Receive) -> Receive:
    """What gives a body once more that was read already."""
    given = False

    async def once_more() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once_more


@dataclass(slots=True, kw_only=True)
class _Exchange:
    """The SDK's `DispatchContext` of one request with one answer: nothing else can go to the client."""

    transport: TransportContext
    request_id: RequestId
    message_metadata: MessageMetadata
    progress_token: ProgressToken | None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """A JSON answer has no room for notifications."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nor for progress."""
