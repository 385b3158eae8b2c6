"""The owners of the stores, over gRPC."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from brain.v1 import graph_service_pb2, projection_pb2, search_service_pb2
from services.domain.context import local_context
from services.jobs.kinds import Work
from services.jobs.ports import WorkState
from services.runtime.calls import operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from brain.v1.graph_service_pb2_grpc import GraphServiceAsyncStub
    from brain.v1.search_service_pb2_grpc import SearchServiceAsyncStub

S = TypeVar("S")
Stubs: TypeAlias = Callable[[], Awaitable[Sequence[S]]]
"""Gives a stub for each replica that there is now."""

PRINCIPAL: Final = "service:jobs"
STREAM_SECONDS: Final = 600.0
"""One stream of progress; after it the work is joined again, so that a stream that died without a word is noticed."""
CANCEL_SECONDS: Final = 5.0


class GrpcOwners:
    """Implements `Owners`. Every call is made in the name of the service itself, for all sources.

    Each replica is asked, one after the other: where replicas keep stores of their own, each does the work on its own;
    where they share one, the first does it and the others answer with what it came to.
    """

    def __init__(self, search: Stubs[SearchServiceAsyncStub], graph: Stubs[GraphServiceAsyncStub]) -> None:
        self._search = search
        self._graph = graph

    async def do(self, work: Work) -> AsyncGenerator[WorkState, None]:
        """Begins or joins the work and yields how far it is, over all replicas together."""
        finished = total = 0
        with operation(local_context(PRINCIPAL), timeout_seconds=STREAM_SECONDS):
            streams = await self._streams(work)
            for number, stream in enumerate(streams, start=1):
                progress = None
                async for progress in stream:
                    yield WorkState(
                        finished=finished + progress.finished,
                        total=total + progress.total,
                        unit=progress.unit,
                        done=progress.done and number == len(streams),
                        store_id=progress.store_id,
                    )
                if progress is None or not progress.done:
                    return  # joined again: those that are done say so at once
                finished, total = finished + progress.finished, total + progress.total

    async def cancel(self, work: Work) -> None:
        """Ends the work, at every replica."""
        with operation(local_context(PRINCIPAL), timeout_seconds=CANCEL_SECONDS):
            match work.owner:
                case "search":
                    for search in await self._search():
                        await search.CancelWork(search_service_pb2.CancelSearchWorkRequest(job_id=work.work_id))
                case "graph":
                    for graph in await self._graph():
                        await graph.CancelWork(graph_service_pb2.CancelGraphWorkRequest(job_id=work.work_id))

    async def _streams(self, work: Work) -> Sequence[AsyncIterable[projection_pb2.WorkProgress]]:
        """One stream for each replica; nothing is sent before it is read."""
        match (work.owner, work.task):
            case ("search", "rebuild"):
                rebuild = search_service_pb2.RebuildSearchProjectionRequest(
                    job_id=work.work_id, projection=work.projection, to=work.to
                )
                return [stub.RebuildProjection(rebuild) for stub in await self._search()]
            case ("search", "embed"):
                embed = search_service_pb2.EmbedMissingRequest(job_id=work.work_id)
                return [stub.EmbedMissing(embed) for stub in await self._search()]
            case ("graph", "rebuild"):
                request = graph_service_pb2.RebuildGraphProjectionRequest(job_id=work.work_id, to=work.to)
                return [stub.RebuildProjection(request) for stub in await self._graph()]
            case _:
                raise AssertionError(f"{work.owner} does no {work.task}")
