"""Pages as the log has them: what a slug leads to, a page's kept history, and how a record reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.domain.context import OperationContext
from services.domain.page import ParsedPage
from services.domain.records import PageId, PageKey, PageRecord, RecordKind
from services.ingest.decide import was_erased
from services.ingest.ports import PageLog, Parser
from services.ingest.trust import may_see

PARSE_HERE_BYTES_MAX = 16 * 1024
"""A larger page is parsed in a thread: on the event loop it would hold up everybody for many milliseconds."""
TOP_BYTES_MAX = 256 * 1024
"""Of a larger page only the top is read here: title, type, visibility and the like stand there, and reading 5 MB whole
takes seconds. Whoever indexes the page reads it whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The reads that writes and readers share."""

    log: PageLog
    parser: Parser

    async def parsed(self, record: PageRecord) -> ParsedPage:
        """What a record with content says."""
        assert record.body is not None
        return await self.parse(record.key, record.body, record.provenance.path)

    async def parse(self, key: PageKey, body: bytes, path: str) -> ParsedPage:
        """What a text would say at this slug; of a large one, what its top says."""
        body = top_of(body)
        if len(body) <= PARSE_HERE_BYTES_MAX:
            return self.parser.parse(key.source, key.slug, body, path=path)
        return await asyncio.to_thread(self.parser.parse, key.source, key.slug, body, path=path)

    async def resolve(self, key: PageKey) -> PageRecord | None:
        """The newest record of the page that a slug leads to, live or deleted; None when it leads nowhere.

        A redirect is one hop, and is followed only to the page it names.
        """
        record = await self.log.newest(key)
        if record is None or record.kind is not RecordKind.REDIRECT:
            return record
        target = await self.log.newest(PageKey(key.source, record.moved_to))
        return target if target is not None and target.page_id == record.page_id else None

    async def visible(self, ctx: OperationContext, record: PageRecord) -> bool:
        """Whether the page of this newest record of a slug, live, deleted or moved, exists for the caller."""
        if ctx.sees_private:
            return True
        newest: PageRecord | None = record
        if record.kind is RecordKind.REDIRECT:
            newest = await self.log.newest(PageKey(record.source, record.moved_to))
        content = await self.last_content(newest, record.page_id) if newest is not None else None
        # Nobody can tell any more who might see a page whose content is gone.
        return content is not None and may_see(ctx, await self.parsed(content))

    async def last_content(self, newest: PageRecord, page_id: PageId) -> PageRecord | None:
        """The page's newest kept record with content at or before `newest`; None when it was erased or pushed out."""
        if newest.live and newest.page_id == page_id:
            return newest
        for earlier in reversed(newest.predecessors):
            if was_erased(earlier):
                continue
            record = await self.log.at(newest.key, earlier.revision)
            if record is not None and record.page_id == page_id and record.live:
                return record
        return None

    async def at(self, page: PageRecord, revision: int) -> PageRecord | None:
        """The page's kept record with content and this revision, under whichever of its slugs."""
        if revision == page.revision:
            return page if page.live else None
        if being_erased(page, revision):
            return None
        for key in self.keys_of(page):
            record = await self.log.at(key, revision)
            if record is not None:
                return record if record.live and record.page_id == page.page_id else None
        return None

    async def history(self, page: PageRecord) -> list[PageRecord]:
        """All kept records with content of the page, old to new, under every slug it had; their bodies are left out."""
        kept: list[PageRecord] = []
        for revision, key in reversed(await self._remembered(page)):
            record = await self.log.at(key, revision)  # one at a time: each may have 5 MB
            if record is not None and record.page_id == page.page_id and record.live:
                kept.append(replace(record, body=b""))
        return kept

    async def revisions(self, page: PageRecord) -> list[tuple[int, PageKey]]:
        """Revisions that may be the page's, new to old: which of them are its own shows when they are read."""
        return [found for found in await self._remembered(page) if not being_erased(page, found[0])]

    async def _remembered(self, page: PageRecord) -> list[tuple[int, PageKey]]:
        """All revisions that the slugs of the page remember, new to old."""
        keys = self.keys_of(page)
        newest = [page, *(record for record in await self.log.newest_of(keys[1:]) if record is not None)]
        found = [(record.revision, record.key) for record in newest]
        found += [(earlier.revision, record.key) for record in newest for earlier in record.predecessors]
        return sorted(found, reverse=True)

    @staticmethod
    def keys_of(page: PageRecord) -> Sequence[PageKey]:
        """The slug the page has and all it had."""
        return [page.key, *(PageKey(page.source, slug) for slug in sorted(page.former_slugs))]


def being_erased(newest: PageRecord, revision: int) -> bool:
    """Whether the page's newest record erases this revision, though it may not be removed yet."""
    return bool(newest.erased_request_ids) and revision < newest.revision


def top_of(body: bytes) -> bytes:
    """As much of a large page as says what it is: to the end of a line, and never less than its frontmatter."""
    if len(body) <= TOP_BYTES_MAX:
        return body
    top = body[:TOP_BYTES_MAX]
    fenced = top.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"---")
    if fenced and b"\n---" not in top.replace(b"\r", b"\n"):
        return body  # who may see the page stands in the frontmatter
    end = top.rfind(b"\n") + 1
    return top[:end] if end > TOP_BYTES_MAX // 2 else top
