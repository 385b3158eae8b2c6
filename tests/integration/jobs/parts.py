"""The jobs service in parts, on a real bus and with real channels, under a clock that the test sets."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from brain.v1.graph_service_pb2_grpc import GraphServiceStub
from brain.v1.search_service_pb2_grpc import SearchServiceStub
from services.jobs.adapters.grpc_owners import GrpcOwners
from services.jobs.adapters.key_value_store import BUCKET, BUCKET_BYTES_MAX, KeyValueJobStore
from services.jobs.adapters.work_queue import STREAM, SUBJECTS, StreamJobQueue
from services.jobs.app.asking import Asking
from services.jobs.app.board import Board
from services.jobs.app.running import Running
from services.jobs.app.submitting import Submitting
from services.jobs.app.timekeeping import Timekeeper
from services.jobs.consumer import consume
from services.jobs.kinds import KINDS
from services.jobs.requests import Submission, read_submission
from services.jobs.states import JobRecord, State
from services.runtime.bus import Bus
from services.runtime.replicas import open_replicas


@dataclass
class Clock:
    """The time, which stands until the test moves it."""

    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)


@dataclass(kw_only=True)
class Parts:
    """One process of the service; the worker runs only inside `working`."""

    store: KeyValueJobStore
    queue: StreamJobQueue
    board: Board
    clock: Clock
    submitting: Submitting
    asking: Asking
    running: Running
    timekeeper: Timekeeper
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def ask(self, name: str = "embed", data: str = "", request_id: str = "", **changes: object) -> Submission:
        fields: dict[str, object] = {"queue": "", "priority": 0, "max_attempts": 0, "delay": timedelta(0)}
        request_id = request_id or f"request-{next(self.numbers)}"
        return read_submission(
            KINDS,
            name=name,
            data_json=data,
            request_id=request_id,
            **{"timeout": None, **fields, **changes},  # type: ignore[arg-type]
        )

    async def submit(self, name: str = "embed", data: str = "", **changes: object) -> JobRecord:
        record, _ = await self.submitting.submit(self.ask(name, data, **changes), principal="local")  # type: ignore[arg-type]
        return record

    async def until(self, job_id: int, holds: State | Callable[[JobRecord], bool]) -> JobRecord:
        """The job once it is so; the board tells."""
        async with asyncio.timeout(5):
            if isinstance(holds, State):
                wanted = holds
                return await self.board.wait_for(job_id, lambda seen: seen.state is wanted)
            return await self.board.wait_for(job_id, holds)

    async def emptied(self) -> None:
        """Returns once every message is ended; a worker acknowledges a moment after it stored how the run ended."""
        async with asyncio.timeout(5):
            while await self.queue.depth():
                pass

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """A worker, which stops in order at the end."""
        async with background(consume(self.queue, self.running)):
            yield


@asynccontextmanager
async def open_parts(bus: Bus, owner_address: str, clock: Clock | None = None) -> AsyncIterator[Parts]:
    """One process of the service, whose board follows the store."""
    clock = clock or Clock()
    store = KeyValueJobStore(await bus.key_value(BUCKET, max_bytes=BUCKET_BYTES_MAX))
    queue = StreamJobQueue(await bus.work_queue(STREAM, subjects=SUBJECTS), clock)
    board = Board()
    async with (
        open_replicas(owner_address, service="brain.v1.SearchService", make_stub=SearchServiceStub) as search,
        open_replicas(owner_address, service="brain.v1.GraphService", make_stub=GraphServiceStub) as graph,
        background(board.follow(store)),
    ):
        owners = GrpcOwners(search.stubs, graph.stubs)
        yield Parts(
            store=store,
            queue=queue,
            board=board,
            clock=clock,
            submitting=Submitting(store, queue, board, clock),
            asking=Asking(store, owners, KINDS, clock),
            running=Running(store, queue, owners, board, KINDS, clock=clock, jitter=lambda: 0.5),
            timekeeper=Timekeeper(store, queue, board, clock),
        )


@asynccontextmanager
async def background(work: object) -> AsyncIterator[None]:
    """Runs something beside the block."""
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()
