"""The family of operations on the brain as a whole: counts, and how far its projections are."""

from __future__ import annotations

import asyncio

from brain.v1.graph_service_pb2 import GetGraphProgressRequest, GetGraphStatsRequest
from brain.v1.ingest_service_pb2 import ListKeysRequest
from brain.v1.search_service_pb2 import GetSearchProgressRequest, GetSearchStatsRequest
from gateway.operations import parameters as p
from gateway.operations.definition import Call, Operation
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.parameters import Kind, Parameter
from gateway.operations.replies import projection_reply
from services.domain.context import Scope
from services.domain.errors import DeadlineExceeded

STATUS_WAIT_SECONDS_MAX = 20
"""One call waits at most this long, so that no proxy or client gives up on it; longer waits call again."""

WAITS = {
    "none": ((), False),
    "text": (("search-lexical",), False),
    "links": (("graph",), False),
    "vectors": (("search-vectors",), True),
    "all": (("search-lexical", "search-vectors", "graph"), True),
}
"""What each wait is for: the projections, and whether every passage must have its vector."""


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
    wanted, embedded = WAITS[args.text("wait")]
    revision = args.number("min_revision") or await _last_revision(call)
    seconds = float(args.number("timeout_seconds")) if wanted else 0.0
    found, graph = await asyncio.gather(
        _search_progress(call, tuple(name for name in wanted if name != "graph"), revision, embedded, seconds),
        _graph_progress(call, "graph" in wanted, revision, seconds),
    )
    return {
        "last_revision": revision,
        "reached": bool(found.pop("reached")) and bool(graph.pop("reached")),
        "unembedded": found["unembedded"],
        "projections": [*_list(found["projections"]), *_list(graph["projections"])],
    }


async def _last_revision(call: Call) -> int:
    """The end of the page log now: everything accepted so far."""
    response = await call.peers.ingest.ListKeys(ListKeysRequest(source=call.arguments.text("source"), page_size=1))
    return response.last_revision


async def _search_progress(
    call: Call, wanted: tuple[str, ...], revision: int, embedded: bool, seconds: float
) -> JsonObject:
    request = GetSearchProgressRequest(projections=wanted)
    if wanted:
        request.min_revision, request.embedded = revision, embedded and "search-vectors" in wanted
    reached = not wanted
    if wanted:
        try:
            response = await call.peers.search.GetProgress(request, timeout=max(seconds, 1.0))
            reached = response.reached
        except DeadlineExceeded:
            reached = False
    # Asked again for all: the first answer holds only the projections that were waited for.
    response = await call.peers.search.GetProgress(GetSearchProgressRequest())
    return {
        "projections": [projection_reply(state) for state in response.projections],
        "reached": reached,
        "unembedded": response.unembedded,
    }


async def _graph_progress(call: Call, wanted: bool, revision: int, seconds: float) -> JsonObject:
    reached = not wanted
    if wanted:
        try:
            request = GetGraphProgressRequest(min_revision=revision)
            reached = (await call.peers.graph.GetProgress(request, timeout=max(seconds, 1.0))).reached
        except DeadlineExceeded:
            reached = False
    response = await call.peers.graph.GetProgress(GetGraphProgressRequest())
    return {"projections": [projection_reply(response.projection)], "reached": reached}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


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
                choices=tuple(WAITS),
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
