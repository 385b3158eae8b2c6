"""The graph in a Bolt server: one store of several that may share its database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar, cast

from services.domain.errors import DeadlineExceeded
from services.domain.records import PageId, PageKey
from services.graph.adapters.neo4j import errors, links, names, reports, writes
from services.graph.adapters.neo4j.connection import READ_SECONDS_MAX, Connection, Parameters, Row, Statements
from services.graph.adapters.neo4j.cypher import page_of, viewer_parameters
from services.graph.adapters.neo4j.schema import NAME, PAGE, SLUG, STORE
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

T = TypeVar("T")

READS_MAX = 4
"""Times that a read is done because batches were written meanwhile; then it stands in line with the writers."""

HALF_SEEN = (TypeError, ValueError, KeyError, IndexError)
"""How a row fails of which a commit has made only some properties visible."""

REMOVED_AT_ONCE = 2_000
"""Nodes that leave in one transaction: a store is removed while another serves, whose writes must not wait for it."""

WARM_SECONDS_MAX = 20.0
"""Plans take a second each on a server that has just started; who asks sooner waits for its own alone."""

BEGIN = f"""
    MERGE (st:{STORE} {{store: $store}}) ON CREATE SET st.version = 0, st.sources = [], st.removed = false
    RETURN st.removed AS removed
