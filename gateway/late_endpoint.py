"""An endpoint that comes up after the others: the MCP SDK takes longer to import than everything else to start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.admission import refuse
from services.domain.errors import Unavailable

Opened: TypeAlias = AbstractAsyncContextManager[ASGIApp]

WAIT_SECONDS = 30.0
"""Importing takes one to three seconds; who calls that early waits for it."""


class LateEndpoint:
    """Holds calls until the application behind it is there."""

    def __init__(self, load: Callable[[], Opened]) -> None:
        """`load` imports and builds the application; it is called once, in a thread, because it takes its time."""
        self._load = load
        self._app: ASGIApp | None = None
        self._loaded = asyncio.Event()

    async def run(self) -> None:
        """Loads the application and keeps it open until cancelled."""
        opened = await asyncio.to_thread(self._load)
        async with opened as self._app:
            self._loaded.set()
            await asyncio.Event().wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the application, once it is there."""
        if self._app is None:
            try:
                await asyncio.wait_for(self._loaded.wait(), WAIT_SECONDS)
            except TimeoutError:
                error = Unavailable(
                    "PEER_UNAVAILABLE",
                    "MCP is not up yet",
                    next_step="Try again in a moment.",
                    metadata={"peer": "mcp"},
                    retry_after_seconds=1.0,
                )
                await refuse(error, send)
                return
        assert self._app is not None
        await self._app(scope, receive, send)
