"""A service of the real contract whose answers tell what reached it, for tests of the way there and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from grpc import aio

from brain.v1 import graph_service_pb2, graph_service_pb2_grpc, ingest_service_pb2, ingest_service_pb2_grpc
from services.runtime.calls import current_context, remaining_seconds, trace_id
from services.runtime.channels import open_channel
from services.runtime.process import Module, OpenModule

Context = aio.ServicerContext[Any, Any]
INGEST = "brain.v1.IngestService"
GRAPH = "brain.v1.GraphService"


class Seen:
    """What the last call brought."""

    def __init__(self) -> None:
        self.principal = ""
        self.remaining: float | None = None
        self.trace = ""
        self.calls = 0
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.ended = asyncio.Event()

    def note(self) -> None:
        self.principal = current_context().principal
        self.remaining = remaining_seconds()
        self.trace = trace_id()
        self.calls += 1
        self.entered.set()


class Echo(ingest_service_pb2_grpc.IngestServiceServicer):
    """Does with a call what its slug's entry in `actions` says."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.actions: dict[str, Callable[[], Any]] = {}

    async def GetPage(  # noqa: N802 - the contract's name
        self, request: ingest_service_pb2.GetPageRequest, _: Context
    ) -> ingest_service_pb2.GetPageResponse:
        self.seen.note()
        action = self.actions.get(request.slug)
        if action is not None:
            try:
                await action()
            except asyncio.CancelledError:
                self.seen.cancelled.set()
                raise
        response = ingest_service_pb2.GetPageResponse()
        response.page.slug = request.slug
        return response

    async def ImportPages(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[ingest_service_pb2.ImportPagesRequest], _: Context
    ) -> AsyncIterator[ingest_service_pb2.ImportPagesResponse]:
        self.seen.note()
        try:
            async for _request in requests:
                yield ingest_service_pb2.ImportPagesResponse()
            action = self.actions.get("end of import")
            if action is not None:
                await action()
        finally:  # gRPC ends the requests of a call that was cancelled as if they were complete
            self.seen.ended.set()


class Relay(graph_service_pb2_grpc.GraphServiceServicer):
    """A service in the middle: it asks ingest before it answers."""

    def __init__(self, ingest_address: str, seen: Seen) -> None:
        self._address = ingest_address
        self._seen = seen

    async def GetStats(  # noqa: N802 - the contract's name
        self, _request: graph_service_pb2.GetGraphStatsRequest, _: Context
    ) -> graph_service_pb2.GetGraphStatsResponse:
        self._seen.note()
        async with open_channel(self._address, service=INGEST) as channel:
            stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
            await stub.GetPage(ingest_service_pb2.GetPageRequest(slug="a"))
        return graph_service_pb2.GetGraphStatsResponse()


def make_echo(seen: Seen) -> Echo:
    """An echo; the methods it does not have answer UNIMPLEMENTED."""
    return Echo(seen)  # type: ignore[abstract]


def make_relay(ingest_address: str, seen: Seen) -> Relay:
    """A relay; the methods it does not have answer UNIMPLEMENTED."""
    return Relay(ingest_address, seen)  # type: ignore[abstract]


def echo_module(echo: Echo, **parts: Any) -> OpenModule:
    """Hosts the echo."""

    @asynccontextmanager
    async def open_module() -> AsyncIterator[Module]:
        yield Module(
            name="echo",
            grpc_services=(INGEST,),
            register=lambda server: ingest_service_pb2_grpc.add_IngestServiceServicer_to_server(echo, server),
            **parts,
        )

    return open_module


def relay_module(relay: Relay) -> OpenModule:
    """Hosts the relay."""

    @asynccontextmanager
    async def open_module() -> AsyncIterator[Module]:
        yield Module(
            name="relay",
            grpc_services=(GRAPH,),
            register=lambda server: graph_service_pb2_grpc.add_GraphServiceServicer_to_server(relay, server),
        )

    return open_module
