"""An agent: an MCP client, and nothing else, that calls tools by name."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

WAIT_SECONDS = 20.0
LOOK_SECONDS = 0.05
READS = frozenset({"search", "query", "list_pages", "get_links", "get_backlinks", "traverse_graph", "resolve_slugs"})
"""Tools that answer from a projection and take `min_revision`."""


_numbers = itertools.count(1)


def fresh(folder: str = "notes") -> str:
    """A slug that no other test uses."""
    return f"{folder}/page-{next(_numbers)}"


class ToolError(Exception):
    """A tool result that says isError, with its error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error)
        self.reason: str = error["reason"]
        self.field: str = error["field"]
        self.next_step: str = error["next_step"]
        self.details: dict[str, Any] = error.get("details", {})


@dataclass(frozen=True, slots=True)
class Agent:
    """Calls tools and reads their replies, as a careful agent does.

    When a write says that a projection did not show it within its two seconds, which happens where ten test processes
    share two cores, the reads after it ask for its revision.
    """

    client: Client
    behind: list[int] = field(default_factory=list)

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The tool's result; raises ToolError when it failed."""
        if self.behind and tool in READS:
            arguments = {"min_revision": max(self.behind), **arguments}
        result = await self.client.call_tool(tool, arguments)
        content = result.content[0]
        assert content.type == "text"
        reply: dict[str, Any] = json.loads(content.text)
        if result.is_error:
            assert set(reply["error"]) >= {"reason", "message", "field", "value", "next_step"}
            raise ToolError(reply["error"])
        if not all(reply.get("indexed", {}).values()):
            self.behind.append(reply["revision"])
        return reply

    async def slugs(self, tool: str, query: str, **arguments: object) -> list[str]:
        """The slugs that a query finds, best first."""
        return [hit["slug"] for hit in (await self.call(tool, query=query, **arguments))["hits"]]


async def refused(brain: Agent, tool: str, **arguments: object) -> ToolError:
    """The error of a call that must fail; it always says what to do next."""
    with pytest.raises(ToolError) as caught:
        await brain.call(tool, **arguments)
    assert caught.value.next_step
    return caught.value


@asynccontextmanager
async def agent(server: str | StdioServerParameters, *, mode: str = "legacy") -> AsyncIterator[Agent]:
    """An agent that is connected over HTTP, or over stdio."""
    target = f"{server}/mcp" if isinstance(server, str) else server
    async with Client(target, mode=mode) as client:
        yield Agent(client)


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = WAIT_SECONDS) -> None:
    """Returns when the condition holds; fails after a bounded time."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - another process has no event to wait for
            await asyncio.sleep(LOOK_SECONDS)
