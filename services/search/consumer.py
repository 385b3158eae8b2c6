"""What the runner of a projection drives: records of the page log into an index."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from services.domain.parser import PageParser
from services.domain.records import PageId, PageKey, PageRecord
from services.search.documents import slug_state, vector_state
from services.search.ports import Embedder, LexicalIndex, Purpose, VectorIndex
from services.search.values import SlugState, VectorState

PARSED_AT_ONCE = 8
"""Pages parsed and analysed between two looks at what else the process has to do: about ten milliseconds."""

EMBEDDED_AT_ONCE = 64
"""Passages embedded before they are handed on; bounds what is in memory for a page of thousands of passages."""


class LexicalStore:
    """A `ProjectionStore` over a lexical index."""

    def __init__(self, index: LexicalIndex, parser: PageParser) -> None:
        self.index = index
        self._parser = parser

    async def apply(self, records: Sequence[PageRecord]) -> None:
        """See `ProjectionStore.apply`."""
        states: list[SlugState] = []
        for start in range(0, len(records), PARSED_AT_ONCE):
            part = records[start : start + PARSED_AT_ONCE]
            states += await asyncio.to_thread(_lexical_states, part, self._parser)
        await self.index.apply(states)

    async def held(self) -> AsyncIterator[tuple[PageKey, PageId, int]]:
        """See `ProjectionStore.held`."""
        async for page in self.index.held():
            yield page

    async def close(self) -> None:
        """See `ProjectionStore.close`."""
        await self.index.close()


class VectorStore:
    """A `ProjectionStore` over a vector index: embeds what is missing, at the pace of the model."""

    def __init__(self, index: VectorIndex, embedder: Embedder, parser: PageParser) -> None:
        self.index = index
        self.embedder = embedder
        self._parser = parser

    async def apply(self, records: Sequence[PageRecord]) -> None:
        """See `ProjectionStore.apply`."""
        states: list[VectorState] = []
        for start in range(0, len(records), PARSED_AT_ONCE):
            part = records[start : start + PARSED_AT_ONCE]
            states += await asyncio.to_thread(_vector_states, part, self._parser)
        missing = await self.index.missing(states)
        await self.index.apply(states, await self._embed(states, missing))

    async def held(self) -> AsyncIterator[tuple[PageKey, PageId, int]]:
        """See `ProjectionStore.held`."""
        async for page in self.index.held():
            yield page

    async def close(self) -> None:
        """See `ProjectionStore.close`."""
        await self.index.close()

    async def _embed(self, states: Sequence[VectorState], missing: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        texts = {passage.hash: passage.text for state in states for passage in state.passages}
        vectors: dict[str, NDArray[np.float32]] = {}
        for start in range(0, len(missing), EMBEDDED_AT_ONCE):
            part = missing[start : start + EMBEDDED_AT_ONCE]
            made = await self.embedder.embed([texts[chunk_hash] for chunk_hash in part], Purpose.PASSAGE)
            vectors |= dict(zip(part, made, strict=True))
        return vectors


def _lexical_states(records: Sequence[PageRecord], parser: PageParser) -> list[SlugState]:
    return list(map(partial(slug_state, parser=parser), records))


def _vector_states(records: Sequence[PageRecord], parser: PageParser) -> list[VectorState]:
    return list(map(partial(vector_state, parser=parser), records))
