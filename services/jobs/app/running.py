"""What a worker does with one message: takes the job under a number of its own, drives it, stores how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from services.domain.errors import (
    BrainError,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from services.jobs import states
from services.jobs.app.board import Board
from services.jobs.app.driving import Drive, OwnerAwayError
from services.jobs.app.held import FencedError, Held
from services.jobs.app.publishing import publish
from services.jobs.kinds import Kind, works_of
from services.jobs.ports import ContendedError, Delivery, JobQueue, JobStore, Owners, Stored
from services.jobs.states import JobRecord, State

log = logging.getLogger(__name__)

TRIES_MAX = 32
STOP_SECONDS_MAX = 10.0
"""How long a worker waits for the stream of work that was told to end."""
HOPELESS = (InvalidArgument, NotFound, PermissionDenied, Unauthenticated)
"""Refusals that the next try gets too."""
HOPELESS_REASONS = frozenset({"FEATURE_OFF", "KEY_REFUSED"})


class Running:
    """The use case. One message at a time for each call; the process decides how many calls there are."""

    def __init__(
        self,
        store: JobStore,
        queue: JobQueue,
        owners: Owners,
        board: Board,
        kinds: Mapping[str, Kind],
        *,
        clock: Callable[[], datetime],
        jitter: Callable[[], float],
    ) -> None:
        self._store = store
        self._queue = queue
        self._owners = owners
        self._board = board
        self._kinds = kinds
        self._clock = clock
        self._jitter = jitter

    async def handle(self, delivery: Delivery) -> None:
        """Does what the message asks for and acknowledges it once the job's next state is stored.

        Raises:
            Unavailable: The store or the queue does not answer; the message must be given back.
        """
        taken = await self._take(delivery)
        if taken is not None and taken.record.state is State.ACTIVE:
            try:
                await self._run(Held(self._store, taken, self._clock))
            except FencedError:
                log.warning("job is another worker's by now", extra={"job": delivery.job_id, "run": taken.record.run})
                delivery.leave()
                return
        await delivery.ack()

    async def _take(self, delivery: Delivery) -> Stored | None:
        for _ in range(TRIES_MAX):
            stored = await self._store.get(delivery.job_id)
            decision = states.receive(
                stored.record if stored else None, run=delivery.run, sequence=delivery.sequence, now=self._clock()
            )
            if isinstance(decision, states.Drop) or stored is None:
                log.info("message dropped", extra={"job": delivery.job_id, "cause": str(decision)})
                return None
            try:
                if stored.record.state is State.WAITING and self._board.more_urgent(stored.record, delivery.sequence):
                    # Its new message comes after the urgent one's, so that it steps back once for each.
                    behind = await self._store.replace(stored, states.requeued(stored.record, self._clock()))
                    await publish(self._store, self._queue, behind)
                    return None
                taken = await self._store.replace(stored, decision.record)
            except ContendedError:
                continue
            record = taken.record
            log.info("job taken", extra={"job": record.job_id, "kind": record.name, "run": record.run})
            return taken
        raise Unavailable("PEER_UNAVAILABLE", f"job {delivery.job_id} changes faster than it can be taken")

    async def _run(self, held: Held) -> None:
        record = held.record
        # Shown before it is watched, so that an older view of the job does not end the run.
        self._board.show(held.stored)
        try:
            change = await self._outcome(record, held)
        except asyncio.CancelledError:
            await held.release()
            raise
        ending = await held.end(change)
        log.info(
            "job run ended",
            extra={"job": record.job_id, "run": record.run, "state": ending.state, "cause": ending.error_message},
        )

    async def _outcome(self, record: JobRecord, held: Held) -> Callable[[JobRecord], JobRecord]:
        """Drives the job until it is done, fails, is to end, or its time is over; returns what becomes of it."""
        kind = self._kinds.get(record.name)
        if kind is None:
            unknown = InvalidArgument("JOB_INVALID", f"this version knows no kind {record.name!r}")
            return lambda current: states.given_up(current, unknown, self._clock())
        drive = Drive(self._owners, works_of(kind, record.job_id, record.data), held.report)
        if record.cancel_requested:
            note = await drive.stop()
            return lambda current: states.ended(current, self._clock(), note)
        driving = asyncio.create_task(drive.run(), name=f"drive job {record.job_id}")
        called_off = asyncio.create_task(self._called_off(record), name=f"watch job {record.job_id}")
        try:
            await asyncio.wait(
                {driving, called_off},
                timeout=record.timeout.total_seconds(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if driving.done():
                return self._after(driving)
            if not called_off.done():
                await self._stop(drive, driving)
                return self._failed(timed_out(record))
            if called_off.result():
                raise FencedError
            note = await self._stop(drive, driving)
            if driving.done() and not driving.cancelled() and driving.exception() is None:
                return self._after(driving)
            return lambda current: states.ended(current, self._clock(), note)
        finally:
            for task in (driving, called_off):
                task.cancel()
            await asyncio.gather(driving, called_off, return_exceptions=True)

    async def _called_off(self, record: JobRecord) -> bool:
        """Returns when the run should not go on: True when it is another worker's by now, False when it is to end."""
        after = await self._board.wait_for(
            record.job_id,
            lambda seen: seen.run > record.run or seen.final or (seen.run == record.run and seen.cancel_requested),
        )
        return after.run > record.run or after.final

    async def _stop(self, drive: Drive, driving: asyncio.Task[str]) -> str:
        note = await drive.stop()
        await asyncio.wait({driving}, timeout=STOP_SECONDS_MAX)
        if not driving.done():
            # It may have begun the work only now.
            driving.cancel()
            await asyncio.wait({driving})
            note = await drive.stop() or note
        return note

    def _after(self, driving: asyncio.Task[str]) -> Callable[[JobRecord], JobRecord]:
        error = driving.exception()
        match error:
            case None:
                result = driving.result()
                return lambda record: states.completed(record, result, self._clock())
            case FencedError():
                raise error
            case OwnerAwayError(cause=cause):
                return lambda record: states.deferred(record, cause, jitter=self._jitter(), now=self._clock())
            case BrainError() if isinstance(error, HOPELESS) or error.reason in HOPELESS_REASONS:
                return lambda record: states.given_up(record, error, self._clock())
            case BrainError():
                return self._failed(error)
            case Exception():
                log.error("job failed by a mistake of ours", exc_info=error)
                return self._failed(Internal("INTERNAL", "something went wrong inside the brain"))
            case _:
                raise error

    def _failed(self, error: BrainError) -> Callable[[JobRecord], JobRecord]:
        return lambda record: states.failed(record, error, jitter=self._jitter(), now=self._clock())


def timed_out(record: JobRecord) -> DeadlineExceeded:
    """A run took longer than it may."""
    seconds = record.timeout.total_seconds()
    return DeadlineExceeded("DEADLINE_EXCEEDED", f"the run took longer than the {seconds:g} s it may")
