"""Sees to what no caller and no worker does: delayed jobs whose time has come, lost messages, and jobs kept too long.

Every process of the service does it; the store's compare-and-set decides who was first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from services.domain.errors import Overloaded, Unavailable
from services.jobs import states
from services.jobs.app.board import Board
from services.jobs.app.publishing import publish
from services.jobs.ports import ContendedError, JobQueue, JobStore, Stored
from services.jobs.states import JobRecord, State

log = logging.getLogger(__name__)

FINISHED_KEPT = 1_000
"""Finished jobs that stay readable: weeks of a busy brain, and listing them all takes some 50 ms."""
PUBLISH_GRACE = timedelta(seconds=5)
"""A waiting job without a message for so long was left by a process that died; a living one needs milliseconds."""
LOST_SECONDS = 60.0
"""Between two looks whether the queue still has the messages of waiting jobs: only an operator can remove them."""
STEP_SECONDS_MAX = 30.0
"""Clocks are set, so that no wait may be as long as a delay."""
RETRY_SECONDS = 1.0


class Timekeeper:
    """The worker. `step` does all that is due and can be called at any time."""

    def __init__(self, store: JobStore, queue: JobQueue, board: Board, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._queue = queue
        self._board = board
        self._clock = clock
        self._looked_at = float("-inf")

    async def run(self) -> None:
        """Steps whenever something changes or is due, until cancelled."""
        while True:
            version = self._board.version
            try:
                seconds = await self.step()
            except (Unavailable, Overloaded) as error:
                log.warning("jobs are kept waiting for a moment", extra={"cause": error.message})
                await asyncio.sleep(RETRY_SECONDS)
                continue
            try:
                async with asyncio.timeout(seconds):
                    await self._board.change(version)
            except TimeoutError:
                continue

    async def step(self) -> float:
        """Does what is due and returns the seconds until something may be due again."""
        now = self._clock()
        next_due = now + timedelta(seconds=STEP_SECONDS_MAX)
        for record in self._board.jobs():
            due = due_time(record)
            if due is None:
                continue
            if due > now:
                next_due = min(next_due, due)
            elif (stored := await self._fresh(record)) is not None:
                await self._begin(stored, now)
        await self._prune()
        now_monotonic = asyncio.get_running_loop().time()
        if now_monotonic - self._looked_at >= LOST_SECONDS:
            self._looked_at = now_monotonic
            await self.publish_lost()
        return max(0.0, (next_due - self._clock()).total_seconds())

    async def publish_lost(self) -> int:
        """Gives jobs new messages whose messages are not in the queue any more; returns how many."""
        bearing = [
            stored
            for record in self._board.jobs()
            if record.state in (State.WAITING, State.ACTIVE)
            and record.sequence
            and (stored := await self._fresh(record)) is not None
            and stored.record.state in (State.WAITING, State.ACTIVE)
        ]
        # Each is as it was before the look into the queue. One whose message was ended since has changed, too: it is
        # contended below.
        if not bearing or await self._queue.depth() > 0:
            return 0
        published = 0
        for stored in bearing:
            try:
                waiting = await self._store.replace(stored, states.requeued(stored.record, self._clock()))
            except ContendedError:
                continue
            log.warning("the message of a job was lost", extra={"job": stored.record.job_id})
            await publish(self._store, self._queue, waiting)
            published += 1
        return published

    async def _begin(self, stored: Stored, now: datetime) -> None:
        due = due_time(stored.record)
        if due is None or due > now:
            return
        if stored.record.state is State.DELAYED:
            try:
                stored = await self._store.replace(stored, states.promoted(stored.record, now))
            except ContendedError:
                return
        await publish(self._store, self._queue, stored)

    async def _prune(self) -> None:
        finished = sorted(record.job_id for record in self._board.jobs() if record.final)
        for job_id in finished[: max(0, len(finished) - FINISHED_KEPT)]:
            stored = await self._store.get(job_id)
            try:
                if stored is not None:
                    await self._store.remove(stored)
            except ContendedError:
                continue
            self._board.forget(job_id)

    async def _fresh(self, record: JobRecord) -> Stored | None:
        stored = await self._store.get(record.job_id)
        if stored is None:
            self._board.forget(record.job_id)
        return stored


def due_time(record: JobRecord) -> datetime | None:
    """When a job needs its message published; None when it has one, or needs none."""
    if record.state is State.DELAYED and record.delay_until is not None:
        return record.delay_until
    if record.state is State.WAITING and not record.sequence:
        return record.update_time + PUBLISH_GRACE
    return None
