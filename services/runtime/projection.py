"""One projection of one process: the store that serves, what keeps it up to the log, and building another beside it.

A private store has a folder and a durable of its own, both named by the store's id. The pointer file says which store
serves; whatever else lies in the folder was left by a death and is removed at the next start, durable and all.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Generic, TypeVar

from services.domain.errors import BrainError, Conflict, Internal, NotReady, Unavailable
from services.domain.records import PageId, PageKey, PageRecord, RecordKind
from services.runtime.bus import Bus
from services.runtime.consumers import delete_consumer, ensure_consumer
from services.runtime.page_log import STREAM, SUBJECTS
from services.runtime.projection_report import report_progress
from services.runtime.projection_runner import RETRY_SECONDS, Runner
from services.runtime.projection_store import ProjectionProgress, ProjectionStore, RebuildResult
from services.runtime.pull import ConsumerGone
from services.runtime.store_catalog import Pointer, StoreCatalog
from services.runtime.tasks import finish, stop
from services.runtime.telemetry import PROJECTION_PENDING, PROJECTION_REVISION
from services.runtime.watermark import Watermark

__all__ = ["HostedProjection", "ProjectionProgress", "ProjectionStore", "RebuildResult"]

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ProjectionStore)
Report = Callable[[int, int], Awaitable[None]]

INACTIVE_SECONDS = 7 * 24 * 3600
"""After so long without its process a private store's durable goes; who comes back later rebuilds."""
BATCH_MAX = 256
"""Pages a batch: 0.8 MB at 3 kB a page, and a commit's fixed cost of tens of milliseconds over enough of them."""
CLOSE_GRACE_SECONDS = 5.0
"""How long the old store stays open after a switch, for reads that took it without `use`."""
REPORT_SECONDS = 0.2
LOOK_SECONDS = 0.25
"""How often who waits asks the server how far the durable is: its other readers do not tell."""
READERS_SECONDS_MAX = 60.0


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


