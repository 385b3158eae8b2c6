"""Random histories over a real NATS server: two replicas, doubled and late deliveries, deaths in mid apply, rebuilds.

Whatever happened, in the end every store holds exactly what the model makes of the log, and a sweep finds nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.records import PageId, RecordKind
from services.runtime.bus import Bus, open_bus
from services.runtime.nats_child import nats_child
from services.runtime.nats_connection import ApiError
from services.runtime.page_log import WrongLastSequence
from services.runtime.store_catalog import FolderCatalog, StoreCatalog
from tests.contract.runtime.projections import SECONDS, Projection, describe, running, settled
from tests.model_store import Disk, ModelStore, SharedCatalog, rebuilt
from tests.records import key, put

SLUGS = ["a", "b", "c"]
BODIES = ["A", "B\n[[a]]", "C\n[[A]]\nsee [[b]]", "A\n[[c]]\n[[B]]"]


class Step(NamedTuple):
    """One thing that happens."""

    what: Literal["put", "delete", "move", "die", "again", "rebuild", "settle"]
    slug: str
    new_slug: str
    body: str
    after: int
    """Of a death: how many changes of the store later."""


def steps() -> st.SearchStrategy[list[Step]]:
    what = st.sampled_from(["put", "put", "put", "delete", "move", "die", "again", "rebuild", "settle"])
    slug = st.sampled_from(SLUGS)
    return st.lists(
        st.builds(Step, what, slug, slug, st.sampled_from(BODIES), st.integers(0, 12)), min_size=5, max_size=40
    )


class Brain:
    """A projection that dies and comes again."""

    def __init__(self, bus: Bus, folder: Path | None) -> None:
        self.bus = bus
        self.disk = Disk()
        self.disk.pause = self.pause
        self.catalog: StoreCatalog[ModelStore] = (
            FolderCatalog(folder, self.disk.open) if folder is not None else SharedCatalog(self.disk)
        )
        self.projection: Projection = describe(bus, self.catalog, batch_max=4)
        self.run: asyncio.Task[None] | None = None
        self.changes_until_death: int | None = None
        self.dying = False
        self.ids = 0

    async def pause(self) -> None:
        await asyncio.sleep(0)
        if self.changes_until_death is not None:
            self.changes_until_death -= 1
            if self.changes_until_death < 0:
                self.changes_until_death, self.dying = None, True
                assert self.run is not None
                self.run.cancel()
                raise asyncio.CancelledError

    async def live(self) -> None:
        """Starts again whatever died."""
        if self.run is not None and self.dying:
            await asyncio.wait({self.run})
            await self.projection.close()
            self.run, self.dying = None, False
        if self.run is None:
            self.projection = describe(self.bus, self.catalog, batch_max=4)
            await self.projection.start()
            self.run = asyncio.create_task(self.projection.run())

    async def end(self) -> None:
        if self.run is not None:
            self.run.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.run
            await self.projection.close()

    async def write(self, step: Step) -> None:
        """A write as ingest would decide it; a lost race is a write that did not happen."""
        log = self.bus.page_log
        current, target = await log.newest_of([key(step.slug), key(step.new_slug)])
        expected = current.revision if current else 0
        live = current is not None and current.live
        self.ids += 1
        page_id = current.page_id if current is not None and live else f"id{self.ids}"
        page = put(step.slug, step.body, expected=expected, page_id=page_id)
        gone = replace(page, body=None, content_hash=b"")
        with contextlib.suppress(WrongLastSequence):
            if step.what == "put":
                await log.append([page])
            elif step.what == "delete" and live:
                await log.append([replace(gone, kind=RecordKind.DELETE)])
            elif step.what == "move" and current is not None and live and step.slug != step.new_slug:
                if target is not None and target.live:
                    return
                moved = replace(
                    page,
                    slug=step.new_slug,
                    kind=RecordKind.MOVE,
                    page_id=PageId(page_id),
                    body=current.body,
                    expected=target.revision if target else 0,
                )
                await log.append([replace(gone, kind=RecordKind.REDIRECT, moved_to=step.new_slug), moved])

    async def step(self, step: Step, tasks: asyncio.TaskGroup) -> None:
        match step.what:
            case "die":
                self.changes_until_death = step.after
            case "again":
                await self.deliver_again()
            case "rebuild":
                tasks.create_task(self.rebuild(f"job-{self.ids}"))
            case "settle":
                self.changes_until_death = None
                await self.live()
                await settled(self.bus, self.projection)
            case _:
                tasks.create_task(self.write(step))
        await self.live()

    async def deliver_again(self) -> None:
        """Lets the server deliver whatever is not acknowledged within a moment a second time, to anybody, for good."""
        durable = f"model-{(await self.projection.progress()).store_id}"
        with contextlib.suppress(ApiError):  # a rebuild has just put another in its place
            info = await self.bus.connection.api(f"CONSUMER.INFO.PAGES.{durable}")
            assert isinstance(info["config"], dict)
            config = {**info["config"], "ack_wait": 1_000_000}
            body = {"stream_name": "PAGES", "config": config, "action": "update"}
            await self.bus.connection.api(f"CONSUMER.CREATE.PAGES.{durable}.brain.pages.>", body)

    async def rebuild(self, job_id: str) -> None:
        """Asks for a rebuild; one whose process dies is asked for no more."""

        async def report(_done: int, _total: int) -> None:
            """Reports to nobody."""

        with contextlib.suppress(Exception):
            async with asyncio.timeout(SECONDS):
                await self.projection.rebuild(job_id, report)


async def play(history: list[Step], folder: Path, *, replicas: int = 0) -> None:
    async with nats_child(folder / "nats") as address, open_bus(address.url, name="test") as bus:
        brain = Brain(bus, None if replicas else folder / "p")
        await brain.live()
        try:
            async with contextlib.AsyncExitStack() as stack:
                others = [
                    await stack.enter_async_context(running(bus, brain.catalog, batch_max=3)) for _ in range(replicas)
                ]
                async with asyncio.TaskGroup() as tasks:
                    for step in history:
                        await brain.step(step, tasks)
                brain.changes_until_death = None
                await brain.live()
                for projection in (brain.projection, *others):
                    await settled(bus, projection)

            assert brain.projection.store.model.held == (await rebuilt(bus)).held
            assert await brain.projection.sweep() == 0
            assert (await brain.projection.progress()).pending == 0
        finally:
            await brain.end()


@settings(max_examples=20)
@given(history=steps())
def test_every_history_ends_in_what_a_rebuild_gives(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(history, Path(folder)))


@settings(max_examples=12)
@given(history=steps())
def test_three_replicas_of_one_store_that_get_messages_doubled_and_late_end_in_what_a_rebuild_gives(
    history: list[Step],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(history, Path(folder), replicas=2))
