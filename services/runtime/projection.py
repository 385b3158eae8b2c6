"""One projection of one process: the store that serves, what keeps it up to the log, and building another beside it.

A store has a durable of its own, both named by the store's id, and the catalog's pointer says which store serves. A
private store belongs to this process. Stores in a server engine are shared: every process pulls from the one durable,
follows the pointer when another switches it, and makes or removes stores only while it holds the projection's lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Generic, TypeVar

from services.domain.errors import BrainError, Conflict, Internal, NotReady, Unavailable
from services.runtime.bus import Bus
from services.runtime.projection_rebuild import (
    Rebuild,
    Report,
    cancelled,
    fill,
    follow_elsewhere,
    incomplete,
    overtaken,
)
from services.runtime.projection_report import report_progress
from services.runtime.projection_runner import RETRY_SECONDS
from services.runtime.projection_store import ProjectionProgress, ProjectionStore, RebuildResult
from services.runtime.projection_stores import Hosted, Stores
from services.runtime.projection_sweep import differences
from services.runtime.pull import ConsumerGone
from services.runtime.store_catalog import Pointer, StoreCatalog
from services.runtime.tasks import finish, stop
from services.runtime.telemetry import PROJECTION_PENDING, PROJECTION_REVISION
from services.runtime.watermark import Watermark

__all__ = ["HostedProjection", "ProjectionProgress", "ProjectionStore", "RebuildResult"]

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ProjectionStore)

BATCH_MAX = 256
"""Pages a batch: 0.8 MB at 3 kB a page, and a commit's fixed cost of tens of milliseconds over enough of them."""
CLOSE_GRACE_SECONDS = 5.0
"""How long the old store stays open after a switch, for reads that took it without `use`."""
REPORT_SECONDS = 0.2
LOOK_SECONDS = 0.25
"""How often who waits asks the server how far the durable is: its other readers do not tell."""
POINTER_SECONDS = 2.0
"""How often a process looks whether another switched the stores they share, beside the hint that says so at once."""
OPEN_RETRY_SECONDS_MIN, OPEN_RETRY_SECONDS_MAX = 0.25, 5.0
"""Between tries of an engine that is away, or while another process makes the first store."""
READERS_SECONDS_MAX = 60.0
HINTS = "brain.hints.projection"
"""Subject on which a process says that it switched a store; the projection's name follows."""
HINTS_MAX = 64


