"""The gRPC edge of graph: messages in, use cases called, messages out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

from grpc import aio

from brain.v1 import graph_service_pb2 as pb
from brain.v1 import graph_service_pb2_grpc, projection_pb2
from services.domain.context import Scope
from services.domain.errors import NotReady
from services.graph import messages
from services.graph.app import reading, walks
from services.graph.app.bounds import field_invalid, field_required
from services.graph.ports import GraphHolder, GraphStore, LinkPosition, UnresolvedPosition
from services.runtime.calls import current_context, remaining_seconds
from services.runtime.pages import decode_page_token, encode_page_token
from services.runtime.projection import HostedProjection

WAIT_SECONDS_MAX = 10.0
"""How long a read waits for `min_revision` at most: what is further behind than that is not coming soon."""

ANSWER_SECONDS = 0.05
"""Left of a deadline for the answer itself, so that it says how far the index is instead of nothing."""

JOB_ID_CHARACTERS_MAX = 64

UNREPORTED_MAX = 16
"""Progress messages that may wait for a slow listener; it then misses some, never the last."""


class GraphServicer(graph_service_pb2_grpc.GraphServiceServicer):
    """`brain.v1.GraphService`. Errors are raised as they are; the interceptor gives them their status."""

    def __init__(self, projection: HostedProjection[GraphHolder], *, engine: str) -> None:
        self._projection = projection
        self._engine = engine

    async def ListLinks(  # noqa: N802
        self, request: pb.ListLinksRequest, context: aio.ServicerContext[pb.ListLinksRequest, pb.ListLinksResponse]
    ) -> pb.ListLinksResponse:
        """Lists the links that leave a page."""
        async with self._at(request.min_revision) as store:
            found, token = await self._links(store, request, arriving=False)
            return pb.ListLinksResponse(links=found, next_page_token=token, indexed_revision=self._revision)

    async def ListBacklinks(  # noqa: N802
        self,
        request: pb.ListBacklinksRequest,
        context: aio.ServicerContext[pb.ListBacklinksRequest, pb.ListBacklinksResponse],
    ) -> pb.ListBacklinksResponse:
        """Lists the links that arrive at a page."""
        async with self._at(request.min_revision) as store:
            found, token = await self._links(store, request, arriving=True)
            return pb.ListBacklinksResponse(links=found, next_page_token=token, indexed_revision=self._revision)

    async def BatchCountBacklinks(  # noqa: N802
        self,
        request: pb.BatchCountBacklinksRequest,
        context: aio.ServicerContext[pb.BatchCountBacklinksRequest, pb.BatchCountBacklinksResponse],
    ) -> pb.BatchCountBacklinksResponse:
        """Counts the distinct pages that link to each of many pages."""
        async with self._at(request.min_revision) as store:
            counts = await reading.count_backlinks(store, current_context(), request.page_ids)
            return pb.BatchCountBacklinksResponse(counts=counts)

    async def TraverseLinks(  # noqa: N802
        self,
        request: pb.TraverseLinksRequest,
        context: aio.ServicerContext[pb.TraverseLinksRequest, pb.TraverseLinksResponse],
    ) -> pb.TraverseLinksResponse:
        """Walks links from a page."""
        async with self._at(request.min_revision) as store:
            walk = await walks.traverse(
                store,
                current_context(),
                source=request.source,
                slug=request.slug,
                direction=messages.direction(request.direction),
                link_types=request.link_types,
                depth=request.depth,
                limit=request.limit,
            )
            return pb.TraverseLinksResponse(
                root=messages.page(walk.root),
                edges=map(messages.traversed_edge, walk.edges),
                truncated=walk.truncated,
                indexed_revision=self._revision,
            )

    async def BatchResolveNames(  # noqa: N802
        self,
        request: pb.BatchResolveNamesRequest,
        context: aio.ServicerContext[pb.BatchResolveNamesRequest, pb.BatchResolveNamesResponse],
    ) -> pb.BatchResolveNamesResponse:
        """Resolves names as people write them to pages."""
        async with self._at(request.min_revision) as store:
            found = await reading.resolve_names(
                store,
                current_context(),
                source=request.source,
                names=request.names,
                every_source=request.every_source,
            )
            return pb.BatchResolveNamesResponse(names=map(messages.resolved_name, request.names, found))

    async def SearchNames(  # noqa: N802
        self,
        request: pb.SearchNamesRequest,
        context: aio.ServicerContext[pb.SearchNamesRequest, pb.SearchNamesResponse],
    ) -> pb.SearchNamesResponse:
        """Lists names that contain or nearly equal a part."""
        async with self._at(request.min_revision) as store:
            found = await reading.search_names(
                store, current_context(), source=request.source, partial=request.partial, limit=request.limit
            )
            return pb.SearchNamesResponse(matches=map(messages.name_match, found))

    async def AnswerRelation(  # noqa: N802
        self,
        request: pb.AnswerRelationRequest,
        context: aio.ServicerContext[pb.AnswerRelationRequest, pb.AnswerRelationResponse],
    ) -> pb.AnswerRelationResponse:
        """Answers a relational question."""
        async with self._at(request.min_revision) as store:
            relation = await walks.answer_relation(
                store,
                current_context(),
                source=request.source,
                names=request.names,
                hops=[messages.relation_hop(hop) for hop in request.hops],
                limit=request.limit,
            )
            return pb.AnswerRelationResponse(
                answers=map(messages.relation_answer, relation.answers),
                seeds=map(messages.name_match, relation.seeds),
                unresolved=relation.unresolved,
                indexed_revision=self._revision,
            )

    async def ListUnresolved(  # noqa: N802
        self,
        request: pb.ListUnresolvedRequest,
        context: aio.ServicerContext[pb.ListUnresolvedRequest, pb.ListUnresolvedResponse],
    ) -> pb.ListUnresolvedResponse:
        """Lists references that lead to no single page."""
        arguments = {"list": "unresolved", "source": request.source}
        after = None
        if request.page_token:
            after = messages.unresolved_position(decode_page_token(request.page_token, arguments))
        async with self._at(request.min_revision) as store:
            found = await reading.list_unresolved(
                store, current_context(), source=request.source, page_size=request.page_size, after=after
            )
            return pb.ListUnresolvedResponse(
                references=map(messages.unresolved_reference, found.items),
                next_page_token=token_of(found.next_after, arguments),
            )

    async def RebuildProjection(  # noqa: N802
        self,
        request: pb.RebuildGraphProjectionRequest,
        context: aio.ServicerContext[pb.RebuildGraphProjectionRequest, projection_pb2.WorkProgress],
    ) -> AsyncIterator[projection_pb2.WorkProgress]:
        """Builds the projection anew beside the one in use and switches."""
        current_context().require(Scope.ADMIN)
        job_id = checked_job_id(request.job_id)
        reports: asyncio.Queue[tuple[int, int]] = asyncio.Queue(UNREPORTED_MAX)

        async def report(done: int, total: int) -> None:
            if reports.full():
                reports.get_nowait()
            reports.put_nowait((done, total))

        work = asyncio.create_task(self._projection.rebuild(job_id, report, to=request.to))
        try:
            async for done, total in reported(work, reports):
                yield projection_pb2.WorkProgress(job_id=job_id, finished=done, total=total, unit="pages")
            result = await work
        finally:
            work.cancel()  # This listener ends; the rebuild itself goes on for the next one who asks.
        yield projection_pb2.WorkProgress(
            job_id=job_id,
            finished=result.pages,
            total=result.pages,
            done=True,
            unit="pages",
            store_id=result.store_id,
        )

    async def CancelWork(  # noqa: N802
        self,
        request: pb.CancelGraphWorkRequest,
        context: aio.ServicerContext[pb.CancelGraphWorkRequest, pb.CancelGraphWorkResponse],
    ) -> pb.CancelGraphWorkResponse:
        """Ends the work of a job."""
        current_context().require(Scope.ADMIN)
        cancelled = await self._projection.cancel_rebuild(checked_job_id(request.job_id))
        return pb.CancelGraphWorkResponse(cancelled=cancelled)

    async def GetProgress(  # noqa: N802
        self,
        request: pb.GetGraphProgressRequest,
        context: aio.ServicerContext[pb.GetGraphProgressRequest, pb.GetGraphProgressResponse],
    ) -> pb.GetGraphProgressResponse:
        """Tells how far the projection is."""
        current_context().require(Scope.READ)
        reached = await self._reached(request.min_revision)
        state = messages.projection_state(await self._projection.progress(), engine=self._engine)
        return pb.GetGraphProgressResponse(projection=state, reached=reached)

    async def GetStats(  # noqa: N802
        self,
        request: pb.GetGraphStatsRequest,
        context: aio.ServicerContext[pb.GetGraphStatsRequest, pb.GetGraphStatsResponse],
    ) -> pb.GetGraphStatsResponse:
        """Counts what is held."""
        async with self._at(request.min_revision) as store:
            stats = await reading.stats(store, current_context(), source=request.source)
        state = messages.projection_state(await self._projection.progress(), engine=self._engine)
        return messages.graph_stats(stats, state)

    @property
    def _revision(self) -> int:
        return self._projection.indexed_revision

    async def _links(
        self, store: GraphStore, request: pb.ListLinksRequest | pb.ListBacklinksRequest, *, arriving: bool
    ) -> tuple[Iterator[pb.Link], str]:
        arguments = {
            "list": "backlinks" if arriving else "links",
            "source": request.source,
            "slug": request.slug,
            "link_types": "\n".join(request.link_types),
        }
        after = None
        if request.page_token:
            after = messages.link_position(decode_page_token(request.page_token, arguments))
        found = await reading.list_links(
            store,
            current_context(),
            source=request.source,
            slug=request.slug,
            arriving=arriving,
            link_types=request.link_types,
            page_size=request.page_size,
            after=after,
        )
        return map(messages.link, found.items), token_of(found.next_after, arguments)

    @asynccontextmanager
    async def _at(self, min_revision: int) -> AsyncIterator[GraphStore]:
        """The store that serves reads, once it holds a revision.

        Raises:
            NotReady: `INDEX_BEHIND` when it does not in time.
        """
        if not await self._reached(min_revision):
            raise NotReady(
                "INDEX_BEHIND",
                f"the graph holds revision {self._revision}, not yet {min_revision}",
                field="min_revision",
                value=min_revision,
                next_step="Try again in a moment, or leave min_revision out to read what is there.",
                metadata={"indexed_revision": str(self._revision)},
                retry_after_seconds=1.0,
            )
        with self._projection.use() as projection:
            yield projection.graph

    async def _reached(self, min_revision: int) -> bool:
        if min_revision < 0:
            raise field_invalid("min_revision", min_revision, "is negative", "Give a revision, or 0 not to wait.")
        if min_revision <= self._revision:
            return True
        remaining = remaining_seconds()
        patience = WAIT_SECONDS_MAX if remaining is None else min(remaining - ANSWER_SECONDS, WAIT_SECONDS_MAX)
        return await self._projection.wait_for(min_revision, max(patience, 0.0))


async def reported(
    work: asyncio.Task[object], reports: asyncio.Queue[tuple[int, int]]
) -> AsyncIterator[tuple[int, int]]:
    """The reports of some work, until it ends."""
    while not work.done():
        waiting = asyncio.create_task(reports.get())
        try:
            await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                yield waiting.result()
        finally:
            waiting.cancel()


def token_of(position: LinkPosition | UnresolvedPosition | None, arguments: Mapping[str, str]) -> str:
    """The token of the page that begins after a position; empty at the end."""
    return encode_page_token(messages.position_text(position), arguments) if position is not None else ""


def checked_job_id(job_id: str) -> str:
    """The job id.

    Raises:
        InvalidArgument: It is missing or too long.
    """
    if not job_id:
        raise field_required("job_id", "Give the id of the job that asks.")
    if len(job_id) > JOB_ID_CHARACTERS_MAX:
        raise field_invalid("job_id", job_id, f"is longer than {JOB_ID_CHARACTERS_MAX} characters", "Give its id.")
    return job_id
