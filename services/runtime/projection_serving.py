"""Which store of a projection serves in this process, and what keeps it up to the log.

A store has a durable of its own, both named by the store's id, and the catalog's pointer says which store serves. A
private store belongs to this process. Stores in a server engine are shared: every process pulls from the one durable,
follows the pointer when another switches it, and makes or removes stores only while it holds the projection's lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

import nats.errors

from services.domain.errors import BrainError, Conflict, Internal, NotReady, Unavailable
from services.runtime.bus import Bus
from services.runtime.projection_rebuild import overtaken
from services.runtime.projection_runner import RETRY_SECONDS
from services.runtime.projection_store import ProjectionStore
from services.runtime.projection_stores import Hosted, Stores
from services.runtime.pull import ConsumerGone
from services.runtime.store_catalog import Pointer, StoreCatalog
from services.runtime.tasks import finish, stop
from services.runtime.telemetry import PROJECTION_PENDING, PROJECTION_REVISION
from services.runtime.watermark import Watermark

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ProjectionStore)

BATCH_MAX = 256
"""Pages a batch: 0.8 MB at 3 kB a page, and a commit's fixed cost of tens of milliseconds over enough of them."""
CLOSE_GRACE_SECONDS = 5.0
"""How long the old store stays open after a switch, for reads that took it without `use`."""
LOOK_SECONDS = 0.25
"""How often who waits asks the server how far the durable is: its other readers do not tell."""
POINTER_SECONDS = 2.0
"""How often a process looks whether another switched the stores they share, beside the hint that says so at once."""
OPEN_RETRY_SECONDS_MIN, OPEN_RETRY_SECONDS_MAX = 0.25, 5.0
"""Between tries of an engine that is away, or while another process makes the first store."""
READERS_SECONDS_MAX = 60.0
TIDY_RETRY_SECONDS = 5.0
"""Between tries while another process makes or removes stores; a lease of a dead one ends after 15 s."""
HINTS = "brain.hints.projection"
"""Subject on which a process says that it switched a store; the projection's name follows."""
HINTS_MAX = 64


