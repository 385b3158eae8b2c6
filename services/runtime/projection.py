"""One projection of one process: the store that serves, how far it is, and building another beside it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from services.domain.errors import BrainError, Conflict, Internal, InvalidArgument, NotReady, Unavailable
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
from services.runtime.projection_serving import HINTS, ServingStore
from services.runtime.projection_store import ProjectionProgress, ProjectionStore, RebuildResult
from services.runtime.projection_stores import Hosted, Stores
from services.runtime.projection_sweep import differences
from services.runtime.pull import ConsumerGone
from services.runtime.store_catalog import Pointer
from services.runtime.tasks import finish, stop

__all__ = ["HostedProjection", "ProjectionProgress", "ProjectionStore", "RebuildResult"]

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ProjectionStore)

REPORT_SECONDS = 0.2


class HostedProjection(ServingStore[S]):
    """One projection of one process. `start`, then `run` as a worker of the module; `close` at the end."""

    _rebuild: Rebuild[S] | None = None

    async def run(self) -> None:
        """Keeps the projection up to the log until cancelled: one worker of the module."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(report_progress(self._bus, self.progress), name=f"{self.name}-report")
            await self.serve()

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

    async def rebuild(self, job_id: str, report: Report, *, to: str = "") -> RebuildResult:
        """Builds a second store from the log and puts it in the place of the first, which serves until then.

        The same job id joins the rebuild that runs, in this process or another, and gets the result of one that is
        finished. Another waits until the one before has ended. Cancelling the caller leaves the work running:
        `cancel_rebuild` ends it.

        Args:
            job_id: Idempotency key. Where stores are shared, and in a move, it names the store, so that a rebuild goes
                on where a death cut it short.
            report: Told pages done and pages in all.
            to: URL of another engine, where the store is made, compared with the log address by address, and serves
                from then on. The old store stays where it is, and refuses who starts with the old setting.

        Raises:
            Conflict: It was cancelled.
            NotReady: The projection is not running, or cannot move.
            InvalidArgument: No engine of this projection has that URL.
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
                rebuild = Rebuild(job_id, self._stores_at(to), moved_to=to)
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
        if rebuild.stores.catalog.shared and not self._stores.catalog.shared:
            self._begin(self._follow_pointer(), f"{self.name}-pointer")
        self._stores = rebuild.stores
        self._adopt(made, pointer)
        with suppress(Unavailable):
            await self._bus.publish(f"{HINTS}.{self.name}", made.store_id.encode())
        log.info("projection rebuilt", extra={"projection": self.name, "store": made.store_id, "pages": result.pages})
        return old

    def _stores_at(self, url: str) -> Stores[S]:
        """The stores at a URL; empty means those that serve."""
        if not url:
            return self._stores
        if "@" in url:
            raise InvalidArgument(
                "FIELD_INVALID",
                "the URL to move to is kept and shown, so it must not hold a password",
                field="to",
                next_step="Give the URL without user and password, and the password by its own setting.",
            )
        if self._catalog_at is None:
            raise NotReady("FEATURE_OFF", f"{self.name} has no other engine to move to", field="to", value=url)
        catalog = self._catalog_at(url)
        return Stores(self.name, self._bus, catalog, batch_max=self._batch_max, retry_seconds=self._retry_seconds)

    async def _abandon(self, rebuild: Rebuild[S], made: Hosted[S] | None, *, keep: bool) -> None:
        """Lets go of a store that will not serve; one that is kept is gone on with by the same job."""
        if made is not None:
            await stop(made.task)
            await made.runner.store.close()
            if not keep:
                await rebuild.stores.discard(made.store_id)
