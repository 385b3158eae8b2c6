"""A real gRPC server that owns stores of nothing: it counts how often work begins and ends, and goes on command."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from brain.v1 import graph_service_pb2, projection_pb2, search_service_pb2
from brain.v1.graph_service_pb2_grpc import GraphServiceServicer, add_GraphServiceServicer_to_server
from brain.v1.search_service_pb2_grpc import SearchServiceServicer, add_SearchServiceServicer_to_server
from services.domain.errors import BrainError, Conflict
from services.runtime.server import make_server

TOTAL = 10


class OwnedWork:
    """One piece of work, which lives on when the streams that watch it break."""

    def __init__(self) -> None:
        self.finished = 0
        self.cancelled = False

    @property
    def done(self) -> bool:
        return self.finished >= TOTAL


class Owner:
    """What an owner does for both services; the test is its clockwork."""

    def __init__(self) -> None:
        self.works: dict[str, OwnedWork] = {}
        self.began: list[str] = []
        self.completed: list[str] = []
        self.joined: list[str] = []
        self.refusals: deque[BrainError] = deque()
        """Each call for work takes one and fails with it."""
        self.at_once = True
        """Whether work is complete as soon as it is asked for."""
        self.breaks = 0
        """Grows when all streams are to break."""
        self._changed = asyncio.Event()

    def advance(self, work_id: str, units: int = TOTAL) -> None:
        """Does so much of the work."""
        work = self.works[work_id]
        before = work.done
        work.finished = min(TOTAL, work.finished + units)
        if work.done and not before:
            self.completed.append(work_id)
        self.tell()

    def break_streams(self) -> None:
        """Ends every stream in the middle, as a restart does."""
        self.breaks += 1
        self.tell()

    def cancel(self, work_id: str) -> bool:
        work = self.works.get(work_id)
        if work is None or work.done:
            return False
        work.cancelled = True
        self.tell()
        return True

    async def stream(self, work_id: str) -> AsyncIterator[projection_pb2.WorkProgress]:
        self.joined.append(work_id)
        self.tell()
        if self.refusals:
            raise self.refusals.popleft()
        work = self.works.get(work_id)
        if work is None or work.cancelled:
            work = self.works[work_id] = OwnedWork()
            self.began.append(work_id)
            if self.at_once:
                self.advance(work_id)
        breaks = self.breaks
        while True:
            changed = self._changed
            if work.cancelled:
                raise Conflict("JOB_STATE", "the work was ended")
            yield projection_pb2.WorkProgress(
                job_id=work_id,
                finished=work.finished,
                total=TOTAL,
                done=work.done,
                unit="pages",
                store_id="store-2" if work.done else "",
            )
            if work.done or self.breaks > breaks:
                return
            await changed.wait()

    async def until(self, *, joined: int = 0, began: int = 0) -> None:
        """Returns once so many calls came and so many works began."""
        async with asyncio.timeout(5):
            while len(self.joined) < joined or len(self.began) < began:
                await self._changed.wait()

    async def until_began(self, count: int) -> None:
        """Returns once so many works began; the caller bounds the wait, which may hold the start of a process."""
        while len(self.began) < count:
            await self._changed.wait()

    def tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class Search(SearchServiceServicer):
    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def RebuildProjection(  # noqa: N802
        self, request: search_service_pb2.RebuildSearchProjectionRequest, context: object
    ) -> AsyncIterator[projection_pb2.WorkProgress]:
        async for progress in self._owner.stream(request.job_id):
            yield progress

    async def EmbedMissing(  # noqa: N802
        self, request: search_service_pb2.EmbedMissingRequest, context: object
    ) -> AsyncIterator[projection_pb2.WorkProgress]:
        async for progress in self._owner.stream(request.job_id):
            yield progress

    async def CancelWork(  # noqa: N802
        self, request: search_service_pb2.CancelSearchWorkRequest, context: object
    ) -> search_service_pb2.CancelSearchWorkResponse:
        return search_service_pb2.CancelSearchWorkResponse(cancelled=self._owner.cancel(request.job_id))


class Graph(GraphServiceServicer):
    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def RebuildProjection(  # noqa: N802
        self, request: graph_service_pb2.RebuildGraphProjectionRequest, context: object
    ) -> AsyncIterator[projection_pb2.WorkProgress]:
        async for progress in self._owner.stream(request.job_id):
            yield progress

    async def CancelWork(  # noqa: N802
        self, request: graph_service_pb2.CancelGraphWorkRequest, context: object
    ) -> graph_service_pb2.CancelGraphWorkResponse:
        return graph_service_pb2.CancelGraphWorkResponse(cancelled=self._owner.cancel(request.job_id))


@asynccontextmanager
async def open_owner(folder: Path, address: str = "") -> AsyncIterator[tuple[Owner, str]]:
    """An owner of both kinds of stores, and its address: a socket in the folder unless one is given."""
    owner = Owner()
    address = address or f"unix:{folder / 'owner.sock'}"
    server = make_server(token="")
    add_SearchServiceServicer_to_server(Search(owner), server)  # type: ignore[abstract]  # the rest is unimplemented
    add_GraphServiceServicer_to_server(Graph(owner), server)  # type: ignore[abstract]
    server.add_insecure_port(address)
    await server.start()
    try:
        yield owner, address
    finally:
        await server.stop(0)
