"""The model's store as a projection's: every single change is on its disk at once, so that a death leaves a half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from services.domain.errors import Unavailable
from services.domain.records import PageId, PageKey, PageRecord
from services.runtime.bus import Bus
from services.runtime.store_catalog import Pointer
from tests.page_log_model import PageLog, Record, Store, documents, rebuild


async def no_pause() -> None:
    """Lets other tasks run between two changes."""
    await asyncio.sleep(0)


class Disk:
    """What survives the death of a process: the model's stores by id."""

    def __init__(self) -> None:
        self.stores: dict[str, Store] = {}
        self.pause: Callable[[], Awaitable[None]] = no_pause
        """Awaited between any two changes; raising there is a death or a failure in the middle."""
        self.refuse: Callable[[PageRecord], None] = lambda _: None
        """Called with each record before it is applied; raising there is a record that cannot be applied."""
        self.batches: list[int] = []

    async def open(self, store_id: str, folder: Path) -> ModelStore:
        """For a `FolderCatalog`."""
        assert folder.is_dir()  # noqa: ASYNC240 - a folder of this test
        return ModelStore(self, self.stores.setdefault(store_id, Store()))


class SharedCatalog:
    """The model's stores in an engine that several processes use; a `StoreCatalog`."""

    shared = True

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.pointer: Pointer | None = None
        self.away = False
        """Whether the engine does not answer."""
        self.before_opening: Callable[[], Pointer] | None = None
        """Called once before a store is opened: what another process puts in place just then."""

    async def read(self) -> Pointer | None:
        await self._answer()
        return self.pointer

    async def write(self, pointer: Pointer, *, expected: Pointer | None) -> bool:
        await self._answer()
        if (self.pointer.store_id if self.pointer else None) != (expected.store_id if expected else None):
            return False
        self.pointer = pointer
        return True

    async def stores(self) -> Sequence[str]:
        await self._answer()
        return sorted(self.disk.stores)

    async def open(self, store_id: str) -> ModelStore:
        await self._answer()
        if self.before_opening is not None:
            self.pointer, self.before_opening = self.before_opening(), None
        return ModelStore(self.disk, self.disk.stores.setdefault(store_id, Store()))

    async def remove(self, store_id: str) -> None:
        await self._answer()
        self.disk.stores.pop(store_id, None)

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise Unavailable("PEER_UNAVAILABLE", "the engine is away")


class ModelStore:
    """A `ProjectionStore`."""

    def __init__(self, disk: Disk, model: Store) -> None:
        self._disk = disk
        self.model = model
        self.closed = False

    async def apply(self, records: Sequence[PageRecord]) -> None:
        assert not self.closed, "a closed store is written"
        assert len({record.key for record in records}) == len(records)
        self._disk.batches.append(len(records))
        for record in records:
            self._disk.refuse(record)
            for document in documents(as_model(record)):
                self.model.upsert(document)
                await self._disk.pause()
            self.model.remove_older(model_slug(record.key), record.revision)
            await self._disk.pause()

    async def held(self) -> AsyncIterator[tuple[PageKey, PageId, int]]:
        for document in list(self.model.held.values()):
            if document.key[0] == "name":
                yield model_key(document.slug), PageId(document.value), document.revision

    async def close(self) -> None:
        self.closed = True


def as_model(record: PageRecord) -> Record:
    """A record in the model's words."""
    return Record(
        slug=model_slug(record.key),
        kind=record.kind.value,
        page_id=record.page_id,
        body=record.body.decode() if record.body is not None else None,
        revision=record.revision,
        moved_to=record.moved_to,
    )


def model_slug(key: PageKey) -> str:
    return f"{key.source}:{key.slug}"


def model_key(slug: str) -> PageKey:
    source, _, rest = slug.partition(":")
    return PageKey(source, rest)


async def rebuilt(bus: Bus) -> Store:
    """The oracle: what the model makes of the log as it is now."""
    model = PageLog()
    async for record in bus.page_log.current(None):
        model.kept[model_slug(record.key)] = [as_model(record)]
    return rebuild(model)
