"""The use cases that write: read, decide, append; and again when somebody was faster."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from services.domain.context import OperationContext, Scope
from services.domain.errors import Unavailable
from services.domain.parser import decode_body
from services.domain.records import Operation, PageKey, PageRecord, RecordKind
from services.ingest import refusals
from services.ingest.app.pages import Pages
from services.ingest.decide import (
    RESTORE_WINDOW,
    Append,
    Repeated,
    Stamp,
    Unchanged,
    View,
    decide,
    find_repeated,
    replaced_revision,
    stored_status,
)
from services.ingest.ports import Clock, NewPageId, WrongLastSequence
from services.ingest.requests import WriteReply, WriteRequest, WriteStatus
from services.ingest.trust import check_reserved_keys, may_see

log = logging.getLogger(__name__)

TRIES = 3
"""Lost races of one write before it is refused: whoever writes a page that busy must see what the others wrote."""
UNAVAILABLE_WAITS_SECONDS = (0.1, 0.3, 0.9)
"""Between the tries when the log does not answer: an embedded server that was killed is back within these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePages:
    """All writes of pages. Safe to use from any number of tasks and processes: the log decides who was first."""

    pages: Pages
    clock: Clock
    new_page_id: NewPageId

    async def write(self, ctx: OperationContext, request: WriteRequest) -> WriteReply:
        """Carries out one write and returns once it is acknowledged.

        Raises:
            PermissionDenied: The caller may not write this slug.
            Conflict: `REVISION_CONFLICT`, `PAGE_MOVED`, `WRITE_CONTENDED`, `ERASED`, `FORMER_SLUGS_LIMIT`.
            NotFound: As `services.ingest.decide.decide`.
            InvalidArgument: The text is not UTF-8, a key is reserved, or the request id is another request's.
            Unavailable: The log does not answer. The same request, sent again, is stored at most once.
        """
        self.authorise(ctx, request)
        check_text(request)
        for wait_seconds in UNAVAILABLE_WAITS_SECONDS:
            try:
                return await self._race(ctx, request)
            except Unavailable as error:
                if error.reason == "STORAGE_FULL":
                    raise  # it takes somebody who makes room
                # It may be stored all the same: the next try finds it by its request id.
                log.warning("the page log did not answer; trying again", extra={"wait_seconds": wait_seconds})
                await asyncio.sleep(wait_seconds)
        return await self._race(ctx, request)

    async def write_known(self, ctx: OperationContext, request: WriteRequest, current: PageRecord | None) -> WriteReply:
        """A put by a caller that has just read the newest record of the slug, as an import does for many at once.

        The reply says nothing of what the text says: that is read when the page is indexed.
        """
        assert request.operation is Operation.PUT
        self.authorise(ctx, request)
        check_text(request)
        try:
            return await self._try(ctx, request, View(current=current), describe=False)
        except (WrongLastSequence, Unavailable):
            return await self.write(ctx, request)

    def authorise(self, ctx: OperationContext, request: WriteRequest) -> None:
        """Raises PermissionDenied unless the caller may write every slug that the request names."""
        ctx.require(Scope.ADMIN if request.operation is Operation.ERASE else Scope.WRITE)
        ctx.require_write(request.key.source, request.key.slug)
        if request.new_slug:
            ctx.require_write(request.key.source, request.new_slug)

    async def _race(self, ctx: OperationContext, request: WriteRequest) -> WriteReply:
        for _ in range(TRIES):
            view = await self.view(request)
            try:
                return await self._try(ctx, request, view)
            except WrongLastSequence:
                continue
        raise refusals.write_contended(request.key, TRIES)

    async def _try(
        self, ctx: OperationContext, request: WriteRequest, view: View, *, describe: bool = True
    ) -> WriteReply:
        """One decision on what was read, carried out."""
        if find_repeated(request, view.current) is None:
            await self._guard(ctx, request, view)
        stamp = Stamp(actor=ctx.principal, remote=ctx.remote, time=self.clock(), new_page_id=self.new_page_id())
        match decide(request, view, stamp):
            case Unchanged(record=record):
                return await self._reply(record, WriteStatus.UNCHANGED, record.revision, describe=describe)
            case Repeated() as repeated:
                return await self._reply_again(request, repeated, describe=describe)
            case Append(batch=batch, status=status, replaced_revision=replaced):
                stored = (await self.pages.log.append(batch))[-1]
                if request.operation is Operation.ERASE:
                    await self.remove_erased(stored)
                return await self._reply(stored, status, replaced, describe=describe)

    async def view(self, request: WriteRequest) -> View:
        """Reads what the decision needs: for a put, one record."""
        log, key = self.pages.log, request.key
        current = await log.newest(key)
        if current is None or current.kind is RecordKind.REDIRECT:
            return View(current=current)
        match request.operation:
            case Operation.MOVE if current.live:
                slugs = [request.new_slug, *sorted(current.former_slugs - {request.new_slug})]
                target, *former = await log.newest_of([PageKey(key.source, slug) for slug in slugs])
                return View(current=current, target=target, former=tuple(r for r in former if r is not None))
            case Operation.REVERT:
                return View(current=current, content=await self.pages.at(current, request.revision))
            case Operation.RESTORE if not current.live:
                return View(current=current, content=await self.pages.last_content(current, current.page_id))
            case Operation.ERASE:
                return View(current=current, history=tuple(await self.pages.history(current)))
            case _:
                return View(current=current)

    async def _guard(self, ctx: OperationContext, request: WriteRequest, view: View) -> None:
        """Keeps from a remote caller what it may not see, and from the page what it may not set."""
        if not ctx.remote:
            return
        current = view.current
        if current is not None and not await self.pages.visible(ctx, current):
            self._refuse_hidden(request, current)
        fresh = current is None or request.if_revision in (None, current.revision)
        target = view.target if fresh else None  # a stale move is a conflict, whatever is at its target
        if target is not None and target.kind is not RecordKind.DELETE and not await self.pages.visible(ctx, target):
            raise refusals.slug_denied(request.new_slug, "new_slug")
        if view.content is not None and not may_see(ctx, await self.pages.parsed(view.content)):
            raise refusals.revision_not_found(request.key, request.revision)
        if request.body is not None:
            there = await self.pages.parsed(current) if current is not None and current.live else None
            wanted = await self.pages.parse(request.key, request.body, request.provenance.path)
            check_reserved_keys(ctx, wanted, there)

    @staticmethod
    def _refuse_hidden(request: WriteRequest, current: PageRecord) -> None:
        """Answers a remote caller as if nothing were there, or lets its new page take a deleted one's place."""
        if request.operation is not Operation.PUT:
            raise refusals.page_not_found(request.key)
        if request.if_revision not in (None, 0):
            raise refusals.revision_conflict(None, request.key, request.if_revision)
        if current.kind is not RecordKind.DELETE:
            raise refusals.slug_denied(request.key.slug)

    async def _reply_again(self, request: WriteRequest, repeated: Repeated, *, describe: bool) -> WriteReply:
        """The first reply again; of a move whose record was pushed out at the new slug, what its redirect tells."""
        record = await self.first_record(request, repeated)
        if record is None:
            redirect = await self.pages.log.newest(request.key)
            assert redirect is not None  # the request was found in it
            return WriteReply(
                source=request.key.source,
                slug=repeated.slug,
                page_id=redirect.page_id,
                revision=repeated.revision,
                status=WriteStatus.MOVED,
            )
        if request.operation is Operation.ERASE:
            await self.remove_erased(record)  # the first try may have died before it was through
        replaced = replaced_revision(record)
        if request.operation is Operation.MOVE:
            redirect = await self.pages.log.at(request.key, repeated.revision - 1)
            replaced = replaced_revision(redirect) if redirect is not None else 0
        return await self._reply(record, stored_status(record), replaced, describe=describe)

    async def first_record(self, request: WriteRequest, repeated: Repeated) -> PageRecord | None:
        """The record that a repeated request was stored as; None when a move's was pushed out at the new slug.

        Raises:
            Conflict: `ERASED`. A slug remembers only what it keeps, so what it remembers and has no more was erased:
                the page moved on, and was erased under its new slug.
            WrongLastSequence: The slug forgot the request meanwhile: decide again.
        """
        key = PageKey(request.key.source, repeated.slug)
        record = await self.pages.log.at(key, repeated.revision)
        if record is not None or request.operation is Operation.MOVE:
            return record
        if find_repeated(request, await self.pages.log.newest(request.key)) is None:
            raise WrongLastSequence(request.key.slug)  # it was pushed out just now
        raise refusals.request_erased(request.request_id, repeated.revision)

    async def remove_erased(self, stored: PageRecord) -> None:
        """Removes everything older of the page that has content. Repeatable."""
        for record in await self.pages.history(stored):
            if record.revision < stored.revision:
                await self.pages.log.erase(record.key, record.revision)

    async def _reply(
        self, record: PageRecord, status: WriteStatus, replaced: int, *, describe: bool = True
    ) -> WriteReply:
        page = await self.pages.parsed(record) if record.live and describe else None
        return WriteReply(
            source=record.source,
            slug=record.slug,
            page_id=record.page_id,
            revision=record.revision,
            status=status,
            replaced_revision=replaced,
            content_hash=record.content_hash,
            body_bytes=len(record.body or b""),
            findings=page.findings if page is not None else (),
            title=page.title if page is not None else "",
            type=page.type if page is not None else "",
            recoverable_until=record.time + RESTORE_WINDOW if record.kind is RecordKind.DELETE else None,
            time=record.time,
        )


def check_text(request: WriteRequest) -> None:
    """Refuses a body that is not text, naming line and byte."""
    if request.body is not None:
        decode_body(request.body)
