"""Long work on the projections: it belongs to a job, goes on when the caller leaves, and is done once a job id."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from services.domain.errors import BrainError, Conflict, Internal, InvalidArgument, NotReady
from services.search.app.pages import KnownPages
from services.search.ports import Collections, Projection, VectorHolder

log = logging.getLogger(__name__)

REMEMBERED_MAX = 64
"""Pieces of work that are remembered, the running ones among them; rebuilds are remembered by their store too."""

REPORT_SECONDS = 0.5
"""Between two reports of work that says nothing itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a piece of work is."""

    finished: int
    total: int
    unit: str
    done: bool = False
    store_id: str = ""


class Work:
    """One piece of work and everybody who watches it."""

    def __init__(self, unit: str) -> None:
        self.step = Step(finished=0, total=0, unit=unit)
        self.over = False
        self.failure: BrainError | None = None
        self.task: asyncio.Task[None] | None = None
        self.changed = asyncio.Condition()

    async def report(self, finished: int, total: int, *, done: bool = False, store_id: str = "") -> None:
        """Tells the watchers how far it is."""
        self.step = Step(finished=finished, total=total, unit=self.step.unit, done=done, store_id=store_id)
        await self.tell()

    async def changed_from(self, step: Step) -> None:
        """Waits until it is further than a step, or over."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.over or self.step is not step)

    async def tell(self) -> None:
        """Wakes the watchers."""
        async with self.changed:
            self.changed.notify_all()


Begin = Callable[[Work], Coroutine[Any, Any, None]]


class LongWork:
    """The use cases. `run` is a worker of the module: the work is done inside it."""

    def __init__(self, collections: Collections, pages: KnownPages) -> None:
        self._collections = collections
        self._pages = pages
        self._works: OrderedDict[str, Work] = OrderedDict()
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Holds the work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await asyncio.Event().wait()

    def rebuild(self, job_id: str, name: str, *, to: str = "") -> AsyncIterator[Step]:
        """Builds a projection anew, here or in the engine at a URL, and switches; joins the work of the same job."""
        target = self._named(name)

        async def begin(work: Work) -> None:
            result = await target.rebuild(job_id, work.report, to=to)
            await work.report(result.pages, result.pages, done=True, store_id=result.store_id)

        return self._watched(job_id, "pages", begin)

    def embed_missing(self, job_id: str) -> AsyncIterator[Step]:
        """Embeds every passage that has no vector; joins the work of the same job."""
        target = self._collections.current
        if target is None:
            raise NotReady(
                "FEATURE_OFF",
                "there is no embedder",
                field="FLEETBRAIN_EMBEDDER_URL",
                value="none",
                next_step="Set FLEETBRAIN_EMBEDDER_URL, for example to local:use, and start again.",
            )
        return self._watched(job_id, "passages", lambda work: self._embed(work, target))

    async def cancel(self, job_id: str) -> bool:
        """Ends the work of a job; whether there was any running."""
        found = False
        for projection in self._pages.projections():
            # Also without work of ours: another process on the same stores may be at it.
            found = await projection.cancel_rebuild(job_id) or found
        work = self._works.get(job_id)
        if work is None or work.over or work.task is None:
            return found
        work.task.cancel()
        await asyncio.wait({work.task})
        return True

    async def _embed(self, work: Work, target: Projection[VectorHolder]) -> None:
        """Waits until the vectors have come to the log's end of now, then repairs what differs from the log."""
        progress = await target.progress()
        while not await target.wait_for(progress.last_revision, REPORT_SECONDS):
            await work.report(*await self._embedded())
        await target.sweep()
        _, total = await self._embedded()
        store_id = (await target.progress()).store_id
        await work.report(total, total, done=True, store_id=store_id)

    async def _embedded(self) -> tuple[int, int]:
        chunks, waiting = await self._pages.embedding()
        return chunks - waiting, chunks

    def _named(self, name: str) -> Projection[object]:
        projections = {projection.name: projection for projection in reversed(self._pages.projections())}
        if name in projections:
            return projections[name]
        raise InvalidArgument(
            "FIELD_INVALID",
            f"there is no projection {name!r} here",
            field="projection",
            value=name,
            next_step=f"Use one of: {', '.join(sorted(projections))}.",
        )

    async def _watched(self, job_id: str, unit: str, begin: Begin) -> AsyncIterator[Step]:
        work = self._works.get(job_id)
        if work is None or work.failure is not None:
            work = self._begin(job_id, Work(unit), begin)
        shown: Step | None = None
        while True:
            if work.step is not shown:
                shown = work.step
                yield shown
                continue
            if work.failure is not None:
                raise work.failure
            if shown.done:
                return
            await work.changed_from(shown)

    def _begin(self, job_id: str, work: Work, begin: Begin) -> Work:
        if self._tasks is None:
            raise NotReady("INDEX_BEHIND", "the service is not running yet", retry_after_seconds=1.0)
        self._works[job_id] = work
        while len(self._works) > REMEMBERED_MAX and next(iter(self._works.values())).over:
            self._works.popitem(last=False)
        work.task = self._tasks.create_task(_done(work, begin), name=f"work-{job_id}")
        return work


async def _done(work: Work, begin: Begin) -> None:
    """The work, with its end told to whoever watches; a failure is theirs and must not end the process."""
    try:
        await begin(work)
    except asyncio.CancelledError:
        work.failure = Conflict("JOB_STATE", "the work was cancelled", next_step="Submit it again if it is wanted.")
        raise
    except BrainError as error:
        work.failure = error
    except Exception as error:
        log.exception("work failed")
        work.failure = Internal("INTERNAL", f"the work failed: {type(error).__name__}")
    finally:
        work.over = True
        await work.tell()
