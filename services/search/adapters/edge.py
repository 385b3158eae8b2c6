"""`VectorIndex` by Qdrant Edge, in the child process that owns it (see `child` for why it is not in this one)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.domain.errors import NotReady
from services.search.adapters.child import Child
from services.search.values import HeldPage, PageFilter, VectorHit, VectorState

OPEN_SECONDS_MAX = 10.0
"""How long opening waits for the child of a brain that was killed a moment ago: it ends when its call in hand does."""

OPEN_RETRY_SECONDS = 0.1


class EdgeIndex:
    """One collection in one folder. When the child died, the next call starts another, which opens the folder again."""

    def __init__(
        self, child: Child, folder: Path, dimension: int, *, open_seconds_max: float = OPEN_SECONDS_MAX
    ) -> None:
        self._child = child
        self._folder = str(folder)
        self._dimension = dimension
        self._open_seconds_max = open_seconds_max

    async def open(self) -> None:
        """Open or create the collection now, so that a refusal comes now; else the first call does it.

        Raises:
            NotReady: Another process has it and keeps it.
            Unavailable: It cannot be read.
        """
        await self._call("open")

    async def missing(self, states: Sequence[VectorState]) -> list[str]:
        """See `VectorIndex.missing`."""
        missing: list[str] = await self._call("missing", list(states))
        return missing

    async def apply(self, states: Sequence[VectorState], vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """See `VectorIndex.apply`."""
        await self._call("apply", list(states), dict(vectors))

    async def search(self, vector: NDArray[np.float32], within: PageFilter, limit: int) -> list[VectorHit]:
        """See `VectorIndex.search`."""
        hits: list[VectorHit] = await self._call("search", vector, within, limit)
        return hits

    async def count(self, within: PageFilter) -> int:
        """See `VectorIndex.count`."""
        count: int = await self._call("count", within)
        return count

    async def held(self) -> AsyncIterator[HeldPage]:
        """See `VectorIndex.held`."""
        seen: set[HeldPage] = set()
        after: str | None = None
        while True:
            pages, after = await self._call("held", after)
            for page in pages:
                if page not in seen:
                    seen.add(page)
                    yield page
            if after is None:
                return

    async def close(self) -> None:
        """See `VectorIndex.close`."""
        if self._child.pid is not None:
            await self._child.call("close", self._folder)

    async def _call(self, method: str, *arguments: Any) -> Any:  # noqa: ANN401 - each method has its own values
        """The child opens the collection when it has not: each call names it, so a new child needs no telling."""
        deadline = asyncio.get_running_loop().time() + self._open_seconds_max
        while True:
            try:
                return await self._child.call(method, self._folder, self._dimension, *arguments)
            except NotReady:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(OPEN_RETRY_SECONDS)
