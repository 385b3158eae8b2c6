"""A page log in memory with the rules of the real one, so that use cases can be tried without a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.domain.records import KEPT_PER_SLUG, PageKey, PageRecord
from services.ingest.ports import WrongLastSequence


class MemoryLog:
    """Keeps the newest records of each slug; one sequence over all of them."""

    def __init__(self, kept_per_slug: int = KEPT_PER_SLUG) -> None:
        self.kept_per_slug = kept_per_slug
        self.last = 0
        self.records: dict[PageKey, list[PageRecord]] = {}

    async def newest(self, key: PageKey) -> PageRecord | None:
        return self.records[key][-1] if key in self.records else None

    async def newest_of(self, keys: Sequence[PageKey]) -> list[PageRecord | None]:
        return [await self.newest(key) for key in keys]

    async def at(self, key: PageKey, revision: int) -> PageRecord | None:
        return next((r for r in self.records.get(key, []) if r.revision == revision), None)

    async def kept(self, key: PageKey) -> list[PageRecord]:
        newest = await self.newest(key)
        if newest is None:
            return []
        found = [await self.at(key, p.revision) for p in newest.predecessors]
        return [*(r for r in found if r is not None), newest]

    async def append(self, batch: Sequence[PageRecord]) -> list[PageRecord]:
        for record in batch:
            newest = await self.newest(record.key)
            if record.expected != (newest.revision if newest is not None else 0):
                raise WrongLastSequence(record.slug)
        stored = []
        for record in batch:
            self.last += 1
            stored.append(replace(record, revision=self.last))
            records = self.records.setdefault(record.key, [])
            records.append(stored[-1])
            del records[: -self.kept_per_slug]
        return stored

    async def erase(self, key: PageKey, revision: int) -> None:
        records = self.records.get(key, [])
        assert not records or records[-1].revision != revision, "the newest record of a slug is never erased"
        self.records[key] = [r for r in records if r.revision != revision]

    async def last_revision(self) -> int:
        return self.last

    async def keys(self, source: str, folder: str = "") -> list[PageKey]:
        return sorted(
            k for k in self.records if k.source == source and (not folder or f"{k.slug}/".startswith(f"{folder}/"))
        )