class ServingStore(Generic[S]):
    """The store that serves, which may be another one after a switch. `start`, then `serve`; `close` at the end."""

    def __init__(
        self,
        *,
        name: str,
        bus: Bus,
        catalog: StoreCatalog[S],
        catalog_at: Callable[[str], StoreCatalog[S]] | None = None,
        batch_max: int = BATCH_MAX,
        close_grace_seconds: float = CLOSE_GRACE_SECONDS,
        retry_seconds: Sequence[float] = RETRY_SECONDS,
    ) -> None:
        """Describes a projection; nothing happens yet.

        Args:
            name: Such as `search-lexical`; with the store's id it is the durable's name.
            bus: The log.
            catalog: Where its stores are.
            catalog_at: The stores at the URL of another engine, to move to; raises InvalidArgument for one it does not
                know. None: this projection does not move.
            batch_max: Most records that `apply` is given at once.
            close_grace_seconds: How long an old store stays open after another took its place.
            retry_seconds: Delays between the tries of a message that cannot be applied; after the last it is given up.
        """
        self.name = name
        self._bus = bus
        self._stores = Stores(name, bus, catalog, batch_max=batch_max, retry_seconds=retry_seconds)
        self._catalog_at = catalog_at
        self._batch_max = batch_max
        self._close_grace_seconds = close_grace_seconds
        self._retry_seconds = retry_seconds
        self._current: Hosted[S] | None = None
        self._pointer: Pointer | None = None
        self._changing = asyncio.Lock()
        self._waiting_for = "the start"
        self._watermark = Watermark()
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def store(self) -> S:
        """The store that serves reads now. Take it with `use` across an `await`: a rebuild may replace it meanwhile."""
        return self._hosted.runner.store

    @property
    def ready(self) -> bool:
        """Whether reads may use it: for `Module.ready`."""
        return self._current is not None and self._current.ready

    @property
    def indexed_revision(self) -> int:
        """Everything up to it is applied; 0 until the store is ready."""
        return self._watermark.revision

    @property
    def _hosted(self) -> Hosted[S]:
        if self._current is None:
            raise NotReady("INDEX_BEHIND", f"{self.name} is not open", retry_after_seconds=1.0)
        return self._current

    @contextmanager
    def use(self) -> Iterator[S]:
        """The store that serves reads now, kept open until the block ends."""
        hosted = self._hosted
        hosted.readers += 1
        hosted.idle.clear()
        try:
            yield hosted.runner.store
        finally:
            hosted.readers -= 1
            if hosted.readers == 0:
                hosted.idle.set()

    async def start(self) -> None:
        """Opens the store the pointer names, or begins one when there is none or its durable is gone.

        Where the engine is a server that does not answer, or another process makes the first store just now, `run`
        goes on trying.

        Raises:
            Unavailable: A private store, or NATS, cannot be had.
            NotReady: The stores moved to another engine, belong to another log, or were made by a newer version.
        """
        if not self._stores.catalog.shared:
            await self._open_private()
            return
        with suppress(Unavailable):
            await self._open_shared()

    async def serve(self) -> None:
        """Keeps what serves up to the log until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            if self._current is None:
                await self._insist_on_store()
            self._spawn(self._hosted)
            if self._stores.catalog.shared:
                tasks.create_task(self._tidy(), name=f"{self.name}-tidy")
                await self._follow_pointer()

    async def close(self) -> None:
        """Closes the store; after `run` has ended."""
        hosted, self._current = self._current, None
        if hosted is not None:
            await hosted.runner.store.close()

    async def wait_for(self, revision: int, timeout_seconds: float) -> bool:
        """Whether everything up to the revision is applied, now or within the time; wakes as soon as it is.

        What another process applied over the same durable is noticed within LOOK_SECONDS.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        while True:
            left = deadline - loop.time()
            if await self._watermark.wait_for(revision, min(left, LOOK_SECONDS)):
                return True
            if left <= LOOK_SECONDS:
                return False
            with suppress(ConsumerGone, Unavailable):
                await self._hosted.runner.refresh()

    def _spawn(self, hosted: Hosted[S]) -> None:
        if self._tasks is None:
            raise Internal("INTERNAL", f"{self.name} is not running")
        hosted.task = self._begin(self._follow(hosted), f"{self.name}-{hosted.store_id}")

    def _begin(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        assert self._tasks is not None
        try:
            return self._tasks.create_task(work, name=name)
        except RuntimeError as error:  # the process is on its way out, and the group takes no more tasks
            work.close()
            raise NotReady("INDEX_BEHIND", f"{self.name} is stopping", retry_after_seconds=1.0) from error

    async def _open_private(self) -> None:
        pointer = await self._stores.catalog.read()
        check_serves(self.name, pointer)
        await self._stores.discard_others(pointer)
        if pointer is not None:
            try:
                self._adopt(await self._stores.open(pointer), pointer)
            except ConsumerGone:
                log.warning("the durable is gone; the projection is built anew", extra={"projection": self.name})
                await self._stores.discard(pointer.store_id)
        if self._current is None:
            await self._begin_anew(pointer)

    async def _open_shared(self) -> bool:
        """Joins the store that serves all, or begins one; whether it did: another process may be about to."""
        catalog = self._stores.catalog
        try:
            if await self._join(await catalog.read()):
                return True
            async with self._stores.hold():
                pointer = await catalog.read()
                if await self._join(pointer):
                    return True
                log.warning("a shared store is begun", extra={"projection": self.name})
                await self._begin_anew(pointer)
                return True
        except Conflict as error:
            self._waiting_for = error.message
            return False
        except Unavailable as error:
            self._waiting_for = error.message
            log.warning("projection waits", extra={"projection": self.name, "error": error.message})
            raise

    async def _join(self, pointer: Pointer | None) -> bool:
        check_serves(self.name, pointer)
        if pointer is None:
            return False
        try:
            self._adopt(await self._stores.open(pointer), pointer)
        except ConsumerGone:
            return False
        return True

    async def _insist_on_store(self) -> None:
        delay = OPEN_RETRY_SECONDS_MIN
        while True:
            with suppress(Unavailable):
                if await self._open_shared():
                    return
            await asyncio.sleep(delay)
            delay = min(2 * delay, OPEN_RETRY_SECONDS_MAX)

    def _adopt(self, hosted: Hosted[S], pointer: Pointer) -> None:
        """Lets a store serve from now on."""
        self._current, self._pointer, self._waiting_for = hosted, pointer, ""
        self._follow_watermark(hosted)

    async def _follow(self, hosted: Hosted[S]) -> None:
        """Runs a store's runner; when the serving store's durable is deleted, goes on with another store."""
        try:
            await hosted.runner.run()
        except ConsumerGone:
            if hosted is not self._current:
                return  # a rebuild that is being removed, or a store that another replaced
            log.warning("the durable is gone; another store takes its place", extra={"projection": self.name})
            while hosted is self._current:
                if not await self._replace(hosted):
                    await asyncio.sleep(OPEN_RETRY_SECONDS_MIN)
            await self._retire(hosted, remove=not self._stores.catalog.shared)

    async def _replace(self, gone: Hosted[S]) -> bool:
        """Goes on with another store in place of one that is gone; whether there was one to be had."""
        async with self._changing:
            if gone is self._current:
                if not self._stores.catalog.shared:
                    await self._begin_anew(self._pointer)
                else:
                    with suppress(Unavailable):
                        await self._open_shared()
                if gone is self._current:
                    return False
                self._spawn(self._hosted)
            return True

    async def _follow_pointer(self) -> None:
        """Notices what other processes did to the stores that all share, until cancelled."""
        hint = asyncio.Event()
        subscription = await self._bus.connection.subscribe(
            f"{HINTS}.{self.name}", lambda _: hint.set(), messages_max=HINTS_MAX, bytes_max=HINTS_MAX * 1024
        )
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POINTER_SECONDS):
                        await hint.wait()
                hint.clear()
                await self._look_and_follow()
        finally:
            with suppress(nats.errors.Error):  # a connection that is closed has no subscriptions
                await subscription.unsubscribe()

    async def _look_and_follow(self) -> None:
        try:
            old = await self._look()
        except ConsumerGone:
            return  # the runner sees it too, and begins another store
        except BrainError as error:
            self._waiting_for = error.message
            return
        self._waiting_for = ""
        if old is not None:
            self._begin(self._retire(old, remove=False), f"{self.name}-retire")

    async def _look(self) -> Hosted[S] | None:
        """Goes over to the store that serves now, if it is another; returns the one before then."""
        async with self._changing:
            pointer = await self._stores.catalog.read()
            old = self._hosted
            if pointer is None or pointer.store_id == old.store_id:
                check_serves(self.name, pointer)
                await old.runner.refresh()
                return None
            made = await self._stores.open(pointer)
            await stop(old.task)
            self._adopt(made, pointer)
            self._spawn(made)
            log.info("another process switched the store", extra={"projection": self.name, "store": made.store_id})
            return old

    async def _tidy(self) -> None:
        """Removes what deaths left of stores, as soon as no other process is at work on some."""
        while True:
            with suppress(Conflict, Unavailable):
                async with self._stores.hold():
                    pointer = await self._stores.catalog.read()
                    if pointer is not None:
                        await self._stores.discard_others(pointer)
                    return
            await asyncio.sleep(TIDY_RETRY_SECONDS)

    async def _begin_anew(self, pointer: Pointer | None) -> None:
        made = await self._stores.make()
        results = pointer.results if pointer else {}
        begun = Pointer(store_id=made.store_id, ready_from=made.ready_from, results=results)
        if not await self._stores.catalog.write(begun, expected=pointer):
            await made.runner.store.close()
            await self._stores.discard(made.store_id)
            raise overtaken(self.name)
        self._adopt(made, begun)

    def _follow_watermark(self, hosted: Hosted[S]) -> None:
        """Lets this store's progress be the projection's."""
        self._watermark.restart(hosted.runner.watermark.revision)

        def advanced(revision: int) -> None:
            if hosted is self._current:
                self._watermark.advance(revision)
                PROJECTION_REVISION.labels(self.name).set(revision)
                PROJECTION_PENDING.labels(self.name).set(hosted.runner.pending)

        hosted.runner.watermark.listen(advanced)

    async def _retire(self, old: Hosted[S], *, remove: bool) -> None:
        """Closes a store that another replaced, once nobody reads from it."""
        stores = self._stores
        if remove:
            await stores.delete_durable(old.store_id)
        try:
            await asyncio.sleep(self._close_grace_seconds)
            with suppress(TimeoutError):
                async with asyncio.timeout(READERS_SECONDS_MAX):
                    await old.idle.wait()
        finally:
            await finish(self._put_away(stores, old, remove=remove))

    async def _put_away(self, stores: Stores[S], old: Hosted[S], *, remove: bool) -> None:
        await old.runner.store.close()
        if remove:
            await stores.catalog.remove(old.store_id)


def check_serves(name: str, pointer: Pointer | None) -> None:
    """Refuses stores whose place another engine took."""
    if pointer is not None and pointer.moved_to:
        raise NotReady(
            "INDEX_BEHIND",
            f"{name} was moved to {pointer.moved_to}; the stores here serve no more",
            value=pointer.moved_to,
            next_step=f"Set the engine's URL to {pointer.moved_to}, and start again.",
        )
