"""Hosting a projection over the model's store, for the tests of the consumer discipline."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from services.domain.records import PageRecord
from services.runtime.bus import Bus
from services.runtime.page_log import WrongLastSequence
from services.runtime.projection import HostedProjection
from services.runtime.store_catalog import FolderCatalog, StoreCatalog
from tests.model_store import Disk, ModelStore
from tests.records import key, put

SECONDS = 5.0
QUICK = (0.01, 0.01, 0.01, 0.01)

Projection = HostedProjection[ModelStore]


def describe(
    bus: Bus,
    catalog: StoreCatalog[ModelStore],
    *,
    batch_max: int = 16,
    target: StoreCatalog[ModelStore] | None = None,
) -> Projection:
    """A projection that gives up quickly, closes old stores at once, and can move to one target."""
    return HostedProjection(
        name="model",
        bus=bus,
        catalog=catalog,
        catalog_at=None if target is None else lambda _: target,
        batch_max=batch_max,
        close_grace_seconds=0,
        retry_seconds=QUICK,
    )


@contextlib.asynccontextmanager
async def hosted(bus: Bus, folder: Path, disk: Disk, *, batch_max: int = 16) -> AsyncIterator[Projection]:
    """A projection over a folder that runs until the block ends, or until it is killed inside."""
    async with running(bus, FolderCatalog(folder, disk.open), batch_max=batch_max) as projection:
        yield projection


@contextlib.asynccontextmanager
async def running(
    bus: Bus,
    catalog: StoreCatalog[ModelStore],
    *,
    batch_max: int = 16,
    target: StoreCatalog[ModelStore] | None = None,
) -> AsyncIterator[Projection]:
    """A projection that runs until the block ends."""
    projection = describe(bus, catalog, batch_max=batch_max, target=target)
    await projection.start()
    run = asyncio.create_task(projection.run())
    try:
        yield projection
    finally:
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run
        await projection.close()


async def write(
    bus: Bus, slug: str, body: str | None = None, *, make: Callable[[PageRecord], PageRecord] | None = None
) -> PageRecord:
    """Appends to a slug after whatever is newest, again until it is stored."""
    for _ in range(1000):
        newest = await bus.page_log.newest(key(slug))
        record = put(slug, body if body is not None else f"page {slug}", expected=newest.revision if newest else 0)
        try:
            (stored,) = await bus.page_log.append([make(record) if make is not None else record])
        except WrongLastSequence:
            continue
        return stored
    raise AssertionError("writers never let this one through")


async def settled(bus: Bus, projection: Projection) -> None:
    """Returns when everything in the log is applied."""
    assert await projection.wait_for(await bus.page_log.last_revision(), 3 * SECONDS)


async def until(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds; fails after SECONDS."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - the store is told from outside
            await asyncio.sleep(0.005)
