"""One connection to NATS and everything of ours that lives on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from services.domain.errors import Unavailable
from services.runtime.key_value import KeyValue
from services.runtime.leases import Leases
from services.runtime.nats_connection import EMBEDDED, NatsConnection, open_connection
from services.runtime.nats_options import NatsOptions
from services.runtime.nats_storage import Storage
from services.runtime.page_log import PageLog
from services.runtime.streams import DEAD_LETTERS, PAGES, Topology, ensure_stream, key_value_stream, topology_of
from services.runtime.work_queue import WorkQueue, ensure_queue

log = logging.getLogger(__name__)

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.25, 4.0
"""Between tries of a NATS that is not there yet; a cluster elects its leader within about ten seconds."""
LEASES_BYTES_MAX = 16 * 1024 * 1024


class Bus:
    """The page log, leases, buckets and queues of one process; safe to share among all its modules."""

    def __init__(self, connection: NatsConnection, *, topology: Topology) -> None:
        self.connection = connection
        self.page_log = PageLog(connection)
        self._topology = topology

    @property
    def connected(self) -> bool:
        """Whether NATS is there, as far as is known."""
        return self.connection.connected

    @property
    def storing(self) -> bool:
        """Whether NATS is there and has room for writes, as far as is known."""
        return self.connection.storing

    async def key_value(
        self, bucket: str, *, ttl_seconds: float | None = None, history: int = 1, max_bytes: int
    ) -> KeyValue:
        """A bucket, made when it is not there. A full one refuses writes.

        Args:
            bucket: ASCII letters, digits, `-` and `_`.
            ttl_seconds: After so long a value is gone; None keeps it.
            history: How many values of a key stay readable, 1 to 64.
            max_bytes: Of all values together.
        """
        stream = key_value_stream(bucket, ttl_seconds=ttl_seconds, history=history, max_bytes=max_bytes)
        await ensure_stream(self.connection, stream, topology=self._topology)
        return KeyValue(self.connection, bucket)

    async def work_queue(self, name: str, *, subjects: str, in_flight_max: int = 64) -> WorkQueue:
        """A durable queue: its stream (such as `JOBS` over `brain.jobs.>`) and the one consumer all workers share."""
        return await ensure_queue(self.connection, name, subjects, topology=self._topology, in_flight_max=in_flight_max)

    async def log_id(self) -> str:
        """A UUID of the page log, by which an engine knows stores of another log: two brains on one place in it."""
        return await self.page_log.log_id()

    async def publish(self, subject: str, message: bytes) -> None:
        """Sends a hint to whoever listens now: at most once, never the only bearer of anything."""
        await self.connection.publish(subject, message)

    @property
    def leases(self) -> Leases:
        """Leases by name, for work that one process at a time may do."""
        return Leases(self.connection)


@asynccontextmanager
async def open_bus(
    url: str,
    *,
    name: str,
    patience_seconds: float = 0.0,
    storage: Storage | None = None,
    options: NatsOptions = EMBEDDED,
) -> AsyncIterator[Bus]:
    """Connects and makes sure that the streams are as they must be.

    Args:
        url: Where NATS answers; several addresses are separated by commas.
        name: What the server calls this connection.
        patience_seconds: How long a NATS that is not there yet, or has no leader yet, is tried again.
        storage: What is known of the room of the embedded server; None for one that others run.
        options: Who we are there, whom we believe, and how many replicas streams have.

    Raises:
        Unavailable: NATS does not answer, or has no JetStream.
        InvalidArgument: The server does not take messages of 8 MB.
    """
    async with AsyncExitStack() as stack:
        deadline = asyncio.get_running_loop().time() + patience_seconds
        delay = RETRY_SECONDS_MIN
        while True:
            try:
                async with AsyncExitStack() as attempt:
                    bus = await _open(attempt, url, name, storage, options)
                    stack.push_async_exit(attempt.pop_all())
                break
            except Unavailable as error:
                if asyncio.get_running_loop().time() + delay > deadline:
                    raise
                log.warning("waiting for NATS", extra={"error": error.message, "retry_seconds": delay})
            await asyncio.sleep(delay)
            delay = min(2 * delay, RETRY_SECONDS_MAX)
        yield bus


async def _open(stack: AsyncExitStack, url: str, name: str, storage: Storage | None, options: NatsOptions) -> Bus:
    connection = await stack.enter_async_context(open_connection(url, name=name, storage=storage, options=options))
    topology = topology_of(options, clustered=connection.clustered)
    for stream in (PAGES, DEAD_LETTERS, Leases.stream(LEASES_BYTES_MAX)):
        await ensure_stream(connection, stream, topology=topology)
    return Bus(connection, topology=topology)
