"""One MCP client over HTTP, as thin as a client can be: what it measures is the brain."""

from __future__ import annotations

import itertools
import json
from types import TracebackType
from typing import Any, Self

import httpx

CALL_SECONDS_MAX = 30


class McpClient:
    """Calls tools over streamable HTTP on one kept-alive connection; not safe for concurrent calls."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=CALL_SECONDS_MAX)
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The result of a tool as JSON; raises RuntimeError with the brain's words when the tool fails."""
        request = {
            "jsonrpc": "2.0",
            "id": next(self._ids),
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        response = self._client.post("/mcp", json=request, headers=headers)
        response.raise_for_status()
        result = response.json()["result"]
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        return answer
