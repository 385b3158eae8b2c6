"""The graph service at its process boundary: a real log, a real store, gRPC over a socket."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from brain.v1 import graph_service_pb2 as pb
from brain.v1 import graph_service_pb2_grpc
from services.domain.context import OperationContext, Scope, local_context
from services.domain.parser import PageParser
from services.domain.records import PageRecord, RecordKind
from services.graph.wiring import open_module
from services.runtime.bus import Bus
from services.runtime.calls import operation
from services.runtime.channels import open_channel
from services.runtime.process import Module
from services.runtime.server import make_server
from services.runtime.settings import Settings
from tests.records import key, put

LOCAL = local_context()
REMOTE = OperationContext(principal="agent", scopes=frozenset({Scope.READ}), read_sources=frozenset({"default"}))
SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Service:
    stub: graph_service_pb2_grpc.GraphServiceAsyncStub
    module: Module

    async def links(self, slug: str, *, at: int = 0, caller: OperationContext = LOCAL) -> list[str]:
        """Where a page's links lead; ghosts in brackets."""
        with operation(caller, timeout_seconds=SECONDS):
            response = await self.stub.ListLinks(pb.ListLinksRequest(slug=slug, min_revision=at))
        pages = [link.to_page for link in response.links]
        return [page.slug if page.page_id else f"[{page.slug}]" for page in pages]


@asynccontextmanager
async def running(data: Path, bus: Bus) -> AsyncIterator[Service]:
    async with open_module(Settings(data=data), bus, PageParser()) as module:
        server = make_server(token="")
        module.register(server)
        with tempfile.TemporaryDirectory(prefix="g") as folder:
            address = f"unix:{folder}/g.sock"
            server.add_insecure_port(address)
            await server.start()
            workers = [asyncio.ensure_future(work()) for work in module.workers]
            try:
                async with open_channel(address, service="brain.v1.GraphService") as channel:
                    yield Service(graph_service_pb2_grpc.GraphServiceStub(channel), module)
            finally:
                await server.stop(0)
                for worker in workers:
                    worker.cancel()
                ended = await asyncio.gather(*workers, return_exceptions=True)
                assert [type(end) for end in ended] == [asyncio.CancelledError] * len(workers)


async def append(bus: Bus, *records: PageRecord) -> int:
    """Appends as ingest would, each after what is newest; returns the last revision."""
    batch = []
    for record in records:
        newest = await bus.page_log.newest(record.key)
        batch.append(replace(record, expected=newest.revision if newest else 0))
    return (await bus.page_log.append(batch))[-1].revision


async def write(bus: Bus, slug: str, text: str, *, source: str = "default") -> int:
    return await append(bus, put(slug, text, source=source, page_id=f"{source}:{slug}"))


async def delete(bus: Bus, slug: str) -> int:
    record = put(slug, page_id=f"default:{slug}")
    return await append(bus, replace(record, kind=RecordKind.DELETE, body=None, content_hash=b""))


async def move(bus: Bus, slug: str, new_slug: str) -> int:
    """A move as one atomic batch: the redirect, then the page."""
    current = await bus.page_log.newest(key(slug))
    assert current is not None
    assert current.body is not None
    left = replace(current, kind=RecordKind.REDIRECT, body=None, content_hash=b"", moved_to=new_slug, create_time=None)
    moved = replace(current, slug=new_slug, kind=RecordKind.MOVE, former_slugs=frozenset({slug}))
    return await append(bus, left, moved)
