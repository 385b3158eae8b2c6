"""The job queue over the work-queue stream JOBS: one subject for each queue's name, one consumer for all workers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from google.protobuf.message import DecodeError

from brain.v1 import events_pb2
from services.jobs.codec import encode_time
from services.jobs.ports import Deliveries, Delivery
from services.jobs.states import JobRecord
from services.runtime.work_queue import Work, Worker, WorkQueue

log = logging.getLogger(__name__)

STREAM: Final = "JOBS"
SUBJECTS: Final = "brain.jobs.>"


class StreamJobQueue:
    """Implements `JobQueue`."""

    def __init__(self, queue: WorkQueue, clock: Callable[[], datetime]) -> None:
        self._queue = queue
        self._clock = clock

    async def publish(self, record: JobRecord) -> int:
        """Puts a message for the job's run into the queue and returns its sequence."""
        event = events_pb2.JobEvent(job_id=str(record.job_id), run=record.run, time=encode_time(self._clock()))
        subject = f"brain.jobs.{record.queue}"
        message_id = f"job-{record.job_id}-{record.run}"
        return await self._queue.publish(subject, event.SerializeToString(), message_id=message_id)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Deliveries]:
        """A receiving end."""
        async with self._queue.worker(batch_max=1) as worker:
            yield StreamDeliveries(worker)

    async def depth(self) -> int:
        """How many messages there are."""
        return await self._queue.depth()


class StreamDeliveries:
    """Implements `Deliveries`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def next(self) -> Delivery:
        """One message; those that nobody can read are dropped and logged."""
        while True:
            (work,) = await self._worker.next(1, ahead=False)
            try:
                event = events_pb2.JobEvent.FromString(work.payload)
                return StreamDelivery(work, int(event.job_id), event.run)
            except (DecodeError, ValueError) as error:
                log.error("message cannot be read", extra={"sequence": work.sequence, "cause": repr(error)})
                await work.term()


class StreamDelivery:
    """Implements `Delivery`."""

    def __init__(self, work: Work, job_id: int, run: int) -> None:
        self._work = work
        self._job_id = job_id
        self._run = run

    @property
    def job_id(self) -> int:
        """The job."""
        return self._job_id

    @property
    def run(self) -> int:
        """The run that the message was published for."""
        return self._run

    @property
    def sequence(self) -> int:
        """Its place in the queue."""
        return self._work.sequence

    @property
    def tries(self) -> int:
        """How often it was delivered."""
        return self._work.tries

    async def ack(self) -> None:
        """It never comes again."""
        await self._work.ack()

    async def nak(self, delay_seconds: float) -> None:
        """It comes again."""
        await self._work.nak(delay_seconds)

    def leave(self) -> None:
        """Another worker has it by now."""
        self._work.leave()
