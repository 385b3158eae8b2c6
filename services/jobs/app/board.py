"""The jobs as this process last saw them: wakes who waits for a change, and never decides anything.

It follows the store's watch, so it may be a moment behind. Whoever acts on it reads the store first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from services.domain.errors import Unavailable
from services.jobs.ports import Change, JobStore, Stored
from services.jobs.states import JobRecord, State

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


class Board:
    """All kept jobs: some thousands of small records at most, which the store's limits see to."""

    def __init__(self) -> None:
        self._jobs: dict[int, Stored] = {}
        self._changed = asyncio.Event()
        self._version = 0

    async def follow(self, store: JobStore) -> None:
        """Keeps up with the store until cancelled."""
        while True:
            try:
                async for change in store.watch():
                    self._note(change)
            except Unavailable as error:
                log.warning("jobs are not followed for a moment", extra={"cause": error.message})
            await asyncio.sleep(RETRY_SECONDS)

    def show(self, stored: Stored) -> None:
        """Notes how a job is now, unless something newer is known."""
        held = self._jobs.get(stored.record.job_id)
        if held is None or held.revision < stored.revision:
            self._jobs[stored.record.job_id] = stored
            self._tell()

    def forget(self, job_id: int) -> None:
        """Notes that a job is no longer kept."""
        if self._jobs.pop(job_id, None) is not None:
            self._tell()

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    def jobs(self) -> Iterable[JobRecord]:
        """All of them, in no order."""
        return [stored.record for stored in self._jobs.values()]

    @property
    def unfinished(self) -> int:
        """How many jobs are not in a final state."""
        return sum(1 for stored in self._jobs.values() if not stored.record.final)

    def more_urgent(self, record: JobRecord, sequence: int) -> bool:
        """Whether a more urgent job of the same queue waits whose message comes after this one's, `sequence`."""
        return any(
            other.queue == record.queue
            and other.state is State.WAITING
            and other.sequence > sequence
            and other.priority < record.priority
            for other in self.jobs()
        )

    async def wait_for(self, job_id: int, holds: Callable[[JobRecord], bool]) -> JobRecord:
        """The job once it is so."""
        while True:
            stored = self._jobs.get(job_id)
            if stored is not None and holds(stored.record):
                return stored.record
            await self.change(self._version)

    async def change(self, version: int) -> None:
        """Returns as soon as anything has changed since that version."""
        while self._version == version:
            await self._changed.wait()

    def _note(self, change: Change) -> None:
        if change.stored is not None:
            self.show(change.stored)
        else:
            self.forget(change.job_id)

    def _tell(self) -> None:
        self._version += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
