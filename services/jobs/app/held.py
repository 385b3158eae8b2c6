"""A job that this worker has: every write goes under its run's number, and is refused once another worker goes on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime

from services.domain.errors import Overloaded, Unavailable
from services.jobs import states
from services.jobs.ports import ContendedError, JobStore, Stored
from services.jobs.states import JobRecord, State

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.5
"""Between two stored states of progress: often enough to look at, and no load on the store."""
TRIES_MAX = 32
"""Only requests to end the job write beside its worker, so that losing twice in a row is rare already."""
END_TRIES_MAX = 20
END_RETRY_SECONDS = 0.5
"""The work is done and only its record is missing: waiting out a restart of NATS costs less than doing it again."""
RELEASE_SECONDS_MAX = 2.0
"""A process that stops has more to do."""


class FencedError(Exception):
    """Another worker goes on with the job: this one stops and writes nothing more."""


class Held:
    """One run of one job, in the hands of one task."""

    def __init__(self, store: JobStore, taken: Stored, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._run = taken.record.run
        self.stored = taken
        self._latest: tuple[int, int, str] | None = None
        self._reported_at = float("-inf")

    @property
    def record(self) -> JobRecord:
        """The job as this worker last stored it."""
        return self.stored.record

    async def report(self, finished: int, total: int, unit: str) -> None:
        """Notes how far the job is, and stores it unless that was done a moment ago.

        Raises:
            FencedError: The job is another worker's.
        """
        self._latest = (finished, total, unit)
        now = asyncio.get_running_loop().time()
        if now - self._reported_at < PROGRESS_SECONDS:
            return
        self._reported_at = now
        try:
            await self._update(lambda record: record)
        except (Unavailable, Overloaded) as error:
            # Not worth ending the work for: the next report says more.
            log.warning("progress was not stored", extra={"job": self.record.job_id, "cause": error.message})

    async def end(self, change: Callable[[JobRecord], JobRecord]) -> JobRecord:
        """Stores how the run ended, together with its last progress.

        Raises:
            FencedError: The job is another worker's.
            Unavailable: The store has not answered for some time.
        """
        for tries in range(1, END_TRIES_MAX + 1):
            try:
                await self._update(change)
                break
            except Unavailable as error:
                log.warning("the end was not stored", extra={"job": self.record.job_id, "cause": error.message})
                if tries == END_TRIES_MAX:
                    raise
            await asyncio.sleep(END_RETRY_SECONDS)
        return self.record

    async def release(self) -> None:
        """Says that the job is free, so that the next worker need not take this one for dead; best effort."""
        with contextlib.suppress(Unavailable, Overloaded, FencedError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS_MAX):
                await self._update(lambda record: states.released(record, self._clock()))

    async def _update(self, change: Callable[[JobRecord], JobRecord]) -> None:
        for _ in range(TRIES_MAX):
            try:
                self.stored = await self._store.replace(self.stored, change(self._with_progress(self.record)))
                return
            except ContendedError:
                fresh = await self._store.get(self.record.job_id)
                if fresh is not None and fresh.record.run == self._run and fresh.record.final:
                    # Only this worker ends this run: the write before was stored, and its answer was lost.
                    self.stored = fresh
                    return
                if fresh is None or fresh.record.run != self._run or fresh.record.state is not State.ACTIVE:
                    raise FencedError from None
                self.stored = fresh
        raise Unavailable("PEER_UNAVAILABLE", f"job {self.record.job_id} changes faster than it can be stored")

    def _with_progress(self, record: JobRecord) -> JobRecord:
        if self._latest is None:
            return record
        finished, total, unit = self._latest
        return states.progressed(record, finished, total, unit, self._clock())
