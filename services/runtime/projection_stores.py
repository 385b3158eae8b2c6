"""Making, opening and removing the stores of one projection, each with the durable that fills it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Generic, TypeVar

from services.domain.errors import Unavailable
from services.runtime.bus import Bus
from services.runtime.consumers import consumer_state, delete_consumer, ensure_consumer
from services.runtime.leases import Lease
from services.runtime.page_log import STREAM, SUBJECTS
from services.runtime.projection_runner import Runner
from services.runtime.projection_store import ProjectionStore
from services.runtime.pull import ACK_WAIT_SECONDS, SHARED_ACK_WAIT_SECONDS, ConsumerGone
from services.runtime.store_catalog import Pointer, StoreCatalog
from services.runtime.tasks import finish

S = TypeVar("S", bound=ProjectionStore)

INACTIVE_SECONDS = 7 * 24 * 3600
"""After so long without its process a private store's durable goes; who comes back later rebuilds."""
BATCHES_IN_HAND_MAX, SHARED_BATCHES_IN_HAND_MAX = 4, 64
"""Batches delivered and not acknowledged: two a reader, and as many again; shared, of sixteen readers."""


class Hosted(Generic[S]):
    """One store with its runner, and who reads from it now."""

    def __init__(self, store_id: str, ready_from: int, runner: Runner[S]) -> None:
        self.store_id = store_id
        self.ready_from = ready_from
        self.runner = runner
        self.task: asyncio.Task[None] | None = None
        self.readers = 0
        self.idle = asyncio.Event()
        self.idle.set()

    @property
    def ready(self) -> bool:
        """Whether it has reached the log's end of when it was begun."""
        return self.ready_from == 0 or self.runner.watermark.revision > 0


class Stores(Generic[S]):
    """The stores of one projection in one catalog."""

    def __init__(
        self, name: str, bus: Bus, catalog: StoreCatalog[S], *, batch_max: int, retry_seconds: Sequence[float]
    ) -> None:
        self.catalog = catalog
        self._name = name
        self._bus = bus
        self._batch_max = batch_max
        self._retry_seconds = retry_seconds

    async def make(self, store_id: str = "") -> Hosted[S]:
        """A store with its durable: a new one, or the one of this id as far as it was filled before.

        The store is there before its durable: whoever tidies up finds and removes both by it.
        """
        resumed = bool(store_id)
        store_id = store_id or secrets.token_hex(6)
        try:
            store = await self.catalog.open(store_id)
            try:
                ready_from = await self._bus.page_log.last_revision()
                await self._ensure_durable(store_id)
            except BaseException:
                await store.close()
                raise
            return await self._host(store_id, store, ready_from)
        except BaseException:
            if not resumed:
                await finish(self.discard(store_id))
            raise

    async def open(self, pointer: Pointer) -> Hosted[S]:
        """The store that a pointer names.

        Raises:
            ConsumerGone: It has no durable any more, or is not there itself: nothing brings it up to the log.
            Unavailable: The engine or NATS does not answer.
        """
        if pointer.store_id not in await self.catalog.stores():
            raise ConsumerGone(self.durable(pointer.store_id))
        return await self._host(pointer.store_id, await self.catalog.open(pointer.store_id), pointer.ready_from)

    async def discard(self, store_id: str) -> None:
        """Removes a store and its durable."""
        await self.delete_durable(store_id)
        await self.catalog.remove(store_id)

    async def discard_others(self, pointer: Pointer | None) -> None:
        """Removes every store but the one that serves: a death left them. Only for whoever makes stores here."""
        for store_id in await self.catalog.stores():
            if pointer is None or store_id != pointer.store_id:
                await self.discard(store_id)

    async def delete_durable(self, store_id: str) -> None:
        """Removes a store's durable. One of a private store that stays is forgotten after INACTIVE_SECONDS."""
        with suppress(Unavailable):
            await delete_consumer(self._bus.connection, STREAM, self.durable(store_id))

    async def pending(self, store_id: str) -> int | None:
        """How many messages a store lacks, whoever fills it; None when nobody does."""
        state = await consumer_state(self._bus.connection, STREAM, self.durable(store_id))
        return state.pending if state is not None else None

    def hold(self) -> AbstractAsyncContextManager[Lease]:
        """Holds what one process at a time may have: making and removing stores.

        Raises:
            Conflict: Another process has it, or it was lost.
        """
        return self._bus.leases.hold(self.lease, holder=f"{socket.gethostname()}-{os.getpid()}")

    async def held_by(self) -> str | None:
        """Which process makes or removes stores now."""
        return await self._bus.leases.holder(self.lease)

    @property
    def lease(self) -> str:
        """The lease's name."""
        return f"projection.{self._name}"

    def store_of(self, job_id: str) -> str:
        """The id of the store that a rebuild fills, from which another process can go on after a death."""
        return hashlib.sha256(f"{self._name}:{job_id}".encode()).hexdigest()[:12]

    def durable(self, store_id: str) -> str:
        """The name of a store's durable."""
        return f"{self._name}-{store_id}"

    async def _ensure_durable(self, store_id: str) -> None:
        shared = self.catalog.shared
        await ensure_consumer(
            self._bus.connection,
            STREAM,
            self.durable(store_id),
            subjects=SUBJECTS,
            deliver_policy="last_per_subject",
            ack_pending_max=(SHARED_BATCHES_IN_HAND_MAX if shared else BATCHES_IN_HAND_MAX) * self._batch_max,
            # A shared store outlives every process; it is removed on purpose, and its durable with it.
            inactive_seconds=0 if shared else INACTIVE_SECONDS,
            ack_wait_seconds=SHARED_ACK_WAIT_SECONDS if shared else ACK_WAIT_SECONDS,
        )

    async def _host(self, store_id: str, store: S, ready_from: int) -> Hosted[S]:
        try:
            runner = Runner(
                self._bus.connection,
                self._bus.page_log,
                store,
                projection=self._name,
                durable=self.durable(store_id),
                ready_from=ready_from,
                batch_max=self._batch_max,
                shared=self.catalog.shared,
                retry_seconds=self._retry_seconds,
            )
            await runner.start()
        except BaseException:
            await store.close()
            raise
        return Hosted(store_id, ready_from, runner)
