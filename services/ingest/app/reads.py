"""The use cases that read the log: a page at any kept revision, its versions, and the addresses there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.domain.context import OperationContext, Scope
from services.domain.page import ParsedPage
from services.domain.records import PageKey, PageRecord
from services.ingest import refusals
from services.ingest.app.pages import Pages
from services.ingest.trust import may_see

VERSIONS_MAX = 64
KEYS_DEFAULT = 1_000
KEYS_MAX = 10_000
VISIBLE_WINDOW = 64
"""Records read at a time to see what a remote caller may know of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """A page at one revision. `parsed` is None for a deleted page."""

    record: PageRecord
    parsed: ParsedPage | None
    body_bytes: int
    former_slugs: frozenset[str]
    moved_to: str = ""
    """The slug it has now, when it was asked for by a former one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPages:
    """All reads of the log. Nothing here is ever older than an acknowledged write."""

    pages: Pages

    async def get(
        self, ctx: OperationContext, key: PageKey, *, revision: int = 0, include_deleted: bool = False
    ) -> ReadPage:
        """The page that a slug, current or former, leads to; at one of its kept revisions, when one is named.

        Raises:
            NotFound: `PAGE_NOT_FOUND` or `REVISION_NOT_FOUND`, also for what the caller may not see.
        """
        page = await self._page(ctx, key, include_deleted=include_deleted)
        moved_to = page.slug if page.slug != key.slug else ""
        record: PageRecord | None = page
        if revision and revision != page.revision:
            record = await self.pages.at(page, revision)
        parsed = await self.pages.parsed(record) if record is not None and record.live else None
        if record is None or (parsed is not None and not may_see(ctx, parsed)):
            raise refusals.revision_not_found(page.key, revision)
        return ReadPage(
            record=record,
            parsed=parsed,
            body_bytes=len(record.body or b""),
            former_slugs=page.former_slugs,
            moved_to=moved_to,
        )

    async def versions(
        self, ctx: OperationContext, key: PageKey, *, limit: int, before: int = 0
    ) -> tuple[list[ReadPage], int]:
        """The page's kept revisions that have content, newest first, without it, and where the next ones begin.

        The position is 0 at the end.

        Args:
            ctx: Who asks.
            key: Any slug of the page, current or former.
            limit: At most so many, up to VERSIONS_MAX.
            before: Only revisions lower than this; 0 begins with the newest.

        Raises:
            NotFound: `PAGE_NOT_FOUND`.
        """
        page = await self._page(ctx, key, include_deleted=False)
        moved_to = page.slug if page.slug != key.slug else ""
        found: list[ReadPage] = []
        for revision, at in await self.pages.revisions(page):
            if before and revision >= before:
                continue
            # One at a time: a body may have 5 MB, and is let go as soon as it is read.
            record = page if revision == page.revision else await self.pages.log.at(at, revision)
            if record is None or record.page_id != page.page_id or not record.live:
                continue
            parsed = await self.pages.parsed(record)
            if may_see(ctx, parsed):
                found.append(
                    ReadPage(
                        record=replace(record, body=None),
                        parsed=replace(parsed, compiled_truth="", timeline="", chunks=(), links=()),
                        body_bytes=len(record.body or b""),
                        former_slugs=page.former_slugs,
                        moved_to=moved_to,
                    )
                )
            if len(found) > limit:
                break
        more = len(found) > limit
        return found[:limit], found[limit - 1].record.revision if more else 0

    async def keys(
        self, ctx: OperationContext, source: str, folder: str, *, limit: int, after: str = ""
    ) -> tuple[list[str], str, int]:
        """The addresses of a source below a folder, in order, where to go on, and the log's last revision.

        A remote caller is shown those of the live pages that it may see.
        """
        ctx.require(Scope.READ)
        ctx.require_read(source)
        last_revision = await self.pages.log.last_revision()  # before the list: whatever is missing from it is newer
        keys = [key for key in await self.pages.log.keys(source, folder) if key.slug > after]
        slugs = [key.slug for key in keys] if ctx.sees_private else await self._visible(ctx, keys, limit + 1)
        return slugs[:limit], slugs[limit - 1] if len(slugs) > limit else "", last_revision

    async def _visible(self, ctx: OperationContext, keys: Sequence[PageKey], wanted: int) -> list[str]:
        slugs: list[str] = []
        for start in range(0, len(keys), VISIBLE_WINDOW):
            for record in await self.pages.log.newest_of(keys[start : start + VISIBLE_WINDOW]):
                if record is not None and record.live and await self.pages.visible(ctx, record):
                    slugs.append(record.slug)  # noqa: PERF401 - each needs an await
            if len(slugs) >= wanted:
                break
        return slugs

    async def _page(self, ctx: OperationContext, key: PageKey, *, include_deleted: bool) -> PageRecord:
        ctx.require(Scope.READ)
        ctx.require_read(key.source)
        page = await self.pages.resolve(key)
        if page is None or not await self.pages.visible(ctx, page):
            raise refusals.page_not_found(key)
        if not page.live and not include_deleted:
            raise refusals.page_not_found(key, page)
        return page
