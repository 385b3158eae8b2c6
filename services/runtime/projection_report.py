"""Each projection's progress in the bucket `projections`, for whoever watches a whole fleet from outside."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from brain.v1 import events_pb2
from services.domain.errors import BrainError
from services.runtime.bus import Bus
from services.runtime.page_codec import timestamp
from services.runtime.projection_store import ProjectionProgress

BUCKET = "projections"
BUCKET_BYTES_MAX = 16 * 1024 * 1024
REPORT_SECONDS = 5.0
TTL_SECONDS = 60
"""An entry that is not renewed is of a store, or of a process, that is gone."""


async def report_progress(bus: Bus, progress: Callable[[], Awaitable[ProjectionProgress]]) -> None:
    """Writes the progress under `<projection>.<store>` every REPORT_SECONDS until cancelled.

    A hint for people and autoscalers, so a write that fails is left to the next one.
    """
    bucket = None
    while True:
        with contextlib.suppress(BrainError):
            bucket = bucket or await bus.key_value(BUCKET, max_bytes=BUCKET_BYTES_MAX)
            now = await progress()
            key = f"{now.projection}.{now.store_id}"
            await bucket.put(key, encode_progress(now, datetime.now(UTC)), ttl_seconds=TTL_SECONDS)
        await asyncio.sleep(REPORT_SECONDS)


def encode_progress(progress: ProjectionProgress, time: datetime) -> bytes:
    """The value of an entry."""
    return events_pb2.ProjectionProgress(
        projection=progress.projection,
        store_id=progress.store_id,
        indexed_revision=progress.indexed_revision,
        last_revision=progress.last_revision,
        pending=progress.pending,
        dead_letters=progress.dead_letters,
        ready=progress.ready,
        rebuilding=progress.rebuilding,
        waiting_for=progress.waiting_for,
        update_time=timestamp(time),
    ).SerializeToString()
