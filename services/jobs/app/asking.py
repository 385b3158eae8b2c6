"""Looking at jobs, and ending them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from services.domain.errors import BrainError
from services.jobs.app.submitting import contended, job_not_found
from services.jobs.kinds import Kind, works_of
from services.jobs.ports import ContendedError, JobStore, Owners, Stored
from services.jobs.states import JobRecord, State, end_requested, ended

log = logging.getLogger(__name__)

TRIES_MAX = 32
"""A worker writes twice a second, so that losing twice in a row is rare already."""


class Asking:
    """The use cases."""

    def __init__(
        self, store: JobStore, owners: Owners, kinds: Mapping[str, Kind], clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._owners = owners
        self._kinds = kinds
        self._clock = clock

    async def get(self, job_id: int) -> JobRecord:
        """The job.

        Raises:
            NotFound: There is none.
        """
        return (await self._stored(job_id)).record

    async def page(
        self, *, state: State | None, queue: str, name: str, before: int | None, limit: int
    ) -> tuple[list[JobRecord], int | None]:
        """At most `limit` jobs, newest first, and where the next page begins; None at the end.

        Args:
            state: Only this state.
            queue: Only this queue; empty means all.
            name: Only this kind; empty means all.
            before: Only numbers below this one.
            limit: At least 1.
        """
        found = [
            record
            for record in await self._store.jobs()
            if (before is None or record.job_id < before)
            and (state is None or record.state is state)
            and (not queue or record.queue == queue)
            and (not name or record.name == name)
        ]
        page = found[:limit]
        return page, page[-1].job_id if len(found) > limit else None

    async def cancel(self, job_id: int) -> JobRecord:
        """The job as it is after its end was asked for: cancelled, or active until its worker has seen to it.

        Raises:
            NotFound: There is none.
        """
        for _ in range(TRIES_MAX):
            stored = await self._stored(job_id)
            record = stored.record
            if record.final:
                return record
            if record.state is State.ACTIVE:
                after = end_requested(record, self._clock())
            else:
                after = ended(record, self._clock(), await self._stop_begun(record))
            try:
                return (await self._store.replace(stored, after)).record
            except ContendedError:
                continue
        raise contended()

    async def _stop_begun(self, record: JobRecord) -> str:
        """Ends what a worker began and gave back: the owner may be at it. Returns what could not be done."""
        note = ""
        if record.begun and record.name in self._kinds:
            for work in works_of(self._kinds[record.name], record.job_id, record.data):
                try:
                    await self._owners.cancel(work)
                except BrainError as error:
                    log.warning("work may go on", extra={"work": work.work_id, "cause": error.message})
                    note = f"{work.owner} could not be told: {error.message}"
        return note

    async def _stored(self, job_id: int) -> Stored:
        stored = await self._store.get(job_id)
        if stored is None:
            raise job_not_found(job_id)
        return stored
