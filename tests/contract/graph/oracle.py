"""The graph told in the plainest way: documents by id, and every name resolved at the moment somebody asks.

Slow, with no index and nothing derived, so that there is nothing to get out of step. Every engine must say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.domain.page import LinkProvenance, LinkReference
from services.domain.records import PageId, PageKey
from services.graph.naming import Candidate, NameKind, choose, folder_of, key_of, page_names, slug_names
from services.graph.ports import (
    Direction,
    GraphStore,
    LinkPosition,
    NameQuestion,
    PageEntry,
    SlugChange,
    Viewer,
)

RANKS = (LinkProvenance.FRONTMATTER, LinkProvenance.MANUAL, LinkProvenance.TEXT, LinkProvenance.MENTION)


class HeldPage(NamedTuple):
    key: PageKey
    revision: int
    entry: PageEntry


class ResolvedLink(NamedTuple):
    """A link as one viewer sees it."""

    maker: PageId
    ordinal: int
    link: LinkReference
    far: PageId | None
    candidates: tuple[PageId, ...]


@dataclass(slots=True)
class Oracle:
    slugs: dict[PageKey, tuple[PageId, int, bool]] = field(default_factory=dict)
    pages: dict[PageId, HeldPage] = field(default_factory=dict)

    def apply(self, change: SlugChange) -> None:
        """The consumer rule of the page log, document by document."""
        if change.leads and self.slugs.get(change.key, ("", 0, False))[1] <= change.revision:
            self.slugs[change.key] = (change.page_id, change.revision, change.page is None)
        held = self.pages.get(change.page_id)
        if change.page is not None and (held is None or held.revision <= change.revision):
            self.pages[change.page_id] = HeldPage(change.key, change.revision, change.page)
        if change.key in self.slugs and self.slugs[change.key][1] < change.revision:
            del self.slugs[change.key]
        for page_id, page in list(self.pages.items()):
            if page.key == change.key and page.revision < change.revision:
                del self.pages[page_id]

    def sees(self, viewer: Viewer, page_id: PageId) -> bool:
        page = self.pages.get(page_id)
        if page is None or (page.entry.private and not viewer.private):
            return False
        return viewer.sources is None or page.key.source in viewer.sources

    def visible(self, viewer: Viewer) -> list[PageId]:
        return [page_id for page_id in self.pages if self.sees(viewer, page_id)]

    def candidates(self, source: str, name: str, viewer: Viewer) -> list[Candidate[PageId]]:
        key, found = key_of(name), []
        if not key or (viewer.sources is not None and source not in viewer.sources):
            return []
        for address, (page_id, _, moved) in self.slugs.items():
            if address.source == source and self.sees(viewer, page_id):
                names = slug_names(address.slug, redirect=moved)
                found += [(kind, page_id, address.slug) for kind, one in names if one == key]
        for page_id, page in self.pages.items():
            if page.key.source == source and self.sees(viewer, page_id):
                own = page_names(page.entry.title, page.entry.aliases)
                found += [(kind, page_id, name) for kind, one, name in own if one == key]
        rows = [
            Candidate(page_id, kind, name, folder_of(self.pages[page_id].key.slug), private=False)
            for kind, page_id, name in found
        ]
        return sorted(rows, key=lambda c: (self.pages[c.page].key, c.page, c.kind))

    def links(self, viewer: Viewer) -> Iterator[ResolvedLink]:
        """Every link of every visible page but those to itself."""
        for maker in self.visible(viewer):
            page, seen = self.pages[maker], set()
            for ordinal, link in enumerate(page.entry.links):
                what = (link.source, link.name, link.link_type, link.provenance, link.inward, link.fragment, link.embed)
                if what in seen:
                    continue
                seen.add(what)
                folder = folder_of(page.key.slug) if link.source == page.key.source else None
                candidates = self.candidates(link.source, link.name, viewer)
                named = [one for one in candidates if one.kind is not NameKind.UNDATED_TAIL]
                found = choose(named, name=link.name, titled=link.titled, folder=folder)
                ids = tuple(candidate.page for candidate in found)
                if ids == (maker,):
                    continue
                single = len(ids) == 1
                yield ResolvedLink(maker, ordinal, link, ids[0] if single else None, () if single else ids)

    def slug_of(self, page_id: PageId) -> str:
        return self.pages[page_id].key.slug

    def list_links(self, page_id: PageId, viewer: Viewer, *, arriving: bool) -> Sequence[object]:
        rows = []
        for one in self.links(viewer):
            if one.maker == page_id and one.link.inward == arriving:
                far = self.slug_of(one.far) if one.far else one.link.name
                slugs = tuple(sorted(self.slug_of(candidate) for candidate in one.candidates))
                rows.append((LinkPosition(one.link.link_type, far, one.maker, one.ordinal), one.far or "", slugs))
            elif one.far == page_id and one.link.inward != arriving:
                far = self.slug_of(one.maker)
                rows.append((LinkPosition(one.link.link_type, far, one.maker, one.ordinal), one.maker, ()))
        return sorted(rows)

    def edges(self, viewer: Viewer) -> Iterator[tuple[PageId, PageId, ResolvedLink]]:
        for one in self.links(viewer):
            if one.far is not None:
                yield (one.far, one.maker, one) if one.link.inward else (one.maker, one.far, one)

    def count_backlinks(self, page_id: PageId, viewer: Viewer) -> int:
        return len({begin for begin, end, _ in self.edges(viewer) if end == page_id})

    def hops(self, viewer: Viewer, direction: Direction) -> Sequence[object]:
        """From all pages at once: near, far, against, type, and the evidence."""
        best: dict[tuple[PageId, PageId, bool, str], tuple[int, int, PageId]] = {}
        for begin, end, one in self.edges(viewer):
            if one.link.provenance is LinkProvenance.MENTION:
                continue
            rank = (RANKS.index(one.link.provenance), one.ordinal, one.maker)
            for near, far, against in ((begin, end, False), (end, begin, True)):
                if direction is Direction.BOTH or against == (direction is Direction.IN):
                    step = (near, far, against, one.link.link_type)
                    best[step] = min(best.get(step, rank), rank)
        return sorted((*step, rank[0], rank[1]) for step, rank in best.items())

    def unresolved(self, viewer: Viewer) -> Sequence[object]:
        rows = [one for one in self.links(viewer) if one.far is None]
        return sorted((*self.pages[one.maker].key, one.maker, one.ordinal, bool(one.candidates)) for one in rows)

    def resolve(self, name: str, source: str, viewer: Viewer) -> Sequence[object]:
        found = choose(self.candidates(source, name, viewer), name=name, titled=True, folder=None)
        return [(candidate.page, candidate.kind) for candidate in found]

    def stats(self, viewer: Viewer) -> object:
        links = list(self.links(viewer))
        types = Counter(one.link.link_type for one in links)
        return (
            len(self.visible(viewer)),
            len(links),
            sum(one.far is None for one in links),
            tuple(sorted(types.items(), key=lambda item: (-item[1], item[0]))),
        )


async def assert_same(store: GraphStore, oracle: Oracle, viewer: Viewer, names: list[str], sources: list[str]) -> None:
    """Everything that can be read of a store is what the oracle says."""
    for page_id in {*oracle.pages, PageId("nobody")}:
        for arriving in (False, True):
            rows = await store.list_links(page_id, viewer, arriving=arriving, link_types=(), after=None, limit=1000)
            shown = []
            for position, link in rows:
                far = link.from_page if arriving else link.to_page
                shown.append((position, far.page_id, tuple(sorted(one.slug for one in link.candidates))))
            wanted = oracle.list_links(page_id, viewer, arriving=arriving) if oracle.sees(viewer, page_id) else []
            assert shown == wanted
    ids = sorted(oracle.pages)
    counts = [oracle.count_backlinks(one, viewer) if oracle.sees(viewer, one) else 0 for one in ids]
    assert await store.count_backlinks(ids, viewer) == counts
    for direction in Direction:
        hops = await store.hops(ids, viewer, direction=direction, link_types=(), page_types=(), limit=10_000)
        walked = [
            (
                hop.near.page_id,
                hop.far.page_id,
                hop.inward,
                hop.link.link_type,
                RANKS.index(hop.link.provenance),
                hop.link.line,
            )
            for hop in hops
        ]
        assert sorted(walked) == oracle.hops(viewer, direction)
    lost = await store.list_unresolved(viewer, makers=None, after=None, limit=1000)
    assert [(*position, link.ambiguous) for position, link in lost] == oracle.unresolved(viewer)
    for source in sources:
        found = await store.resolve_names([NameQuestion(name, source) for name in names], viewer)
        for name, matches in zip(names, found, strict=True):
            assert [(match.page.page_id, match.kind) for match in matches] == oracle.resolve(name, source, viewer)
    stats = await store.stats(viewer, makers=None)
    assert (stats.pages, stats.links, stats.ghosts, stats.link_types) == oracle.stats(viewer)
    for key, (page_id, _, _) in oracle.slugs.items():
        page = await store.find_page(key, viewer)
        assert (page.page_id if page else None) == (page_id if oracle.sees(viewer, page_id) else None)
