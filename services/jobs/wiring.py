"""Puts the jobs service together."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from brain.v1.graph_service_pb2_grpc import GraphServiceStub
from brain.v1.job_service_pb2_grpc import add_JobServiceServicer_to_server
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
from services.jobs.servicer import JobServicer
from services.runtime.bus import Bus
from services.runtime.process import Module
from services.runtime.replicas import open_replicas
from services.runtime.settings import Settings

IN_FLIGHT_MAX = 64
"""Messages in the hands of all workers together; each has one, so that this is the number of processes that work."""


@asynccontextmanager
async def open_module(settings: Settings, bus: Bus) -> AsyncIterator[Module]:
    """The service on this bus, with channels to the owners of the stores."""
    store = KeyValueJobStore(await bus.key_value(BUCKET, max_bytes=BUCKET_BYTES_MAX))
    stream = await bus.work_queue(STREAM, subjects=SUBJECTS, in_flight_max=IN_FLIGHT_MAX)
    queue = StreamJobQueue(stream, utc_now)
    board = Board()
    async with (
        open_replicas(
            settings.search_address,
            service="brain.v1.SearchService",
            make_stub=SearchServiceStub,
            token=settings.token,
            tls=settings.tls,
        ) as search,
        open_replicas(
            settings.graph_address,
            service="brain.v1.GraphService",
            make_stub=GraphServiceStub,
            token=settings.token,
            tls=settings.tls,
        ) as graph,
    ):
        owners = GrpcOwners(search.stubs, graph.stubs)
        # Spreads retries of many jobs; nothing secret hangs on it.
        jitter = random.Random().random  # noqa: S311
        running = Running(store, queue, owners, board, KINDS, clock=utc_now, jitter=jitter)
        timekeeper = Timekeeper(store, queue, board, utc_now)
        servicer = JobServicer(Submitting(store, queue, board, utc_now), Asking(store, owners, KINDS, utc_now), KINDS)
        yield Module(
            name="jobs",
            grpc_services=("brain.v1.JobService",),
            register=partial(add_JobServiceServicer_to_server, servicer),
            workers=(
                partial(board.follow, store),
                timekeeper.run,
                partial(consume, queue, running),
            ),
        )


def utc_now() -> datetime:
    """The time, aware and in UTC."""
    return datetime.now(UTC)
