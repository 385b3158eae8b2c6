"""Writers and a follower of the page log that go on whatever happens to the servers, and know what they were told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.domain.errors import Unavailable
from services.runtime.bus import Bus
from services.runtime.consumers import ensure_consumer, redeliver_at_once
from services.runtime.pull import open_reader
from services.runtime.tasks import stop
from tests.records import key, put

WRITERS = 4
PAUSE_SECONDS = 0.005
GO_ON_SECONDS = 25.0
"""The promise is ten seconds; two servers that vote against each other once, on a shared machine, need longer."""
DURABLE = "search-lexical-test"


class Writers:
    """What was acknowledged and what was delivered. An error of any writer ends the test."""

    def __init__(self, bus: Bus) -> None:
        self.acknowledged: dict[str, int] = {}
        self.delivered: set[str] = set()
        self.longest_seconds = 0.0
        """The longest that any append took."""
        self._bus = bus
        self._changed = asyncio.Condition()

    async def write(self, number: int) -> None:
        """Appends one page after the other until cancelled."""
        count = 0
        while True:
            slug = f"writer-{number}/{count}"
            began = time.monotonic()
            (stored,) = await self._bus.page_log.append([put(slug)])
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
            self.acknowledged[slug] = stored.revision
            count += 1
            async with self._changed:
                self._changed.notify_all()
            await asyncio.sleep(PAUSE_SECONDS)

    async def follow(self) -> None:
        """Takes every page from a durable until cancelled."""
        connection = self._bus.connection
        await ensure_consumer(
            connection, "PAGES", DURABLE, subjects="brain.pages.>", deliver_policy="all", ack_pending_max=256
        )

        async def recover() -> None:  # as every projection does: what an earlier leader had delivered comes again
            await redeliver_at_once(connection, "PAGES", DURABLE)

        async with open_reader(connection, "PAGES", DURABLE, batch_max=64, recover=recover) as reader:
            while True:
                try:
                    deliveries = await reader.next_batch(64)
                    await reader.acknowledge(deliveries)
                except Unavailable:  # no leader of the durable now: calling again goes on where it was
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                self.delivered |= {d.subject.removeprefix("brain.pages.default.").replace(".", "/") for d in deliveries}
                async with self._changed:
                    self._changed.notify_all()

    async def go_on(self, more: int = 100) -> None:
        """Returns when so many more pages were acknowledged, and everything that was by now is delivered."""
        wanted = len(self.acknowledged) + more
        async with asyncio.timeout(GO_ON_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.acknowledged) >= wanted)
        known = set(self.acknowledged)
        async with asyncio.timeout(GO_ON_SECONDS), self._changed:
            await self._changed.wait_for(lambda: known <= self.delivered)

    async def lost(self) -> list[str]:
        """Slugs whose acknowledged revision the log does not hold as it was told."""
        slugs = sorted(self.acknowledged)
        records = await self._bus.page_log.newest_of([key(slug) for slug in slugs])
        found = {r.slug: r.revision for r in records if r is not None}
        return [slug for slug in slugs if found.get(slug) != self.acknowledged[slug]]


@asynccontextmanager
async def writing(bus: Bus) -> AsyncIterator[Writers]:
    """Writers and a follower at work for the block; what ends one of them ends the block."""
    writers = Writers(bus)
    tasks: list[asyncio.Task[None]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(writers.write(number)) for number in range(WRITERS)]
            tasks.append(group.create_task(writers.follow()))
            await writers.go_on()
            yield writers
            for task in tasks:
                task.cancel()
    finally:
        for task in tasks:
            await stop(task)
