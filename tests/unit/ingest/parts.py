"""Ingest's use cases over a log in memory, with a clock that the test moves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from services.domain.context import OperationContext, Scope, local_context
from services.domain.parser import PageParser
from services.domain.records import Operation, PageId, PageKey
from services.ingest.app.imports import ImportFile, ImportResult, begin_import
from services.ingest.app.pages import Pages
from services.ingest.app.reads import ReadPage, ReadPages
from services.ingest.app.writes import WritePages
from services.ingest.requests import WriteReply, change_request, page_key, put_request
from tests.unit.ingest.memory_log import MemoryLog

LOCAL = local_context()
REMOTE = OperationContext(
    principal="agent-7",
    remote=True,
    scopes=frozenset({Scope.READ, Scope.WRITE}),
    read_sources=frozenset({"default"}),
    write_sources=frozenset({"default"}),
)


@dataclass(slots=True)
class Ingest:
    """Everything that ingest does, as short calls."""

    log: MemoryLog = field(default_factory=MemoryLog)
    now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def pages(self) -> Pages:
        return Pages(log=self.log, parser=PageParser())

    @property
    def writes(self) -> WritePages:
        return WritePages(
            pages=self.pages, clock=lambda: self.now, new_page_id=lambda: PageId(f"page-{next(self.numbers)}")
        )

    @property
    def reads(self) -> ReadPages:
        return ReadPages(pages=self.pages)

    def wait(self, hours: float) -> None:
        self.now += timedelta(hours=hours)

    def new_request(self) -> str:
        return f"request-{next(self.numbers)}"

    async def put(
        self,
        slug: str,
        body: str | bytes = "A page.",
        *,
        ctx: OperationContext = LOCAL,
        request_id: str = "",
        if_revision: int | None = None,
        overwrite: bool = False,
    ) -> WriteReply:
        request = put_request(
            source="",
            slug=slug,
            body=body if isinstance(body, bytes) else body.encode(),
            request_id=request_id or self.new_request(),
            if_revision=if_revision,
            overwrite=overwrite,
        )
        return await self.writes.write(ctx, request)

    async def change(
        self,
        operation: Operation,
        slug: str,
        *,
        ctx: OperationContext = LOCAL,
        request_id: str = "",
        if_revision: int | None = None,
        new_slug: str = "",
        revision: int = 0,
    ) -> WriteReply:
        request = change_request(
            operation,
            source="",
            slug=slug,
            request_id=request_id or self.new_request(),
            if_revision=if_revision,
            new_slug=new_slug,
            revision=revision,
        )
        return await self.writes.write(ctx, request)

    async def delete(self, slug: str, *, ctx: OperationContext = LOCAL, if_revision: int | None = None) -> WriteReply:
        return await self.change(Operation.DELETE, slug, ctx=ctx, if_revision=if_revision)

    async def restore(self, slug: str, *, ctx: OperationContext = LOCAL) -> WriteReply:
        return await self.change(Operation.RESTORE, slug, ctx=ctx)

    async def move(
        self,
        slug: str,
        new_slug: str,
        *,
        ctx: OperationContext = LOCAL,
        request_id: str = "",
        if_revision: int | None = None,
    ) -> WriteReply:
        return await self.change(
            Operation.MOVE, slug, ctx=ctx, new_slug=new_slug, request_id=request_id, if_revision=if_revision
        )

    async def revert(self, slug: str, revision: int, *, ctx: OperationContext = LOCAL) -> WriteReply:
        return await self.change(Operation.REVERT, slug, ctx=ctx, revision=revision)

    async def erase(self, slug: str, *, request_id: str = "") -> WriteReply:
        return await self.change(Operation.ERASE, slug, request_id=request_id)

    async def get(
        self, slug: str, *, ctx: OperationContext = LOCAL, revision: int = 0, include_deleted: bool = False
    ) -> ReadPage:
        return await self.reads.get(ctx, page_key("", slug), revision=revision, include_deleted=include_deleted)

    async def text(self, slug: str, *, revision: int = 0) -> str:
        body = (await self.get(slug, revision=revision)).record.body
        assert body is not None
        return body.decode()

    async def versions(self, slug: str, *, ctx: OperationContext = LOCAL) -> list[int]:
        found, rest = await self.reads.versions(ctx, page_key("", slug), limit=64)
        assert rest == 0
        return [version.record.revision for version in found]

    async def import_files(
        self, files: dict[str, str | bytes], *, ctx: OperationContext = LOCAL, import_id: str = ""
    ) -> dict[str, ImportResult]:
        run = await begin_import(
            ctx, self.writes, source="default", import_id=import_id or f"import-{next(self.numbers)}", paths=list(files)
        )
        batch = [ImportFile(path=p, body=b if isinstance(b, bytes) else b.encode()) for p, b in files.items()]
        results = await run.add(batch)
        assert [result.path for result in results] == list(files), "results come in the order of the files"
        return {result.path: result for result in results}


def key(slug: str) -> PageKey:
    return PageKey("default", slug)
