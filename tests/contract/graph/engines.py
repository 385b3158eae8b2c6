"""The engines that run the contract suite of the graph, by name: an engine hands in how it is opened.

Another engine joins by one line in `GRAPHS`. A folder stands for one store: opened again, it holds what it held.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from services.graph.adapters.neo4j.connection import Connection
from services.graph.adapters.neo4j.store import Neo4jGraphStore
from services.graph.adapters.sqlite.store import SqliteGraphStore
from services.graph.ports import GraphStore
from tests.engines.neo4j.server import address_of

OpenGraph = Callable[[Path], AbstractAsyncContextManager[GraphStore]]


def sqlite_graph(request: pytest.FixtureRequest) -> OpenGraph:
    @asynccontextmanager
    async def open_sqlite(folder: Path) -> AsyncIterator[GraphStore]:
        store = SqliteGraphStore(folder)
        try:
            yield store
        finally:
            await store.close()

    return open_sqlite


def neo4j_graph(request: pytest.FixtureRequest) -> OpenGraph:
    url: str = request.getfixturevalue("neo4j_url")

    @asynccontextmanager
    async def open_neo4j(folder: Path) -> AsyncIterator[GraphStore]:
        store = Neo4jGraphStore(connect(url), f"contract/{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}")
        try:
            await store.begin()
            yield store
        finally:
            await store.close()

    return open_neo4j


def connect(url: str) -> Connection:
    address, user, password = address_of(url)
    return Connection.open(address, user=user, password=password)


GRAPHS: dict[str, Callable[[pytest.FixtureRequest], OpenGraph]] = {"sqlite": sqlite_graph, "neo4j": neo4j_graph}
EMBEDDED = frozenset({"sqlite"})
