"""The graph in one SQLite file: the default engine, and as fast as its indexes."""

# ruff: noqa: S608  (statements are put together from our own words; every value is a parameter)

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

from services.domain.records import PageId, PageKey
from services.graph.adapters.sqlite import links, names, reports
from services.graph.adapters.sqlite.connections import Connections
from services.graph.adapters.sqlite.rows import page_columns, page_of, viewer_parameters, visible
from services.graph.ports import (
    Direction,
    GraphPage,
    GraphStats,
    HeldRevision,
    Hop,
    Link,
    LinkPosition,
    NameMatch,
    NameQuestion,
    SlugChange,
    UnresolvedPosition,
    Viewer,
)

FILE_NAME = "graph.sqlite"


class SqliteGraphStore:
    """A `GraphStore` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connections = Connections(folder / FILE_NAME)

    async def apply(self, changes: Sequence[SlugChange]) -> None:
        """See `GraphStore.apply`."""
        await self._connections.write(lambda writer: writer.apply(changes))

    async def held(self) -> AsyncIterator[HeldRevision]:
        """See `GraphStore.held`."""
        after: PageKey | None = PageKey("", "")
        while after is not None:
            rows, after = await self._connections.read(partial(reports.held, after=after))
            for row in rows:
                yield row

    async def find_page(self, key: PageKey, viewer: Viewer) -> GraphPage | None:
        """See `GraphStore.find_page`."""
        statement = f"""
            SELECT {page_columns("p")} FROM slugs s JOIN pages p ON p.page_id = s.page_id
            WHERE s.source = :source AND s.slug = :slug AND {visible("p", viewer)}
        """
        parameters = {**viewer_parameters(viewer), **key._asdict()}
        row = self._connections.read_quickly(lambda c: c.execute(statement, parameters).fetchone())
        return page_of(row) if row else None

    async def list_links(
        self,
        page_id: PageId,
        viewer: Viewer,
        *,
        arriving: bool,
        link_types: Sequence[str],
        after: LinkPosition | None,
        limit: int,
    ) -> list[tuple[LinkPosition, Link]]:
        """See `GraphStore.list_links`."""

        def read(connection: sqlite3.Connection) -> list[tuple[LinkPosition, Link]]:
            found = links.list_links(
                connection, page_id, viewer, arriving=arriving, link_types=link_types, after=after, limit=limit
            )
            return [(position, with_candidates(connection, link, viewer)) for position, link in found]

        return await self._connections.read(read)

    async def count_backlinks(self, page_ids: Sequence[PageId], viewer: Viewer) -> list[int]:
        """See `GraphStore.count_backlinks`."""
        # On a thread, although most calls are quick: a hundred hubs have some ten thousand makers to look at.
        return await self._connections.read(lambda c: links.count_backlinks(c, page_ids, viewer))

    async def hops(
        self,
        frontier: Sequence[PageId],
        viewer: Viewer,
        *,
        direction: Direction,
        link_types: Sequence[str],
        page_types: Sequence[str],
        limit: int,
    ) -> list[Hop]:
        """See `GraphStore.hops`."""
        return await self._connections.read(
            lambda c: links.hops(
                c,
                frontier,
                viewer,
                direction=direction,
                link_types=link_types,
                page_types=page_types,
                limit=limit,
            )
        )

    async def resolve_names(self, questions: Sequence[NameQuestion], viewer: Viewer) -> list[list[NameMatch]]:
        """See `GraphStore.resolve_names`."""
        return self._connections.read_quickly(lambda c: names.resolve_names(c, questions, viewer))

    async def search_names(self, partial: str, viewer: Viewer, limit: int) -> list[NameMatch]:
        """See `GraphStore.search_names`."""
        return await self._connections.read(lambda c: names.search_names(c, partial, viewer, limit))

    async def list_unresolved(
        self, viewer: Viewer, *, makers: frozenset[str] | None, after: UnresolvedPosition | None, limit: int
    ) -> list[tuple[UnresolvedPosition, Link]]:
        """See `GraphStore.list_unresolved`."""

        def read(connection: sqlite3.Connection) -> list[tuple[UnresolvedPosition, Link]]:
            found = reports.list_unresolved(connection, viewer, makers=makers, after=after, limit=limit)
            return [(position, with_candidates(connection, link, viewer)) for position, link in found]

        return await self._connections.read(read)

    async def stats(self, viewer: Viewer, *, makers: frozenset[str] | None) -> GraphStats:
        """See `GraphStore.stats`."""
        return await self._connections.read(lambda c: reports.stats(c, viewer, makers=makers))

    async def close(self) -> None:
        """See `GraphStore.close`."""
        await self._connections.close()


def with_candidates(connection: sqlite3.Connection, link: Link, viewer: Viewer) -> Link:
    """The link, showing the pages its name fits when they are several."""
    if not link.ambiguous:
        return link
    maker = link.from_page if link.from_page.page_id == link.made_by else link.to_page
    return links.with_candidates(link, names.candidates_of_link(connection, link, maker, viewer))
