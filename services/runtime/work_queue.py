"""A durable queue: each message goes to one worker, again and again until one says that it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from services.domain.errors import Overloaded, Unavailable
from services.runtime.consumers import ensure_consumer
from services.runtime.nats_connection import ApiError, NatsConnection, read_api
from services.runtime.pull import ACK, TERM, Delivery, PullReader, open_reader
from services.runtime.streams import Topology, ensure_stream, work_queue_stream

QUEUE_FULL = frozenset({10047, 10077, 10054, 10122, 10123})


@dataclass(frozen=True, slots=True)
class Work:
    """One message that this worker has. Exactly one of `ack`, `nak`, `term` and `leave` is the last word on it."""

    subject: str
    payload: bytes
    sequence: int
    tries: int
    """Deliveries from 1; more than 1 means that a worker had it before and did not end it."""
    _delivery: Delivery
    _reader: PullReader

    async def ack(self) -> None:
        """It is done; returns when the server has noted that, so that it never comes again."""
        await self._reader.acknowledge([self._delivery], ACK)

    async def nak(self, delay_seconds: float = 0.0) -> None:
        """It is not done; it comes again after the delay, to any worker."""
        await self._reader.refuse([self._delivery], delay_seconds)

    async def term(self) -> None:
        """It is given up and never comes again."""
        await self._reader.acknowledge([self._delivery], TERM)

    def leave(self) -> None:
        """Another worker has it by now: this one neither ends it nor gives it back."""
        self._reader.forget([self._delivery])


class Worker:
    """The receiving end. While it is open, what it has handed out is kept from being delivered to others."""

    def __init__(self, reader: PullReader) -> None:
        self._reader = reader

    async def next(self, limit: int = 1, *, ahead: bool = True) -> Sequence[Work]:
        """At least one message, at most `limit`; waits for the first as long as it takes.

        Long work is taken without `ahead`, or one worker would keep the next message from idle ones until it is done.

        Raises:
            Unavailable: NATS does not answer; calling again is right.
        """
        deliveries = await self._reader.next_batch(limit, ahead=ahead)
        return [Work(d.subject, d.payload, d.sequence, d.tries, d, self._reader) for d in deliveries]


class WorkQueue:
    """One queue."""

    def __init__(self, connection: NatsConnection, name: str) -> None:
        self._connection = connection
        self._name = name

    async def publish(self, subject: str, payload: bytes, *, message_id: str) -> int:
        """Puts a message into the queue and returns its sequence; the same id within two minutes is one message.

        Raises:
            Overloaded: The queue is full.
            Unavailable: No acknowledgement came; publishing again with the same id is right.
        """
        headers = {"Nats-Msg-Id": message_id, "Nats-Expected-Stream": self._name}
        reply = await self._connection.request(subject, payload, headers=headers)
        try:
            return int(str(read_api(reply)["seq"]))
        except ApiError as error:
            if error.error_code in QUEUE_FULL:
                raise Overloaded(
                    "LIMIT_REACHED",
                    f"the queue {self._name} is full: {error.description}",
                    metadata={"limit": f"{self._name}.max_msgs"},
                    next_step="Wait until some of it is done.",
                    retry_after_seconds=5.0,
                ) from error
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"the queue {self._name} refused a message: {error}",
                metadata={"peer": "nats"},
                next_step="Publish again with the same id.",
            ) from error

    @asynccontextmanager
    async def worker(self, *, batch_max: int = 1) -> AsyncIterator[Worker]:
        """A receiving end, which fetches at most `batch_max` messages ahead; unended ones go back when it closes."""
        async with open_reader(self._connection, self._name, CONSUMER, batch_max=batch_max) as reader:
            yield Worker(reader)

    async def depth(self) -> int:
        """How many messages are in the queue, those in hand included."""
        state = (await self._connection.api(f"STREAM.INFO.{self._name}"))["state"]
        assert isinstance(state, dict)
        return int(state["messages"])


CONSUMER = "workers"


async def ensure_queue(
    connection: NatsConnection, name: str, subjects: str, *, topology: Topology, in_flight_max: int
) -> WorkQueue:
    """The queue, made when it is not there."""
    await ensure_stream(connection, work_queue_stream(name, subjects), topology=topology)
    await ensure_consumer(
        connection, name, CONSUMER, subjects=subjects, deliver_policy="all", ack_pending_max=in_flight_max
    )
    return WorkQueue(connection, name)
