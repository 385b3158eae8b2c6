"""The search service at its process boundary: real log, real engines, gRPC over a socket."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from brain.v1 import search_service_pb2 as pb
from brain.v1 import search_service_pb2_grpc
from services.domain.context import OperationContext, Scope, local_context
from services.domain.parser import PageParser, content_hash
from services.domain.records import PageId, PageRecord, RecordKind
from services.runtime.bus import Bus
from services.runtime.calls import operation
from services.runtime.channels import open_channel
from services.runtime.process import Module
from services.runtime.server import make_server
from services.runtime.settings import Settings
from services.search.wiring import open_module

LOCAL = local_context()
REMOTE = OperationContext(
    principal="agent", remote=True, scopes=frozenset({Scope.READ}), read_sources=frozenset({"default"})
)


@dataclass(frozen=True, slots=True)
class Service:
    stub: search_service_pb2_grpc.SearchServiceAsyncStub
    module: Module
    tasks: list[asyncio.Task[None]]


def settings_for(data: Path, embedder_url: str = "none") -> Settings:
    return Settings(data=data, embedder_url=embedder_url)


@asynccontextmanager
async def running(settings: Settings, bus: Bus) -> AsyncIterator[Service]:
    async with open_module(settings, bus, PageParser()) as module:
        server = make_server(token="")
        module.register(server)
        with tempfile.TemporaryDirectory(prefix="s") as folder:
            address = f"unix:{folder}/s.sock"
            server.add_insecure_port(address)
            await server.start()
            tasks = [asyncio.create_task(_run(work)) for work in module.workers]
            try:
                async with open_channel(address, service="brain.v1.SearchService") as channel:
                    stub = search_service_pb2_grpc.SearchServiceStub(channel)
                    yield Service(stub, module, tasks)
            finally:
                await server.stop(0)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                for task in tasks:
                    if not task.cancelled() and task.exception() is not None:
                        raise task.exception()  # type: ignore[misc]


async def _run(work: Callable[[], Coroutine[None, None, None]]) -> None:
    await work()


async def put(
    bus: Bus, slug: str, body: str | None, *, source: str = "default", page_id: str = "", kind: str = ""
) -> int:
    """Appends to the log as ingest would; returns the revision."""
    record = PageRecord(
        source=source,
        slug=slug,
        kind=RecordKind(kind or ("put" if body is not None else "delete")),
        page_id=PageId(page_id or f"id-{source}-{slug}"),
        time=datetime.now(UTC),
        actor="tester",
        body=None if body is None else body.encode(),
        content_hash=b"" if body is None else content_hash(body.encode()),
        create_time=datetime.now(UTC),
    )
    newest = await bus.page_log.newest(record.key)
    [stored] = await bus.page_log.append([replace(record, expected=newest.revision if newest else 0)])
    return stored.revision


@asynccontextmanager
async def asking(caller: OperationContext = LOCAL, seconds: float = 20.0) -> AsyncIterator[None]:
    with operation(caller, timeout_seconds=seconds):
        yield


async def embedded(service: Service, revision: int) -> pb.GetSearchProgressResponse:
    """Waits until everything up to a revision has its vectors."""
    async with asking(seconds=60):
        progress = await service.stub.GetProgress(
            pb.GetSearchProgressRequest(min_revision=revision, embedded=True), timeout=60
        )
    assert progress.reached, progress
    return progress
