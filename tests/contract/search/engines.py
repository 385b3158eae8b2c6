"""The engines that run the contract suites of the search service, by name: an engine hands in how it is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from services.search.adapters.tantivy import TantivyIndex
from services.search.ports import LexicalIndex

OpenLexical = Callable[[Path], AbstractAsyncContextManager[LexicalIndex]]


@asynccontextmanager
async def open_tantivy(folder: Path) -> AsyncIterator[LexicalIndex]:
    index = TantivyIndex(folder)
    try:
        yield index
    finally:
        await index.close()


LEXICAL: dict[str, OpenLexical] = {"tantivy": open_tantivy}
