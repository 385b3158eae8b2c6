"""Lists, look-ups and counts of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from services.domain.records import PageId
from services.domain.text import analyze_query
from services.runtime.projection_store import ProjectionProgress
from services.search.app.excerpts import excerpt
from services.search.app.ranking import RankedHit
from services.search.app.reads import invalid
from services.search.ports import Collections, LexicalHolder, Projection
from services.search.values import LexicalCounts, LexicalHit, PageFilter, PageList, PageOrder, PagePosition

SNIPPET_CHARACTERS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What is held, as far as the caller may see."""

    counts: LexicalCounts
    embedded: int
    projections: tuple[ProjectionProgress, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How far the projections are."""

    projections: tuple[ProjectionProgress, ...]
    reached: bool
    unembedded: int


class KnownPages:
    """The use cases."""

    def __init__(self, lexical: Projection[LexicalHolder], collections: Collections) -> None:
        self._lexical = lexical
        self._collections = collections

    async def listed(
        self, within: PageFilter, order: PageOrder, *, after: PagePosition | None, offset: int, limit: int
    ) -> PageList:
        """Pages in an order, behind a position."""
        with self._lexical.use() as store:
            return await store.index.list_pages(within, order, after=after, offset=offset, limit=limit)

    async def shown(self, page_ids: Sequence[PageId], query: str, within: PageFilter) -> list[RankedHit]:
        """Pages by id, each with its best passage for the query; unknown and invisible ones are left out."""
        wanted = list(dict.fromkeys(page_ids))
        terms = analyze_query(query).terms if query else ()
        with self._lexical.use() as store:
            pages = await store.index.pages(wanted, within)
            best = await store.index.best_passages(list(pages), terms, within)
        return [_shown(pages[page_id], best.get(page_id), terms) for page_id in wanted if page_id in pages]

    async def stats(self, within: PageFilter) -> Stats:
        """What is held."""
        with self._lexical.use() as store:
            counts = await store.index.counts(within)
        embedded = 0
        if (current := self._collections.current) is not None:
            with current.use() as vectors:
                embedded = await vectors.index.count(within)
        progress = [await projection.progress() for projection in self.projections()]
        return Stats(counts=counts, embedded=embedded, projections=tuple(progress))

    async def embedding(self) -> tuple[int, int]:
        """How many passages there are in all, and how many of them wait for a vector; none when vectors are off."""
        everything = PageFilter(sources=None, private=True)
        with self._lexical.use() as store:
            chunks = (await store.index.counts(everything)).chunks
        if (current := self._collections.current) is None:
            return chunks, 0
        with current.use() as vectors:
            return chunks, max(0, chunks - await vectors.index.count(everything))

    async def waited(self, names: Sequence[str], min_revision: int, *, embedded: bool, timeout_seconds: float) -> Seen:
        """How far the projections are, once those named (all, when none is) hold a revision, or the time is over.

        Raises:
            InvalidArgument: A name is of no projection that is on.
        """
        on = self.projections()
        known = {projection.name for projection in on}
        for name in names:
            if name not in known:
                next_step = f"Use one of: {', '.join(sorted(known))}."
                raise invalid("projections", name, f"names {name!r}, which is no projection that is on", next_step)
        current = self._collections.current
        wanted = [one for one in on if (one.name in names or not names) and one is not self._collections.following]
        async with asyncio.TaskGroup() as tasks:
            waits = [tasks.create_task(one.wait_for(min_revision, timeout_seconds)) for one in wanted]
            if embedded and current is not None:
                # A passage has its vector as soon as its page is applied to the vectors.
                last = (await current.progress()).last_revision
                waits.append(tasks.create_task(current.wait_for(last, timeout_seconds)))
        progress = [await projection.progress() for projection in on]
        _, unembedded = await self.embedding()
        return Seen(projections=tuple(progress), reached=all(wait.result() for wait in waits), unembedded=unembedded)

    def projections(self) -> list[Projection[object]]:
        """Those that are on."""
        on: list[Projection[object]] = [self._lexical]
        on += [one for one in (self._collections.current, self._collections.following) if one is not None]
        return on


def _shown(page: LexicalHit, best: LexicalHit | None, terms: Sequence[str]) -> RankedHit:
    if best is None or best.passage is None:
        return RankedHit(hit=page, snippet=excerpt(page.lead, terms, SNIPPET_CHARACTERS))
    hit = LexicalHit(page.row, best.passage, "", best.score)
    return RankedHit(hit=hit, snippet=excerpt(best.passage.text, terms, SNIPPET_CHARACTERS))
