"""A tool call answered in its own task gets the answer that the SDK's transport would give."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Message

from gateway.mcp import single
from gateway.mcp.http import open_endpoint
from gateway.mcp.tools import build_server
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.registry import all_operations
from services.domain.errors import InvalidArgument, NotFound

HEADERS = {
    "host": "127.0.0.1",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
}


async def echo(name: str, arguments: JsonValue, _request: object) -> JsonObject:
    """Says what arrived; raises where the slug says so."""
    if name == "no_such_tool":
        raise InvalidArgument("OPERATION_UNKNOWN", "there is none", next_step="Look.")
    if isinstance(arguments, dict) and arguments.get("slug") == "missing":
        raise NotFound("PAGE_NOT_FOUND", "没有", field="slug", value="missing", next_step="Look.")
    if isinstance(arguments, dict) and arguments.get("slug") == "broken":
        raise RuntimeError("broken")
    return {"name": name, "arguments": arguments}


@asynccontextmanager
async def both() -> AsyncIterator[tuple[ASGIApp, ASGIApp]]:
    """Our endpoint, and the SDK's transport alone, over the same operations."""
    server = build_server(all_operations(), echo, version="1")
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=1_000_000)
    async with open_endpoint(server, body_bytes_max=1_000_000) as ours, manager.run():
        yield ours, manager.handle_request


async def post(app: ASGIApp, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    """The status and the body of an answer, read where it is JSON."""
    parts = [body[:7], body[7:]]
    sent: list[Message] = []

    async def receive() -> Message:
        if not parts:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": raw, "state": {}}
    await app(scope, receive, send)
    answered = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(answered) if answered.startswith(b"{") else answered


def request(**members: object) -> dict[str, object]:
    """A JSON-RPC request for a tool."""
    params = {"name": "get_page", "arguments": {"slug": "a"}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params} | members


def called(arguments: object = None, **params: object) -> dict[str, object]:
    """A call of a tool with some arguments."""
    return request(params={"name": "get_page", "arguments": arguments} | params)


@pytest.mark.parametrize(
    "message",
    [
        request(),
        request(id="seven"),
        called({"slug": "页", "n": 1.5}),
        called({"slug": "missing"}),
        called({"slug": "broken"}),
        called('{"slug": "a"}'),
        called([1]),
        called(None),
        called({}, name="no_such_tool"),
        called({}, name=5),
        called({}, _meta={"progressToken": "p"}),
        request(params={}),
        request(params=None),
        request(method="tools/list", params={}),
        request(method="tools/nothing", params={}),
        request(method="ping", params={}),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
    ],
    ids=str,
)
async def test_a_message_gets_the_answer_of_the_sdks_transport(message: object) -> None:
    body = json.dumps(message).encode()
    async with both() as (ours, sdk):
        assert await post(ours, body, HEADERS) == await post(sdk, body, HEADERS)


@pytest.mark.parametrize(
    "body",
    [
        *(json.dumps(request(**members)).encode() for members in ({"params": [1]}, {"id": None}, {"id": True})),
        *(json.dumps(request(**members)).encode() for members in ({"id": 1.5}, {"jsonrpc": "1.0"})),
        json.dumps([request()]).encode(),
        *(b"", b"{", b"7", b"null", b"\xff\xfe", b'{"jsonrpc": "2.0", "id": 1e400}'),
    ],
    ids=str,
)
async def test_what_is_no_message_is_refused_in_one_line(body: bytes) -> None:
    """The SDK's transport takes a request with a broken id for a notification, and its caller waits for ever."""
    async with both() as (ours, _):
        status, answer = await post(ours, body, HEADERS)

    assert status == 400
    assert answer["jsonrpc"] == "2.0"
    assert answer["error"]["code"] in (-32700, -32600)
    assert len(answer["error"]["message"].splitlines()) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"accept": "text/html"},
        {"accept": "application/json"},
        {"accept": "*/*"},
        {"accept": ""},
        {"content-type": "text/plain"},
        {"content-type": "application/json; charset=utf-8"},
        {"mcp-protocol-version": "2024-11-05"},
        {"mcp-protocol-version": "1999-01-01"},
        {"mcp-protocol-version": "2026-07-28"},
    ],
    ids=str,
)
async def test_headers_mean_what_they_mean_to_the_sdks_transport(changed: dict[str, str]) -> None:
    body = json.dumps(request()).encode()
    async with both() as (ours, sdk):
        assert await post(ours, body, HEADERS | changed) == await post(sdk, body, HEADERS | changed)


def test_a_plain_tool_call_takes_the_short_way() -> None:
    call = single.tool_call(json.dumps(request()).encode(), "2025-06-18")

    assert call is not None
    assert call.request_id == 7
    assert call.params == {"name": "get_page", "arguments": {"slug": "a"}}
