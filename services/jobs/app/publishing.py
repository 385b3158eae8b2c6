"""Gives the run of a waiting job its message."""

from __future__ import annotations

from services.jobs.ports import ContendedError, JobQueue, JobStore, Stored
from services.jobs.states import published


async def publish(store: JobStore, queue: JobQueue, stored: Stored) -> Stored:
    """Puts the message into the queue and notes its sequence.

    Dying in between, or doing it twice, does no harm: a job without a noted message is published again, and whichever
    message a worker gets first bears the run.
    """
    sequence = await queue.publish(stored.record)
    try:
        return await store.replace(stored, published(stored.record, sequence))
    except ContendedError:
        return stored  # a worker has it already, or somebody ended it
