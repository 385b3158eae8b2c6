"""One durable consumer into one store: batch, apply, acknowledge, and say how far it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from services.domain.errors import Unavailable
from services.domain.records import PageKey, PageRecord
from services.domain.slugs import subject_of
from services.runtime.consumers import consumer_state, redeliver_at_once
from services.runtime.dead_letters import bury, count_letters
from services.runtime.nats_connection import NatsConnection
from services.runtime.page_codec import decode_record
from services.runtime.page_log import STREAM, PageLog
from services.runtime.projection_apply import Applier
from services.runtime.projection_store import ProjectionStore
from services.runtime.pull import TERM, ConsumerGone, Delivery, PullReader, open_reader
from services.runtime.telemetry import PROJECTION_APPLIED, PROJECTION_DEAD
from services.runtime.watermark import Watermark

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ProjectionStore)
T = TypeVar("T")

RETRY_SECONDS = (0.1, 0.5, 2.0, 5.0)
"""Delays before the second to the fifth and last try of a message that cannot be applied."""
ENGINE_RETRY_SECONDS_MAX = 5.0
"""Between tries while the engine or NATS is away: those are not counted."""


@dataclass(slots=True)
class Batch:
    """Messages in hand, by the slug they say has changed."""

    deliveries: dict[str, list[Delivery]] = field(default_factory=dict)
    records: dict[str, PageRecord] = field(default_factory=dict)
    unreadable: dict[str, Exception] = field(default_factory=dict)


class Runner(Generic[S]):
    """Keeps one store up to the log. Its watermark is the durable's ack floor."""

    def __init__(
        self,
        connection: NatsConnection,
        page_log: PageLog,
        store: S,
        *,
        projection: str,
        durable: str,
        ready_from: int,
        batch_max: int,
        shared: bool = False,
        retry_seconds: Sequence[float] = RETRY_SECONDS,
    ) -> None:
        self._shared = shared
        self.waiting_for = ""
        """What it cannot go on without, in words; empty while it goes on."""
        self.store = store
        self.durable = durable
        self.watermark = Watermark()
        self.dead_letters = 0
        self.pending = 0
        self.applier = Applier(page_log, store, batch_max=batch_max)
        self._connection = connection
        self._page_log = page_log
        self._projection = projection
        self._ready_from = ready_from
        self._batch_max = batch_max
        self._retry_seconds = retry_seconds
        self._redelivered_to = 0
        self._tries: dict[int, int] = {}

    async def start(self) -> None:
        """Finds out how far the store is, and makes come again what an earlier process had in hand, if nobody has it.

        Of a shared durable others may have it: a reset would take it from them, they would do the same when their
        acknowledgements find no answer, and so on for ever. What a dead one had comes again after the durable's time.

        Raises:
            ConsumerGone: There is no such durable any more.
        """
        await self.count_dead()
        if not self._shared:
            await self._recover()
        await self.refresh()

    async def run(self) -> None:
        """Follows the log until cancelled.

        Raises:
            ConsumerGone: The durable was deleted.
        """
        async with open_reader(
            self._connection,
            STREAM,
            self.durable,
            batch_max=self._batch_max,
            shared=self._shared,
            recover=None if self._shared else self._recover,
        ) as reader:
            while True:
                deliveries = await self._insist(lambda: reader.next_batch(self._batch_max))
                await self._handle(reader, deliveries)

    async def count_dead(self) -> None:
        """Reads how many messages were given up, by whichever process."""
        self.dead_letters = await count_letters(self._connection, self.durable)

    async def refresh(self) -> None:
        """Reads how far the durable is."""
        state = await consumer_state(self._connection, STREAM, self.durable)
        if state is None:
            raise ConsumerGone(self.durable)
        self.pending = state.pending
        # A durable that delivers only the last of each subject reports a floor before it has delivered anything.
        if state.ack_floor >= self._ready_from:
            self.watermark.advance(state.ack_floor)

    async def _recover(self) -> None:
        """Makes what the server believes to be in somebody's hand come again: it is in nobody's."""
        state = await consumer_state(self._connection, STREAM, self.durable)
        if state is None:
            raise ConsumerGone(self.durable)
        self._redelivered_to = max(self._redelivered_to, state.delivered)
        if state.in_hand:
            await redeliver_at_once(self._connection, STREAM, self.durable)

    async def _handle(self, reader: PullReader, deliveries: Sequence[Delivery]) -> None:
        batch = self._read(deliveries)
        failed = await self._insist(lambda: self._bring_up(batch))
        failures = batch.unreadable | {subject_of(key): error for key, error in failed.items()}
        done = [d for subject, group in batch.deliveries.items() if subject not in failures for d in group]
        await self._insist(lambda: reader.acknowledge(done))
        for delivery in done:
            self._tries.pop(delivery.sequence, None)
        for subject, error in failures.items():
            for delivery in batch.deliveries[subject]:
                await self._give_up_or_retry(reader, delivery, error)
        PROJECTION_APPLIED.labels(self._projection).inc(len(batch.records))
        await self._insist(self.refresh)

    def _read(self, deliveries: Sequence[Delivery]) -> Batch:
        batch = Batch()
        newest: dict[str, Delivery] = {}
        for delivery in deliveries:
            batch.deliveries.setdefault(delivery.subject, []).append(delivery)
            held = newest.get(delivery.subject)
            if held is None or held.sequence < delivery.sequence:
                newest[delivery.subject] = delivery
        for subject, delivery in newest.items():
            try:
                record = decode_record(delivery.payload, delivery.sequence)
                if subject_of(record.key) != subject:
                    raise ValueError(f"message {delivery.sequence} is on another subject than its slug's")
                batch.records[subject] = record
            except Exception as error:  # noqa: BLE001 - the edge of the consumer loop: whatever is in it, it is not a page
                batch.unreadable[subject] = error
        return batch

    async def _bring_up(self, batch: Batch) -> dict[PageKey, Exception]:
        """Applies the batch. A message that came before may be old by now, so the newest is read first.

        One that comes for the first time may be taken as that first look: it was the newest once, and the look after
        applying tells whether it still is.
        """
        records = {record.key: record for record in batch.records.values()}
        again = [
            record.key
            for subject, record in batch.records.items()
            if any(d.tries > 1 or d.sequence <= self._redelivered_to for d in batch.deliveries[subject])
        ]
        newest = await self._page_log.newest_of(again)
        records |= {record.key: record for record in newest if record is not None}
        return await self.applier.bring_up(records)

    async def _give_up_or_retry(self, reader: PullReader, delivery: Delivery, error: Exception) -> None:
        tries = self._tries[delivery.sequence] = self._tries.get(delivery.sequence, 0) + 1
        if tries <= len(self._retry_seconds):
            await self._insist(lambda: reader.refuse([delivery], self._retry_seconds[tries - 1]))
            return
        reason = f"{type(error).__name__}: {error}"
        await self._insist(lambda: bury(self._connection, self.durable, delivery, tries=tries, reason=reason))
        await self._insist(lambda: reader.acknowledge([delivery], TERM))
        self._tries.pop(delivery.sequence, None)
        self.dead_letters += 1
        PROJECTION_DEAD.labels(self._projection).inc()
        log.error("message given up", extra={"durable": self.durable, "revision": delivery.sequence, "reason": reason})

    async def _insist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Tries until the engine and NATS are there; what is in hand stays in hand meanwhile."""
        delay = 0.05
        while True:
            try:
                result = await attempt()
            except Unavailable as error:
                self.waiting_for = error.message
                extra = {"durable": self.durable, "error": error.message, "retry_seconds": delay}
                log.warning("projection waits", extra=extra)
            else:
                self.waiting_for = ""
                return result
            await asyncio.sleep(delay)
            delay = min(2 * delay, ENGINE_RETRY_SECONDS_MAX)
