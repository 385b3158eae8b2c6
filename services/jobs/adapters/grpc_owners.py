"""The owners of the stores, over gRPC."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from brain.v1 import graph_service_pb2, projection_pb2, search_service_pb2
from services.domain.context import local_context
from services.jobs.kinds import Work
from services.jobs.ports import WorkState
from services.runtime.calls import operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from brain.v1.graph_service_pb2_grpc import GraphServiceAsyncStub
    from brain.v1.search_service_pb2_grpc import SearchServiceAsyncStub

PRINCIPAL: Final = "service:jobs"
STREAM_SECONDS: Final = 600.0
"""One stream of progress; after it the work is joined again, so that a stream that died without a word is noticed."""
CANCEL_SECONDS: Final = 5.0


class GrpcOwners:
    """Implements `Owners`. Every call is made in the name of the service itself, for all sources."""

    def __init__(self, search: SearchServiceAsyncStub, graph: GraphServiceAsyncStub) -> None:
        self._search = search
        self._graph = graph

    async def do(self, work: Work) -> AsyncGenerator[WorkState, None]:
        """Begins or joins the work and yields how far it is."""
        with operation(local_context(PRINCIPAL), timeout_seconds=STREAM_SECONDS):
            stream = self._stream(work)
            async for progress in stream:
                yield WorkState(
                    finished=progress.finished,
                    total=progress.total,
                    unit=progress.unit,
                    done=progress.done,
                    store_id=progress.store_id,
                )

    async def cancel(self, work: Work) -> None:
        """Ends the work."""
        with operation(local_context(PRINCIPAL), timeout_seconds=CANCEL_SECONDS):
            match work.owner:
                case "search":
                    await self._search.CancelWork(search_service_pb2.CancelSearchWorkRequest(job_id=work.work_id))
                case "graph":
                    await self._graph.CancelWork(graph_service_pb2.CancelGraphWorkRequest(job_id=work.work_id))

    def _stream(self, work: Work) -> AsyncIterable[projection_pb2.WorkProgress]:
        match (work.owner, work.task):
            case ("search", "rebuild"):
                return self._search.RebuildProjection(
                    search_service_pb2.RebuildSearchProjectionRequest(
                        job_id=work.work_id, projection=work.projection, to=work.to
                    )
                )
            case ("search", "embed"):
                return self._search.EmbedMissing(search_service_pb2.EmbedMissingRequest(job_id=work.work_id))
            case ("graph", "rebuild"):
                return self._graph.RebuildProjection(
                    graph_service_pb2.RebuildGraphProjectionRequest(job_id=work.work_id, to=work.to)
                )
            case _:
                raise AssertionError(f"{work.owner} does no {work.task}")
