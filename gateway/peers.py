"""The services behind the gateway: one channel and one stub for each, opened once and used by every call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brain.v1.graph_service_pb2_grpc import GraphServiceStub
from brain.v1.ingest_service_pb2_grpc import IngestServiceStub
from brain.v1.job_service_pb2_grpc import JobServiceStub
from brain.v1.search_service_pb2_grpc import SearchServiceStub
from services.runtime.channels import open_channel
from services.runtime.local_calls import LocalCalls
from services.runtime.settings import Settings

if TYPE_CHECKING:
    from grpc import aio

    from brain.v1.graph_service_pb2_grpc import GraphServiceAsyncStub
    from brain.v1.ingest_service_pb2_grpc import IngestServiceAsyncStub
    from brain.v1.job_service_pb2_grpc import JobServiceAsyncStub
    from brain.v1.search_service_pb2_grpc import SearchServiceAsyncStub


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """The stubs, and the channels they use by service name, for health checks."""

    ingest: IngestServiceAsyncStub
    search: SearchServiceAsyncStub
    graph: GraphServiceAsyncStub
    jobs: JobServiceAsyncStub
    channels: dict[str, aio.Channel]


@asynccontextmanager
async def open_peers(settings: Settings, local: LocalCalls | None = None) -> AsyncIterator[Peers]:
    """Opens the channels; nothing is called yet, so the services may come up later.

    `local` is what this process serves itself: calls to that need no wire.
    """
    addresses = {
        "brain.v1.IngestService": settings.ingest_address,
        "brain.v1.SearchService": settings.search_address,
        "brain.v1.GraphService": settings.graph_address,
        "brain.v1.JobService": settings.jobs_address,
    }
    async with AsyncExitStack() as stack:
        channels = {
            service: await stack.enter_async_context(
                open_channel(address, service=service, token=settings.token, tls=settings.tls, local=local)
            )
            for service, address in addresses.items()
        }
        yield Peers(
            ingest=IngestServiceStub(channels["brain.v1.IngestService"]),
            search=SearchServiceStub(channels["brain.v1.SearchService"]),
            graph=GraphServiceStub(channels["brain.v1.GraphService"]),
            jobs=JobServiceStub(channels["brain.v1.JobService"]),
            channels=channels,
        )
