"""The engines that run the contract suites of the search service, by name: an engine hands in how it is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from services.search.adapters.child import Child
from services.search.adapters.edge import EdgeIndex
from services.search.adapters.tantivy import TantivyIndex
from services.search.ports import LexicalIndex, VectorIndex

OpenVectors = Callable[[Path, int], AbstractAsyncContextManager[VectorIndex]]
OpenLexical = Callable[[Path], AbstractAsyncContextManager[LexicalIndex]]


@asynccontextmanager
async def open_tantivy(folder: Path) -> AsyncIterator[LexicalIndex]:
    index = TantivyIndex(folder)
    try:
        yield index
    finally:
        await index.close()


LEXICAL: dict[str, OpenLexical] = {"tantivy": open_tantivy}


@asynccontextmanager
async def open_edge(folder: Path, dimension: int) -> AsyncIterator[VectorIndex]:
    child = Child("vectors", {"models": str(folder / "models")})
    index = EdgeIndex(child, folder / "collection", dimension, open_seconds_max=0.5)
    try:
        await index.open()
        yield index
        await index.close()
    finally:
        await child.close()


VECTORS: dict[str, OpenVectors] = {"edge": open_edge}