class HostedProjection(Generic[S]):
    """One projection of one process. `start`, then `run` as a worker of the module; `close` at the end."""

    def __init__(
        self,
        *,
        name: str,
        bus: Bus,
        catalog: StoreCatalog[S],
        batch_max: int = BATCH_MAX,
        close_grace_seconds: float = CLOSE_GRACE_SECONDS,
        retry_seconds: Sequence[float] = RETRY_SECONDS,
    ) -> None:
        """Describes a projection; nothing happens yet.

        Args:
            name: Such as `search-lexical`; with the store's id it is the durable's name.
            bus: The log.
            catalog: Where its stores are.
            batch_max: Most records that `apply` is given at once.
            close_grace_seconds: How long an old store stays open after another took its place.
            retry_seconds: Delays between the tries of a message that cannot be applied; after the last it is given up.
        """
        self.name = name
        self._bus = bus
        self._stores = Stores(name, bus, catalog, batch_max=batch_max, retry_seconds=retry_seconds)
        self._batch_max = batch_max
        self._close_grace_seconds = close_grace_seconds
        self._retry_seconds = retry_seconds
        self._current: Hosted[S] | None = None
        self._pointer: Pointer | None = None
        self._changing = asyncio.Lock()
        self._waiting_for = "the start"
        self._watermark = Watermark()
        self._tasks: asyncio.TaskGroup | None = None
        self._rebuild: Rebuild[S] | None = None

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

    async def run(self) -> None:
        """Keeps the projection up to the log until cancelled: one worker of the module."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(report_progress(self._bus, self.progress), name=f"{self.name}-report")
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

    async def progress(self) -> ProjectionProgress:
        """How far it is."""
        hosted = self._current
        last_revision = await self._bus.page_log.last_revision()
        rebuilding = self._rebuild is not None
        if hosted is not None:
            with suppress(ConsumerGone):
                await hosted.runner.refresh()
        if self._stores.catalog.shared:
            rebuilding = rebuilding or await self._stores.held_by() is not None
            if hosted is not None:
                await hosted.runner.count_dead()
        return ProjectionProgress(
            projection=self.name,
            store_id=hosted.store_id if hosted else "",
            indexed_revision=self._watermark.revision,
            last_revision=last_revision,
            pending=hosted.runner.pending if hosted else 0,
            dead_letters=hosted.runner.dead_letters if hosted else 0,
            ready=self.ready,
            rebuilding=rebuilding,
            waiting_for=(hosted.runner.waiting_for if hosted else "") or self._waiting_for,
        )

    async def rebuild(
        self, job_id: str, report: Report, *, to: StoreCatalog[S] | None = None, to_url: str = ""
    ) -> RebuildResult:
        """Builds a second store from the log and puts it in the place of the first, which serves until then.

        The same job id joins the rebuild that runs, in this process or another, and gets the result of one that is
        finished. Another waits until the one before has ended. Cancelling the caller leaves the work running:
        `cancel_rebuild` ends it.

        Args:
            job_id: Idempotency key. Where stores are shared, and in a move, it names the store, so that a rebuild goes
                on where a death cut it short.
            report: Told pages done and pages in all.
            to: Another engine, where the store is made, compared with the log address by address, and serves from
                then on. The old store stays where it is, and says where to.
            to_url: The address of `to` without credentials, for whoever starts with the old setting.

        Raises:
            Conflict: It was cancelled.
            NotReady: The projection is not running.
        """
        while True:
            while self._rebuild is not None and self._rebuild.job_id != job_id:
                await asyncio.wait({self._rebuild.outcome})
            if self._stores.catalog.shared:
                self._pointer = await self._stores.catalog.read() or self._pointer
            if self._pointer is not None and job_id in self._pointer.results:
                return self._pointer.results[job_id]
            rebuild = self._rebuild
            if rebuild is None:
                if self._tasks is None or self._current is None:
                    raise NotReady("INDEX_BEHIND", f"{self.name} is not running yet", retry_after_seconds=1.0)
                target = self._stores if to is None else self._stores_in(to)
                rebuild = Rebuild(job_id, target, moved_to=to_url if to is not None else "")
                rebuild.task = self._begin(self._build(rebuild), f"rebuild-{self.name}")
                self._rebuild = rebuild
            while not rebuild.outcome.done():
                await report(rebuild.done, rebuild.total)
                await asyncio.wait({rebuild.outcome}, timeout=REPORT_SECONDS)
            if rebuild.held_elsewhere:
                await follow_elsewhere(rebuild, report)
                continue
            result = await asyncio.shield(rebuild.outcome)
            await report(result.pages, result.pages)
            return result

    async def cancel_rebuild(self, job_id: str) -> bool:
        """Ends a rebuild and removes what it made; whether there was one of this id."""
        rebuild = self._rebuild
        if rebuild is not None and rebuild.job_id == job_id and rebuild.task is not None:
            rebuild.cancelled = True
            rebuild.task.cancel()
            await asyncio.wait({rebuild.task})
            return True
        store_id = self._stores.store_of(job_id)
        serving = self._pointer.store_id if self._pointer else ""
        if self._stores.catalog.shared and store_id != serving and await self._stores.pending(store_id) is not None:
            await self._stores.delete_durable(store_id)  # whoever fills the store sees that, and gives up
            return True
        return False

    async def sweep(self) -> int:
        """Applies again every slug whose held page id and revision differ from the log's; returns how many differed.

        Repairs what a process left that died between a late write and its last look. What the runner has not yet
        come to is left to it.
        """
        hosted = self._hosted
        with self.use():
            repaired = await self._repair(hosted)
        log.info("projection swept", extra={"projection": self.name, "repaired": repaired})
        return repaired

    async def _repair(self, hosted: Hosted[S]) -> int:
        different = await differences(self._bus.page_log, hosted.runner.store, up_to=hosted.runner.watermark.revision)
        repaired = 0
        for start in range(0, len(different), self._batch_max):
            part = different[start : start + self._batch_max]
            failed = await hosted.runner.applier.bring_up({record.key: record for record in part})
            repaired += len(part) - len(failed)
        return repaired

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
        subject = f"{HINTS}.{self.name}"
        await self._bus.connection.subscribe(
            subject, lambda _: hint.set(), messages_max=HINTS_MAX, bytes_max=HINTS_MAX * 1024
        )
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POINTER_SECONDS):
                    await hint.wait()
            hint.clear()
            try:
                old = await self._look()
            except (BrainError, ConsumerGone) as error:
                self._waiting_for = error.message if isinstance(error, BrainError) else ""
                continue
            self._waiting_for = ""
            if old is not None:
                self._begin(self._retire(old, remove=False), f"{self.name}-retire")

    async def _look(self) -> Hosted[S] | None:
        """Goes over to the store that serves now, if it is another; returns the one before then."""
        pointer = await self._stores.catalog.read()
        async with self._changing:
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
        """Removes what deaths left of stores, unless another process is at work on some."""
        with suppress(Conflict, Unavailable):
            async with self._stores.hold():
                pointer = await self._stores.catalog.read()
                if pointer is not None:
                    await self._stores.discard_others(pointer)

    async def _build(self, rebuild: Rebuild[S]) -> None:
        try:
            if rebuild.stores.catalog.shared or self._stores.catalog.shared:
                async with rebuild.stores.hold():
                    rebuild.leased = True
                    await self._build_alone(rebuild)
            else:
                await self._build_alone(rebuild)
        except Conflict as error:
            if not rebuild.outcome.done():
                rebuild.held_elsewhere = not rebuild.leased
                rebuild.outcome.set_exception(error)
        except BrainError as error:
            if not rebuild.outcome.done():
                rebuild.outcome.set_exception(error)
        except asyncio.CancelledError:
            if not rebuild.outcome.done():
                rebuild.outcome.set_exception(cancelled(rebuild.job_id))
            raise
        finally:
            if self._rebuild is rebuild:
                self._rebuild = None

    async def _build_alone(self, rebuild: Rebuild[S]) -> None:
        made: Hosted[S] | None = None
        try:
            made = await rebuild.stores.make(self._store_to_fill(rebuild))
            self._spawn(made)
            await fill(rebuild, made)
            if rebuild.moved_to:
                await self._verify(rebuild, made)
            result = RebuildResult(job_id=rebuild.job_id, store_id=made.store_id, pages=rebuild.total)
            async with self._changing:
                old = await self._switch(rebuild, made, result)
        except asyncio.CancelledError:
            await finish(self._abandon(rebuild, made, keep=rebuild.resumable and not rebuild.cancelled))
            raise
        except Exception as error:  # handed to whoever asked for the rebuild; it must not end the process
            await self._abandon(rebuild, made, keep=False)
            log.exception("rebuild failed", extra={"projection": self.name})
            failure = error if isinstance(error, BrainError) else Internal("INTERNAL", f"the rebuild failed: {error!r}")
            rebuild.outcome.set_exception(failure)
            return
        self._rebuild = None
        rebuild.outcome.set_result(result)
        # What moved away stays: other processes may still serve from it, and it is the way back.
        await self._retire(old, remove=not rebuild.moved_to)

    def _store_to_fill(self, rebuild: Rebuild[S]) -> str:
        """The id of the store, where a death may be gone on from; empty for a new one."""
        if not rebuild.resumable:
            return ""
        store_id = rebuild.stores.store_of(rebuild.job_id)
        return "" if self._pointer is not None and self._pointer.store_id == store_id else store_id

    async def _verify(self, rebuild: Rebuild[S], made: Hosted[S]) -> None:
        """Compares a store with the log, repairs what differs and compares again."""
        repaired = await self._repair(made)
        left = await differences(self._bus.page_log, made.runner.store, up_to=made.runner.watermark.revision)
        log.info("moved store compared", extra={"projection": self.name, "repaired": repaired, "left": len(left)})
        if left and made.runner.dead_letters < len(left):
            raise incomplete(rebuild.moved_to, [record.slug for record in left])

    async def _switch(self, rebuild: Rebuild[S], made: Hosted[S], result: RebuildResult) -> Hosted[S]:
        """Puts a store that is ready in the place of the one that serves, which it has caught up with."""
        old = self._hosted
        await stop(old.task)  # else both go on and neither is ever ahead for sure
        try:
            catalog = rebuild.stores.catalog
            expected = await catalog.read() if rebuild.moved_to else self._pointer
            results = self._pointer.with_result(result) if self._pointer else {result.job_id: result}
            pointer = Pointer(store_id=made.store_id, ready_from=made.ready_from, results=results)
            await made.runner.watermark.wait_for(old.runner.watermark.revision, None)
            if not await catalog.write(pointer, expected=expected):
                raise overtaken(self.name)
            if rebuild.moved_to and self._pointer is not None:
                left = replace(self._pointer, moved_to=rebuild.moved_to)
                await self._stores.catalog.write(left, expected=self._pointer)
        except BaseException:
            self._spawn(old)
            raise
        self._stores = rebuild.stores
        self._adopt(made, pointer)
        with suppress(Unavailable):
            await self._bus.publish(f"{HINTS}.{self.name}", made.store_id.encode())
        log.info("projection rebuilt", extra={"projection": self.name, "store": made.store_id, "pages": result.pages})
        return old

    async def _begin_anew(self, pointer: Pointer | None) -> None:
        made = await self._stores.make()
        results = pointer.results if pointer else {}
        begun = Pointer(store_id=made.store_id, ready_from=made.ready_from, results=results)
        if not await self._stores.catalog.write(begun, expected=pointer):
            await made.runner.store.close()
            await self._stores.discard(made.store_id)
            raise overtaken(self.name)
        self._adopt(made, begun)

    def _stores_in(self, catalog: StoreCatalog[S]) -> Stores[S]:
        return Stores(self.name, self._bus, catalog, batch_max=self._batch_max, retry_seconds=self._retry_seconds)

    def _follow_watermark(self, hosted: Hosted[S]) -> None:
        """Lets this store's progress be the projection's."""
        self._watermark.restart(hosted.runner.watermark.revision)

        def advanced(revision: int) -> None:
            if hosted is self._current:
                self._watermark.advance(revision)
                PROJECTION_REVISION.labels(self.name).set(revision)
                PROJECTION_PENDING.labels(self.name).set(hosted.runner.pending)

        hosted.runner.watermark.listen(advanced)

    async def _abandon(self, rebuild: Rebuild[S], made: Hosted[S] | None, *, keep: bool) -> None:
        """Lets go of a store that will not serve; one that is kept is gone on with by the same job."""
        if made is not None:
            await stop(made.task)
            await made.runner.store.close()
            if not keep:
                await rebuild.stores.discard(made.store_id)

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