"""
CLOSE = f"MATCH (st:{STORE} {{store: $store}}) SET st.removed = true"


def _remove(label: str, rest: str = "") -> str:
    return f"""
        MATCH (n:{label}) WHERE n.store = $store {rest} WITH n LIMIT $limit
        DETACH DELETE n RETURN count(*) AS removed
    """


REMOVE = (
    # An index of several properties is used when all of them are asked for.
    _remove(PAGE, "AND n.page_id >= ''"),
    _remove(SLUG, "AND n.source >= '' AND n.slug >= ''"),
    _remove(NAME, "AND n.mark >= ''"),  # by now nothing is tied to them
    _remove(STORE),
)

VERSION = f"MATCH (st:{STORE} {{store: $store}}) WHERE NOT st.removed RETURN st.version AS version"
LOCKED = f"MATCH (st:{STORE} {{store: $store}}) SET st.version = st.version"


class Neo4jGraphStore:
    """A `GraphStore` in a server that other processes may work on too, at the same time and on the same store."""

    def __init__(self, connection: Connection, store: str, *, owns_connection: bool = True) -> None:
        self._connection = connection
        self._store = store
        self._owns_connection = owns_connection

    async def begin(self) -> None:
        """Makes the store unless it is there. What a death left of its removal is removed first."""
        parameters = {"store": self._store, "limit": REMOVED_AT_ONCE}
        rows = await self._connection.write(partial(run, statement=BEGIN, parameters=parameters))
        if rows[0]["removed"]:
            await self.remove()
            await self._connection.write(partial(run, statement=BEGIN, parameters=parameters))

    async def warm(self) -> None:
        """Asks everything once about nothing, so that the server has its plans before somebody waits for an answer."""
        viewer, nobody = Viewer(sources=frozenset(), private=False), PageId("nobody")
        with suppress(DeadlineExceeded, TimeoutError):
            async with asyncio.timeout(WARM_SECONDS_MAX):
                await self.find_page(PageKey("", ""), viewer)
                await self.resolve_names([NameQuestion("nobody", "")], viewer)
                await self.search_names("nobody", Viewer(sources=frozenset({""}), private=False), 1)
                await self.list_links(nobody, viewer, arriving=True, link_types=(), after=None, limit=1)
                await self.count_backlinks([nobody], viewer)
                await self.hops([nobody], viewer, direction=Direction.OUT, link_types=(), page_types=(), limit=1)

    async def remove(self) -> None:
        """Removes the store: first what lets anybody write to it, then all it holds, some at a time, then its name."""
        parameters = {"store": self._store, "limit": REMOVED_AT_ONCE}
        await self._connection.write(partial(run, statement=CLOSE, parameters=parameters))
        for statement in REMOVE:
            removed = REMOVED_AT_ONCE
            while removed == REMOVED_AT_ONCE:
                rows = await self._connection.write(partial(run, statement=statement, parameters=parameters))
                removed = cast("int", rows[0]["removed"])

    async def apply(self, changes: Sequence[SlugChange]) -> None:
        """See `GraphStore.apply`."""
        if changes:
            await self._connection.write(lambda s: writes.apply(s, self._store, changes))

    async def held(self) -> AsyncIterator[HeldRevision]:
        """See `GraphStore.held`."""
        for source in sorted(await self._read(lambda s: names.all_sources(s, self._store))):
            after: str | None = ""
            while after is not None:
                read = partial(reports.held, store=self._store, source=source, after=after)
                rows, after = await self._read(read)
                for row in rows:
                    yield row

    async def find_page(self, key: PageKey, viewer: Viewer) -> GraphPage | None:
        """See `GraphStore.find_page`."""
        parameters = {**viewer_parameters(viewer), "store": self._store, **key._asdict()}
        rows = await self._read(lambda s: s.run(names.FIND, parameters))
        return page_of(rows[0]["page"]) if rows else None

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
        return await self._read(
            lambda s: links.list_links(
                s,
                self._store,
                page_id,
                viewer,
                arriving=arriving,
                link_types=link_types,
                after=after,
                limit=limit,
            )
        )

    async def count_backlinks(self, page_ids: Sequence[PageId], viewer: Viewer) -> list[int]:
        """See `GraphStore.count_backlinks`."""
        return await self._read(lambda s: links.count_backlinks(s, self._store, page_ids, viewer))

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
        return await self._read(
            lambda s: links.hops(
                s,
                self._store,
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
        return await self._read(lambda s: names.resolve_names(s, self._store, questions, viewer))

    async def search_names(self, partial: str, viewer: Viewer, limit: int) -> list[NameMatch]:
        """See `GraphStore.search_names`."""
        return await self._read(lambda s: names.search_names(s, self._store, partial, viewer, limit))

    async def list_unresolved(
        self, viewer: Viewer, *, makers: frozenset[str] | None, after: UnresolvedPosition | None, limit: int
    ) -> list[tuple[UnresolvedPosition, Link]]:
        """See `GraphStore.list_unresolved`."""

        async def read(statements: Statements) -> list[tuple[UnresolvedPosition, Link]]:
            sources = reports.visible_sources(viewer, makers, await names.all_sources(statements, self._store))
            return await reports.list_unresolved(
                statements, self._store, viewer, sources=sources, after=after, limit=limit
            )

        return await self._read(read)

    async def stats(self, viewer: Viewer, *, makers: frozenset[str] | None) -> GraphStats:
        """See `GraphStore.stats`."""

        async def read(statements: Statements) -> GraphStats:
            sources = reports.visible_sources(viewer, makers, await names.all_sources(statements, self._store))
            return await reports.stats(statements, self._store, viewer, sources=sources)

        return await self._read(read)

    async def close(self) -> None:
        """See `GraphStore.close`."""
        if self._owns_connection:
            await self._connection.close()

    async def _read(self, work: Callable[[Statements], Awaitable[T]]) -> T:
        """Reads one state between two batches: what a batch came between is read again.

        The server isolates statements from each other no more than to show what is committed, record by record: a row
        may be of a page that has no slug yet, or none any more. That is read again too, and raised by a read in line.
        """

        async def read(statements: Statements) -> list[T]:
            before = await self._version(statements)
            try:
                found = await work(statements)
            except HALF_SEEN:
                return []
            return [found] if await self._version(statements) == before else []

        async def read_locked(statements: Statements) -> T:
            await statements.run(LOCKED, {"store": self._store})
            return await work(statements)

        for _ in range(READS_MAX):
            for found in await self._connection.read(read):
                return found
        return await self._connection.write(read_locked, seconds=READ_SECONDS_MAX)

    async def _version(self, statements: Statements) -> int:
        rows = await statements.run(VERSION, {"store": self._store})
        if not rows:
            raise errors.unavailable("the graph's store is gone: another one took its place")
        return cast("int", rows[0]["version"])


async def run(statements: Statements, statement: str, parameters: Parameters) -> list[Row]:
    """One statement as the whole work of a transaction."""
    return await statements.run(statement, parameters)
