"""The family of operations on the brain as a whole: counts, and how far its projections are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from brain.v1.graph_service_pb2 import GetGraphProgressRequest, GetGraphStatsRequest
from brain.v1.ingest_service_pb2 import ListKeysRequest
from brain.v1.projection_pb2 import ProjectionState
from brain.v1.search_service_pb2 import GetSearchProgressRequest, GetSearchStatsRequest
from gateway.operations import parameters as p
from gateway.operations.definition import Call, Operation
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.parameters import Kind, Parameter
from gateway.operations.replies import projection_reply
from services.domain.context import Scope
from services.domain.errors import DeadlineExceeded, NotReady

STATUS_WAIT_SECONDS_MAX = 20
"""One call waits at most this long, so that no proxy or client gives up on it; longer waits call again."""

WAITS = ("none", "text", "links", "vectors", "all")

TEXT, VECTORS, GRAPH = "search-lexical", "search-vectors", "graph"


async def get_stats(call: Call) -> JsonObject:
    """Counts what the brain holds, as far as the caller may see."""
    source, min_revision = call.arguments.text("source"), call.arguments.number("min_revision")
    found, graph = await asyncio.gather(
        call.peers.search.GetStats(GetSearchStatsRequest(source=source, min_revision=min_revision)),
        call.peers.graph.GetStats(GetGraphStatsRequest(source=source, min_revision=min_revision)),
    )
    projections: list[JsonValue] = [projection_reply(state) for state in (*found.projections, graph.projection)]
    reply: JsonObject = {
        "pages": found.pages,
        "chunks": found.chunks,
        "embedded": found.embedded,
        "links": graph.links,
        "unresolved_links": graph.ghosts,
        "tags": found.tags,
        "timeline_entries": graph.timeline_entries,
        "by_type": {count.type: count.pages for count in found.types},
        "by_link_type": {count.link_type: count.links for count in graph.link_types},
        "embedder": found.embedder,
        "projections": projections,
    }
    if found.next_embedder:
        reply["next_embedder"] = found.next_embedder
    return reply


async def get_status(call: Call) -> JsonObject:
    """Tells how far the projections are, after waiting for those the caller wants, a bounded time."""
    args = call.arguments
    wait = args.text("wait")
    revision, (states, unembedded) = await asyncio.gather(_revision(call), _states(call))
    reached = True
    if wait != "none":
        seconds = max(1.0, float(args.number("timeout_seconds")))
        on = [state.projection for state in states]
        if wait == "vectors" and VECTORS not in on:
            raise NotReady(
                "FEATURE_OFF",
                "there is no embedder, so no vectors are made",
                field="wait",
                value=wait,
                next_step="Wait for text or links, or set FLEETBRAIN_EMBEDDER_URL.",
            )
        wanted = {"text": [TEXT], "vectors": [VECTORS], "links": [], "all": [name for name in on if name != GRAPH]}[
            wait
        ]
        answers = await asyncio.gather(
            _search_reaches(call, wanted, revision, seconds),
            _graph_reaches(call, revision if wait in {"links", "all"} else 0, seconds),
        )
        reached = all(answers)
        states, unembedded = await _states(call)
    return {
        "last_revision": revision,
        "reached": reached,
        "unembedded": unembedded,
        "projections": [projection_reply(state) for state in states],
    }


async def _revision(call: Call) -> int:
    """What to wait for: what the caller says, else the end of the page log now, everything accepted so far."""
    wanted = call.arguments.number("min_revision")
    if wanted:
        return wanted
    response = await call.peers.ingest.ListKeys(ListKeysRequest(source=call.arguments.text("source"), page_size=1))
    return response.last_revision


async def _states(call: Call) -> tuple[list[ProjectionState], int]:
    """Every projection that is on, and how many passages wait for their vector."""
    found, graph = await asyncio.gather(
        call.peers.search.GetProgress(GetSearchProgressRequest()),
        call.peers.graph.GetProgress(GetGraphProgressRequest()),
    )
    return [*found.projections, graph.projection], found.unembedded


async def _search_reaches(call: Call, projections: Sequence[str], revision: int, seconds: float) -> bool:
    if not projections:
        return True
    request = GetSearchProgressRequest(projections=projections, min_revision=revision, embedded=VECTORS in projections)
    try:
        return (await call.peers.search.GetProgress(request, timeout=seconds)).reached
    except DeadlineExceeded:
        return False


async def _graph_reaches(call: Call, revision: int, seconds: float) -> bool:
    if not revision:
        return True
    try:
        request = GetGraphProgressRequest(min_revision=revision)
        return (await call.peers.graph.GetProgress(request, timeout=seconds)).reached
    except DeadlineExceeded:
        return False


OPERATIONS = (
    Operation(
        name="get_stats",
        title="Count what the brain holds",
        description="Count pages, passages, vectors, links and tags, by type, and see how far each index is.",
        parameters=(p.MIN_REVISION, p.SOURCE),
        scope=Scope.READ,
        handler=get_stats,
    ),
    Operation(
        name="get_status",
        title="See how far the indexes are",
        description="See how far each projection is; wait for some of them, a bounded time.",
        parameters=(
            Parameter(
                name="wait",
                kind=Kind.TEXT,
                description="What to wait for: text, links, vectors, all or none.",
                choices=WAITS,
                default="none",
            ),
            Parameter(
                name="timeout_seconds",
                kind=Kind.WHOLE_NUMBER,
                description=f"How long to wait, at most {STATUS_WAIT_SECONDS_MAX}.",
                default=10,
                minimum=0,
                maximum=STATUS_WAIT_SECONDS_MAX,
                lowered=True,
            ),
            p.MIN_REVISION,
            p.SOURCE,
        ),
        scope=Scope.READ,
        handler=get_status,
        timeout_seconds=STATUS_WAIT_SECONDS_MAX + 10,
        tool=False,
    ),
)
