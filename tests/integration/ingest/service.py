"""The whole ingest service as its wiring makes it, and a client of it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from brain.v1 import ingest_service_pb2 as pb
from brain.v1.ingest_service_pb2_grpc import IngestServiceStub
from services.domain.context import OperationContext, local_context
from services.domain.parser import PageParser
from services.ingest.wiring import open_module
from services.runtime.bus import Bus
from services.runtime.calls import operation
from services.runtime.channels import open_channel
from services.runtime.server import make_server
from services.runtime.settings import Settings

if TYPE_CHECKING:
    from brain.v1.ingest_service_pb2_grpc import IngestServiceAsyncStub

CALL_SECONDS = 30.0


class Client:
    """Calls of the service by one caller."""

    def __init__(self, stub: IngestServiceAsyncStub) -> None:
        self.stub = stub

    @contextmanager
    def calling(self, ctx: OperationContext | None = None) -> Iterator[IngestServiceAsyncStub]:
        """The stub, inside of an operation of this caller."""
        with operation(ctx or local_context(), timeout_seconds=CALL_SECONDS):
            yield self.stub

    async def put(
        self,
        slug: str,
        body: str | bytes,
        *,
        request_id: str = "",
        if_revision: int | None = None,
        overwrite: bool = False,
    ) -> pb.WriteResult:
        with self.calling() as stub:
            response = await stub.PutPage(
                pb.PutPageRequest(
                    slug=slug,
                    body=body if isinstance(body, bytes) else body.encode(),
                    request_id=request_id or str(uuid.uuid4()),
                    if_revision=if_revision,
                    overwrite=overwrite,
                )
            )
        return response.result

    async def body(self, slug: str) -> bytes:
        with self.calling() as stub:
            return (await stub.GetPage(pb.GetPageRequest(slug=slug, include_body=True))).page.body

    async def versions(self, slug: str) -> list[int]:
        """The kept revisions, newest first."""
        with self.calling() as stub:
            response = await stub.ListVersions(pb.ListVersionsRequest(slug=slug))
        return [version.revision for version in response.versions]

    async def import_files(
        self, files: Sequence[tuple[str, bytes]], *, import_id: str = "", batch: int = 100
    ) -> list[pb.ImportResult]:
        """Sends the files in batches and returns all results."""

        def messages() -> Iterator[pb.ImportPagesRequest]:
            header = pb.ImportHeader(import_id=import_id or uuid.uuid4().hex[:24], paths=[path for path, _ in files])
            yield pb.ImportPagesRequest(header=header)
            for start in range(0, len(files), batch):
                sent = [pb.ImportFile(path=path, body=body) for path, body in files[start : start + batch]]
                yield pb.ImportPagesRequest(batch=pb.ImportBatch(files=sent))

        results: list[pb.ImportResult] = []
        with self.calling() as stub:
            async for response in stub.ImportPages(messages()):
                results.extend(response.results)
        return results


@asynccontextmanager
async def open_service(bus: Bus, folder: Path) -> AsyncIterator[Client]:
    """A client of the service, which runs in this process behind a socket."""
    address = f"unix:{folder / 'ingest.sock'}"
    async with AsyncExitStack() as stack:
        module = await stack.enter_async_context(open_module(Settings(data=folder), bus, PageParser()))
        server = make_server(token="")
        module.register(server)
        server.add_insecure_port(address)
        await server.start()
        stack.push_async_callback(server.stop, 0)
        channel = await stack.enter_async_context(open_channel(address, service="brain.v1.IngestService"))
        yield Client(IngestServiceStub(channel))
