"""The engines that run the contract suites of the search service, by name: an engine hands in how it is opened."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from services.search.adapters.child import Child
from services.search.adapters.edge import EdgeIndex
from services.search.adapters.opensearch.address import parse_address
from services.search.adapters.opensearch.connection import Connection
from services.search.adapters.opensearch.index import OpenSearchIndex
from services.search.adapters.tantivy import TantivyIndex
from services.search.ports import LexicalIndex, VectorIndex

OpenVectors = Callable[[Path, int], AbstractAsyncContextManager[VectorIndex]]
OpenLexical = Callable[[Path], AbstractAsyncContextManager[LexicalIndex]]


def tantivy_index(request: pytest.FixtureRequest) -> OpenLexical:
    @asynccontextmanager
    async def open_tantivy(folder: Path) -> AsyncIterator[LexicalIndex]:
        index = TantivyIndex(folder)
        try:
            yield index
        finally:
            await index.close()

    return open_tantivy


def opensearch_index(request: pytest.FixtureRequest) -> OpenLexical:
    url: str = request.getfixturevalue("opensearch_url")

    @asynccontextmanager
    async def open_opensearch(folder: Path) -> AsyncIterator[LexicalIndex]:
        store_id = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
        index = OpenSearchIndex(connect(url), "contract", store_id, owns_connection=True)
        try:
            await index.begin()
            yield index
        finally:
            await index.close()

    return open_opensearch


def connect(url: str) -> Connection:
    return Connection.open(parse_address(url))


LEXICAL: dict[str, Callable[[pytest.FixtureRequest], OpenLexical]] = {
    "tantivy": tantivy_index,
    "opensearch": opensearch_index,
}
EMBEDDED = frozenset({"tantivy", "edge"})


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
