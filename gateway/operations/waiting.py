"""Reading your own write: waits until search by words and links show a revision."""

from __future__ import annotations

import asyncio

from brain.v1.graph_service_pb2 import GetGraphProgressRequest
from brain.v1.search_service_pb2 import GetSearchProgressRequest
from gateway.operations.definition import Call
from gateway.operations.json_value import JsonObject
from services.domain.errors import DeadlineExceeded, NotReady, Unavailable

WAIT_SECONDS = 2.0
"""An agent's patience for its own write; a projection that is further behind is told instead of waited for."""

NOT_YET = (DeadlineExceeded, NotReady, Unavailable)
"""Answers that mean the projection does not show the write yet. The write itself is safe: it was acknowledged."""


async def add_visibility(call: Call, reply: JsonObject) -> JsonObject:
    """Adds to a write's reply which projections show it, after waiting for them when the caller wants that."""
    if call.arguments.text("wait") == "none":
        return reply
    revision = reply["revision"]
    assert isinstance(revision, int)
    text, links = await asyncio.gather(_text_shows(call, revision), _links_show(call, revision))
    reply["indexed"] = {"text": text, "links": links}
    behind = [name for name, shown in (("search by words", text), ("links", links)) if not shown]
    if behind:
        call.arguments.notes.append(
            f"The write is stored; {' and '.join(behind)} did not show it within {WAIT_SECONDS:g} s. "
            f"Read with min_revision {revision} to be sure to see it."
        )
    return reply


async def _text_shows(call: Call, revision: int) -> bool:
    request = GetSearchProgressRequest(projections=["search-lexical"], min_revision=revision)
    try:
        return (await call.peers.search.GetProgress(request, timeout=WAIT_SECONDS)).reached
    except NOT_YET:
        return False


async def _links_show(call: Call, revision: int) -> bool:
    request = GetGraphProgressRequest(min_revision=revision)
    try:
        return (await call.peers.graph.GetProgress(request, timeout=WAIT_SECONDS)).reached
    except NOT_YET:
        return False
