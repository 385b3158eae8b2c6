"""The engines that run the contract suite of the graph, by name: an engine hands in how it is opened.

Another engine joins by one line in `GRAPHS`. A folder stands for one store: opened again, it holds what it held.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from services.graph.adapters.sqlite.store import SqliteGraphStore
from services.graph.ports import GraphStore

OpenGraph = Callable[[Path], AbstractAsyncContextManager[GraphStore]]


@asynccontextmanager
async def open_sqlite(folder: Path) -> AsyncIterator[GraphStore]:
    store = SqliteGraphStore(folder)
    try:
        yield store
    finally:
        await store.close()


GRAPHS: dict[str, OpenGraph] = {"sqlite": open_sqlite}
