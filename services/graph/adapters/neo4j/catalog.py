"""The graph's stores in one Bolt server, told apart by a prefix, and which of them serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from services.domain.errors import NotReady
from services.graph.adapters.neo4j.connection import Connection, Row, Statements
from services.graph.adapters.neo4j.schema import CATALOG, SCHEMA_VERSION, STORE
from services.graph.adapters.neo4j.store import Neo4jGraphStore
from services.graph.ports import GraphHolder, GraphStore
from services.runtime.store_catalog import Pointer, StoreCatalog, decode_pointer, encode_pointer

STORES_MAX = 1_000
"""Stores that one look lists: there are one or two, and what deaths left."""

READ = f"""
    MERGE (c:{CATALOG} {{prefix: $prefix}}) ON CREATE SET c.log_id = $log_id, c.schema = $schema, c.pointer = ''
    RETURN c.log_id AS log_id, c.schema AS schema, c.pointer AS pointer
"""
LOCK = f"""
    MATCH (c:{CATALOG} {{prefix: $prefix}}) SET c.schema = c.schema
    WITH c RETURN c.log_id AS log_id, c.schema AS schema, c.pointer AS pointer
"""
"""Writes before it reads, so that of two who switch at once the second sees what the first did."""

WRITE = f"MATCH (c:{CATALOG} {{prefix: $prefix}}) SET c.pointer = $pointer, c.schema = $schema"

STORES = f"""
    MATCH (st:{STORE}) WHERE st.store STARTS WITH $prefix + '/'
    RETURN substring(st.store, size($prefix) + 1) AS id ORDER BY id LIMIT $limit
"""


class Neo4jCatalog(StoreCatalog[GraphHolder]):
    """The stores of one brain; other processes of it work on the same ones."""

    shared = True

    def __init__(
        self,
        connection: Connection,
        *,
        prefix: str,
        log_id: Callable[[], Awaitable[str]],
        hold: Callable[[GraphStore], GraphHolder],
    ) -> None:
        """Describes it; nothing happens yet.

        Args:
            connection: To the server; whoever made it closes it.
            prefix: Of everything that this brain keeps in the server's database.
            log_id: Which log the stores are filled from.
            hold: Makes of a graph what a projection fills.
        """
        self._connection = connection
        self._prefix = prefix
        self._log_id = log_id
        self._hold = hold

    async def read(self) -> Pointer | None:
        """See `StoreCatalog.read`."""
        log_id = await self._log_id()
        parameters = {"prefix": self._prefix, "log_id": log_id, "schema": SCHEMA_VERSION}

        async def read(statements: Statements) -> list[Row]:
            return await statements.run(READ, parameters)

        (row,) = await self._connection.write(read)
        return self._pointer(row, log_id)

    async def write(self, pointer: Pointer, *, expected: Pointer | None) -> bool:
        """See `StoreCatalog.write`."""
        log_id = await self._log_id()
        parameters = {"prefix": self._prefix, "pointer": encode_pointer(pointer).decode(), "schema": SCHEMA_VERSION}

        async def write(statements: Statements) -> bool:
            rows = await statements.run(LOCK, {"prefix": self._prefix})
            held = self._pointer(rows[0], log_id) if rows else None
            # The same pointer is there already when the server took it, its answer was lost, and the driver asks again.
            if not rows or (held != pointer and store_of(held) != store_of(expected)):
                return False
            await statements.run(WRITE, parameters)
            return True

        return await self._connection.write(write)

    async def stores(self) -> Sequence[str]:
        """See `StoreCatalog.stores`."""

        async def read(statements: Statements) -> list[Row]:
            return await statements.run(STORES, {"prefix": self._prefix, "limit": STORES_MAX})

        return [str(row["id"]) for row in await self._connection.read(read)]

    async def open(self, store_id: str) -> GraphHolder:
        """See `StoreCatalog.open`."""
        store = self._store(store_id)
        await store.begin()
        await store.warm()
        return self._hold(store)

    async def remove(self, store_id: str) -> None:
        """See `StoreCatalog.remove`."""
        await self._store(store_id).remove()

    def _store(self, store_id: str) -> Neo4jGraphStore:
        return Neo4jGraphStore(self._connection, f"{self._prefix}/{store_id}", owns_connection=False)

    def _pointer(self, row: Row, log_id: str) -> Pointer | None:
        """What a catalog's row points to, if it is ours to follow."""
        if row["log_id"] != log_id:
            raise NotReady(
                "INDEX_BEHIND",
                f"the graph with prefix {self._prefix!r} belongs to another brain, whose log is another",
                field="FLEETBRAIN_GRAPH_URL",
                value=self._prefix,
                next_step="Give this brain another prefix: the last part of the URL, as in bolt://host:7687/second.",
            )
        schema = int(str(row["schema"]))
        if schema > SCHEMA_VERSION:
            raise NotReady(
                "INDEX_BEHIND",
                f"the graph was made by a newer fleetbrain (form {schema}, this one knows {SCHEMA_VERSION})",
                field="FLEETBRAIN_GRAPH_URL",
                value=self._prefix,
                next_step="Run the newer version again, or give this one another prefix.",
            )
        text = str(row["pointer"])
        return decode_pointer(text) if text and schema == SCHEMA_VERSION else None


def store_of(pointer: Pointer | None) -> str:
    """The id of the store a pointer names; empty for none."""
    return pointer.store_id if pointer is not None else ""
