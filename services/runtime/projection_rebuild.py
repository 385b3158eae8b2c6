"""Filling a second store from the log: how far it is, who is at it, and what can come between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from services.domain.errors import Conflict, Internal, Unavailable
from services.runtime.projection_store import ProjectionStore, RebuildResult
from services.runtime.projection_stores import Hosted, Stores
from services.runtime.pull import ConsumerGone

S = TypeVar("S", bound=ProjectionStore)
Report = Callable[[int, int], Awaitable[None]]

LOOK_SECONDS = 0.2
SHOWN_MAX = 5


class Rebuild(Generic[S]):
    """A second store in the making."""

    def __init__(self, job_id: str, stores: Stores[S], *, moved_to: str = "") -> None:
        self.job_id = job_id
        self.stores = stores
        self.moved_to = moved_to
        self.done = 0
        self.total = 0
        self.leased = False
        self.cancelled = False
        self.held_elsewhere = False
        """Another process is at work on the stores; `follow_elsewhere` waits for it."""
        self.task: asyncio.Task[None] | None = None
        self.outcome: asyncio.Future[RebuildResult] = asyncio.get_running_loop().create_future()
        # Nobody may be waiting when it fails; the log has it then.
        self.outcome.add_done_callback(lambda future: future.cancelled() or future.exception())

    @property
    def resumable(self) -> bool:
        """Whether the same job goes on with the store after a death."""
        return self.stores.catalog.shared or bool(self.moved_to)


async def fill(rebuild: Rebuild[S], made: Hosted[S]) -> None:
    """Returns when the store has reached the log's end of when it was begun; its runner does the work.

    Raises:
        Conflict: Somebody else deleted its durable, which is how another process cancels it.
    """
    rebuild.total = made.runner.pending
    try:
        while not await made.runner.watermark.wait_for(made.ready_from, LOOK_SECONDS):
            with suppress(Unavailable):
                await made.runner.refresh()
            rebuild.done = rebuild.total - min(made.runner.pending, rebuild.total)
    except ConsumerGone as error:
        raise cancelled(rebuild.job_id) from error
    rebuild.done = rebuild.total


async def follow_elsewhere(rebuild: Rebuild[S], report: Report) -> None:
    """Reports how far another process is, until it has ended its work on the stores."""
    stores = rebuild.stores
    while await stores.held_by() is not None:
        pending = await stores.pending(stores.store_of(rebuild.job_id)) or 0
        rebuild.total = max(rebuild.total, pending)
        await report(rebuild.total - pending, rebuild.total)
        await asyncio.sleep(LOOK_SECONDS)


def cancelled(job_id: str) -> Conflict:
    """A rebuild that somebody ended."""
    return Conflict(
        "JOB_STATE", "the rebuild was cancelled", field="job_id", value=job_id, next_step="Submit another one."
    )


def overtaken(name: str) -> Conflict:
    """Somebody else switched the stores meanwhile."""
    return Conflict(
        "WRITE_CONTENDED",
        f"another process put another store of {name} in place meanwhile",
        field="projection",
        value=name,
        next_step="Try again.",
    )


def incomplete(url: str, slugs: Sequence[str]) -> Internal:
    """A store that was filled and still lacks pages that the log has."""
    shown = ", ".join(slugs[:SHOWN_MAX])
    return Internal(
        "INTERNAL",
        f"the store at {url} differs from the log in {len(slugs)} pages after it was filled: {shown}",
        next_step="Nothing was switched; look into the engine's log and try again.",
    )
