"""The worker loop: one message at a time, and whatever happens over one of them does not stop the next."""

from __future__ import annotations

import asyncio
import logging

from services.domain.errors import BrainError, Unavailable
from services.jobs.app.running import Running
from services.jobs.ports import Delivery, JobQueue

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
GIVE_BACK_SECONDS = 5.0
"""Until a message comes again whose job could not be stored: a restart of NATS takes less."""
TRIES_MAX = 20
"""Deliveries of a message that fails by a mistake of ours every time. Workers that die are counted by the job."""


async def consume(queue: JobQueue, running: Running) -> None:
    """Works until cancelled; concurrency is 1, because the work is done elsewhere and rebuilds share their machine."""
    async with queue.worker() as deliveries:
        while True:
            try:
                delivery = await deliveries.next()
            except Unavailable as error:
                log.warning("the queue does not answer", extra={"cause": error.message})
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await handle(running, delivery)


async def handle(running: Running, delivery: Delivery) -> None:
    """Handles one message; gives it back when that fails."""
    try:
        await running.handle(delivery)
    except BrainError as error:
        log.warning("message given back", extra={"job": delivery.job_id, "cause": error.message})
        await give_back(delivery)
    except Exception:
        log.exception("message failed", extra={"job": delivery.job_id, "tries": delivery.tries})
        await give_back(delivery)


async def give_back(delivery: Delivery) -> None:
    """Gives the message back, or drops it after TRIES_MAX deliveries; when nobody answers, it comes by itself."""
    try:
        if delivery.tries >= TRIES_MAX:
            log.error("message given up", extra={"job": delivery.job_id})
            await delivery.ack()
        else:
            await delivery.nak(GIVE_BACK_SECONDS)
    except Unavailable as error:
        log.warning("message not given back", extra={"job": delivery.job_id, "cause": error.message})
