"""MCP over stdio: joins or starts the brain of this machine and forwards every call to it.

Nothing but the protocol is written to standard output: the SDK points file descriptor 1 at standard error while it
serves, so that not even a library's banner or a child process can get between two messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.admission import PRINCIPAL_HEADER, REMOTE_HEADER
from gateway.local_client import BrainGoneError, LocalClient
from gateway.mcp.tools import build_server
from gateway.operations.definition import Operation
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.run import find_operation
from services.domain.errors import Unavailable

LAST_CALLS_SECONDS = 60.0
"""How long calls in hand may take after the agent has closed standard input."""
CANCELLED = "notifications/cancelled"
TRIES_MAX = 3
"""A brain that goes down under a call is started again and asked again, but not for ever."""

Reading: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Writing: TypeAlias = MemoryObjectSendStream[SessionMessage]

OpenBrain = Callable[[Mapping[str, str]], LocalClient]
"""Joins the running brain, or starts one; the client sends these headers. Blocking."""


async def serve_stdio(operations: Mapping[str, Operation], open_brain: OpenBrain, *, version: str) -> None:
    """Serves one agent until it closes standard input."""
    forward = _Forward(operations, open_brain)
    server = build_server(operations, forward.call, version=version)
    async with stdio_server() as (reading, writing):
        # In the background, so that the handshake need not wait for a brain that has to come up first.
        joining = asyncio.create_task(forward.join())
        in_hand = _InHand()
        read_end, read_through = in_hand.incoming(reading)
        write_end, write_through = in_hand.outgoing(writing)
        passing = [asyncio.create_task(read_through()), asyncio.create_task(write_through())]
        try:
            await server.run(read_end, write_end, server.create_initialization_options())
            await passing[1]  # what was answered last is written
        finally:
            joining.cancel()
            for task in passing:
                task.cancel()


class _InHand:
    """Knows which requests are not yet answered, and keeps the end of input from the server until all are.

    Programs that pipe a few requests in close their end at once; the server would drop what it is working on.
    """

    def __init__(self) -> None:
        self._requests: set[object] = set()
        self._changed = asyncio.Event()

    def incoming(self, reading: Reading) -> tuple[Reading, Callable[[], Coroutine[Any, Any, None]]]:
        """The stream to read from instead, and what moves messages into it."""
        inner, outer = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def move() -> None:
            async with inner:
                async for item in reading:
                    message = item.message if isinstance(item, SessionMessage) else None
                    if isinstance(message, JSONRPCRequest):
                        self._requests.add(message.id)
                    elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
                        self._requests.discard((message.params or {}).get("requestId"))  # it gets no answer
                    await inner.send(item)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAST_CALLS_SECONDS):
                        while self._requests:
                            self._changed.clear()
                            await self._changed.wait()

        return outer, move

    def outgoing(self, writing: Writing) -> tuple[Writing, Callable[[], Coroutine[Any, Any, None]]]:
        """The stream to write to instead, and what moves messages out of it."""
        outer, inner = anyio.create_memory_object_stream[SessionMessage](0)

        async def move() -> None:
            async with inner, writing:
                async for item in inner:
                    await writing.send(item)
                    if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                        self._requests.discard(item.message.id)
                        self._changed.set()

        return outer, move


class _Forward:
    """Calls tools at the brain, and finds a brain again when it is gone."""

    def __init__(self, operations: Mapping[str, Operation], open_brain: OpenBrain) -> None:
        self._operations = operations
        self._open_brain = open_brain
        # An agent is not the person at the keyboard: what it does may come out of a page it read.
        self._headers = {REMOTE_HEADER: "1", PRINCIPAL_HEADER: "mcp"}
        self._client: LocalClient | None = None
        self._joining = asyncio.Lock()

    async def join(self) -> LocalClient:
        """The brain's client; one attempt at a time."""
        async with self._joining:
            if self._client is None:
                self._client = await asyncio.to_thread(self._open_brain, self._headers)
            return self._client

    async def call(self, name: str, raw: JsonValue, request: Any) -> JsonObject:  # noqa: ANN401 - the SDK's type
        """The tool's result, from whichever brain answers."""
        operation = find_operation(self._operations, name, tools_only=True)
        arguments = _repeatable(operation, raw)
        for _ in range(TRIES_MAX):
            client = await self.join()
            try:
                return await asyncio.to_thread(client.call, name, arguments)
            except BrainGoneError:
                async with self._joining:
                    if self._client is client:
                        self._client = None
        raise Unavailable(
            "PEER_UNAVAILABLE",
            "the brain went down again and again",
            next_step="Look at the log below the data folder, or run `fleetbrain doctor`.",
        )


def _repeatable(operation: Operation, raw: JsonValue) -> JsonValue:
    """The arguments with an idempotency key, so that a write may be sent again when nobody knows whether it arrived."""
    if not any(parameter.name == "request_id" for parameter in operation.parameters):
        return raw
    if raw is None:
        raw = {}
    if isinstance(raw, dict) and not raw.get("request_id"):
        return {**raw, "request_id": str(uuid.uuid4())}
    return raw