class Rebuild:
    """A second store in the making."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.done = 0
        self.total = 0
        self.task: asyncio.Task[None] | None = None
        self.outcome: asyncio.Future[RebuildResult] = asyncio.get_running_loop().create_future()
        # Nobody may be waiting when it fails; the log has it then.
        self.outcome.add_done_callback(lambda future: future.cancelled() or future.exception())


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
        self._catalog = catalog
        self._batch_max = batch_max
        self._close_grace_seconds = close_grace_seconds
        self._retry_seconds = retry_seconds
        self._current: Hosted[S] | None = None
        self._pointer: Pointer | None = None
        self._watermark = Watermark()
        self._tasks: asyncio.TaskGroup | None = None
        self._rebuild: Rebuild | None = None

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
        """Opens the store the pointer names, or begins one when there is none or its durable is gone."""
        pointer = await self._catalog.read()
        stores = await self._catalog.stores()
        for store_id in stores:
            if pointer is None or store_id != pointer.store_id:
                await self._discard(store_id)
        if pointer is not None and pointer.store_id in stores:
            try:
                self._current = await self._open(pointer.store_id, pointer.ready_from)
                self._pointer = pointer
            except ConsumerGone:
                log.warning("the durable is gone; the projection is built anew", extra={"projection": self.name})
                await self._discard(pointer.store_id)
        if self._current is None:
            await self._begin_anew(pointer)
        self._follow_watermark(self._hosted)

    async def run(self) -> None:
        """Keeps the projection up to the log until cancelled: one worker of the module."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._spawn(self._hosted)
            tasks.create_task(report_progress(self._bus, self.progress), name=f"{self.name}-report")

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
        hosted = self._hosted
        last_revision = await self._bus.page_log.last_revision()
        with suppress(ConsumerGone):
            await hosted.runner.refresh()
        return ProjectionProgress(
            projection=self.name,
            store_id=hosted.store_id,
            indexed_revision=self._watermark.revision,
            last_revision=last_revision,
            pending=hosted.runner.pending,
            dead_letters=hosted.runner.dead_letters,
            ready=hosted.ready,
            rebuilding=self._rebuild is not None,
        )

    async def rebuild(self, job_id: str, report: Report) -> RebuildResult:
        """Builds a second store from the log and puts it in the place of the first, which serves until then.

        The same job id joins the rebuild that runs, and gets the result of one that is finished. Another waits until
        the one before has ended. Cancelling the caller leaves the work running: `cancel_rebuild` ends it.

        Raises:
            Conflict: It was cancelled.
            NotReady: The projection is not running.
        """
        while self._rebuild is not None and self._rebuild.job_id != job_id:
            await asyncio.wait({self._rebuild.outcome})
        if self._pointer is not None and job_id in self._pointer.results:
            return self._pointer.results[job_id]
        if self._rebuild is None:
            if self._tasks is None:
                raise NotReady("INDEX_BEHIND", f"{self.name} is not running yet", retry_after_seconds=1.0)
            rebuild = Rebuild(job_id)
            rebuild.task = self._begin(self._build(rebuild), f"rebuild-{self.name}")
            self._rebuild = rebuild
        rebuild = self._rebuild
        while not rebuild.outcome.done():
            await report(rebuild.done, rebuild.total)
            await asyncio.wait({rebuild.outcome}, timeout=REPORT_SECONDS)
        result = await asyncio.shield(rebuild.outcome)
        await report(result.pages, result.pages)
        return result

    async def cancel_rebuild(self, job_id: str) -> bool:
        """Ends a rebuild and removes what it made; whether there was one of this id."""
        rebuild = self._rebuild
        if rebuild is None or rebuild.job_id != job_id or rebuild.task is None:
            return False
        rebuild.task.cancel()
        await asyncio.wait({rebuild.task})
        return True

    async def sweep(self) -> int:
        """Applies again every slug whose held page id and revision differ from the log's; returns how many differed.

        Repairs what a process left that died between a late write and its last look. What the runner has not yet
        come to is left to it.
        """
        hosted = self._hosted
        with self.use() as store:
            known_to = self._watermark.revision
            held: dict[PageKey, set[tuple[PageId, int]]] = {}
            async for key, page_id, revision in store.held():
                held.setdefault(key, set()).add((page_id, revision))
            different: list[PageRecord] = []
            async for record in self._bus.page_log.current(None):
                shown = held.pop(record.key, set())
                wanted = set() if record.kind is RecordKind.DELETE else {(record.page_id, record.revision)}
                if shown != wanted and record.revision <= known_to:
                    different.append(record)
            different += [unknown_to_log(key, max(revision for _, revision in rows)) for key, rows in held.items()]
            repaired = 0
            for start in range(0, len(different), self._batch_max):
                part = different[start : start + self._batch_max]
                failed = await hosted.runner.applier.bring_up({record.key: record for record in part})
                repaired += len(part) - len(failed)
        log.info("projection swept", extra={"projection": self.name, "repaired": repaired})
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

    async def _follow(self, hosted: Hosted[S]) -> None:
        """Runs a store's runner; when the serving store's durable is deleted, begins another store."""
        try:
            await hosted.runner.run()
        except ConsumerGone:
            if hosted is not self._current:
                return  # a rebuild that is being removed
            log.warning("the durable is gone; the projection is built anew", extra={"projection": self.name})
            await self._begin_anew(self._pointer)
            self._follow_watermark(self._hosted)
            self._spawn(self._hosted)
            await self._retire(hosted)

    async def _build(self, rebuild: Rebuild) -> None:
        made: Hosted[S] | None = None
        try:
            made = await self._make()
            rebuild.total = made.runner.pending
            self._spawn(made)
            while not await made.runner.watermark.wait_for(made.ready_from, REPORT_SECONDS):
                rebuild.done = rebuild.total - min(made.runner.pending, rebuild.total)
            rebuild.done = rebuild.total
            result = RebuildResult(job_id=rebuild.job_id, store_id=made.store_id, pages=rebuild.total)
            old = await self._switch(made, result)
        except asyncio.CancelledError:
            await finish(self._abandon(made))
            rebuild.outcome.set_exception(cancelled(rebuild.job_id))
            raise
        except Exception as error:  # handed to whoever asked for the rebuild; it must not end the process
            await self._abandon(made)
            log.exception("rebuild failed", extra={"projection": self.name})
            failure = error if isinstance(error, BrainError) else Internal("INTERNAL", f"the rebuild failed: {error!r}")
            rebuild.outcome.set_exception(failure)
            return
        finally:
            self._rebuild = None
        rebuild.outcome.set_result(result)
        await self._retire(old)

    async def _switch(self, made: Hosted[S], result: RebuildResult) -> Hosted[S]:
        """Puts a store that is ready in the place of the one that serves, which it has caught up with."""
        old = self._hosted
        await stop(old.task)  # else both go on and neither is ever ahead for sure
        try:
            await made.runner.watermark.wait_for(old.runner.watermark.revision, None)
            results = self._pointer.with_result(result) if self._pointer else {result.job_id: result}
            pointer = Pointer(store_id=made.store_id, ready_from=made.ready_from, results=results)
            await self._catalog.write(pointer, expected=self._pointer)
        except BaseException:
            self._spawn(old)
            raise
        self._pointer, self._current = pointer, made
        self._follow_watermark(made)
        log.info("projection rebuilt", extra={"projection": self.name, "store": made.store_id, "pages": result.pages})
        return old

    async def _begin_anew(self, pointer: Pointer | None) -> None:
        made = await self._make()
        results = pointer.results if pointer else {}
        self._pointer = Pointer(store_id=made.store_id, ready_from=made.ready_from, results=results)
        await self._catalog.write(self._pointer, expected=pointer)
        self._current = made

    async def _make(self) -> Hosted[S]:
        """A new store with its durable, empty. The store is there first: a start finds and removes both by it."""
        store_id = secrets.token_hex(6)
        try:
            store = await self._catalog.open(store_id)
            try:
                ready_from = await self._bus.page_log.last_revision()
                await ensure_consumer(
                    self._bus.connection,
                    STREAM,
                    self._durable(store_id),
                    subjects=SUBJECTS,
                    deliver_policy="last_per_subject",
                    ack_pending_max=4 * self._batch_max,
                    inactive_seconds=INACTIVE_SECONDS,
                )
            except BaseException:
                await store.close()
                raise
            return await self._host(store_id, store, ready_from)
        except BaseException:
            await finish(self._discard(store_id))
            raise

    async def _open(self, store_id: str, ready_from: int) -> Hosted[S]:
        return await self._host(store_id, await self._catalog.open(store_id), ready_from)

    async def _host(self, store_id: str, store: S, ready_from: int) -> Hosted[S]:
        try:
            runner = Runner(
                self._bus.connection,
                self._bus.page_log,
                store,
                projection=self.name,
                durable=self._durable(store_id),
                ready_from=ready_from,
                batch_max=self._batch_max,
                retry_seconds=self._retry_seconds,
            )
            await runner.start()
        except BaseException:
            await store.close()
            raise
        return Hosted(store_id, ready_from, runner)

    def _follow_watermark(self, hosted: Hosted[S]) -> None:
        """Lets this store's progress be the projection's."""

        def advanced(revision: int) -> None:
            if hosted is self._current:
                self._watermark.advance(revision)
                PROJECTION_REVISION.labels(self.name).set(revision)
                PROJECTION_PENDING.labels(self.name).set(hosted.runner.pending)

        hosted.runner.watermark.listen(advanced)

    async def _abandon(self, made: Hosted[S] | None) -> None:
        if made is not None:
            await stop(made.task)
            await made.runner.store.close()
            await self._discard(made.store_id)

    async def _retire(self, old: Hosted[S]) -> None:
        """Removes a store that another replaced, once nobody reads from it."""
        with suppress(Unavailable):
            await delete_consumer(self._bus.connection, STREAM, self._durable(old.store_id))
        try:
            await asyncio.sleep(self._close_grace_seconds)
            with suppress(TimeoutError):
                async with asyncio.timeout(READERS_SECONDS_MAX):
                    await old.idle.wait()
        finally:
            await finish(self._remove(old))

    async def _remove(self, old: Hosted[S]) -> None:
        await old.runner.store.close()
        await self._catalog.remove(old.store_id)

    async def _discard(self, store_id: str) -> None:
        with suppress(Unavailable):  # the server forgets it by itself after INACTIVE_SECONDS
            await delete_consumer(self._bus.connection, STREAM, self._durable(store_id))
        await self._catalog.remove(store_id)

    def _durable(self, store_id: str) -> str:
        return f"{self.name}-{store_id}"


def unknown_to_log(key: PageKey, revision: int) -> PageRecord:
    """A delete for a slug that the log does not know at all, newer than what is held: only a lost log leaves such."""
    return PageRecord(
        source=key.source,
        slug=key.slug,
        kind=RecordKind.DELETE,
        page_id=PageId(""),
        time=datetime.now(UTC),
        actor="service:projection",
        revision=revision + 1,
    )


def cancelled(job_id: str) -> Conflict:
    """A rebuild that somebody ended."""
    return Conflict(
        "JOB_STATE", "the rebuild was cancelled", field="job_id", value=job_id, next_step="Submit another one."
    )
