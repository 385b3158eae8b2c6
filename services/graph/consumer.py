"""From the page log to the graph: what a record's page says, read once, and handed to the store as changes of slugs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

from services.domain.page import LinkProvenance, ParsedPage, Visibility
from services.domain.parser import PageParser
from services.domain.records import PageId, PageKey, PageRecord, RecordKind
from services.graph.ports import GraphStore, PageEntry, SlugChange

PARSED_AT_ONCE = 64
"""Pages parsed before the event loop gets its turn for sure: some dozen milliseconds on a thread."""

_ENTRY = re.compile(
    r"^[ \t]*(?:[-*+•]|\#{2,6})[ \t]+[*_`\[(]*\d{4}(?:[-/.]\d{1,2}(?:[-/.]\d{1,2})?|[ \t]*年)?(?=\D|$)", re.MULTILINE
)
"""A bullet or heading of a timeline that begins with a date, as precise as it is known."""


class GraphProjection:
    """The graph as a projection of the page log: `runtime.projection.ProjectionStore` over a `GraphStore`."""

    def __init__(self, graph: GraphStore, parser: PageParser) -> None:
        self.graph = graph
        self._parser = parser

    async def apply(self, records: Sequence[PageRecord]) -> None:
        """Brings the graph up to these records, the newest of their slugs."""
        changes: list[SlugChange] = []
        for start in range(0, len(records), PARSED_AT_ONCE):
            # On a thread: a page takes up to some milliseconds, and everything else in the process waits for the loop.
            changes += await asyncio.to_thread(self._changes, records[start : start + PARSED_AT_ONCE])
        await self.graph.apply(changes)

    async def held(self) -> AsyncIterator[tuple[PageKey, PageId, int]]:
        """What the graph holds by slug."""
        async for key, page_id, revision in self.graph.held():
            yield key, page_id, revision

    async def close(self) -> None:
        """Closes the graph."""
        await self.graph.close()

    def _changes(self, records: Sequence[PageRecord]) -> list[SlugChange]:
        return [self._change(record) for record in records]

    def _change(self, record: PageRecord) -> SlugChange:
        page = None
        if record.body is not None:
            parsed = self._parser.parse(record.source, record.slug, record.body, path=record.provenance.path)
            page = entry_of(parsed)
        return SlugChange(
            key=record.key,
            revision=record.revision,
            page_id=record.page_id,
            leads=record.kind is not RecordKind.DELETE,
            page=page,
        )


def entry_of(page: ParsedPage) -> PageEntry:
    """What the graph keeps of a page."""
    return PageEntry(
        title=page.title,
        type=page.type,
        private=page.visibility is Visibility.PRIVATE,
        date=page.date,
        aliases=page.aliases,
        timeline_entries=len(_ENTRY.findall(page.timeline)),
        links=tuple(
            link for link in page.links if link.provenance in (LinkProvenance.TEXT, LinkProvenance.FRONTMATTER)
        ),
    )
