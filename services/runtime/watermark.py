"""How far a projection is, and who waits for it to get further."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

WAITERS_MAX = 10_000
"""Reads that wait at once; a brain with more is not helped by letting them wait."""


class Watermark:
    """A revision that only grows. Whoever waits wakes as soon as it gets there."""

    def __init__(self) -> None:
        self.revision = 0
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._listener: Callable[[int], None] | None = None

    def listen(self, listener: Callable[[int], None]) -> None:
        """Calls `listener` with the revision now and whenever it grows."""
        self._listener = listener
        listener(self.revision)

    def advance(self, revision: int) -> None:
        """Moves up to a revision; a lower one changes nothing."""
        if revision <= self.revision:
            return
        self.revision = revision
        if self._listener is not None:
            self._listener(revision)
        while self._waiters and self._waiters[0][0] <= revision:
            future = heapq.heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None)

    def restart(self, revision: int) -> None:
        """Begins again from a revision that may be lower: another store took the place of the one before."""
        self.revision = 0
        self.advance(revision)

    async def wait_for(self, revision: int, timeout_seconds: float | None) -> bool:
        """Whether the revision was reached in time; None waits as long as it takes."""
        if revision <= self.revision:
            return True
        if len(self._waiters) >= WAITERS_MAX:
            self._waiters = [waiter for waiter in self._waiters if not waiter[2].done()]
            heapq.heapify(self._waiters)
            if len(self._waiters) >= WAITERS_MAX:
                return False
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (revision, next(self._numbers), future))
        try:
            async with asyncio.timeout(timeout_seconds):
                await future
        except TimeoutError:
            return False
        return True
